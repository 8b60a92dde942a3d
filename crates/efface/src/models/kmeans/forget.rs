//! The two ways to take rows out of a k-means model, and retraining, which they are compared with.
//! Both claim exactness; `q_kmeans` says in its evidence, as `refactored`, when it had to read the
//! retained rows, and `dc_kmeans` says how many rows of the touched leaves it read.

use super::points::ClusterPoints;
use super::trace::ReplayResult;
use super::{KMeansBody, KMeansModel, over_points};
use crate::error::{Error, Result};
use crate::evidence::{Claim, Outcome};
use crate::methods::{DcKMeans, QKMeans, Retrain};
use crate::models::request;
use crate::rows::{ChangedRows, RowId, RowStore};
use crate::traits::Forget;

fn wrong_scheme(method: &'static str, instead: &str) -> Error {
    Error::Unsupported {
        method,
        reason: format!("the model was fitted with the other scheme; use {instead}"),
    }
}

impl Forget<KMeansModel> for QKMeans {
    fn name(&self) -> &'static str {
        "q_kmeans"
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(
        &self,
        model: &KMeansModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<KMeansModel>> {
        request::check_numbers(rows)?;
        request::check_gone(rows, gone, model.width)?;
        let KMeansBody::Quantised(trace) = &model.body else {
            return Err(wrong_scheme(self.name(), "dc_kmeans"));
        };
        let rules = model.recipe.rules();
        let leaving = ClusterPoints::read(rows, gone)?;
        let mut read = gone.len();
        let kept = match trace.without(&leaving, &rules) {
            ReplayResult::Same(trace) => Some((trace, false)),
            ReplayResult::From(start) => {
                let retained = ChangedRows::new(rows, gone, None);
                read += retained.len();
                let resumed = over_points(&retained, |points| start.resume(points, &rules));
                rows.go_on()?;
                resumed?.map(|trace| (trace, true))
            }
            ReplayResult::Scratch => None,
        };
        let Some((trace, refactored)) = kept else {
            return model.again(self.name(), rows, gone, None);
        };
        let next = KMeansModel {
            rows: rows.len() - gone.len(),
            body: KMeansBody::Quantised(trace),
            ..*model
        };
        let mut evidence = next.evidence(self.name());
        (evidence.forgotten, evidence.rows_read, evidence.refactored) =
            (gone.len(), read, refactored);
        Ok(Outcome {
            model: next,
            evidence,
        })
    }
}

impl Forget<KMeansModel> for DcKMeans {
    fn name(&self) -> &'static str {
        "dc_kmeans"
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(
        &self,
        model: &KMeansModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<KMeansModel>> {
        request::check_numbers(rows)?;
        request::check_gone(rows, gone, model.width)?;
        let KMeansBody::Divided(tree) = &model.body else {
            return Err(wrong_scheme(self.name(), "q_kmeans"));
        };
        let (tree, read) = tree.without(&model.recipe, rows, gone)?;
        let next = KMeansModel {
            rows: rows.len() - gone.len(),
            body: KMeansBody::Divided(tree),
            ..*model
        };
        let mut evidence = next.evidence(self.name());
        (evidence.forgotten, evidence.rows_read) = (gone.len(), read);
        Ok(Outcome {
            model: next,
            evidence,
        })
    }
}

impl Forget<KMeansModel> for Retrain {
    fn name(&self) -> &'static str {
        "retrain"
    }

    fn claim(&self) -> Claim {
        Claim::Exact
    }

    fn forget(
        &self,
        model: &KMeansModel,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> Result<Outcome<KMeansModel>> {
        request::check_numbers(rows)?;
        request::check_gone(rows, gone, model.width)?;
        model.again("retrain", rows, gone, None)
    }
}
