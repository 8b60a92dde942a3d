//! k-means that forgets: Q-k-means and DC-k-means.
//!
//! ```text
//! minimise  Σ_i w_i · min_κ ‖x_i − c_κ‖²        over centres c_1 … c_k, from a k-means++ start
//! ```
//!
//! | scheme | forgets by | claim | cost of a row |
//! |---|---|---|---|
//! | [`KMeans::quantised`] | [`QKMeans`]: replay the kept stages; retrain when a quantised centre changes | exact | O(T·k·d) and no other row; retraining with a chance of at most k/n + T·‖x − c‖₁/(ε·m), m the mass of its cluster |
//! | [`KMeans::divided`] | [`DcKMeans`]: compute one path of a tree anew | exact | O(k·d·T·(n/w^h + h·w·k)) |
//!
//! Guarantee: both are exact, and more than in distribution. All randomness is a function of the
//! seed and the row ids, so the centres after a forget are, bit for bit, those of fitting the
//! retained rows with the same recipe. The reported bound is therefore 0. Targets are ignored;
//! weights are honoured. A fit copies the rows densely while it runs; rows beyond memory are read
//! anew in every pass, k for the start and one an iteration, and give the same bits. A tree keeps
//! the ids of its rows, 8 bytes each, and needs the rows of one leaf at a time.
//!
//! When it fails: more clusters than distinct points (points that weigh something) is an error that
//! says how many there are, before and after a forget; a failed forget changes nothing. A small ε,
//! or a γ of 0 with small clusters, makes retraining frequent; a large ε makes the centres coarse.
//! Forgetting one of the k rows that the run started from always retrains, and until then their
//! content is part of the model.
//!
//! Ginart, Guan, Valiant and Zou 2019, "Making AI forget you: data deletion in machine learning".
//! The iteration, its correction for small clusters, the lattice and the end of the run are theirs.
//! What differs, and why:
//!
//! - *One randomness.* Their code draws anew for a retraining. But then the runs that a deletion
//!   disturbs are replaced by fresh ones and the others are kept, so that the result leans towards
//!   runs that are hard to disturb. Here a retraining meets the numbers of the first run, and the
//!   law is that of a fit which never saw the row.
//! - *Sums, not means.* The mean without a row is (Σ − x)/(m − 1), and γ·M/k shrinks with M. Their
//!   code looks at c − x/m and at the old threshold, which is near but not the same.
//! - *The end of the run is looked at too*: without the row a loss may fall that did not, or the
//!   other way round.
//! - *The start counts*: the first loss to beat is that of the k-means++ centres, so that a coarse
//!   lattice cannot end worse than it began. Their code begins at infinity.
//! - *A retraining goes on* from the last stage that stands, since the stages before it are what
//!   they would be.
//! - *An inner node of the tree clusters centres with their masses*, where their code counts each
//!   as one point: a centre of a thousand rows says more than that of one, a row of weight 2 counts
//!   twice on every level, and k = 1 gives the mean.
//! - *A cluster without rows stays where it is*, as the correction has it at mass 0; their plain
//!   k-means draws a new centre.

mod family;
mod forget;
mod points;
mod recipe;
mod trace;
mod tree;

pub use crate::methods::{DcKMeans, QKMeans};
pub use recipe::{KMeans, Scheme};

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::request;
use crate::error::{Error, Result};
use crate::evidence::{Evidence, Outcome};
use crate::not_covered::NotCovered;
use crate::rows::{ChangedRows, Features, RowId, RowStore, Rows};
use crate::traits::{Amend, Fit, Predict, Settled};
use points::{ClusterPoints, PointSource, nearest, squared_distance};
use trace::{LloydTrace, RunFault};
use tree::ClusterTree;

/// Fitted centres, with what they need in order to forget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredKMeans", into = "StoredKMeans")]
pub struct KMeansModel {
    recipe: KMeans,
    width: usize,
    rows: usize,
    body: KMeansBody,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum KMeansBody {
    Quantised(LloydTrace),
    Divided(ClusterTree),
}

fn too_few(k: usize, distinct: usize) -> Error {
    let value = format!("{k} ({distinct} distinct points)");
    Error::Parameter {
        name: "clusters",
        value,
        range: "at most the number of distinct points",
    }
}

/// The ids of all rows, in ascending order.
fn all_ids(rows: &dyn RowStore) -> Result<Vec<RowId>> {
    let mut ids = Vec::with_capacity(rows.len());
    rows.each_block(&mut |block| {
        ids.extend(block.ids());
        Ok(())
    })?;
    ids.sort_unstable();
    Ok(ids)
}

/// Calls `run` with all rows as points: in memory, or by passes where they are beyond it.
fn over_points<T>(
    rows: &dyn RowStore,
    run: impl FnOnce(PointSource<'_>) -> std::result::Result<T, Error>,
) -> Result<T> {
    if rows.is_beyond_memory() {
        return run(PointSource::Passed(rows));
    }
    let all = rows.all()?;
    let ids: Vec<RowId> = all.ids().collect();
    run(PointSource::Held(&ClusterPoints::read(all.as_ref(), &ids)?))
}

impl KMeans {
    fn fit_rows(&self, rows: &dyn RowStore) -> Result<KMeansModel> {
        self.check()?;
        request::check_numbers(rows)?;
        if rows.is_empty() {
            return Err(Error::NoRows);
        }
        // Before any memory is asked for as many centres.
        if self.k > rows.len() {
            return Err(too_few(self.k, rows.len()));
        }
        let body = match self.scheme {
            Scheme::Quantised { .. } => {
                let trace = over_points(rows, |points| {
                    match LloydTrace::new(points, &self.rules()) {
                        Err(RunFault::Unread(error)) => Err(error),
                        Err(RunFault::TooFew(_)) if points.is_stopped() => Err(Error::Stopped),
                        Err(RunFault::TooFew(found)) => Err(too_few(self.k, found)),
                        Ok(trace) => Ok(trace),
                    }
                });
                rows.go_on()?;
                KMeansBody::Quantised(trace?)
            }
            Scheme::Divided { .. } => {
                let tree = ClusterTree::new(self, rows, &all_ids(rows)?);
                rows.go_on()?;
                KMeansBody::Divided(tree?)
            }
        };
        Ok(KMeansModel {
            recipe: *self,
            width: rows.width(),
            rows: rows.len(),
            body,
        })
    }
}

impl Fit for KMeans {
    type Model = KMeansModel;

    fn fit(&self, rows: &Rows) -> Result<KMeansModel> {
        self.fit_rows(rows)
    }

    fn fit_store(&self, rows: &dyn RowStore) -> Result<KMeansModel> {
        self.fit_rows(rows)
    }

    fn bytes(&self, model: &KMeansModel) -> usize {
        model.kept().1
    }
}

impl KMeansModel {
    /// The centres, one line per cluster.
    pub fn centers(&self) -> Mat<f64> {
        let flat = self.flat();
        Mat::from_fn(self.recipe.k, self.width, |cluster, j| {
            flat[cluster * self.width + j]
        })
    }

    /// The recipe it was fitted with.
    pub fn settings(&self) -> &KMeans {
        &self.recipe
    }

    /// How many rows it stands for.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The iterations of the run; 0 for a tree, whose nodes each have their own.
    pub fn iterations(&self) -> usize {
        self.kept().2
    }

    /// The cluster of each row: that of the nearest centre.
    pub fn assign(&self, features: &Features) -> Result<Vec<usize>> {
        let mut clusters = Vec::with_capacity(features.rows());
        self.each(features, |point| {
            clusters.push(nearest(self.flat(), point).0)
        })?;
        Ok(clusters)
    }

    fn flat(&self) -> &[f64] {
        match &self.body {
            KMeansBody::Quantised(trace) => trace.result().map_or(&[], |stage| &stage.centers),
            KMeansBody::Divided(tree) => tree.centers(),
        }
    }

    fn each(&self, features: &Features, mut see: impl FnMut(&[f64])) -> Result<()> {
        request::check_features(features, self.width)?;
        let mut point = vec![0.0; self.width];
        for slot in 0..features.rows() {
            point.fill(0.0);
            features.row(slot).add_to(1.0, &mut point);
            see(&point);
        }
        Ok(())
    }

    /// What is kept, its memory, and the iterations of the run.
    fn kept(&self) -> (&'static str, usize, usize) {
        match &self.body {
            KMeansBody::Quantised(trace) => {
                ("stages of the run", trace.bytes(), trace.iterations())
            }
            KMeansBody::Divided(tree) => ("nodes of the tree", tree.bytes(), 0),
        }
    }

    pub(crate) fn evidence(&self, method: &str) -> Evidence {
        let (what, bytes, iterations) = self.kept();
        Evidence {
            iterations,
            not_covered: vec![NotCovered::AdaptiveRequests],
            ..request::evidence(method, self.rows, (0.0, 1.0), what, bytes)
        }
    }

    /// Fits again without `gone` and, where there are some, with `new` rows.
    fn again(
        &self,
        method: &str,
        rows: &dyn RowStore,
        gone: &[RowId],
        new: Option<&Rows>,
    ) -> Result<Outcome<Self>> {
        let changed = ChangedRows::new(rows, gone, new);
        let held;
        let retained: &dyn RowStore = if rows.is_beyond_memory() {
            &changed
        } else {
            held = changed.all()?;
            held.as_ref()
        };
        let model = self.recipe.fit_rows(retained)?;
        let mut evidence =
            request::from_scratch(model.evidence(method), gone.len(), retained.len());
        evidence.learned = new.map_or(0, |new| new.len());
        Ok(Outcome { model, evidence })
    }
}

impl Predict for KMeansModel {
    /// The distance to each centre, one column per cluster: the least is the row's own.
    fn predict(&self, features: &Features) -> Result<Mat<f64>> {
        let mut scores = Mat::zeros(features.rows(), self.recipe.k);
        let mut slot = 0;
        self.each(features, |point| {
            for (cluster, center) in self.flat().chunks_exact(self.width.max(1)).enumerate() {
                scores[(slot, cluster)] = squared_distance(center, point).sqrt();
            }
            slot += 1;
        })?;
        Ok(scores)
    }
}

impl Amend for KMeansModel {
    /// Fits again: a row that joins may win a round of the start, and then everything changes.
    fn learn(&self, rows: &dyn RowStore, new: &Rows) -> Result<Outcome<Self>> {
        request::check_new(rows, new, self.width)?;
        self.again("learn", rows, &[], Some(new))
    }

    fn amend(&self, rows: &dyn RowStore, corrected: &Rows) -> Result<Outcome<Self>> {
        let ids = request::check_corrected(rows, corrected, self.width)?;
        self.again("amend", rows, &ids, Some(corrected))
    }

    /// Nothing ever waits: a forget leaves no trace of its rows behind.
    fn settle(&mut self) -> Result<Settled> {
        Ok(Settled::default())
    }

    fn waiting(&self) -> usize {
        0
    }

    fn update_evidence(&self, evidence: &mut Evidence) {
        request::refresh(evidence, self.evidence(&evidence.method));
    }
}

/// A model as it is written down, before it is believed.
#[derive(Clone, Serialize, Deserialize)]
struct StoredKMeans {
    recipe: KMeans,
    width: usize,
    rows: usize,
    body: KMeansBody,
}

impl From<KMeansModel> for StoredKMeans {
    fn from(
        KMeansModel {
            recipe,
            width,
            rows,
            body,
        }: KMeansModel,
    ) -> Self {
        Self {
            recipe,
            width,
            rows,
            body,
        }
    }
}

impl TryFrom<StoredKMeans> for KMeansModel {
    type Error = Error;

    fn try_from(
        StoredKMeans {
            recipe,
            width,
            rows,
            body,
        }: StoredKMeans,
    ) -> Result<Self> {
        recipe.check()?;
        let sound = match (&body, recipe.scheme) {
            (KMeansBody::Quantised(trace), Scheme::Quantised { .. }) => {
                trace.is_sound(&recipe.rules(), width)
            }
            (KMeansBody::Divided(tree), Scheme::Divided { .. }) => {
                tree.is_sound(&recipe, width, rows)
            }
            _ => false,
        };
        if !sound {
            return Err(Error::Damaged(
                "the parts of the k-means model do not fit together".into(),
            ));
        }
        Ok(Self {
            recipe,
            width,
            rows,
            body,
        })
    }
}
