//! What rows cost, measured: `cargo xtask bench rows`. Every part that reads or changes a model
//! runs in a process of its own, so that its memory is its own. Times are wall times with the
//! processor's beside them: on a busy machine the latter count.
//!
//! - `constants`: the rates that docs/scale.md predicts with;
//! - `forget ROWS …`: a model of so many rows is made in batches, and one row of it is forgotten by
//!   a process of its own;
//! - `bulk ROWS IDS`: so many ids in one request, ridge and naive Bayes.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use efface::{ColumnView, GaussianNb, LinearStatistics, StatisticsSpec};
use efface_engine::{
    Engine, FitRequest, ForgetOptions, ForgetRequest, RowSelection, RowSource, Silent, fit,
};
use efface_io::{ReadLimits, Source};

type Measured<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const HELP: &str = "scale constants | forget ROWS … | bulk ROWS IDS";

/// Memory that a fit may take for its rows: little, so that they are read in batches.
const MEMORY: u64 = 64 << 20;

fn main() -> Measured {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["constants"] => constants(),
        ["forget", rows @ ..] if !rows.is_empty() => {
            println!(
                "| rows | made in | memory | bytes a row | forget of one row: wall | processor | memory | verify |\n|{}",
                "---|".repeat(8)
            );
            rows.iter().try_for_each(|rows| one_row(rows.parse()?))
        }
        ["bulk", rows, ids] => bulk(rows.parse()?, ids.parse()?),
        ["fit-child", table, model, family] => {
            fit_child(Path::new(table), Path::new(model), family)
        }
        ["forget-child", model, ids, name] => forget_child(Path::new(model), Path::new(ids), name),
        ["verify-child", model] => verify_child(Path::new(model)),
        _ => Err(HELP.into()),
    }
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// What a process of its own says of its work.
struct Usage {
    wall: f64,
    processor: f64,
    mebibytes: f64,
}

impl Usage {
    fn processor(&self) -> String {
        if self.processor < 1.0 {
            format!("{:.0} ms", self.processor * 1e3)
        } else {
            format!("{:.1} s", self.processor)
        }
    }
}

/// The seconds of the processor that all threads of this process took.
fn processor_seconds() -> Measured<f64> {
    let mut nanoseconds = 0.0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        // A thread may end in between.
        let stat = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        nanoseconds += stat
            .split(' ')
            .next()
            .and_then(|word| word.parse::<f64>().ok())
            .unwrap_or(0.0);
    }
    Ok(nanoseconds / 1e9)
}

/// Says what this process took: seconds, seconds of the processor, and the most memory.
fn tell_usage(started: Instant) -> Measured {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap_or_default();
    let kib: f64 = line
        .trim()
        .split(' ')
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0.0);
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks = |at: usize| {
        fields
            .get(at)
            .and_then(|field| field.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    // Threads that have ended are in the ticks, of a hundredth of a second each; short work is in
    // the nanoseconds of those that live.
    let processor = processor_seconds()?.max((ticks(11) + ticks(12)) / 100.0);
    println!(
        "{} {processor} {}",
        started.elapsed().as_secs_f64(),
        kib / 1024.0
    );
    Ok(())
}

fn child(args: &[&str]) -> Measured<Usage> {
    let output = Command::new(std::env::current_exe()?).args(args).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let said = String::from_utf8(output.stdout)?;
    let numbers: Vec<f64> = said
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [wall, processor, mebibytes] = numbers[..] else {
        return Err("a process said nothing".into());
    };
    Ok(Usage {
        wall,
        processor,
        mebibytes,
    })
}

/// A table of an id, two numbers, a target and a class.
fn write_table(path: &Path, rows: u64) -> Measured {
    let mut out = BufWriter::new(std::fs::File::create(path)?);
    let mut dice = Dice(1);
    writeln!(out, "id,a,b,y,c")?;
    for row in 0..rows {
        let [a, b] = [dice.below(1000), dice.below(1000)];
        let y = 3 * a + b + dice.below(100);
        writeln!(out, "r{row},{a},{b},{y},c{}", dice.below(3))?;
    }
    Ok(out.flush()?)
}

fn fit_child(table: &Path, model: &Path, family: &str) -> Measured {
    let started = Instant::now();
    let source = Source::open(table, None)?.with_limits(ReadLimits {
        memory: MEMORY,
        ..ReadLimits::default()
    });
    let mut request = FitRequest::new(RowSource::from(source));
    request.id = Some("id".into());
    request.drop_suppressed = true;
    if family == "ridge" {
        request.targets = vec!["y".into()];
        request.ignore = vec!["c".into()];
    } else {
        request.targets = vec!["c".into()];
        request.ignore = vec!["y".into()];
        request.classify = true;
        request.model = GaussianNb::default().into();
    }
    fit(&request, model, true, &Silent)?;
    tell_usage(started)
}

fn forget_child(model: &Path, ids: &Path, name: &str) -> Measured {
    let started = Instant::now();
    let ids = std::fs::read_to_string(ids)?
        .lines()
        .map(String::from)
        .collect();
    let request = ForgetRequest {
        id: Some(name.into()),
        ..ForgetRequest::new(RowSelection::Ids(ids))
    };
    Engine::open(model)?.forget(&request, &ForgetOptions::default())?;
    tell_usage(started)
}

fn verify_child(model: &Path) -> Measured {
    let started = Instant::now();
    for check in Engine::open_read_only(model)?.verify(None)? {
        if !check.passed {
            return Err(format!("{} fails: {}", check.check, check.found).into());
        }
    }
    tell_usage(started)
}

fn one_row(rows: u64) -> Measured {
    let folder = tempfile::tempdir_in(".")?;
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (table, model, ids) = (at("table.csv"), at("model"), at("ids"));
    write_table(Path::new(&table), rows)?;
    let made = child(&["fit-child", &table, &model, "ridge"])?;
    std::fs::remove_file(&table)?;
    let bytes = std::fs::metadata(&model)?.len() / rows;
    let mut forgets = Vec::new();
    for part in 1..=5 {
        std::fs::write(&ids, format!("r{}\n", rows * part / 6))?;
        forgets.push(child(&[
            "forget-child",
            &model,
            &ids,
            &format!("request {part}"),
        ])?);
    }
    let verified = child(&["verify-child", &model])?;
    forgets.sort_by(|a, b| a.wall.total_cmp(&b.wall));
    let middle = &forgets[2];
    let most = forgets
        .iter()
        .map(|usage| usage.mebibytes)
        .fold(0.0, f64::max);
    println!(
        "| {rows} | {:.0} s, {} of the processor | {:.0} MiB | {bytes} | {:.0} ms | {} | {most:.0} MiB | {:.0} s, {:.0} MiB |",
        made.wall,
        made.processor(),
        made.mebibytes,
        middle.wall * 1e3,
        middle.processor(),
        verified.wall,
        verified.mebibytes,
    );
    Ok(())
}

fn bulk(rows: u64, count: u64) -> Measured {
    let folder = tempfile::tempdir_in(".")?;
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (table, model, ids) = (at("table.csv"), at("model"), at("ids"));
    write_table(Path::new(&table), rows)?;
    // Spread over the whole model, in no order.
    let mut chosen: Vec<u64> = (0..count).map(|place| place * rows / count).collect();
    let mut dice = Dice(9);
    for last in (1..chosen.len()).rev() {
        chosen.swap(last, dice.below(last as u64 + 1) as usize);
    }
    let list: String = chosen.iter().map(|row| format!("r{row}\n")).collect();
    std::fs::write(&ids, list)?;
    println!(
        "| model | rows | ids in one request | wall | processor | memory | again, by its name |\n|{}",
        "---|".repeat(7)
    );
    for family in ["ridge", "naive Bayes"] {
        child(&["fit-child", &table, &model, family])?;
        let first = child(&["forget-child", &model, &ids, "all of them"])?;
        let again = child(&["forget-child", &model, &ids, "all of them"])?;
        child(&["verify-child", &model])?;
        println!(
            "| {family} | {rows} | {count} | {:.1} s | {} | {:.0} MiB | {} |",
            first.wall,
            first.processor(),
            first.mebibytes,
            again.processor()
        );
    }
    Ok(())
}

/// Seconds of the processor of the best of three runs.
fn best(mut work: impl FnMut() -> Measured) -> Measured<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let started = processor_seconds()?;
        work()?;
        best = best.min(processor_seconds()? - started);
    }
    Ok(best)
}

fn constants() -> Measured {
    println!("| constant | at | value |\n|---|---|---|");
    for (rows, width) in [(20_000_usize, 100_usize), (4_000, 512)] {
        let mut dice = Dice(3);
        let table: Vec<f64> = (0..rows * (width + 1))
            .map(|_| dice.below(1000) as f64 / 1e3)
            .collect();
        let columns = (0..=width)
            .map(|column| ColumnView::of_table(&table, width + 1, column))
            .collect::<Result<Vec<_>, _>>()?;
        let names = (0..width).map(|column| format!("x{column}"));
        let spec = StatisticsSpec::new(names, ["y"])?;
        let mut sums = LinearStatistics::new(spec.clone()).threads(1);
        let seconds = best(|| Ok(sums.update(&columns, None)?))?;
        // A product of the rows with themselves: half of it is the other half.
        let flops = rows as f64 * (width as f64 + 1.0).powi(2);
        println!(
            "| sums of rows, one thread | {rows} × {width} | {:.1} Gflop/s |",
            flops / seconds / 1e9
        );
        let bytes = sums.to_bytes();
        let other = LinearStatistics::from_bytes(&bytes)?;
        // One alone is over before the clock has moved.
        const MERGES: usize = 100;
        let seconds =
            best(|| Ok((0..MERGES).try_for_each(|_| sums.merge(&other))?))? / MERGES as f64;
        println!(
            "| message of a worker | {width} columns | {} bytes |",
            bytes.len()
        );
        println!(
            "| merge of two | {width} columns | {:.0} MB/s |",
            bytes.len() as f64 / seconds / 1e6
        );
    }
    let folder = tempfile::tempdir_in(".")?;
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (table, model) = (at("table.csv"), at("model"));
    let rows = 200_000;
    write_table(Path::new(&table), rows)?;
    let bytes = std::fs::metadata(&table)?.len();
    let made = child(&["fit-child", &table, &model, "ridge"])?;
    println!(
        "| a narrow row read twice, committed to and written | {rows} rows of {} bytes | {:.1} µs of the processor |",
        bytes / rows,
        made.processor / rows as f64 * 1e6
    );
    println!(
        "| a row in the file beyond its numbers | {rows} rows | {} bytes |",
        std::fs::metadata(&model)?.len() / rows - 24
    );
    Ok(())
}
