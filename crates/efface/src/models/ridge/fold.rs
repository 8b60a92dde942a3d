//! Folding the changes that wait a little with every request, so that none waits for all of it.
//!
//! When enough rows wait, a second set of sums and a second factor are begun beside those that
//! requests use: they have the waiting changes in them and grow some columns with every request.
//! Requests go on with the old ones and with all that waits, so that nothing depends on how far the
//! new ones have got, and a fold that fails leaves everything as it was. Once they are complete,
//! and it is known how well they solve, they take the place of the old ones; changes that came
//! meanwhile wait for the next fold. As changes are relative to the curvature before them, not to
//! the settled one, they stay as they are.
//!
//! Vectors that are kept for all rows (`Form::Rows`) are dropped then: bringing them up to date
//! takes 4nd products a row that left, more than solving for it when it is asked for. A settle in
//! one piece keeps them.
//!
//! The factor is made anew rather than updated: in columns, that is matrix products alone, at d/3k
//! products an entry for k rows, and nothing is left of the rounding of older updates. While a fold
//! is under way there are two more d×d matrices.

use std::sync::Arc;

use faer::{Mat, Par};

use super::bound::{CurvatureQuality, MOST_GROWTH, scaled_error};
use super::build::RidgeFrame;
use super::change::RidgeChange;
use super::curvature::CurvatureSolver;
use super::norms::NormSearches;
use super::probes::{ErrorProbes, PROBES};
use super::sums::{GrowingSums, SignedRows};
use super::waiting::tight_joint_growth;
use super::{CurvatureNorms, DenseBody};
use crate::error::Result;
use crate::evidence::BoundSource;
use crate::linalg::{Cholesky, GrowingCholesky, par};
use crate::traits::Settled;

/// Columns that are made together: with fewer, reading those before them takes longer than
/// multiplying.
const COLUMNS: usize = 64;

/// A fold is over when this share of the rows for the next one waits.
const DONE_AT: f64 = 0.75;

/// A request that has measured its bound leaves its share of a fold to the next, unless so much of
/// all waits.
const LATE: f64 = 1.0 / 16.0;

/// What an entry of a d×d matrix costs in a product in two words and in a solve, beside one of a
/// matrix product.
const LONG_PRODUCT: f64 = 40.0;
const SOLVE: f64 = 16.0;

/// Above this, a product is worth several threads.
const WORTH_THREADS: f64 = 4e7;

/// A fold under way.
#[derive(Debug, Clone)]
pub(crate) struct PartialFold {
    /// The first so many of the changes that wait are in it; these are their rows,
    changes: usize,
    rows: SignedRows,
    /// and by so much A⁻¹ can have grown through them.
    growth: f64,
    sums: GrowingSums,
    stage: FoldStage,
    done: f64,
    total: f64,
}

#[derive(Debug, Clone)]
enum FoldStage {
    Columns(GrowingCholesky),
    /// Random vectors tell how well the factor solves, one after another.
    Probes {
        factor: Cholesky,
        probes: ErrorProbes,
        probed: usize,
        solver_error: f64,
    },
    /// Norms of A⁻¹, where those from before say too little.
    Norms {
        factor: Cholesky,
        solver_error: f64,
        searches: Box<NormSearches>,
    },
    Complete(FoldedFactor),
}

/// A factor of which everything is known.
#[derive(Debug, Clone)]
struct FoldedFactor {
    factor: Cholesky,
    solver_error: f64,
    norms: Option<CurvatureNorms>,
}

/// So many rows are folded together. A waiting row costs each request O(d), and a fold O(d³/3)
/// whatever their number: wide models fold more rows at once.
pub(super) fn rows_of_a_fold(width: usize) -> usize {
    (width / 8).clamp(32, 256)
}

impl PartialFold {
    /// Takes all that waits.
    fn begin(body: &DenseBody, frame: &RidgeFrame) -> Option<Self> {
        let rows = SignedRows::stack(body.pending.iter().map(|change| &change.rows))?;
        let growth = body.ledger.waiting_growth.min(body.growth_of_waiting());
        let width = frame.basis.width();
        let square = (width * width) as f64;
        let products = width as f64 / 3.0 + row_products(&rows, body);
        let mut total = square * (products + PROBES as f64 * LONG_PRODUCT);
        if body.needs_norms(growth) {
            total += square * SOLVE * 24.0;
        }
        let sums = GrowingSums::new(&body.sums, &rows, par(frame.settings.threads));
        let stage = FoldStage::Columns(GrowingCholesky::new(width));
        Some(Self {
            changes: body.pending.len(),
            rows,
            growth,
            sums,
            stage,
            done: 0.0,
            total,
        })
    }

    /// A little more of it; `body` is as it was when the fold began but for changes that came
    /// since. The error is a pivot that vanishes.
    fn step(mut self, body: &DenseBody, frame: &RidgeFrame) -> std::result::Result<Self, usize> {
        let width = frame.basis.width();
        let square = (width * width) as f64;
        let threads = |work: f64| {
            if work > WORTH_THREADS {
                par(frame.settings.threads)
            } else {
                Par::Seq
            }
        };
        self.stage = match self.stage {
            FoldStage::Columns(mut factor) => {
                let start = factor.done();
                let columns = start..(start + COLUMNS).min(width);
                let entries = (columns.len() * (width - start)) as f64;
                let work = entries * 2.0 * (start as f64 + row_products(&self.rows, body));
                let par = threads(work);
                let made = self.sums.advance(
                    &body.sums,
                    &self.rows,
                    &frame.penalty.values,
                    columns.clone(),
                    par,
                );
                factor.extend(made, par)?;
                self.done += work;
                if columns.end < width {
                    FoldStage::Columns(factor)
                } else {
                    self.sums.complete(&self.rows);
                    let factor =
                        factor.finish(&self.sums.sums().a, |j| frame.penalty.is_free(j))?;
                    let probes = ErrorProbes::new(&factor, threads(square));
                    FoldStage::Probes {
                        factor,
                        probes,
                        probed: 0,
                        solver_error: 0.0,
                    }
                }
            }
            FoldStage::Probes {
                factor,
                probes,
                probed,
                solver_error,
            } => {
                let found = probes.one_solver_error(
                    probed,
                    self.sums.sums(),
                    &factor,
                    threads(square * 4.0),
                );
                let solver_error = solver_error.max(found);
                self.done += square * LONG_PRODUCT;
                if probed + 1 < PROBES {
                    FoldStage::Probes {
                        factor,
                        probes,
                        probed: probed + 1,
                        solver_error,
                    }
                } else {
                    FoldStage::Complete(FoldedFactor {
                        factor,
                        solver_error,
                        norms: None,
                    })
                }
            }
            FoldStage::Norms {
                factor,
                solver_error,
                mut searches,
            } => {
                let spread = &self.sums.sums().spread;
                self.done += square * SOLVE * 2.0;
                if searches.step(&frame.basis, spread, |v| factor.solve(v.as_mut(), Par::Seq)) {
                    FoldStage::Norms {
                        factor,
                        solver_error,
                        searches,
                    }
                } else {
                    let (caller, spread) = searches.found(&frame.basis, frame.settings.lambda);
                    let norms = Some(CurvatureNorms {
                        caller,
                        spread,
                        carried: 1.0,
                    });
                    FoldStage::Complete(FoldedFactor {
                        factor,
                        solver_error,
                        norms,
                    })
                }
            }
            // Whoever asks for more of a complete fold needs norms.
            FoldStage::Complete(FoldedFactor {
                factor,
                solver_error,
                ..
            }) => {
                let support = self.sums.sums().support.iter().enumerate();
                let apart = support
                    .filter(|(_, rows)| **rows == 0)
                    .map(|(j, _)| j)
                    .collect();
                FoldStage::Norms {
                    factor,
                    solver_error,
                    searches: Box::new(NormSearches::new(width, apart)),
                }
            }
        };
        Ok(self)
    }
}

/// Products for an entry of the sums that the rows of a fold take.
fn row_products(rows: &SignedRows, body: &DenseBody) -> f64 {
    let words = if body.sums.low.is_some() { 3.0 } else { 1.0 };
    words * rows.signs.len() as f64
}

impl DenseBody {
    /// Does the share of the folding that is due. On failure nothing changes.
    pub(crate) fn settle_some(&mut self, frame: &RidgeFrame, theta: &Mat<f64>) -> Result<Settled> {
        let together = rows_of_a_fold(frame.basis.width());
        let Some(fold) = self.fold.take() else {
            if self.waiting() >= together {
                // No factor is kept beside an inverse.
                if self.solver.factor().is_none() {
                    return self.settle(frame, theta);
                }
                self.fold = PartialFold::begin(self, frame).map(Arc::new);
            }
            return Ok(Settled::default());
        };
        let since = (self.waiting() - fold.rows.signs.len()) as f64;
        let due = since / (DONE_AT * together as f64);
        if self.ledger.source == BoundSource::Measured && fold.done >= (due - LATE) * fold.total {
            self.fold = Some(fold);
            return Ok(Settled::default());
        }
        let mut fold = Arc::unwrap_or_clone(fold);
        while fold.done < due * fold.total {
            if let FoldStage::Complete(found) = &fold.stage
                && (found.norms.is_some() || !self.needs_norms(fold.growth))
            {
                return Ok(self.take_over(fold, frame, theta));
            }
            fold = match fold.step(self, frame) {
                Ok(fold) => fold,
                // A pivot vanished by rounding: the sums in one piece may be helped with a little
                // on their diagonal.
                Err(_) => return self.settle(frame, theta),
            };
        }
        self.fold = Some(Arc::new(fold));
        Ok(Settled::default())
    }

    /// Whether norms of A⁻¹ that are carried to the end of a fold would be too loose. Those that
    /// were measured since the last one are of another A.
    fn needs_norms(&self, growth: f64) -> bool {
        let quality = &self.ledger.quality;
        quality.measured_after > 0 || quality.carried_growth * growth > MOST_GROWTH
    }

    /// Puts a complete fold in the place of what it was made from.
    fn take_over(&mut self, fold: PartialFold, frame: &RidgeFrame, theta: &Mat<f64>) -> Settled {
        let PartialFold {
            changes,
            rows,
            growth,
            sums,
            stage: FoldStage::Complete(found),
            ..
        } = fold
        else {
            return Settled::default();
        };
        let before = self.ledger.quality;
        let known_distance = self.ledger.distance_to_energy_minimum();
        let norms = found.norms.unwrap_or(CurvatureNorms {
            caller: before.caller_norm * growth,
            spread: before.spread_norm * growth,
            carried: before.carried_growth * growth,
        });
        let (sums, emptied) = sums.into_parts();
        let (sums_error, entry_error) = before.settled_sums_error();
        let charged = (sums.charge - self.sums.charge) * frame.basis.width() as f64;
        let mut anchor = (*self.ledger.anchor).clone();
        anchor.take_rows(&rows, &emptied, &frame.penalty);
        anchor.error = scaled_error(anchor.error, growth.sqrt());
        self.sums = Arc::new(sums);
        self.solver = Arc::new(CurvatureSolver::Factor(found.factor));
        let later = self.pending.split_off(changes);
        self.pending.clear();
        let last = later.len().saturating_sub(1);
        for (at, change) in later.into_iter().enumerate() {
            let mut change = Arc::unwrap_or_clone(change);
            change.settle_first(rows.signs.len(), &self.pending);
            // Those before it are asked for no norm any more.
            if at == last {
                change.find_hat_norm(&self.pending);
            }
            self.pending.push(Arc::new(change));
        }
        let waiting_growth = self.growth_of_waiting();
        self.ledger.quality = CurvatureQuality {
            caller_norm: norms.caller,
            spread_norm: norms.spread,
            sums_error: sums_error * growth,
            entry_error: entry_error + charged,
            settled_error: f64::INFINITY,
            solver_error: found.solver_error,
            kept_error: 0.0,
            growth: waiting_growth,
            carried_growth: norms.carried,
            measured_after: 0,
            solves_measured_after: 0,
        };
        self.ledger.quality.limit_by_count(&self.sums);
        self.ledger.anchor = Arc::new(anchor);
        self.ledger.energy *= growth.sqrt();
        self.ledger.waiting_growth = waiting_growth;
        self.ledger.joined_growth = self
            .pending
            .iter()
            .map(|change| 1.0 + change.joined())
            .product();
        self.anchor_here(frame, theta, known_distance);
        Settled {
            rows: rows.signs.len(),
            refactored: false,
        }
    }

    /// By how much A⁻¹ grows through all that waits.
    fn growth_of_waiting(&self) -> f64 {
        let changes = self.pending.iter().map(Arc::as_ref);
        let product: f64 = changes
            .clone()
            .map(RidgeChange::inverse_norm_growth)
            .product();
        if self.pending.is_empty() {
            1.0
        } else {
            product.min(tight_joint_growth(changes))
        }
    }

    /// Moves the anchor to the parameters, and finds out what their bound is: both take the same
    /// product.
    fn anchor_here(&mut self, frame: &RidgeFrame, theta: &Mat<f64>, known_distance: f64) {
        let par = par(frame.settings.threads);
        let anchor = self.anchor_at(theta, par);
        let carried = self.ledger.energy;
        self.ledger.anchor = Arc::new(anchor);
        if !self.ledger.at_optimum {
            return;
        }
        let survey = self.survey(&self.ledger, theta, None, par);
        let solved = self.solve(&survey.gradient, None, par);
        self.ledger.note(&survey, &solved, &frame.basis);
        // What was known before is still true, and may say more.
        self.ledger.energy = self.ledger.energy.min(carried);
        self.ledger.measured = Some(self.ledger.distance_to_energy_minimum().min(known_distance));
    }
}
