//! `efface demo`: every method forgets one person from a model of generated reviews, and retraining
//! says how well; then a model file forgets the same person and its receipt is verified.

mod compare;
mod data;
mod page;
mod receipt;

use std::path::Path;

use efface::synthetic::{Review, Reviews};
use serde_json::json;

use self::compare::DemoReport;
use super::threads;
use crate::cli::DemoArguments;
use crate::failure::{Failure, Result};
use crate::output::OutputFile;
use crate::report::count;
use crate::terminal::Terminal;

pub(crate) fn run(args: &DemoArguments, terminal: &Terminal) -> Result {
    let reviews = Reviews {
        reviews: args.reviews,
        ..Reviews::default()
    }
    .generate();
    if let Some(directory) = &args.write {
        return write(&reviews, directory, args.force, terminal);
    }
    let bars = terminal.bars();
    let report = DemoReport::make(&reviews, args.vocab, threads(args.threads), &bars)?;
    drop(bars);
    if terminal.json() {
        terminal.object(&report)
    } else {
        terminal.result(&page::page(&report))
    }
}

/// A temporary folder with a model of generated reviews, for a server to be tried on.
pub(super) fn folder_with_model(terminal: &Terminal) -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()
        .map_err(|cause| Failure::file(Path::new("a temporary folder"), "made", &cause))?;
    let reviews = Reviews {
        reviews: 4000,
        ..Reviews::default()
    }
    .generate();
    let bars = terminal.bars();
    let request = receipt::fit_request(&reviews)?;
    efface_engine::fit(
        &request,
        &folder.path().join("reviews.efface"),
        false,
        &bars,
    )?;
    Ok(folder)
}

/// Writes the reviews as a file, for the other commands to be tried on.
fn write(reviews: &[Review], directory: &Path, force: bool, terminal: &Terminal) -> Result {
    std::fs::create_dir_all(directory)
        .map_err(|cause| Failure::file(directory, "created", &cause))?;
    let path = directory.join("reviews.csv");
    let mut out = OutputFile::file(&path, &[], force, terminal)?;
    data::write_csv(reviews, &mut out).map_err(|cause| Failure::file(&path, "written", &cause))?;
    out.finish()?;
    if terminal.json() {
        return terminal
            .object(&json!({ "output": path.display().to_string(), "rows": reviews.len() }));
    }
    let shown = path.display();
    terminal.message(&format!(
        "wrote {}: {shown}\n\nnext:",
        count(reviews.len(), "review")
    ));
    terminal.message(&page::commands(
        &shown.to_string(),
        &path.with_extension("efface").display().to_string(),
    ));
    Ok(())
}
