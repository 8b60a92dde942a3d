//! The second phase of a change: the new model and the rows that come and go are known, and nothing
//! is written.

use std::collections::HashSet;

use efface::features::Encoder;
use efface::{Claim, Evidence, Method, Model, NotCovered, Outcome, RowId, Rows};
use efface_receipt::Hash;

use super::opened::{ArrivingRows, OpenedChange};
use super::scrub::DeferredModel;
use crate::clock;
use crate::codec::feature_rows::substance;
use crate::codec::manifest::{ScrubQueue, StateHead};
use crate::codec::model;
use crate::error::Result;
use crate::file::rows::HashedRow;
use crate::file::{self, OutgoingRow, RowDigest, StoreRows, StoredRow};
use crate::ledger::suppression::{SuppressedName, SuppressionScope};
use crate::ledger::{MethodFindings, ModelState, row_leaf};
use crate::operations::network::{NetworkRenewal, without_words};
use crate::operations::parameters;

/// What an operation worked out: the model that its method gave, and the rows that come and go with
/// it.
pub(crate) struct RowChange {
    pub(crate) outcome: Outcome<Model>,
    /// The rows that leave.
    pub(crate) gone: Vec<RowId>,
    /// Whether the rows that leave must not come back.
    pub(crate) forgets: bool,
    /// People who must not come back.
    pub(crate) subjects: Vec<String>,
    /// The rows that come.
    pub(crate) new: Option<ArrivingRows>,
    /// A whole network that was trained anew or further.
    pub(crate) renewal: Option<NetworkRenewal>,
    /// How many receipts will tell of the rows that leave, where policy and model may let those
    /// rows wait to be scrubbed. None where the rows must be overwritten in this change.
    pub(crate) deferrable: Option<u64>,
}

/// A row that leaves.
pub(super) struct LeavingRow {
    pub(super) row: RowId,
    pub(super) id: String,
    /// The digest of its bytes.
    pub(super) digest: RowDigest,
    /// The hash of what it holds beside its names.
    pub(super) substance: Option<Hash>,
    /// Its leaf in the training set.
    pub(super) commitment: Hash,
}

/// The rows that leave, and the names that leave with them.
struct Departures {
    rows: Vec<LeavingRow>,
    /// Features that lost their name.
    dropped: usize,
    /// The ids of the words of these rows, where the model reads texts through a network.
    words: HashSet<u32>,
}

/// How the new model is stored.
pub(super) enum StoredForm {
    /// Whole, with its curvature up to date.
    Settled(efface::ModelState),
    /// New parameters beside the sums of before; the rows that left wait to be folded out of the
    /// sums.
    Deferred(DeferredModel),
}

/// A change whose result is known. The manifest in memory already says what the file will.
pub(crate) struct PlannedChange<'a> {
    pub(crate) opened: OpenedChange<'a>,
    pub(crate) evidence: Evidence,
    /// Names of features that no row has any more.
    pub(crate) dropped: usize,
    pub(super) model: Model,
    pub(super) form: StoredForm,
    pub(super) gone: Vec<LeavingRow>,
    /// What must not come back.
    pub(super) suppressed: Vec<SuppressedName>,
    pub(super) new: Option<ArrivingRows>,
    pub(super) renewal: Option<NetworkRenewal>,
    pub(super) before: ModelState,
    /// The exported numbers of before, where something was exported that the new ones can be
    /// compared with.
    pub(super) published: Option<Vec<f64>>,
    /// Rows that had waited to be scrubbed and are overwritten by this change.
    pub(super) scrubbing: Option<ScrubQueue>,
}

impl<'a> PlannedChange<'a> {
    fn new(mut opened: OpenedChange<'a>, change: RowChange) -> Result<Self> {
        let RowChange {
            outcome,
            gone,
            forgets,
            subjects,
            new,
            renewal,
            deferrable,
        } = change;
        let Outcome {
            mut model,
            mut evidence,
        } = outcome;
        let mut published = None;
        if opened.manifest.policy.published {
            published = Some(parameters::numbers(opened.store(), &opened.manifest)?);
        }
        // Arrivals are counted first, so that a word that is in the old and in the new version of a
        // row keeps its name.
        if let Some(new) = &new {
            opened.count_arrivals(&new.rows);
        }
        let Departures {
            rows: gone,
            dropped,
            words,
        } = opened.count_departures(&gone)?;
        let renewal = opened.follow_network(renewal, &gone, words, new.as_ref())?;
        if let Some(renewed) = opened.renewed.take() {
            opened.encoder = Some(renewed);
        }
        if let Some(encoder) = &opened.encoder {
            opened.manifest.blueprint.follow(encoder);
        }
        let suppressed = if forgets {
            opened.suppressed(&gone, &subjects)?
        } else {
            Vec::new()
        };
        let deferred = deferrable.and_then(|receipts| {
            let rows: Vec<(u64, RowDigest)> = gone
                .iter()
                .map(|leaving| (leaving.row.0, leaving.digest))
                .collect();
            opened.defer(&rows, &model, &mut evidence, receipts)
        });
        let form = match deferred {
            Some(deferred) => StoredForm::Deferred(deferred),
            None => StoredForm::Settled(model::settle(&mut model, &mut evidence)?),
        };
        if opened
            .encoder
            .as_ref()
            .is_some_and(Encoder::has_open_components)
        {
            evidence.bound = f64::INFINITY;
            evidence.relative_bound = f64::INFINITY;
            evidence.reason = Some(
                "the rows that stay vary as much along the next direction as along the last component, so that a fit to them \
                 is refused and has no components to compare with; ask for fewer components"
                    .into(),
            );
        }
        let has_stale_features = opened
            .encoder
            .as_ref()
            .is_some_and(|encoder| !encoder.not_covered().is_empty());
        if has_stale_features && matches!(evidence.promise, Claim::Certified { .. }) {
            evidence.promise = Claim::Approximate;
            evidence.certificate = None;
            evidence.reason = Some(
                "the certificate speaks of the parameters alone, and the features follow from other rows than \
                 those that are left; retraining makes both anew"
                    .into(),
            );
        }
        model::limit(&opened.manifest, &mut evidence);
        let before = opened.manifest.state();
        let forgotten = if forgets { gone.len() } else { 0 };
        let stored = match &form {
            StoredForm::Settled(state) => model::state_head(&model, state),
            StoredForm::Deferred(_) => opened.manifest.model.state.clone(),
        };
        opened.update_manifest(stored, &evidence, forgotten);
        let read_off_rows = match &form {
            StoredForm::Settled(state) => state.read_off_rows(),
            StoredForm::Deferred(_) => opened
                .store()
                .with(|connection| model::read_off_rows(connection, &opened.manifest))?,
        };
        let scrubbing = match &form {
            StoredForm::Settled(_) => opened.manifest.waiting.take(),
            StoredForm::Deferred(_) => None,
        };
        evidence.set_left_behind(model::left_behind(
            &opened.manifest,
            opened.encoder.as_ref(),
            read_off_rows,
        ));
        if let Some(unknown) = new
            .as_ref()
            .map(|new| new.unknown)
            .filter(|unknown| *unknown > 0)
        {
            evidence.not_covered.push(NotCovered::UnknownNames {
                names: unknown as usize,
            });
        }
        Ok(Self {
            opened,
            evidence,
            dropped,
            model,
            form,
            gone,
            suppressed,
            new,
            renewal,
            before,
            published,
            scrubbing,
        })
    }

    /// What the receipts of this change say of the method.
    pub(crate) fn findings(&self, method: &Method) -> MethodFindings {
        let manifest = &self.opened.manifest;
        MethodFindings::new(&self.evidence, &manifest.model.recipe, method)
            .with_network(manifest.network.as_ref())
    }

    /// The new model.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// The leaves in the training set of the rows that leave, in the order in which they were
    /// named.
    pub(crate) fn departed(&self) -> Vec<Hash> {
        self.gone.iter().map(|leaving| leaving.commitment).collect()
    }

    /// Whether this change overwrites the rows that leave; if not, they wait for the next settle.
    pub(crate) fn is_scrubbing(&self) -> bool {
        matches!(self.form, StoredForm::Settled(_))
    }
}

impl<'a> OpenedChange<'a> {
    /// The model that a method gave becomes the plan of this change.
    pub(crate) fn plan(self, change: RowChange) -> Result<PlannedChange<'a>> {
        PlannedChange::new(self, change)
    }

    /// Takes the words and classes of new rows into account.
    fn count_arrivals(&mut self, new: &Rows) {
        for row in new.iter() {
            if let Some(encoder) = &mut self.encoder {
                encoder.learn_row(&row.features.entries(), row.targets);
            }
            self.manifest.blueprint.count(row.targets, true);
        }
    }

    /// Records the change of rows in the description of a network, and drops what the `words` of
    /// rows that leave left in it, where no row holds them any more.
    fn follow_network(
        &mut self,
        renewal: Option<NetworkRenewal>,
        gone: &[LeavingRow],
        mut words: HashSet<u32>,
        new: Option<&ArrivingRows>,
    ) -> Result<Option<NetworkRenewal>> {
        if let Some(network) = renewal.as_ref().and_then(NetworkRenewal::network) {
            self.manifest.network = Some(network.clone());
            return Ok(renewal);
        }
        let Some(network) = &mut self.manifest.network else {
            return Ok(renewal);
        };
        network.record(!gone.is_empty(), new.is_some());
        if gone.is_empty() {
            return Ok(renewal);
        }
        if !network.keeps_words_of_rows() {
            words.clear();
        }
        if let Some(new) = new {
            new.word_ids().for_each(|word| {
                words.remove(&word);
            });
        }
        let gone: HashSet<u64> = gone.iter().map(|leaving| leaving.row.0).collect();
        let outline = self.manifest.outline();
        self.store()
            .with(|connection| file::rows::keep_unused(connection, &outline, &gone, &mut words))?;
        without_words(self.store(), &self.manifest, &words)
    }

    /// Takes the words and classes of rows that leave into account.
    fn count_departures(&mut self, gone: &[RowId]) -> Result<Departures> {
        let mut leaving = Vec::with_capacity(gone.len());
        let mut dropped = 0;
        let mut words = HashSet::new();
        // What one row has compared with the list is at hand for the next.
        let rows = self.rows();
        for &row in gone {
            let (departing, stored) = self.leaving(&rows, row)?;
            if let Some(encoder) = &mut self.encoder {
                dropped += encoder.forget_row(&stored.features.as_ref().entries(), &stored.targets);
            }
            self.manifest.blueprint.count(&stored.targets, false);
            words.extend(stored.word_ids());
            leaving.push(departing);
        }
        Ok(Departures {
            rows: leaving,
            dropped,
            words,
        })
    }

    /// A row that leaves, and what the file holds of it.
    pub(super) fn leaving(
        &self,
        rows: &StoreRows<'_>,
        row: RowId,
    ) -> Result<(LeavingRow, StoredRow)> {
        let found = rows
            .read_hashed(row.0)
            .map_err(|fault| fault.at(self.store().path()))?;
        let HashedRow {
            row: stored,
            content,
            digest,
        } = found.ok_or(efface::Error::UnknownRow(row))?;
        let commitment = row_leaf(&stored.nonce, &stored.id, &content);
        let outgoing = OutgoingRow {
            id: "",
            subject: None,
            weight: stored.weight,
            targets: &stored.targets,
            words: &stored.words,
            features: stored.features.as_ref(),
        };
        // Names are told before the last row that holds them is gone.
        let is_kept = self.manifest.policy.suppress == SuppressionScope::Content;
        let shape = self.manifest.blueprint.shape();
        let substance = is_kept.then(|| substance(self.encoder.as_ref(), shape, &outgoing));
        Ok((
            LeavingRow {
                row,
                id: stored.id.clone(),
                digest,
                substance,
                commitment,
            },
            stored,
        ))
    }

    /// The names under which rows and people must not come back. A dry run without the secret
    /// beside the model has none.
    fn suppressed(&self, gone: &[LeavingRow], subjects: &[String]) -> Result<Vec<SuppressedName>> {
        let names = match self.names() {
            Err(_) if !self.writes => return Ok(Vec::new()),
            names => names?,
        };
        let mut all: Vec<SuppressedName> = subjects
            .iter()
            .map(|subject| SuppressedName::subject(names, subject))
            .collect();
        for leaving in gone {
            all.push(SuppressedName::id(names, &leaving.id));
            all.push(SuppressedName::alike_id(names, &leaving.id));
            all.extend(
                leaving
                    .substance
                    .map(|substance| SuppressedName::content(names, &substance)),
            );
        }
        Ok(all)
    }

    fn update_manifest(&mut self, stored: StateHead, evidence: &Evidence, forgotten: usize) {
        let manifest = &mut self.manifest;
        manifest.forgotten += forgotten as u64;
        manifest.generation += 1;
        // They are figures of the model before, and were computed with rows that may be leaving.
        manifest.scores.clear();
        manifest.version = env!("CARGO_PKG_VERSION").into();
        manifest.changed_at = clock::stamp(self.received_at.unix_milliseconds());
        // The recipe stays the model's, in whatever form this change worked.
        manifest.model = model::head(manifest.model.recipe.clone(), stored, evidence);
    }
}
