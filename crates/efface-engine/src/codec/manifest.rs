//! The manifest: everything small about a model, and the hashes of everything large. It is signed
//! with the head of the log, so that all that a change relies on is what the last change left.

use std::collections::BTreeMap;

use crate::file::ModelConnection;
use efface::scores::{PenaltyChoice, QualityScores};
use efface::{Certificate, Family, HeadBound, NotCovered, Recipe};
use efface_receipt::{Hash, ReceiptSigner, sha256};
use serde::{Deserialize, Serialize};

use crate::codec::blueprint::Blueprint;
use crate::codec::network_info::NetworkInfo;
use crate::file::{
    ArrayHead, DirectoryHead, FileFault, FileSalt, ListRoots, RowDigest, RowDirectory, RowOutline,
    damaged, meta, schema,
};
use crate::ledger::{LedgerHead, ModelState, PolicyState, ReceiptLog};

/// The name of the manifest among the small values of a file.
const MANIFEST: &str = "manifest";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The version of efface that wrote the file last.
    pub(crate) version: String,
    pub(crate) created_at: String,
    pub(crate) changed_at: String,
    /// Changes since the fit.
    pub(crate) generation: u64,
    salt: [u8; 32],
    /// Rows in the model.
    pub(crate) rows: u64,
    /// The roots over the list of rows and its index.
    pub(crate) listed: ListRoots,
    /// Rows that were overwritten and still take their place in the file.
    pub(crate) husks: u64,
    /// The number of the next row; numbers are never used again.
    pub(crate) next_row: u64,
    /// The next position, for rows without an id of their own.
    pub(crate) next_position: u64,
    /// The rows of the fit and of the latest learns, where rows have no id of their own.
    #[serde(default)]
    pub(crate) batches: Vec<RowRun>,
    /// Rows that were ever forgotten.
    pub(crate) forgotten: u64,
    pub(crate) blueprint: Blueprint,
    pub(crate) model: ModelHead,
    pub(crate) parts: Vec<ArrayHead>,
    pub(crate) ledger: LedgerHead,
    pub(crate) policy: PolicyState,
    /// Rows that are forgotten and not yet scrubbed.
    pub(crate) waiting: Option<ScrubQueue>,
    /// The encoder in front of the model, for a network.
    pub(crate) network: Option<NetworkInfo>,
    /// How good the model is, until its rows change.
    pub(crate) scores: Vec<MeasuredScores>,
    /// How the penalty was chosen, where it was chosen from the rows.
    pub(crate) penalty: Option<PenaltyChoice>,
}

/// Rows that came together, under successive numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RowRun {
    /// The number of the first of them.
    pub(crate) first: u64,
    /// Rows that came, also those that have left since.
    pub(crate) count: u64,
}

/// The most batches of rows that are remembered. The manifest is written at every change.
const MOST_BATCHES: usize = 64;

/// How good a model is on rows that it did not see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredScores {
    /// Which rows these were.
    pub on: UnseenRows,
    /// The figures.
    pub quality: QualityScores,
}

/// Rows that a model was judged by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum UnseenRows {
    /// The rows of a file of their own.
    Test,
    /// Rows that were set aside before the fit.
    HeldOut {
        /// The share of all rows.
        share: f64,
        /// What the choice followed from, beside the ids.
        seed: u64,
    },
    /// Every row once, by a model that was fitted without its fold; the figures are means over the
    /// folds.
    Folds {
        /// How many folds.
        folds: usize,
        /// What the folds followed from, beside the ids.
        seed: u64,
    },
    /// Rows that were left out one by one, in closed form.
    LeaveOneOut {
        /// How many; fewer than all in a large table.
        rows: usize,
    },
}

/// Rows that are out of the parameters, the training set and the list of rows, and still lie in
/// their places: their share of the stored sums is folded out, and their bytes are overwritten, by
/// the next settle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScrubQueue {
    /// Their numbers, and the digests of their bytes.
    pub(crate) rows: BTreeMap<u64, RowDigest>,
    /// The first and the last receipt about them.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// When the first of them was forgotten, in milliseconds since 1970.
    pub(crate) since: i64,
}

/// The small half of a model's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ModelHead {
    pub(crate) recipe: Recipe,
    pub(crate) state: StateHead,
    /// None when unknown, which JSON has no number for.
    pub(crate) bound: Option<f64>,
    pub(crate) relative_bound: Option<f64>,
    /// The bound of the head alone, for a network whose encoder nothing bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) head_bound: Option<HeadBound>,
    /// What stands behind a model that was trained with noise.
    pub(crate) certificate: Option<Certificate>,
    /// What the method of the last change could not take out of the model.
    pub(crate) left_behind: Vec<NotCovered>,
}

/// What is stored of a model: its head lies in an array of its own, beside these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StateHead {
    /// The family, whose recipe knows how to read the rest.
    pub(crate) family: Family,
    /// The arrays of the state.
    pub(crate) arrays: Vec<(String, StateKind)>,
    /// How often the curvature was made anew.
    pub(crate) refactorisations: usize,
}

/// What the numbers of an array are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StateKind {
    /// Floating-point numbers.
    Numbers,
    /// Counts.
    Counts,
}

impl Manifest {
    /// The manifest of a new file, without rows and arrays.
    pub(crate) fn new(
        salt: FileSalt,
        blueprint: Blueprint,
        model: ModelHead,
        ledger: LedgerHead,
    ) -> Self {
        let now = crate::clock::now();
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            created_at: now.clone(),
            changed_at: now,
            generation: 0,
            salt: salt.bytes(),
            rows: 0,
            listed: ListRoots::empty(),
            husks: 0,
            next_row: 0,
            next_position: 0,
            batches: Vec::new(),
            forgotten: 0,
            blueprint,
            model,
            parts: Vec::new(),
            ledger,
            policy: PolicyState::default(),
            waiting: None,
            network: None,
            scores: Vec::new(),
            penalty: None,
        }
    }

    pub(crate) fn salt(&self) -> FileSalt {
        FileSalt::from_bytes(self.salt)
    }

    /// The hash of the model's parameters.
    pub(crate) fn parameters(&self) -> Hash {
        parameters_hash(&self.parts)
    }

    /// The state of the model that receipts name: its training set and its parameters.
    pub(crate) fn state(&self) -> ModelState {
        (self.ledger.members.set, self.parameters())
    }

    /// Which rows of the file belong to the model.
    pub(crate) fn outline(&self) -> RowOutline {
        RowOutline {
            shape: self.blueprint.shape(),
            rows: self.rows,
            weighted: self.blueprint.weight.is_some(),
            roots: self.listed,
            hidden: self
                .waiting
                .as_ref()
                .map_or_else(BTreeMap::new, |queue| queue.rows.clone()),
        }
    }

    /// The list of rows as this manifest knows it.
    pub(crate) fn directory<'a>(&self, connection: &'a ModelConnection) -> RowDirectory<'a> {
        let head = DirectoryHead {
            rows: self.rows,
            roots: self.listed,
        };
        RowDirectory::new(connection, self.salt(), head)
    }

    /// Takes note of rows that came together. Rows with ids of their own need no note: the same row
    /// cannot come twice.
    pub(crate) fn note_batch(&mut self, first: u64, count: u64) {
        if self.blueprint.id.is_some() {
            return;
        }
        if self.batches.len() == MOST_BATCHES {
            // The rows of the fit stay, because their file is the one that is most often at hand.
            self.batches.remove(1);
        }
        self.batches.push(RowRun { first, count });
    }

    /// Takes the list of rows over as a change left it.
    pub(crate) fn enter(&mut self, head: DirectoryHead) {
        self.rows = head.rows;
        self.listed = head.roots;
    }

    pub(crate) fn load(connection: &ModelConnection) -> Result<Self, FileFault> {
        schema::check(connection)?;
        let Some(bytes) = meta::read(connection, MANIFEST)? else {
            return damaged("it has no manifest");
        };
        let Ok(manifest) = serde_json::from_slice::<Self>(&bytes) else {
            return damaged("its manifest cannot be read");
        };
        ReceiptLog(connection).check_seal(&manifest.ledger, &sha256(&bytes))?;
        // More clusters than rows cannot have been fitted, and would be believed before the model
        // is read.
        if manifest
            .model
            .recipe
            .describe()
            .clusters
            .is_some_and(|clusters| clusters as u64 > manifest.rows)
        {
            return damaged("it has more clusters than rows");
        }
        if let Some(waiting) = &manifest.waiting
            && waiting.rows.keys().last() >= Some(&manifest.next_row)
        {
            return damaged("its list of rows that wait to be scrubbed makes no sense");
        }
        if manifest.network.is_some() != manifest.blueprint.texts.is_some() {
            return damaged("it has half of a network");
        }
        match manifest.blueprint.fault() {
            Some(fault) => damaged(fault),
            None => Ok(manifest),
        }
    }

    /// Writes the manifest, and signs it with the head of the log. Nothing is written to the file
    /// after that.
    pub(crate) fn seal(
        &self,
        connection: &ModelConnection,
        signer: &dyn ReceiptSigner,
    ) -> Result<(), FileFault> {
        let Ok(bytes) = serde_json::to_vec(self) else {
            return damaged("its manifest cannot be written");
        };
        meta::write(connection, MANIFEST, &bytes)?;
        ReceiptLog(connection).seal(&self.ledger, &sha256(&bytes), signer)
    }
}

/// The hash of a model's parameters: SHA-256 over a line `name sha256` for each array that scores
/// depend on, in the order of their names. The arrays are little-endian.
fn parameters_hash(parts: &[ArrayHead]) -> Hash {
    // Curvature and sums are no parameters; words have no numbers.
    const OTHERS: [&str; 14] = [
        "facts",
        "a",
        "a_low",
        "factor",
        "b",
        "support",
        "spread",
        "anchor",
        "gradient",
        "gradient_low",
        "encoder",
        "hessian",
        "gram",
        "sums",
    ];
    let mut lines: Vec<String> = parts
        .iter()
        .filter(|part| !OTHERS.contains(&part.name()))
        .map(|part| format!("{} {}\n", part.name(), part.sha256()))
        .collect();
    lines.sort();
    sha256(lines.concat().as_bytes())
}
