//! The cells of table 1: the time of a request by each of two others, and how unlike each other the
//! trials are.

use super::TrialResults;
use crate::paper;
use crate::part::PaperStudy;
use crate::studies::times::{NEWTON_STEP, REFIT, WAITED, cell, sources};
use crate::studies::{METHODS, StudyContext};

/// The paper's unit.
pub(super) const UNIT: f64 = 1e4;

/// Above this, the times of a cell are called unsteady: the middle half of its trials, or of what
/// they are divided by, spans more than this share of the median.
pub(super) const SPREAD_LIMIT: f64 = 0.25;

/// Above this share of the time spent waiting for a processor, a machine is called busy.
pub(super) const WAIT_LIMIT: f64 = 0.05;

/// What a time is divided by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TimeDenominator {
    /// A Newton step from a kept inverse, as the printed numbers are.
    NewtonStep,
    /// A fit from scratch on the rows that stay.
    Refit,
}

impl TimeDenominator {
    pub(super) const ALL: [TimeDenominator; 2] =
        [TimeDenominator::NewtonStep, TimeDenominator::Refit];

    /// The name of its seconds in the record.
    pub(super) fn value(self, k: usize) -> String {
        match self {
            TimeDenominator::NewtonStep => format!("k={k} {NEWTON_STEP}"),
            TimeDenominator::Refit => REFIT.into(),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            TimeDenominator::NewtonStep => "the Newton step",
            TimeDenominator::Refit => "a refit",
        }
    }
}

/// The rows of a cell of table 1, and how many of them are forgotten.
#[derive(Debug, Clone, Copy)]
pub(super) struct TablePlace {
    pub(super) source: &'static str,
    pub(super) d: usize,
    pub(super) k: usize,
}

/// All of them.
pub(super) fn places(context: &StudyContext) -> Vec<TablePlace> {
    let plan = &context.plan.times;
    let mut places = Vec::new();
    for source in sources(context) {
        for &d in &plan.widths {
            places.extend(plan.deletions.iter().map(|&k| TablePlace { source, d, k }));
        }
    }
    places
}

/// A median by a median, ×10⁻⁴.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TimeShare {
    pub(super) value: f64,
    /// Its standard error, from those of both medians.
    pub(super) error: f64,
    /// The larger of the two spreads: the distance of the quartiles by the median. NaN where both
    /// times were taken once.
    pub(super) spread: f64,
}

impl TablePlace {
    /// The share that a method takes.
    pub(super) fn share(
        self,
        results: &TrialResults<'_>,
        method: &str,
        by: TimeDenominator,
    ) -> Option<TimeShare> {
        let cell = cell(self.source, self.d);
        let request = results.get(
            PaperStudy::Times,
            &cell,
            &format!("k={} {method} s", self.k),
        )?;
        let other = results.get(PaperStudy::Times, &cell, &by.value(self.k))?;
        let value = UNIT * request.median / other.median;
        let errors = f64::hypot(
            request.median_error / request.median,
            other.median_error / other.median,
        );
        Some(TimeShare {
            value,
            error: value * errors,
            spread: request.spread.max(other.spread),
        })
    }

    /// The larger spread of a method's shares.
    pub(super) fn spread(self, results: &TrialResults<'_>, method: &str) -> Option<f64> {
        let shares = TimeDenominator::ALL
            .iter()
            .filter_map(|&by| self.share(results, method, by));
        shares.map(|share| share.spread).reduce(f64::max)
    }

    /// Whether exact forgetting is below both numbers that the paper prints for this cell; None
    /// where it prints none.
    pub(super) fn is_below_paper(
        self,
        results: &TrialResults<'_>,
        by: TimeDenominator,
    ) -> Option<bool> {
        let printed = paper::table1(self.k, self.d)?;
        let share = self.share(results, "exact", by)?;
        Some(share.value < printed.influence.min(printed.projection))
    }
}

/// How far the times of table 1 can be trusted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TimeSteadiness {
    /// Cells whose spread is above the limit, of so many.
    pub(super) unsteady: usize,
    pub(super) cells: usize,
    /// NaN where every time was taken once.
    pub(super) largest: f64,
    /// The largest median share of a trial that was spent waiting for a processor; None where the
    /// system does not tell.
    pub(super) waited: Option<f64>,
}

pub(super) fn steadiness(context: &StudyContext, results: &TrialResults<'_>) -> TimeSteadiness {
    let places = places(context);
    let spreads = places.iter().flat_map(|place| {
        METHODS
            .iter()
            .filter_map(|(_, name)| place.spread(results, name))
    });
    let spreads: Vec<f64> = spreads.filter(|spread| !spread.is_nan()).collect();
    let largest = spreads.iter().copied().fold(f64::NAN, f64::max);
    let unsteady = spreads
        .iter()
        .filter(|spread| **spread > SPREAD_LIMIT)
        .count();
    let waits = places.iter().filter_map(|place| {
        let found = results.get(PaperStudy::Times, &cell(place.source, place.d), WAITED)?;
        Some(found.median)
    });
    TimeSteadiness {
        unsteady,
        cells: spreads.len(),
        largest,
        waited: waits.reduce(f64::max),
    }
}
