//! Leave-one-out predictions in closed form (Allen's PRESS): without row i the model would have
//! answered y_i − e_i / (1 − h_i), with the residual e_i = y_i − θᵀx_i and the leverage h_i = w_i
//! x_iᵀA⁻¹x_i. No model is fitted again.
//!
//! A leverage costs O(d²), so that all of them cost as much as the sums of the fit. Where that
//! would be felt, a sample of the rows is left out, each in turn, which estimates the same mean.

use faer::Mat;

use super::{RidgeBody, RidgeModel};
use crate::linalg::dot;
use crate::models::family::LeftOutRow;
use crate::random::{DrawPurpose, random_uniform};
use crate::rows::{RowView, Rows};

/// Rows whose leverages are computed together.
const BLOCK: usize = 256;

/// Multiplications that nobody waits for: about 20 ms on one core.
const UNNOTICED: f64 = 4e8;

/// A leverage nearer to 1 than this has no prediction without the row: nothing else determines it.
const LEAST_REST: f64 = 1e-10;

impl RidgeModel {
    /// What the model would answer for each of these rows without it. `rows` are the rows of the
    /// model; where there are many, a sample of them is looked at. None for a model without a
    /// factor of its curvature.
    pub fn leave_one_out(&self, rows: &Rows) -> Option<Vec<LeftOutRow>> {
        let RidgeBody::Dense(body) = &self.body else {
            return None;
        };
        let factor = body.solver.factor().filter(|_| body.pending.is_empty())?;
        let width = self.basis.width();
        let share = sampled_share(self.rows as f64, width as f64);
        let chosen: Vec<RowView<'_>> = rows
            .iter()
            .filter(|row| {
                share >= 1.0 || random_uniform(0, DrawPurpose::LeftOut, row.id.0, 0) < share
            })
            .collect();
        let mut found = Vec::with_capacity(chosen.len());
        for block in chosen.chunks(BLOCK) {
            let mut written = Mat::zeros(width, block.len());
            for (slot, row) in block.iter().enumerate() {
                self.basis
                    .write(row.features, 1.0, written.col_as_slice_mut(slot));
            }
            let answers: Vec<Vec<f64>> = (0..block.len())
                .map(|slot| {
                    let outputs = 0..self.theta.ncols();
                    outputs
                        .map(|out| dot(written.col_as_slice(slot), self.theta.col_as_slice(out)))
                        .collect()
                })
                .collect();
            factor.half_solve(written.as_mut());
            for (slot, (row, answer)) in block.iter().zip(answers).enumerate() {
                let half = written.col_as_slice(slot);
                let rest = 1.0 - row.weight * dot(half, half);
                if rest > LEAST_REST {
                    let answers = answer
                        .iter()
                        .zip(row.targets)
                        .map(|(a, y)| y - (y - a) / rest)
                        .collect();
                    found.push(LeftOutRow {
                        id: row.id,
                        answers,
                    });
                }
            }
        }
        Some(found)
    }
}

/// The share of the rows that is looked at: all of a small table, else a twentieth and at least 500
/// rows.
fn sampled_share(rows: f64, width: f64) -> f64 {
    if rows * width * width <= UNNOTICED {
        return 1.0;
    }
    let fitting_in = UNNOTICED / (width * width);
    (rows / 20.0).max(fitting_in).max(500.0) / rows
}

#[cfg(test)]
mod tests {
    use crate::rows::Dense;
    use crate::synthetic::LinearProblem;
    use crate::{Fit, Form, Predict, Ridge, Rows};

    /// Every row is truly left out, with weights and two outputs.
    #[test]
    fn what_is_told_is_what_a_fit_without_the_row_answers() {
        let data = LinearProblem {
            rows: 60,
            width: 5,
            seed: 3,
        }
        .generate();
        let targets: Vec<f64> = data.y.iter().flat_map(|y| [*y, 2.0 - y * y]).collect();
        let weights: Vec<f64> = (0..60).map(|row| 0.5 + f64::from(row % 4)).collect();
        let rows = Rows::new(Dense::new(data.x, 5).unwrap(), targets, 2)
            .unwrap()
            .weighted(weights)
            .unwrap();
        let recipe = Ridge::new(0.7);
        let told = recipe.fit(&rows).unwrap().leave_one_out(&rows).unwrap();
        assert_eq!(told.len(), 60);
        for row in told {
            let without = recipe.fit(&rows.filter(|id| id != row.id)).unwrap();
            let alone = rows.filter(|id| id == row.id);
            let expected = without.predict(&alone.table()).unwrap();
            for (output, answer) in row.answers.iter().enumerate() {
                assert!(
                    (answer - expected[(0, output)]).abs() < 1e-10,
                    "{answer} {}",
                    expected[(0, output)]
                );
            }
        }
        assert!(
            recipe
                .form(Form::Iterative)
                .fit(&rows)
                .unwrap()
                .leave_one_out(&rows)
                .is_none()
        );
    }

    #[test]
    fn wide_or_long_tables_are_sampled() {
        assert_eq!(super::sampled_share(1000.0, 100.0), 1.0);
        assert_eq!(super::sampled_share(30_000.0, 3_000.0), 0.05);
        assert_eq!(super::sampled_share(2_000.0, 3_000.0), 0.25);
    }
}
