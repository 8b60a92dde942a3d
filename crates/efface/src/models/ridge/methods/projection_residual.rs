//! The projection residual update on a ridge model; `methods/projection_residual.rs` says what the
//! method does.

use faer::linalg::solvers::Solve;
use faer::{Accum, Mat, Par};

use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::linalg::{add_scaled, dot, multiply, multiply_lower, symmetric_eigen};
use crate::methods::ProjectionResidual;
use crate::models::RidgeModel;
use crate::models::ridge::change::{ChangeCore, RidgeChange, residuals};
use crate::models::ridge::wide::RowOperator;
use crate::models::ridge::{GatheredRows, RidgeBody};
use crate::rows::{RowId, RowStore};
use crate::traits::Forget;

use crate::models::projection;

const NAME: &str = "projection_residual";

impl Forget<RidgeModel> for ProjectionResidual {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claim(&self) -> Claim {
        Claim::Approximate
    }

    fn forget(
        &self,
        model: &RidgeModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<RidgeModel>> {
        model.check_request(rows, gone)?;
        self.check()?;
        if self.rounds > 1 {
            return self.ridge_rounds(model, rows, gone);
        }
        if gone.is_empty() {
            let evidence = model.evidence(NAME, Claim::Approximate);
            return Ok(Outcome {
                model: model.clone(),
                evidence,
            });
        }
        let raw = raw_rows(model, rows, gone)?;
        let mut outcome = match &model.body {
            RidgeBody::Dense(body) => {
                let (change, start, par) = body.prepare(model, NAME, rows, gone)?;
                let residual = residual_in_use(model, &change, &start, par);
                let misfit = misfits(&change.core, &residual, &change.roots);
                let (theta, dropped) = self.step(model, &raw, &misfit, par)?;
                let (next, step) = body.approximately(model, change, &start, theta, par)?;
                let mut evidence = next.evidence(NAME, Claim::Approximate);
                step.record(&mut evidence, gone.len());
                evidence.directions_dropped = dropped;
                Outcome {
                    model: next,
                    evidence,
                }
            }
            RidgeBody::Wide(_) => self.wide(model, rows, gone, &raw)?,
        };
        outcome.evidence.forgotten = gone.len();
        Ok(outcome)
    }
}

impl ProjectionResidual {
    fn wide(
        &self,
        model: &RidgeModel,
        rows: &dyn RowStore,
        gone: &[RowId],
        raw: &Mat<f64>,
    ) -> Result<Outcome<RidgeModel>> {
        let GatheredRows {
            rows: signed,
            roots,
            ..
        } = GatheredRows::read(&model.basis, model.outputs(), rows, gone, None)?;
        let (zt, iterations) =
            RowOperator::new(model, rows, &[], None)?.solve_rows(&signed.xt, &model.settings)?;
        let core = ChangeCore::new(&signed.xt, &zt, &signed.signs, Par::Seq).ok_or_else(|| {
            Error::Unsupported {
                method: NAME,
                reason: "a leverage is too near 1 for I − H_D to be inverted; use exact".into(),
            }
        })?;
        let residual = residuals(&signed, &model.theta, Par::Seq);
        let misfit = misfits(&core, &residual, &roots);
        let (theta, dropped) = self.step(model, raw, &misfit, Par::Seq)?;
        let retained = RowOperator::new(model, rows, gone, None)?;
        let body = retained.bound_at(&theta, model.settings.lambda)?;
        let next = model.with(theta, retained.count(), RidgeBody::Wide(body));
        let mut evidence = next.evidence(NAME, Claim::Approximate);
        evidence.rows_read = rows.len();
        evidence.iterations = iterations;
        evidence.directions_dropped = dropped;
        evidence.largest_leverage = Some(core.leverage);
        evidence.condition = Some(core.condition);
        Ok(Outcome {
            model: next,
            evidence,
        })
    }

    /// θ − α X_Dᵀ G⁺ (X_Dθ − ŷ_D) in the caller's coordinates, and the directions dropped.
    fn step(
        &self,
        model: &RidgeModel,
        raw: &Mat<f64>,
        misfit: &Mat<f64>,
        par: Par,
    ) -> Result<(Mat<f64>, usize)> {
        let (coordinates, dropped) = projection::span_coordinates(raw, misfit, par)?;
        let (mut coefficients, mut intercept) = model.parameters();
        let mut change = Mat::zeros(raw.nrows(), misfit.ncols());
        multiply(
            change.as_mut(),
            Accum::Replace,
            raw.as_ref(),
            coordinates.as_ref(),
            self.step,
            par,
        );
        let first = model.settings.intercept as usize;
        for (output, intercept) in intercept.iter_mut().enumerate() {
            if first == 1 {
                *intercept -= change[(0, output)];
            }
            for j in 0..coefficients.nrows() {
                coefficients[(j, output)] -= change[(first + j, output)];
            }
        }
        Ok((model.basis.to_inner(&coefficients, &intercept), dropped))
    }
}

/// The rows as the caller knows them, unweighted, one column each, with the intercept's 1 first.
fn raw_rows(model: &RidgeModel, rows: &dyn RowStore, ids: &[RowId]) -> Result<Mat<f64>> {
    let first = model.settings.intercept as usize;
    let mut raw = Mat::zeros(model.features() + first, ids.len());
    rows.visit(ids, &mut |k, row| {
        let column = raw.col_as_slice_mut(k);
        if first == 1 {
            column[0] = 1.0;
        }
        row.features.each(|j, x| column[first + j] = x);
    })?;
    Ok(raw)
}

/// r̂ under the parameters in use, which after an approximate method are not the minimum that
/// `change` starts from.
pub(super) fn residual_in_use(
    model: &RidgeModel,
    change: &RidgeChange,
    start: &Mat<f64>,
    par: Par,
) -> Mat<f64> {
    if std::ptr::eq(start, &model.theta) {
        return change.residual.clone();
    }
    residuals(&change.rows, &model.theta, par)
}

/// X_Dθ − ŷ_D = (I − H_D)⁻¹ r_D − r_D, unscaled by the weights.
fn misfits(core: &ChangeCore, residual: &Mat<f64>, roots: &[f64]) -> Mat<f64> {
    let errors = core.times(residual);
    // A row of weight 0 taught the model nothing: its prediction is the same with and without it.
    Mat::from_fn(residual.nrows(), residual.ncols(), |k, output| {
        if roots[k] > 0.0 {
            (-errors[(k, output)] - residual[(k, output)]) / roots[k]
        } else {
            0.0
        }
    })
}

/// The update as the papers print it, with their errors corrected: leave-k-out predictions from the
/// hat block, Gram–Schmidt of the removed rows, the k×k matrix C = Σ c_i c_iᵀ of their coordinates,
/// its eigenvectors carried back, and one projected gradient step. Slower than the form above, and
/// here to be compared with it. `x` has one column per row, `y` one line, `theta` one column per
/// output; `hat` is H_D.
pub fn printed_form(
    x: &Mat<f64>,
    y: &Mat<f64>,
    theta: &Mat<f64>,
    hat: &Mat<f64>,
) -> Result<Mat<f64>> {
    let d = x.nrows();
    let k = x.ncols();
    let predictions = printed_predictions(x, y, theta, hat);
    let largest = (0..k)
        .map(|i| dot(x.col_as_slice(i), x.col_as_slice(i)))
        .fold(0.0, f64::max);
    let noise = (f64::EPSILON * largest * k.max(d) as f64).sqrt();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let mut coordinates = Mat::<f64>::zeros(k, k);
    for i in 0..k {
        let mut rest = x.col_as_slice(i).to_vec();
        for (l, u) in basis.iter().enumerate() {
            let along = dot(&rest, u);
            coordinates[(l, i)] = along;
            add_scaled(&mut rest, -along, u);
        }
        let length = dot(&rest, &rest).sqrt();
        if length > noise {
            coordinates[(basis.len(), i)] = length;
            rest.iter_mut().for_each(|value| *value /= length);
            basis.push(rest);
        }
    }
    let rank = basis.len();
    let c = coordinates.as_ref().subrows(0, rank);
    let mut gram = Mat::zeros(rank, rank);
    multiply_lower(
        gram.as_mut(),
        Accum::Replace,
        c,
        c.transpose(),
        1.0,
        Par::Seq,
    );
    let (values, vectors) = symmetric_eigen(gram.as_ref(), Par::Seq).ok_or_else(|| {
        Error::Damaged("the coordinates of the removed rows have no eigendecomposition".into())
    })?;
    let mut moved = theta.clone();
    for output in 0..theta.ncols() {
        // ∇L = Σ (θᵀx_i − ŷ_i) x_i
        let mut gradient = vec![0.0; d];
        for i in 0..k {
            let misfit =
                dot(x.col_as_slice(i), theta.col_as_slice(output)) - predictions[(i, output)];
            add_scaled(&mut gradient, misfit, x.col_as_slice(i));
        }
        for j in 0..rank {
            let value = values[j];
            if value <= noise * noise {
                continue;
            }
            // v_j = Σ_l a_jl u_l
            let mut v = vec![0.0; d];
            for (l, u) in basis.iter().enumerate() {
                add_scaled(&mut v, vectors[(l, j)], u);
            }
            let along = dot(&v, &gradient) / value;
            add_scaled(moved.col_as_slice_mut(output), -along, &v);
        }
    }
    Ok(moved)
}

/// Ŷ = Y_D − (I − T)⁻¹ D R with T_ij = H_ij/(1 − H_ii) off the diagonal and D = diag 1/(1 − H_ii).
fn printed_predictions(x: &Mat<f64>, y: &Mat<f64>, theta: &Mat<f64>, hat: &Mat<f64>) -> Mat<f64> {
    let k = x.ncols();
    let system = Mat::from_fn(k, k, |i, j| {
        if i == j {
            1.0
        } else {
            -hat[(i, j)] / (1.0 - hat[(i, i)])
        }
    });
    let scaled = Mat::from_fn(k, y.ncols(), |i, output| {
        let residual = y[(i, output)] - dot(x.col_as_slice(i), theta.col_as_slice(output));
        residual / (1.0 - hat[(i, i)])
    });
    y - system.partial_piv_lu().solve(&scaled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::Exact;
    use crate::models::ridge::leave_out_predictions;
    use crate::rows::{Dense, Rows};
    use crate::traits::Fit;
    use crate::{Form, Ridge};

    fn rows(n: usize, d: usize, copies: bool) -> Rows {
        let value = |i: usize, j: usize| ((i * 37 + j * 101 + i * j * 7) % 29) as f64 / 14.0 - 1.0;
        let x: Vec<f64> = (0..n)
            .flat_map(|i| {
                let source = if copies && i % 2 == 1 { i - 1 } else { i };
                (0..d).map(move |j| {
                    if copies && source == 4 {
                        0.0
                    } else {
                        value(source, j)
                    }
                })
            })
            .collect();
        let y = (0..n).map(|i| ((i * 13) % 7) as f64 - 3.0).collect();
        Rows::new(Dense::new(x, d).unwrap(), y, 1).unwrap()
    }

    fn hat_block(model: &RidgeModel, rows: &Rows, ids: &[RowId]) -> Mat<f64> {
        let x = raw_rows(model, rows, ids).unwrap();
        let all = raw_rows(model, rows, &rows.ids().collect::<Vec<_>>()).unwrap();
        let mut a = &all * all.transpose();
        for j in 0..a.nrows() {
            a[(j, j)] += model.settings.lambda;
        }
        let z = a.partial_piv_lu().solve(&x);
        x.transpose() * z
    }

    /// The fast form equals the printed one, corrected, on ordinary, duplicate and zero rows, and
    /// for k > d.
    #[test]
    fn the_fast_form_is_the_printed_one() {
        for (n, d, k, copies) in [
            (60, 9, 1, false),
            (60, 9, 5, false),
            (60, 9, 6, true),
            (60, 4, 11, false),
        ] {
            let rows = rows(n, d, copies);
            let ids: Vec<RowId> = (0..k as u64).map(RowId).collect();
            let model = Ridge::new(0.3)
                .intercept(false)
                .form(Form::Factor)
                .fit(&rows)
                .unwrap();
            let fast = ProjectionResidual::default()
                .forget(&model, &rows, &ids)
                .unwrap();
            let x = raw_rows(&model, &rows, &ids).unwrap();
            let mut y = Mat::zeros(k, 1);
            rows.visit(&ids, &mut |i, row| y[(i, 0)] = row.targets[0])
                .unwrap();
            let theta = model.parameters().0;
            let printed = printed_form(&x, &y, &theta, &hat_block(&model, &rows, &ids)).unwrap();
            let off = (&fast.model.parameters().0 - &printed).norm_l2() / printed.norm_l2();
            assert!(off < 1e-11, "n {n} d {d} k {k}: {off:e}");
            let duplicates = if copies { 4 } else { k.saturating_sub(d) };
            assert_eq!(fast.evidence.directions_dropped, duplicates);
        }
    }

    /// Theorem 1: the move is the projection of the whole way to retraining onto the span of the
    /// removed rows.
    #[test]
    fn it_is_the_projection_of_the_exact_move() {
        let rows = rows(50, 8, false);
        let ids = [RowId(3), RowId(10), RowId(20)];
        let model = Ridge::new(0.1).intercept(false).fit(&rows).unwrap();
        let theta = model.parameters().0;
        let exact = Exact
            .forget(&model, &rows, &ids)
            .unwrap()
            .model
            .parameters()
            .0;
        let projected = ProjectionResidual::default()
            .forget(&model, &rows, &ids)
            .unwrap()
            .model
            .parameters()
            .0;
        let x = raw_rows(&model, &rows, &ids).unwrap();
        let way = &exact - &theta;
        let gram = x.transpose() * &x;
        let along = gram.partial_piv_lu().solve(x.transpose() * &way);
        assert!((&projected - &theta - &x * along).norm_l2() < 1e-12);
        // What the projection leaves is orthogonal to the removed rows: it predicts them as the
        // retrained model does.
        let predictions = leave_out_predictions(&model, &rows, &ids).unwrap();
        assert!((x.transpose() * &projected - predictions).norm_max() < 1e-12);
    }
}
