//! The paper's tables and figures, measured again.
//!
//! Cao, Wang, Si, Huang and Xiao 2022 compare influence functions (INF), the projection residual
//! update (PRU), SISA and retraining, in five tables and two figures, after Izzo, Smart, Chaudhuri
//! and Zou 2021, whose L2 table is here too, and say of the sums of Cao and Yang 2015 that they do
//! not serve adaptive learners, which is shown. [`run`] measures all of it over efface's public
//! API, beside exact forgetting and true retraining, and writes one page (`index.html`) with the
//! paper's numbers alongside and a CSV of every number.
//!
//! A run is a list of trials. Each finished one is a line of `state.jsonl` in the output folder; a
//! run that was interrupted goes on from there, and the report is made from those lines alone.
//! `docs/reproduce.md` says what each table means.

#![warn(missing_docs)]

mod augment;
mod data;
mod draw;
mod error;
mod newton_step;
mod page;
mod paper;
mod part;
mod plan;
mod processor;
mod run;
mod state;
mod statistics;
mod studies;
mod watch;

pub use error::{Error, Result};
pub use part::PaperPart;
pub use run::{FinishedRun, ReproduceSettings, run};
pub use watch::{RunWatch, SilentWatch};

#[cfg(test)]
mod tests;
