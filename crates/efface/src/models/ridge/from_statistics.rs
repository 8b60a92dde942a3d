//! A ridge model from sums that were made elsewhere, without its rows.

use std::sync::Arc;

use faer::Mat;

use super::build::{BuiltBody, RidgeFrame, RowsIfNeeded};
use super::sums::RidgeSums;
use super::{Basis, Form, Ridge, RidgeBody, RidgeModel, RidgePenalty};
use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::features::FeatureMoments;
use crate::linalg::{DoubleWord, UNIT, mirror_lower};
use crate::statistics::{CentredMoments, LinearStatistics};

impl Ridge {
    /// The model of the rows behind these sums. It holds none of them: whoever forgets takes the
    /// rows out of the statistics and fits again, which takes as long whatever the number of rows.
    /// O(d³/3).
    ///
    /// # Errors
    /// There are no rows, they do not determine the parameters, or the form needs rows.
    pub fn fit_statistics(&self, statistics: &LinearStatistics) -> Result<RidgeModel> {
        self.fit_statistics_with(statistics, &|| Ok(None))
    }

    /// The same with rows that can be read where the sums cannot tell enough.
    pub(crate) fn fit_statistics_with(
        &self,
        statistics: &LinearStatistics,
        rows: &RowsIfNeeded<'_>,
    ) -> Result<RidgeModel> {
        self.check()?;
        let form = match self.form {
            Form::Auto => Form::Factor,
            form @ (Form::Factor | Form::Inverse) => form,
            other => {
                let range = "auto, factor or inverse: a model of sums keeps no rows";
                return Err(Error::Parameter {
                    name: "form",
                    value: format!("{other:?}"),
                    range,
                });
            }
        };
        if statistics.rows() == 0 {
            return Err(Error::NoRows);
        }
        let features = statistics.spec().features().len();
        self.fit_moments(
            form,
            &statistics.moments(),
            (features, statistics.rows()),
            rows,
        )
    }

    fn fit_moments(
        &self,
        form: Form,
        moments: &CentredMoments,
        (features, row_count): (usize, u64),
        rows: &RowsIfNeeded<'_>,
    ) -> Result<RidgeModel> {
        if moments.weight.value() <= 0.0 {
            return Err(Error::NoWeight);
        }
        let basis = if self.as_given {
            Basis::plain(features, self.intercept)
        } else {
            let columns = (0..features).map(|j| (moments.mean(j), moments.spread(j)));
            Basis::of_moments(columns, self.intercept, self.lambda, moments.weight.value())
        };
        let penalty = RidgePenalty::new(&basis, self.lambda);
        let sums = RidgeSums::of_moments(moments, &basis, &penalty.values, row_count);
        let frame = RidgeFrame::new(*self, Arc::new(basis), Arc::new(penalty));
        let BuiltBody { body, theta, .. } = frame.build(form, sums, None, rows)?;
        Ok(frame.model(theta, row_count as usize, body))
    }
}

impl RidgeModel {
    /// The model of the same recipe for rows of which these products are known. None where they do
    /// not tell enough: the model must be fitted to its rows then.
    pub fn with_moments(&self, moments: &FeatureMoments) -> Result<Option<Outcome<Self>>> {
        let RidgeBody::Dense(before) = &self.body else {
            return Ok(None);
        };
        if !matches!(before.form(), Form::Factor | Form::Inverse) {
            return Ok(None);
        }
        let shape = (moments.features, moments.rows);
        let fitted = self
            .settings
            .fit_moments(before.form(), &moments.moments, shape, &|| Ok(None));
        let mut model = match fitted {
            // Sums may be singular in their last digits where the rows are not; the rows tell.
            Err(Error::Singular { .. }) => return Ok(None),
            fitted => fitted?,
        };
        if let RidgeBody::Dense(body) = &mut model.body {
            body.ledger.refactorisations = before.ledger.refactorisations + 1;
        }
        let mut evidence = model.evidence("exact", Claim::Exact);
        if evidence.relative_bound > self.settings.tolerance {
            return Ok(None);
        }
        evidence.refactored = true;
        Ok(Some(Outcome { model, evidence }))
    }
}

impl RidgeSums {
    /// The sums in the coordinates of a basis, from those of the columns as they are.
    fn of_moments(moments: &CentredMoments, basis: &Basis, penalty: &[f64], rows: u64) -> Self {
        let features = basis.features;
        let outputs = moments.origin.len() - features;
        let first = usize::from(basis.intercept);
        let mut sums = Self::zero(basis.width(), outputs);
        let mut low = Mat::zeros(basis.width(), basis.width());
        let centre: Vec<f64> = (0..features).map(|j| basis.origin(j)).collect();
        let scale: Vec<f64> = (0..features).map(|j| basis.inverse_scale(j)).collect();
        let mut put = |i: usize, j: usize, value: DoubleWord, scale: f64| {
            // Scales are powers of two: nothing is rounded.
            sums.a[(i, j)] = value.high * scale;
            low[(i, j)] = value.low * scale;
        };
        if first == 1 {
            put(0, 0, moments.weight, 1.0);
            for i in 0..features {
                put(1 + i, 0, moments.sum_about(i, centre[i]), scale[i]);
            }
        }
        for j in 0..features {
            for i in j..features {
                let product = moments.product_about(i, j, (centre[i], centre[j]));
                put(first + i, first + j, product, scale[i] * scale[j]);
            }
        }
        for output in 0..outputs {
            let target = features + output;
            // Rows that left have cost digits, which are charged to this.
            sums.target_spread += moments.reach_about(target, 0.0).powi(2);
            if first == 1 {
                sums.b[(0, output)] = moments.sum_about(target, 0.0).value();
            }
            for j in 0..features {
                let product = moments.product_about(target, j, (0.0, centre[j]));
                sums.b[(first + j, output)] = product.value() * scale[j];
            }
        }
        sums.target_spread = sums.target_spread.sqrt();
        for j in 0..features {
            let at = first + j;
            let is_constant = sums.a[(at, at)] == 0.0;
            // About another point than zero, every row may have the feature.
            sums.support[at] = if is_constant {
                0
            } else if centre[j] == 0.0 {
                moments.support[j]
            } else {
                rows
            };
            sums.spread[at] = moments.reach_about(j, centre[j]) * scale[j];
        }
        if first == 1 {
            sums.support[0] = rows;
            sums.spread[0] = moments.weight_reach();
        }
        for (j, penalty) in penalty.iter().enumerate() {
            let sum = DoubleWord {
                high: sums.a[(j, j)],
                low: low[(j, j)],
            }
            .plus(DoubleWord::new(*penalty));
            sums.a[(j, j)] = sum.high;
            low[(j, j)] = sum.low;
        }
        mirror_lower(sums.a.as_mut());
        // Second words say something only where sums are exact.
        if moments.is_exact {
            mirror_lower(low.as_mut());
            sums.low = Some(low);
        }
        let last_digits = if moments.is_exact { 0.0 } else { 8.0 * UNIT };
        sums.charge = moments.charge + last_digits;
        sums.b_charge = moments.charge + 8.0 * UNIT;
        sums.note();
        sums
    }
}
