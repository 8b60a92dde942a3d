//! What a model file must survive, with figures: `cargo xtask torture`.
//!
//! Every part prints lines of a table: what was done, how often, what came of it. The first thing
//! that does not hold ends the run with an error.

mod bulk;
mod combinations;
mod disk;
mod kill;
mod leftovers;
mod readers;
mod repeat;
mod rollback;
mod rows;
mod seeds;
mod service;
mod speed;
mod tamper;
mod traces;
mod writes;

use std::path::Path;

use efface::Ridge;
use efface_engine::{Engine, FitRequest, RowSelection, Silent, fit};
use efface_io::Source;

/// Whatever goes wrong is told as it is.
type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const HELP: &str = "torture kills N | bulk N | leftovers N | writes [ACT …] | markers | disk | flips | tamper N | readers N | repeats N | rollback N | combinations EFFACE FIRST COUNT [SECONDS] | latency N | groups | open ROWS FEATURES | seeds FOLDER | rows csv|parquet|classes ROWS COLUMNS | serve-kills N | serve-load SECONDS";

fn main() -> Result {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["kills", count] => kill::parent(count.parse()?),
        ["kill-child", model, round] => kill::child(Path::new(model), round.parse()?),
        ["bulk", count] => bulk::parent(count.parse()?),
        ["bulk-child", model] => bulk::child(Path::new(model)),
        ["leftovers", count] => leftovers::parent(count.parse()?),
        ["leftover-child", model, act] => leftovers::child(Path::new(model), act),
        ["writes"] => writes::parent(&writes::ACTS),
        ["writes", acts @ ..] => writes::parent(acts),
        ["write-child", model, act] => writes::child(Path::new(model), act),
        ["markers"] => traces::markers(),
        ["disk"] => disk::run(),
        ["flips"] => traces::flips(),
        ["readers", count] => readers::parent(count.parse()?),
        ["reader-child", model, count] => readers::reader(Path::new(model), count.parse()?),
        ["writer-child", model, _] => readers::writer(Path::new(model)),
        ["rows", format, rows, columns] => rows::write(format, rows.parse()?, columns.parse()?),
        ["seeds", folder] => seeds::write(Path::new(folder)),
        ["tamper", count] => tamper::run(count.parse()?),
        ["repeats", count] => repeat::run(count.parse()?),
        ["rollback", count] => rollback::run(count.parse()?),
        ["combinations", program, first, count, rest @ ..] => {
            let seconds = rest.first().map_or(Ok(u64::MAX / 2), |word| word.parse())?;
            let limits = combinations::Limits {
                first: first.parse()?,
                count: count.parse()?,
                time: std::time::Duration::from_secs(seconds),
            };
            combinations::run(Path::new(program), limits)
        }
        ["latency", count] => speed::latency(count.parse()?),
        ["groups"] => speed::groups(),
        ["open", rows, features] => speed::open(rows.parse()?, features.parse()?),
        ["open-child", model] => speed::open_child(Path::new(model)),
        ["serve-kills", count] => service::kills(count.parse()?),
        ["serve-load", seconds] => service::load(seconds.parse()?),
        ["serve-child", folder] => service::child(Path::new(folder)),
        ["bare-child", folder] => service::bare_child(Path::new(folder)),
        _ => Err(HELP.into()),
    }
}

/// A line of the table.
fn tell(what: &str, found: &str) {
    println!("{what:<52} {found}");
}

/// The time that a part of all requests did not exceed.
fn percentile(times: &mut [f64], part: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    times
        .get(((times.len() as f64 - 1.0) * part).round() as usize)
        .copied()
        .unwrap_or(0.0)
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }

    fn number(&mut self) -> f64 {
        self.below(2_000_001) as f64 / 1e6 - 1.0
    }
}

fn ids(ids: &[String]) -> RowSelection {
    RowSelection::Ids(ids.to_vec())
}

/// A table of numbers with an id in front and a target at the end.
fn table(names: impl IntoIterator<Item = String>, width: usize, seed: u64) -> String {
    let mut dice = Dice(seed);
    let mut text = String::from("id");
    (0..width).for_each(|column| text.push_str(&format!(",x{column}")));
    text.push_str(",y\n");
    for name in names {
        text.push_str(&name);
        (0..=width).for_each(|_| text.push_str(&format!(",{:.3}", dice.number())));
        text.push('\n');
    }
    text
}

/// A model of such a table.
fn model(path: &Path, text: String) -> Result<Engine> {
    let mut request = FitRequest::new(Source::from_bytes("table.csv", text, None)?);
    request.targets = vec!["y".into()];
    request.id = Some("id".into());
    request.drop_suppressed = true;
    // All processors, as the command has it.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    request.model = Ridge::default().threads(threads).into();
    fit(&request, path, true, &Silent)?;
    Ok(Engine::open(path)?)
}

/// All of a file's own checks hold.
fn sound(path: &Path) -> Result {
    for check in Engine::open_read_only(path)?.verify(None)? {
        if !check.passed {
            return Err(
                format!("{}: {} fails: {}", path.display(), check.check, check.found).into(),
            );
        }
    }
    Ok(())
}
