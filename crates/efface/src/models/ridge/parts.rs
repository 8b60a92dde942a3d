//! Many ridge models over overlapping rows: the sums of groups of rows are made once, and a model
//! over some of the groups and a few rows more adds them up. O(Gd²) for the sums and O(d³/3) for
//! the factor, whatever the number of rows.

use std::collections::HashSet;
use std::sync::Arc;

use super::build::{BuiltBody, RidgeFrame};
use super::sums::RidgeSums;
use super::{Basis, Form, Ridge, RidgeModel, RidgePenalty};
use crate::error::{Error, Result};
use crate::linalg::par;
use crate::rows::{RowId, RowStore, Rows};

/// Beyond this the sums of all groups together are not worth their memory: 2 GiB.
pub(crate) const MOST_NUMBERS: usize = 1 << 28;

/// The sums of every group, in common coordinates.
pub(crate) struct GroupSums {
    settings: Ridge,
    form: Form,
    basis: Arc<Basis>,
    penalty: Arc<RidgePenalty>,
    groups: Vec<(RidgeSums, usize)>,
}

impl GroupSums {
    /// None where a model needs its rows or where the sums would take too much memory.
    pub(crate) fn new(
        settings: &Ridge,
        rows: &Rows,
        groups: &[Vec<RowId>],
    ) -> Result<Option<Self>> {
        settings.check()?;
        let width = rows.width() + usize::from(settings.intercept);
        let form = settings.form_for(rows);
        if !matches!(form, Form::Factor | Form::Inverse)
            || width == 0
            || width.saturating_mul(width).saturating_mul(groups.len()) > MOST_NUMBERS
        {
            return Ok(None);
        }
        let basis = settings.basis(rows);
        let penalty = RidgePenalty::new(&basis, settings.lambda);
        let nothing = vec![0.0; width];
        let sum = |ids: &Vec<RowId>| {
            let ids: HashSet<RowId> = ids.iter().copied().collect();
            let rows = rows.filter(|id| ids.contains(&id));
            Ok((
                RidgeSums::gather(&rows, &basis, &nothing, par(settings.threads))?,
                rows.len(),
            ))
        };
        let groups = groups.iter().map(sum).collect::<Result<_>>()?;
        let basis = Arc::new(basis);
        let penalty = Arc::new(penalty);
        Ok(Some(Self {
            settings: *settings,
            form,
            basis,
            penalty,
            groups,
        }))
    }

    /// The model of the groups of these numbers and of `more` rows.
    pub(crate) fn fit(&self, groups: &[usize], more: &Rows) -> Result<RidgeModel> {
        let width = self.basis.width();
        let own = RidgeSums::gather(
            more,
            &self.basis,
            &vec![0.0; width],
            par(self.settings.threads),
        )?;
        let picked = || groups.iter().map(|group| &self.groups[*group]);
        let rows = more.len() + picked().map(|(_, rows)| rows).sum::<usize>();
        if rows == 0 {
            return Err(Error::NoRows);
        }
        let sums = RidgeSums::join(
            picked().map(|(sums, _)| sums).chain([&own]),
            &self.penalty.values,
        );
        let frame = RidgeFrame::new(self.settings, self.basis.clone(), self.penalty.clone());
        let BuiltBody { body, theta, .. } = frame.build(self.form, sums, None, &|| Ok(None))?;
        Ok(frame.model(theta, rows, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{Csr, Dense};
    use crate::synthetic::LinearProblem;
    use crate::traits::Fit;

    #[test]
    fn a_model_of_parts_is_the_model_of_their_rows() {
        let problem = LinearProblem {
            rows: 120,
            width: 6,
            seed: 4,
        }
        .generate();
        let rows = Rows::new(Dense::new(problem.x, 6).unwrap(), problem.y, 1).unwrap();
        let groups: Vec<Vec<RowId>> = (0..5)
            .map(|g| (20 * g..20 * (g + 1)).map(RowId).collect())
            .collect();
        for settings in [
            Ridge::new(0.3),
            Ridge::new(0.3).intercept(false).form(Form::Inverse),
        ] {
            let parts = GroupSums::new(&settings, &rows, &groups).unwrap().unwrap();
            let more = rows.filter(|id| id.0 >= 113);
            let found = parts.fit(&[0, 3], &more).unwrap();
            let truth = settings
                .fit(&rows.filter(|id| matches!(id.0, 0..20 | 60..80 | 113..)))
                .unwrap();
            assert_eq!(found.rows(), 47);
            let (a, p) = found.parameters();
            let (b, q) = truth.parameters();
            assert!((a - b).norm_max() < 1e-12 && (p[0] - q[0]).abs() < 1e-12);
        }
        assert!(
            GroupSums::new(&Ridge::new(1.0).form(Form::Rows), &rows, &groups)
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn a_column_that_no_part_has_gets_no_weight() {
        let mut table = Csr::<f64>::new(3);
        (0..30).for_each(|i| {
            let last = if i == 29 {
                vec![(0, 1.0), (2, 5.0)]
            } else {
                vec![(0, 1.0), (1, f64::from(i % 4))]
            };
            table.push(&last).unwrap();
        });
        let rows = Rows::new(table, (0..30).map(|i| f64::from(i % 7)).collect(), 1).unwrap();
        let groups = vec![(0..15).map(RowId).collect(), (15..29).map(RowId).collect()];
        let parts = GroupSums::new(&Ridge::new(0.1), &rows, &groups)
            .unwrap()
            .unwrap();
        let model = parts.fit(&[0, 1], &rows.filter(|_| false)).unwrap();
        assert_eq!(model.parameters().0[(2, 0)], 0.0);
    }
}
