//! `cargo xtask mutants`: mutation testing of bounds, changes, claims, ledger and the requests of
//! the service.
//!
//! cargo-mutants lists the mutants. A sample that follows from a seed is written into one copy of
//! the sources, each mutant behind a switch, so that all of them cost one build instead of one
//! build each. The tests are then run once for each mutant, which an environment variable turns on.
//! A mutant that no test notices is printed with its place.

mod rewrite;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use rewrite::Mutant;

/// The environment variable that turns a mutant on.
const SWITCH: &str = "EFFACE_MUTANT";

/// An area of the sources, and the packages whose tests are to notice its mutants.
struct Area {
    package: &'static str,
    /// Globs of source files, as cargo-mutants takes them.
    files: &'static [&'static str],
    /// Packages whose tests are run, the nearest first.
    tested_by: &'static [&'static str],
}

/// Code whose faults would make a claim false, lose a request or let somebody in.
const AREAS: [Area; 3] = [
    Area {
        package: "efface",
        files: &[
            "crates/efface/src/models/ridge/bound.rs",
            "crates/efface/src/models/logistic/bound.rs",
            "crates/efface/src/models/penalised/*.rs",
            "crates/efface/src/models/family/rule.rs",
            "crates/efface/src/evidence.rs",
            "crates/efface/src/not_covered.rs",
        ],
        tested_by: &["efface", "efface-engine"],
    },
    Area {
        package: "efface-engine",
        files: &[
            "crates/efface-engine/src/operations/change/*.rs",
            "crates/efface-engine/src/ledger/*.rs",
        ],
        tested_by: &["efface-engine", "efface-cli"],
    },
    Area {
        package: "efface-server",
        files: &[
            "crates/efface-server/src/erasures/*.rs",
            "crates/efface-server/src/api/erasures.rs",
            "crates/efface-server/src/api/guard.rs",
            "crates/efface-server/src/access/*.rs",
        ],
        tested_by: &["efface-server"],
    },
];

/// A compiled test program.
#[derive(Debug, Clone)]
struct TestProgram {
    package: String,
    path: PathBuf,
    /// The folder in which cargo runs it.
    folder: PathBuf,
    /// Duration without a mutant.
    usual: Duration,
}

/// The answer of the tests to one mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    /// A test failed, or ran far longer than without the mutant.
    Caught,
    /// All tests passed.
    Missed,
}

/// The options of a run.
struct Options {
    /// The program that lists mutants.
    lister: PathBuf,
    seed: u64,
    count: usize,
    threads: usize,
}

impl Options {
    fn read(args: &[String]) -> Result<Self> {
        let usage = "cargo xtask mutants [COUNT [SEED [THREADS]]]";
        let lister = args.first().context(usage)?;
        let number = |at: usize, default: u64| match args.get(at) {
            None => Ok(default),
            Some(word) => word
                .parse()
                .with_context(|| format!("{usage}: {word} is not a number")),
        };
        ensure!(args.len() <= 4, "{usage}");
        Ok(Self {
            lister: lister.into(),
            count: usize::try_from(number(1, 200)?)?,
            seed: number(2, 1)?,
            threads: usize::try_from(number(3, 2)?)?.max(1),
        })
    }
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let options = Options::read(&args)?;
    let copy = root()?.join("target/mutants/sources");
    copy_sources(&copy)?;
    let listed = list(&options.lister, &copy)?;
    let all = listed.len();
    let mut sample = sample(listed, &options);
    eprintln!("{all} mutants are listed, {} are sampled", sample.len());
    let programs = build(&copy, &mut sample)?;
    let programs = measure(programs)?;
    let seconds: f64 = programs.iter().map(|one| one.usual.as_secs_f64()).sum();
    eprintln!(
        "{} mutants compile; {} test programs take {seconds:.0} s without a mutant",
        sample.len(),
        programs.len()
    );
    let verdicts = judge(&sample, &programs, options.threads)?;
    report(&sample, &verdicts)
}

/// The root of the repository.
fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(2);
    Ok(root
        .context("the tool lies in xtask/mutants")?
        .to_path_buf())
}

/// Copies the files that git knows, so that the work tree stays as it is.
fn copy_sources(copy: &Path) -> Result<()> {
    let root = root()?;
    if copy.exists() {
        std::fs::remove_dir_all(copy)
            .with_context(|| format!("cannot remove {}", copy.display()))?;
    }
    let files = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(&root)
        .output()
        .context("cannot start git")?;
    for name in String::from_utf8(files.stdout)?.split('\0') {
        let (from, to) = (root.join(name), copy.join(name));
        if name.is_empty() || !from.is_file() {
            continue;
        }
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::copy(&from, &to).with_context(|| format!("cannot copy {name}"))?;
    }
    Ok(())
}

/// Lists the mutants of all areas that can be put behind a switch.
fn list(lister: &Path, copy: &Path) -> Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    for area in &AREAS {
        let mut command = Command::new(lister);
        command.args(["mutants", "--list", "--json", "--package", area.package]);
        for file in area.files {
            command.args(["--file", file]);
        }
        let output = command
            .current_dir(copy)
            .stderr(Stdio::inherit())
            .output()
            .context("cannot start cargo-mutants")?;
        ensure!(output.status.success(), "cargo-mutants cannot list mutants");
        let listed: Vec<Value> = serde_json::from_slice(&output.stdout)?;
        mutants.extend(listed.iter().filter_map(Mutant::read));
    }
    ensure!(!mutants.is_empty(), "cargo-mutants lists no mutant");
    Ok(mutants)
}

/// Chooses mutants by a hash of the seed and their names, so that a sample does not depend on the
/// order of the list.
fn sample(mut mutants: Vec<Mutant>, options: &Options) -> Vec<Mutant> {
    mutants.sort_by_key(|mutant| fnv(&format!("{} {}", options.seed, mutant.name)));
    mutants.truncate(options.count);
    mutants
}

/// The 64-bit hash of Fowler, Noll and Vo.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Writes the mutants into the copy and compiles the tests. Mutants that do not compile are removed
/// from the sample, and the rest is compiled again.
fn build(copy: &Path, sample: &mut Vec<Mutant>) -> Result<Vec<TestProgram>> {
    let originals: BTreeMap<String, String> = sample
        .iter()
        .map(|mutant| {
            let text = std::fs::read_to_string(copy.join(&mutant.file))?;
            Ok((mutant.file.clone(), text))
        })
        .collect::<Result<_>>()?;
    for area in &AREAS {
        let library = copy.join(format!("crates/{}/src/lib.rs", area.package));
        let text = std::fs::read_to_string(&library)?;
        std::fs::write(&library, text + &rewrite::switch(SWITCH))?;
    }
    loop {
        let mut unplaced = BTreeSet::new();
        for (file, text) in &originals {
            let here: Vec<(usize, &Mutant)> = sample
                .iter()
                .enumerate()
                .filter(|(_, mutant)| mutant.file == *file)
                .collect();
            let (mutated, dropped) = rewrite::apply(text, &here)?;
            unplaced.extend(dropped);
            std::fs::write(copy.join(file), mutated)?;
        }
        let (programs, broken) = compile(copy)?;
        let removed: BTreeSet<usize> = broken.union(&unplaced).copied().collect();
        if broken.is_empty() {
            remove(sample, &unplaced_only(&removed, &broken));
            return Ok(programs);
        }
        eprintln!("{} mutants do not compile", removed.len());
        remove(sample, &removed);
    }
}

/// Mutants that could not be placed never were in the build, so that it is valid without them.
fn unplaced_only(removed: &BTreeSet<usize>, broken: &BTreeSet<usize>) -> BTreeSet<usize> {
    removed.difference(broken).copied().collect()
}

/// Removes mutants by their positions.
fn remove(sample: &mut Vec<Mutant>, positions: &BTreeSet<usize>) {
    let mut position = 0;
    sample.retain(|_| {
        position += 1;
        !positions.contains(&(position - 1))
    });
}

/// Compiles the tests of all areas. Returns the programs, and the mutants in which errors lie.
fn compile(copy: &Path) -> Result<(Vec<TestProgram>, BTreeSet<usize>)> {
    let packages: BTreeSet<&str> = AREAS
        .iter()
        .flat_map(|area| area.tested_by)
        .copied()
        .collect();
    let mut command = Command::new("cargo");
    command.args(["test", "--no-run", "--message-format=json", "--quiet"]);
    for package in packages {
        command.args(["--package", package]);
    }
    command.args(["--lib", "--bins", "--tests"]);
    let output = command
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", root()?.join("target/mutants/build"))
        .env("RUSTFLAGS", "--cap-lints=allow")
        .stderr(Stdio::null())
        .output()
        .context("cannot start cargo")?;
    let (mut programs, mut broken, mut errors) = (Vec::new(), BTreeSet::new(), Vec::new());
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        if message["reason"] == "compiler-artifact" {
            programs.extend(test_program(&message));
        }
        if message["message"]["level"] == "error" {
            errors.push(message["message"]["rendered"].to_string());
            let spans = message["message"]["spans"].as_array();
            for span in spans.into_iter().flatten() {
                let file = span["file_name"].as_str().unwrap_or_default();
                let offset = span["byte_start"].as_u64().unwrap_or(0);
                let text = std::fs::read_to_string(copy.join(file)).unwrap_or_default();
                broken.extend(rewrite::enclosing(&text, usize::try_from(offset)?));
            }
        }
    }
    if !output.status.success() && broken.is_empty() {
        bail!("the tests do not compile: {}", errors.join("\n"));
    }
    Ok((programs, broken))
}

/// Reads a test program out of a message of cargo.
fn test_program(message: &Value) -> Option<TestProgram> {
    message["profile"]["test"].as_bool().filter(|test| *test)?;
    let path = PathBuf::from(message["executable"].as_str()?);
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let folder = manifest.parent()?.to_path_buf();
    let package = folder.file_name()?.to_string_lossy().into_owned();
    Some(TestProgram {
        package,
        path,
        folder,
        usual: Duration::ZERO,
    })
}

/// Runs all programs without a mutant: they must pass, and their duration sets the time limit.
fn measure(programs: Vec<TestProgram>) -> Result<Vec<TestProgram>> {
    let mut measured = Vec::new();
    for mut program in programs {
        let started = Instant::now();
        let limit = Duration::from_secs(900);
        if !passes(&program, None, limit)? {
            eprintln!(
                "left out, because it fails without a mutant: {}",
                program.path.display()
            );
            continue;
        }
        program.usual = started.elapsed();
        measured.push(program);
    }
    // Quick programs first: most mutants are noticed by one of them.
    measured.sort_by_key(|program| program.usual);
    Ok(measured)
}

/// Runs a test program. A program that exceeds the limit is stopped and counts as failed.
fn passes(program: &TestProgram, mutant: Option<usize>, limit: Duration) -> Result<bool> {
    let mut command = Command::new("timeout");
    command
        .arg(format!("{}", limit.as_secs().max(1)))
        .arg(&program.path)
        .args(["--quiet", "--test-threads", "2"])
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("INSTA_UPDATE", "no")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(number) = mutant {
        command.env(SWITCH, number.to_string());
    }
    let status = command.status().context("cannot start timeout")?;
    Ok(status.success())
}

/// Runs the tests for every mutant, several mutants at once.
fn judge(sample: &[Mutant], programs: &[TestProgram], threads: usize) -> Result<Vec<Verdict>> {
    let next = Mutex::new(0_usize);
    let verdicts = Mutex::new(vec![Verdict::Missed; sample.len()]);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    loop {
                        let number = {
                            let mut next = next.lock().map_err(|_| poisoned())?;
                            *next += 1;
                            *next - 1
                        };
                        let Some(mutant) = sample.get(number) else {
                            return Ok(());
                        };
                        let verdict = verdict(mutant, number, programs)?;
                        let word = if verdict == Verdict::Caught {
                            "caught"
                        } else {
                            "MISSED"
                        };
                        println!("{word}  {}", mutant.name);
                        verdicts.lock().map_err(|_| poisoned())?[number] = verdict;
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().map_err(|_| poisoned())??;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    verdicts.into_inner().map_err(|_| poisoned())
}

fn poisoned() -> anyhow::Error {
    anyhow::anyhow!("a worker panicked")
}

/// Runs the tests that are to notice a mutant, until one does.
fn verdict(mutant: &Mutant, number: usize, programs: &[TestProgram]) -> Result<Verdict> {
    let area = AREAS.iter().find(|area| area.package == mutant.package);
    let tested_by = area.map_or(&[][..], |area| area.tested_by);
    for package in tested_by {
        for program in programs.iter().filter(|one| one.package == *package) {
            // A mutant may loop for ever; a busy machine may be slow.
            let limit = program.usual * 5 + Duration::from_secs(20);
            if !passes(program, Some(number), limit)? {
                return Ok(Verdict::Caught);
            }
        }
    }
    Ok(Verdict::Missed)
}

/// Prints the counts by package. Fails if fewer than 95 % were caught.
fn report(sample: &[Mutant], verdicts: &[Verdict]) -> Result<()> {
    let mut by_package: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (mutant, verdict) in sample.iter().zip(verdicts) {
        let counts = by_package.entry(&mutant.package).or_default();
        counts.0 += usize::from(*verdict == Verdict::Caught);
        counts.1 += 1;
    }
    for (package, (caught, all)) in &by_package {
        println!("{package:<20} {caught} of {all} caught");
    }
    let caught = verdicts
        .iter()
        .filter(|one| **one == Verdict::Caught)
        .count();
    println!("{:<20} {caught} of {} caught", "all", verdicts.len());
    ensure!(
        caught * 100 >= verdicts.len() * 95,
        "fewer than 95 % of the mutants were caught"
    );
    Ok(())
}
