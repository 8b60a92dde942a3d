//! The model that a new fit replaces. What it was made to forget must not come back with the new
//! one: its list goes over to the new log, and rows that are on it are refused.

use std::path::Path;

use crate::file::ModelConnection;
use efface_receipt::CommitmentSalt;

use super::ingest::RowNames;
use super::request::FitRequest;
use super::returning::comes_back;
use crate::codec::manifest::Manifest;
use crate::error::{Error, Result, SuppressionKind};
use crate::file::{FileFault, ModelStore, PATIENCE};
use crate::ledger::noise::NoiseSeed;
use crate::ledger::suppression::{self, SuppressedEntry, SuppressedName, SuppressionScope};
use crate::ledger::{PolicyState, TreeHead, founding};

/// What a new fit has to know of the model that it replaces.
#[derive(Default)]
pub(crate) struct ReplacedModel {
    /// The name of its log; None where there is no model, or none that can be read.
    pub(crate) origin: Option<String>,
    /// Its list, where it has one that goes over.
    list: Option<CarriedList>,
    /// Its list as it was when the fit began.
    seen: Option<TreeHead>,
    /// What was published of it, and what waits to be.
    release: Option<PolicyState>,
    /// Why its list, or a part of it, does not go over.
    pub(crate) dropped: Option<String>,
}

struct CarriedList {
    seed: NoiseSeed,
    scope: SuppressionScope,
    entries: Vec<SuppressedEntry>,
}

impl ReplacedModel {
    /// The model at a path, which a fit is about to replace.
    pub(crate) fn at(path: &Path, request: &FitRequest) -> Result<Self> {
        let opened = ModelStore::open(path, false, PATIENCE);
        let Ok((store, manifest)) = opened.and_then(|store| {
            let manifest = store.read(Manifest::load)?;
            Ok((store, manifest))
        }) else {
            return Ok(Self::default());
        };
        let mut replaced = Self {
            origin: Some(manifest.ledger.origin.clone()),
            ..Self::default()
        };
        replaced.release = Some(manifest.policy.clone());
        replaced.seen = Some(manifest.ledger.forgotten);
        let count = manifest.forgotten;
        if manifest.ledger.forgotten.set.count == 0 {
            return Ok(replaced);
        }
        if request.drop_suppressed {
            replaced.dropped = Some(format!(
                "the list of {count} forgotten rows was dropped, as asked: they may come back"
            ));
            return Ok(replaced);
        }
        let Ok(seed) = founding::noise_seed(&store, &manifest.ledger, &request.access) else {
            return Err(Error::request(
                format!(
                    "the model that is replaced has forgotten {count} rows, and without its key file its list of them \
                     cannot be carried over"
                ),
                "put the key file back, or say that the list is to be dropped",
            ));
        };
        let mut entries =
            store.read(|connection| suppression::checked_list(connection, &manifest.ledger))?;
        if request.id.is_none() || manifest.blueprint.id.is_none() {
            entries.retain(|entry| {
                !matches!(
                    entry.name.kind,
                    SuppressionKind::Id | SuppressionKind::AlikeId
                )
            });
            replaced.dropped = Some(format!(
                "the ids of {count} forgotten rows were not carried over: rows without ids of their own are numbered anew"
            ));
        }
        let scope = manifest.policy.suppress;
        replaced.list = Some(CarriedList {
            seed,
            scope,
            entries,
        });
        Ok(replaced)
    }

    /// The secret that the new log takes over with the list; None where it has one of its own.
    pub(crate) fn seed(&self, origin: &str) -> Option<NoiseSeed> {
        self.list.as_ref().map(|list| list.seed.carried(origin))
    }

    /// The file of the model that is about to be replaced, to be held until it is; None where there
    /// is none.
    pub(crate) fn reopened(&self, path: &Path) -> Result<Option<ModelStore>> {
        self.seen
            .map(|_| ModelStore::open(path, true, PATIENCE))
            .transpose()
    }

    /// Refuses to replace a model that has forgotten something while the new one was fitted. The
    /// caller holds the file, so that nothing more is forgotten before it is replaced.
    pub(crate) fn check_unchanged(&self, held: &ModelStore) -> Result<()> {
        let now = held.with(Manifest::load)?.ledger.forgotten;
        if self.seen.is_some_and(|seen| seen != now) {
            return Err(Error::request(
                "the model has forgotten rows while the new one was fitted, which may hold them",
                "fit again, without those rows",
            ));
        }
        Ok(())
    }

    /// Refuses rows that the list names.
    pub(crate) fn check(&self, names: &RowNames) -> Result<()> {
        let Some(list) = &self.list else {
            return Ok(());
        };
        let salt: CommitmentSalt = list.seed.names();
        let known: std::collections::HashMap<_, _> = list
            .entries
            .iter()
            .map(|entry| (entry.name.commitment, entry))
            .collect();
        for (slot, id) in names.ids.iter().enumerate() {
            let mut asked = vec![
                SuppressedName::id(&salt, id),
                SuppressedName::alike_id(&salt, id),
            ];
            if list.scope >= SuppressionScope::Subjects {
                asked.extend(
                    names
                        .subject(slot)
                        .map(|subject| SuppressedName::subject(&salt, subject)),
                );
            }
            if let Some(entry) = asked.iter().find_map(|name| known.get(&name.commitment)) {
                return Err(comes_back(
                    &names.ids,
                    &[],
                    slot,
                    entry.name.kind,
                    &entry.since,
                ));
            }
        }
        Ok(())
    }

    /// Enters the list, and what waits to be published, into the new file.
    pub(crate) fn carry(
        &self,
        connection: &ModelConnection,
        manifest: &mut Manifest,
    ) -> std::result::Result<(), FileFault> {
        self.release
            .iter()
            .for_each(|old| manifest.policy.succeed(old));
        let Some(list) = &self.list else {
            return Ok(());
        };
        suppression::carry(connection, &mut manifest.ledger, &list.entries)?;
        manifest.policy.suppress = list.scope;
        manifest.forgotten = self.carried();
        Ok(())
    }

    /// How many forgotten rows the new model knows by their ids.
    pub(crate) fn carried(&self) -> u64 {
        let entries = self.list.iter().flat_map(|list| &list.entries);
        entries
            .filter(|entry| entry.name.kind == SuppressionKind::Id)
            .count() as u64
    }
}
