//! `efface demo`: every method forgets one person from a model of generated reviews, and retraining says how well.

mod compare;
mod data;
mod page;

use std::path::Path;

use efface::synthetic::Reviews;
use serde_json::json;

use self::compare::Comparison;
use super::threads;
use crate::cli::Demo;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::report::count;
use crate::terminal::Terminal;

pub(crate) fn run(args: &Demo, terminal: &Terminal) -> Result {
    match &args.write {
        Some(directory) => write(directory, args.force, terminal),
        None => {
            let bars = terminal.bars();
            let comparison = Comparison::make(args.vocab, threads(args.threads), &bars)?;
            drop(bars);
            if terminal.json() {
                terminal.object(&comparison)
            } else {
                terminal.result(&page::page(&comparison))
            }
        }
    }
}

/// Writes the reviews as a file, for the other commands to be tried on.
fn write(directory: &Path, force: bool, terminal: &Terminal) -> Result {
    std::fs::create_dir_all(directory).map_err(|cause| Failure::file(directory, "created", &cause))?;
    let path = directory.join("reviews.csv");
    let mut out = Output::file(&path, &[], force, terminal)?;
    let reviews = Reviews::default().generate();
    data::write_csv(&reviews, &mut out).map_err(|cause| Failure::file(&path, "written", &cause))?;
    out.finish()?;
    if terminal.json() {
        return terminal.object(&json!({ "output": path.display().to_string(), "rows": reviews.len() }));
    }
    let shown = path.display();
    terminal.message(&format!("wrote {}: {shown}\n\nnext:", count(reviews.len(), "review")));
    terminal
        .message(&page::commands(&shown.to_string(), &path.with_extension("efface").display().to_string()));
    Ok(())
}
