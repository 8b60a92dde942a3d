//! A model in memory: one of the core's, or networks in shards, which the core cannot know.

use efface::methods::{Retrain, SisaForget, table};
use efface::models::Family;
use efface::{
    Amend, AnyModel, Evidence, Features, Forget, Method, Outcome, Predict, RowId, RowStore, Rows, Settled,
    SisaModel,
};
use efface_nn::NetworkRecipe;
use faer::Mat;

/// A model that can change.
#[derive(Debug, Clone)]
pub(crate) enum Live {
    /// A model of the core, or the head of a network.
    Plain(AnyModel),
    /// A network a shard.
    Shards(Box<SisaModel<NetworkRecipe>>),
}

fn plain(outcome: Outcome<AnyModel>) -> Outcome<Live> {
    Outcome { model: Live::Plain(outcome.model), evidence: outcome.evidence }
}

fn shards(outcome: Outcome<SisaModel<NetworkRecipe>>) -> Outcome<Live> {
    Outcome { model: Live::Shards(Box::new(outcome.model)), evidence: outcome.evidence }
}

impl Live {
    /// What is known of the model as it stands.
    pub(crate) fn evidence(&self) -> Evidence {
        match self {
            Self::Plain(model) => model.evidence(),
            Self::Shards(model) => model.evidence(Method::Sisa.name()),
        }
    }

    /// How often its curvature was made anew.
    pub(crate) fn refactorisations(&self) -> usize {
        match self {
            Self::Plain(model) => model.refactorisations(),
            Self::Shards(_) => 0,
        }
    }

    /// The model without some rows.
    pub(crate) fn forget(
        &self,
        method: &Method,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> efface::Result<Outcome<Self>> {
        self.forget_with(method, false, rows, gone)
    }

    /// As [`forget`](Self::forget), and dead columns are cleared after an approximate method too where that is asked for.
    pub(crate) fn forget_with(
        &self,
        method: &Method,
        clear_dead_columns: bool,
        rows: &dyn RowStore,
        gone: &[RowId],
    ) -> efface::Result<Outcome<Self>> {
        let model = match self {
            Self::Plain(model) if clear_dead_columns => {
                return Ok(plain(model.forget_and_clear(method, rows, gone)?));
            }
            Self::Plain(model) => return Ok(plain(model.forget(method, rows, gone)?)),
            Self::Shards(model) => model.as_ref(),
        };
        let refuse = |method, reason| Err(efface::Error::Unsupported { method, reason });
        if clear_dead_columns || method.tolerance().is_some() {
            let reason = "shards are trained again, and nothing can be asked of that; leave out the options";
            return refuse("sisa", reason.into());
        }
        Ok(shards(match method {
            Method::Auto(_) | Method::Sisa => SisaForget.forget(model, rows, gone)?,
            Method::Retrain => Retrain.forget(model, rows, gone)?,
            _ => return refuse(method.name(), table::refusal(method.name(), Family::Sisa)),
        }))
    }
}

impl Predict for Live {
    fn predict(&self, features: &Features) -> efface::Result<Mat<f64>> {
        match self {
            Self::Plain(model) => model.predict(features),
            Self::Shards(model) => model.predict(features),
        }
    }
}

impl Amend for Live {
    fn learn(&self, rows: &dyn RowStore, new: &Rows) -> efface::Result<Outcome<Self>> {
        Ok(match self {
            Self::Plain(model) => plain(model.learn(rows, new)?),
            Self::Shards(model) => shards(model.learn(rows, new)?),
        })
    }

    fn amend(&self, rows: &dyn RowStore, corrected: &Rows) -> efface::Result<Outcome<Self>> {
        Ok(match self {
            Self::Plain(model) => plain(model.amend(rows, corrected)?),
            Self::Shards(model) => shards(model.amend(rows, corrected)?),
        })
    }

    fn settle(&mut self) -> efface::Result<Settled> {
        match self {
            Self::Plain(model) => model.settle(),
            Self::Shards(model) => model.settle(),
        }
    }

    fn update_evidence(&self, evidence: &mut Evidence) {
        match self {
            Self::Plain(model) => model.update_evidence(evidence),
            Self::Shards(model) => model.update_evidence(evidence),
        }
    }

    fn waiting(&self) -> usize {
        match self {
            Self::Plain(model) => model.waiting(),
            Self::Shards(model) => model.waiting(),
        }
    }
}
