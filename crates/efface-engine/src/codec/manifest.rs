//! The manifest: everything small about a model, and the checksums of everything large. Its own checksum lies beside
//! it, so that no flipped bit passes for a setting.

use efface::{AnyRecipe, Certificate, NotCovered, SumsAccuracy};
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::codec::blueprint::Blueprint;
use crate::codec::network::NetworkInfo;
use crate::file::{ArrayHead, EntryTally, FileFault, FileSalt, RowDirectory, damaged, schema};
use crate::ledger::{LedgerHead, PolicyState};

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
    /// The checksum over the list of rows.
    pub(crate) tally: EntryTally,
    /// Rows that were overwritten and still take their place in the file.
    pub(crate) husks: u64,
    /// The number of the next row; numbers are never used again.
    pub(crate) next_row: u64,
    /// The next position, for rows without an id of their own.
    pub(crate) next_position: u64,
    /// Rows that were ever forgotten.
    pub(crate) forgotten: u64,
    /// The checksum over the list of them.
    #[serde(default)]
    pub(crate) seal: Option<EntryTally>,
    /// Features whose names were erased.
    pub(crate) erased: u64,
    pub(crate) blueprint: Blueprint,
    pub(crate) model: ModelHead,
    pub(crate) parts: Vec<ArrayHead>,
    /// None in a file of format 1 or 2 that was not changed since.
    #[serde(default)]
    pub(crate) ledger: Option<LedgerHead>,
    #[serde(default)]
    pub(crate) policy: PolicyState,
    /// Rows that are forgotten and not yet scrubbed.
    #[serde(default)]
    pub(crate) waiting: Option<ScrubQueue>,
    /// The encoder in front of the model, for a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) network: Option<NetworkInfo>,
}

/// Rows that are out of the parameters, the training set and the list of rows, and still lie in their places: their
/// share of the stored sums is folded out, and their bytes are overwritten, by the next settle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScrubQueue {
    /// Their numbers, ascending.
    pub(crate) rows: Vec<u64>,
    /// The first and the last receipt about them.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// When the first of them was forgotten, in milliseconds since 1970.
    pub(crate) since: i64,
}

/// The small half of a model's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ModelHead {
    pub(crate) recipe: AnyRecipe,
    pub(crate) details: Details,
    /// None when unknown, which JSON has no number for.
    pub(crate) bound: Option<f64>,
    pub(crate) relative_bound: Option<f64>,
    /// What stands behind a model that was trained with noise.
    pub(crate) certificate: Option<Certificate>,
    /// What the method of the last change could not take out of the model.
    pub(crate) not_covered: Vec<NotCovered>,
}

/// What a family keeps beside its arrays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Details {
    /// A ridge model.
    Sums { accuracy: SumsAccuracy, at_optimum: bool, refactorisations: usize },
    /// A logistic or softmax model: a head, and arrays under these names.
    Classifier { refactorisations: usize, numbers: Vec<String>, counts: Vec<String> },
    /// A model that is one array.
    Packed,
}

impl Manifest {
    pub(crate) fn new(salt: FileSalt, blueprint: Blueprint, model: ModelHead) -> Self {
        let now = crate::clock::now();
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            created_at: now.clone(),
            changed_at: now,
            generation: 0,
            salt: salt.bytes(),
            rows: 0,
            tally: EntryTally::default(),
            husks: 0,
            next_row: 0,
            next_position: 0,
            forgotten: 0,
            seal: Some(EntryTally::default()),
            erased: 0,
            blueprint,
            model,
            parts: Vec::new(),
            ledger: None,
            policy: PolicyState::default(),
            waiting: None,
            network: None,
        }
    }

    pub(crate) fn salt(&self) -> FileSalt {
        FileSalt::from_bytes(self.salt)
    }

    /// The numbers of rows that wait to be scrubbed, ascending.
    pub(crate) fn hidden(&self) -> Vec<u64> {
        self.waiting.as_ref().map_or_else(Vec::new, |waiting| waiting.rows.clone())
    }

    /// The list of rows as this manifest knows it.
    pub(crate) fn directory<'a>(&self, connection: &'a Connection) -> RowDirectory<'a> {
        RowDirectory { connection, salt: self.salt(), rows: self.rows, tally: self.tally, seal: self.seal }
    }

    pub(crate) fn load(connection: &Connection) -> Result<Self, FileFault> {
        schema::check(connection)?;
        let value = |key: &str| {
            connection.query_row(r#"SELECT value FROM "meta" WHERE key = ?1"#, [key], |row| {
                row.get::<_, Vec<u8>>(0)
            })
        };
        let bytes = value("manifest")?;
        if value("digest")? != Sha256::digest(&bytes).as_slice() {
            return damaged("its manifest does not match its checksum");
        }
        let Ok(manifest) = serde_json::from_slice::<Self>(&bytes) else {
            return damaged("its manifest cannot be read");
        };
        // More clusters than rows cannot have been fitted, and would be believed before the model is read.
        if let AnyRecipe::KMeans(kmeans) = &manifest.model.recipe
            && kmeans.k as u64 > manifest.rows
        {
            return damaged("it has more clusters than rows");
        }
        if let Some(waiting) = &manifest.waiting
            && !(waiting.rows.is_sorted_by(|a, b| a < b) && waiting.rows.last() < Some(&manifest.next_row))
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

    pub(crate) fn save(&self, connection: &Connection) -> Result<(), FileFault> {
        let Ok(bytes) = serde_json::to_vec(self) else { return damaged("its manifest cannot be written") };
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        let sql = r#"INSERT INTO "meta" VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value"#;
        connection.execute(sql, params!["manifest", bytes])?;
        connection.execute(sql, params!["digest", digest])?;
        // What an older version wrote is from here on as this one writes it.
        Ok(connection.pragma_update(None, "user_version", crate::FORMAT)?)
    }
}
