//! `efface forget`: take rows, or the rows of a person, out of a model.

use std::io::Read;
use std::path::Path;

use efface::Options;
use efface_engine::{Engine, Who};

use super::change::ending;
use crate::cli::Forget;
use crate::failure::{Failure, Result};
use crate::report::{certificate, count};
use crate::terminal::Terminal;

pub(crate) fn run(args: Forget, terminal: &Terminal) -> Result {
    let who = who(&args)?;
    let mut engine =
        if args.dry_run { Engine::open_read_only(&args.model)? } else { Engine::open(&args.model)? };
    let options = Options { tolerance: args.tolerance, steps: args.steps, measure: args.measure };
    let report = engine.forget(&who, &args.method, &options, args.dry_run)?;
    if terminal.json() {
        return terminal.object(&report);
    }
    let verb = if report.dry_run { "would forget" } else { "forgot" };
    let whose =
        args.subject.map(|person| format!(" of {}={}", person.column, person.value)).unwrap_or_default();
    let rows = count(report.forgotten, "row");
    terminal.message(&format!("{verb} {rows}{whose} by {}: {}", report.method, ending(&report)));
    if let Some(found) = &report.evidence.certificate {
        terminal.message(&format!("certified: {}", certificate(found)));
    }
    if report.features_dropped > 0 {
        let names = count(report.features_dropped, "feature name");
        let erased = if report.dry_run { "would be erased" } else { "erased" };
        terminal.note(&format!("{names} {erased}: no other row has them"));
    }
    for what in &report.evidence.not_covered {
        terminal.note(&format!("not covered: {what}"));
    }
    Ok(())
}

fn who(args: &Forget) -> Result<Who> {
    if let Some(person) = &args.subject {
        return Ok(Who::Subject { column: person.column.clone(), value: person.value.clone() });
    }
    let ids = match &args.ids_file {
        Some(path) => lines(&read(path)?),
        None => args.ids.clone(),
    };
    if let Some(at) = ids.iter().position(String::is_empty) {
        return Err(
            Failure::usage(format!("id {} of {} is empty", at + 1, ids.len())).hint("check the commas")
        );
    }
    Ok(Who::Ids(ids))
}

fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    let (name, outcome) = if path == Path::new("-") {
        (Path::new("standard input"), std::io::stdin().lock().read_to_string(&mut text))
    } else {
        (path, std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text)))
    };
    outcome.map_err(|cause| Failure::file(name, "read", &cause))?;
    Ok(text)
}

/// One id a line; lines of nothing are no ids.
fn lines(text: &str) -> Vec<String> {
    let text = text.trim_start_matches('\u{feff}');
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_lines() {
        assert_eq!(lines("\u{feff}a b\r\n\n-5\n  \nc"), ["a b", "-5", "c"]);
    }
}
