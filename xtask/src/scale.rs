//! Fits of files in batches, beside fits of the same files in memory: time, bytes a second and the
//! most memory that was taken. `cargo xtask bench scale` measures the files of docs/scale.md; a
//! format, rows and columns measure another one, and `logistic` or `kmeans` in the place of a
//! format a fit by passes.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::scratch::ScratchFolder;
use crate::{root, torture};

/// What a fit in batches may hold of its rows.
const LITTLE: &str = "64M";

/// What a fit in memory may hold: all.
const ALL: &str = "1000G";

/// How often the memory of a fit is looked at. The system keeps the highest figure, so that only
/// what happens after the last look is missed.
const GLANCE: Duration = Duration::from_millis(20);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let runs: Vec<(&str, usize, usize)> = match words.as_slice() {
        [] => vec![
            ("csv", 1_000_000, 20),
            ("parquet", 1_000_000, 100),
            ("parquet", 200_000, 500),
        ],
        [
            format @ ("csv" | "parquet" | "stdin" | "logistic" | "kmeans"),
            rows,
            columns,
        ] => {
            vec![(*format, rows.parse()?, columns.parse()?)]
        }
        _ => bail!("cargo xtask bench scale [csv|parquet|stdin|logistic|kmeans ROWS COLUMNS]"),
    };
    crate::run(
        "cargo",
        &["build", "--release", "--quiet", "--package", "efface-cli"],
    )?;
    let maker = torture::program()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root()?.join("target"), Into::into);
    let efface = target.join("release/efface");
    let folder = ScratchFolder::new("scale")?;
    println!("| rows | fit | seconds | of them processor | MB/s | most memory |");
    println!("|---|---|---|---|---|---|");
    for (format, rows, columns) in runs {
        let about = format!("{format}, {rows} × {columns}");
        if format == "stdin" {
            stream(&efface, &maker, folder.path(), &about, rows, columns)?;
            continue;
        }
        let (rows_of, model): (&str, &[&str]) = match format {
            "logistic" => ("classes", &["--model", "logistic", "--target", "y"]),
            "kmeans" => (
                "csv",
                &["--model", "kmeans", "--clusters", "8", "--ignore", "y"],
            ),
            _ => (format, &["--target", "y"]),
        };
        let data = folder.path().join(if format == "parquet" {
            "rows.parquet"
        } else {
            "rows.csv"
        });
        make(&maker, rows_of, rows, columns)
            .stdout(File::create(&data)?)
            .status()?;
        let bytes = std::fs::metadata(&data)?.len();
        let mut seconds = Vec::new();
        for (how, memory) in [("in memory", ALL), ("in batches", LITTLE)] {
            let file = folder.path().join("m.efface");
            let mut fit = fit(&efface, &data, &file, memory);
            fit.args(model);
            let measured = watch(fit.spawn()?)?;
            tell(
                &format!("{about}, {} MB", bytes / 1_000_000),
                how,
                bytes,
                &measured,
            );
            seconds.push(measured.seconds);
            std::fs::remove_file(&file)?;
        }
        println!(
            "| | in batches over in memory | {:.2}× | | | |",
            seconds[1] / seconds[0]
        );
        std::fs::remove_file(&data)?;
    }
    Ok(())
}

fn make(maker: &str, format: &str, rows: usize, columns: usize) -> Command {
    let mut command = Command::new(maker);
    command.args(["rows", format, &rows.to_string(), &columns.to_string()]);
    command
}

fn fit(efface: &Path, data: &Path, model: &Path, memory: &str) -> Command {
    let mut command = Command::new(efface);
    command.arg("fit").arg(data).args([
        "--memory",
        memory,
        "--force",
        "--discard-log",
        "--quiet",
        "-o",
    ]);
    command.arg(model);
    command
}

/// What a process took.
struct TakenTime {
    seconds: f64,
    processor: f64,
    memory: u64,
}

fn tell(about: &str, how: &str, bytes: u64, taken: &TakenTime) {
    let rate = bytes as f64 / 1e6 / taken.seconds;
    let TakenTime {
        seconds,
        processor,
        memory,
    } = taken;
    println!(
        "| {about} | {how} | {seconds:.2} | {processor:.2} | {rate:.0} | {} MB |",
        memory / 1_000_000
    );
}

/// Waits for a process to end.
fn watch(mut child: Child) -> Result<TakenTime> {
    let began = Instant::now();
    let mut memory = 0;
    let mut processor = 0.0;
    loop {
        if let Some((most, time)) = glance(child.id()) {
            memory = most;
            processor = time;
        }
        if let Some(status) = child.try_wait()? {
            // A bound above the tolerance is told by code 8, and the model is there.
            ensure!(
                status.success() || status.code() == Some(8),
                "the fit failed ({status})"
            );
            return Ok(TakenTime {
                seconds: began.elapsed().as_secs_f64(),
                processor,
                memory,
            });
        }
        thread::sleep(GLANCE);
    }
}

/// The most memory of a process so far in bytes, and its processor time in seconds; None once it is
/// over.
fn glance(process: u32) -> Option<(u64, f64)> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let memory: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name, which may hold anything: the 12th and 13th field are ticks of 10 ms.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some((memory * 1024, ticks as f64 / 100.0))
}

/// Rows that are made while they are read, and lie in no file.
fn stream(
    efface: &Path,
    maker: &str,
    folder: &Path,
    about: &str,
    rows: usize,
    columns: usize,
) -> Result<()> {
    let mut making = make(maker, "csv", rows, columns)
        .stdout(Stdio::piped())
        .spawn()?;
    let input = making.stdout.take().context("the rows go nowhere")?;
    let model = folder.join("m.efface");
    let mut command = fit(efface, Path::new("-"), &model, LITTLE);
    let mut child = command
        .args(["--target", "y", "--format", "csv"])
        .stdin(input)
        .spawn()?;
    let began = Instant::now();
    let mut seen: Vec<(f64, u64, u64)> = Vec::new();
    let mut taken = TakenTime {
        seconds: 0.0,
        processor: 0.0,
        memory: 0,
    };
    let status = loop {
        if let (Some(bytes), Some((memory, processor))) = (written(making.id()), glance(child.id()))
        {
            seen.push((began.elapsed().as_secs_f64(), bytes, memory));
            taken = TakenTime {
                seconds: 0.0,
                processor,
                memory,
            };
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(GLANCE);
    };
    ensure!(
        status.success() || status.code() == Some(8),
        "the fit failed ({status})"
    );
    making.wait()?;
    taken.seconds = began.elapsed().as_secs_f64();
    let bytes = seen.last().map_or(0, |(_, bytes, _)| *bytes);
    tell(
        &format!("{about}, {} MB", bytes / 1_000_000),
        "in batches",
        bytes,
        &taken,
    );
    // The rate and the memory of each fifth of the bytes show whether either depends on how many
    // there were before.
    let mut last = (0.0, 0);
    for part in 1..=5 {
        let Some((time, done, memory)) = seen.iter().find(|(_, done, _)| *done >= bytes / 5 * part)
        else {
            break;
        };
        let rate = (done - last.1) as f64 / 1e6 / (time - last.0);
        println!(
            "| | fifth {part} of the bytes | {:.2} | | {rate:.0} | {} MB |",
            time - last.0,
            memory / 1_000_000
        );
        last = (*time, *done);
    }
    std::fs::remove_file(&model)?;
    Ok(())
}

/// Bytes that a process has written.
fn written(process: u32) -> Option<u64> {
    let io = std::fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    io.lines()
        .find_map(|line| line.strip_prefix("wchar:"))?
        .trim()
        .parse()
        .ok()
}
