//! What the bounds are worth, on many seeded problems: the long versions of tests that CI runs in
//! short.

use anyhow::{Result, bail};

/// Each part, the program that prints its table, and its arguments.
const PARTS: [(&str, &str, &[&str]); 3] = [
    ("ridge", "claims", &["2400", "4e3"]),
    ("classifiers", "claims_classifiers", &["240"]),
    ("coverage", "coverage", &["1000"]),
];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let wanted = args.first().map(String::as_str);
    if let Some(name) = wanted
        && !PARTS.iter().any(|(part, ..)| *part == name)
    {
        let names: Vec<&str> = PARTS.iter().map(|(part, ..)| *part).collect();
        bail!("there is no part {name}; parts: {}", names.join(", "));
    }
    for (part, program, usual) in PARTS
        .iter()
        .filter(|(part, ..)| wanted.is_none_or(|name| name == *part))
    {
        eprintln!("{part}:");
        let mut command = vec![
            "bench",
            "--quiet",
            "--package",
            "efface",
            "--bench",
            program,
            "--",
        ];
        let given: Vec<&str> = args.iter().skip(1).map(String::as_str).collect();
        command.extend(if given.is_empty() {
            usual.to_vec()
        } else {
            given
        });
        crate::run("cargo", &command)?;
    }
    Ok(())
}
