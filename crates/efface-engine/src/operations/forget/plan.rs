//! Which rows a request is about.

use std::collections::HashSet;

use efface::RowId;
use efface_receipt::{Hash, RequestOutcome, sha256};

use crate::error::{Error, Result};
use crate::file::FoundRows;
use crate::operations::change::OpenedChange;
use crate::operations::open_model::OpenModel;
use crate::operations::report::RowsPreview;
use crate::operations::request::{ForgetRequest, RowSelection};

/// The name of a request, as the file keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestName {
    /// A commitment to the name that the caller gave.
    pub(crate) commitment: Hash,
    /// A commitment to what was asked.
    pub(crate) body: Hash,
}

/// The subject of a request.
pub(super) struct SubjectName {
    pub(super) value: String,
    /// The commitment to it in the receipt.
    pub(super) commitment: Hash,
    /// What proves to whom the commitment is. The caller gets it, and no file keeps it.
    pub(super) opening: Hash,
}

/// A request and the rows that it is about.
pub(super) struct ForgetPlan {
    /// The place of the request among those that came together.
    pub(super) at: usize,
    pub(super) name: Option<RequestName>,
    pub(super) subject: Option<SubjectName>,
    pub(super) rows: Vec<RowId>,
    pub(super) rows_digest: Hash,
    /// Rows that were named and are not in the model.
    pub(super) missing: usize,
}

impl ForgetPlan {
    pub(super) fn outcome(&self) -> RequestOutcome {
        match (self.rows.len(), self.missing) {
            (0, _) => RequestOutcome::NotFound,
            (_, 0) => RequestOutcome::Erased,
            _ => RequestOutcome::Partial,
        }
    }

    /// Why a request came to this outcome, where the outcome does not say it.
    pub(super) fn reason(&self, outcome: RequestOutcome) -> Option<String> {
        let named = self.missing + self.rows.len();
        match (outcome, &self.subject) {
            (RequestOutcome::Partial, _) => {
                Some(format!("{} of {named} rows were not there", self.missing))
            }
            (RequestOutcome::NotFound, Some(_)) => {
                Some("no row of this subject is in the model".into())
            }
            (RequestOutcome::NotFound, None) => Some("none of these rows is in the model".into()),
            _ => None,
        }
    }
}

/// Returns the digest of a set of rows of this model. Within a model file no number of a row is used
/// twice, and an amended row gets a new number, so that equal digests mean the same rows with the
/// same content. The log and the time of the fit tell models apart.
pub(super) fn rows_digest(change: &OpenedChange<'_>, rows: &[RowId]) -> Hash {
    let mut numbers: Vec<u64> = rows.iter().map(|row| row.0).collect();
    numbers.sort_unstable();
    let mut bytes = Vec::new();
    for name in [&change.manifest.ledger.origin, &change.manifest.created_at] {
        bytes.extend((name.len() as u64).to_be_bytes());
        bytes.extend(name.as_bytes());
    }
    bytes.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
    sha256(&bytes)
}

/// The rows of a selection, all of which must be in the model.
pub(crate) fn selected_rows(change: &OpenedChange<'_>, who: &RowSelection) -> Result<Vec<RowId>> {
    let request = ForgetRequest::new(who.clone());
    let found = look_up(change, std::slice::from_ref(&request))?;
    let (rows, _) = resolve(change, &request, &found, &HashSet::new())?;
    Ok(rows)
}

/// Returns the rows that a request names now, without computing anything.
pub(crate) fn preview_rows(model: &OpenModel, request: &ForgetRequest) -> Result<RowsPreview> {
    let change = OpenedChange::begin(model, false)?;
    let found = look_up(&change, std::slice::from_ref(request))?;
    let (rows, _) = resolve(&change, request, &found, &HashSet::new())?;
    Ok(RowsPreview {
        rows: rows.len(),
        digest: rows_digest(&change, &rows),
    })
}

/// All names of all requests in one pass over the list of rows.
pub(super) fn look_up(change: &OpenedChange<'_>, requests: &[ForgetRequest]) -> Result<FoundRows> {
    let mut ids = Vec::new();
    let mut subjects = Vec::new();
    for request in requests {
        match &request.who {
            RowSelection::Ids(list) => ids.extend(list.iter().map(|id| id.trim())),
            RowSelection::Subject { value, .. } => subjects.push(value.trim()),
        }
    }
    change.directory(|directory| directory.look_up(&ids, &subjects))
}

/// The rows that a request is about, and how many of those that it names are not in the model.
pub(super) fn resolve(
    change: &OpenedChange<'_>,
    request: &ForgetRequest,
    found: &FoundRows,
    taken: &HashSet<RowId>,
) -> Result<(Vec<RowId>, usize)> {
    match &request.who {
        RowSelection::Ids(ids) if ids.is_empty() => Err(Error::EmptyRequest),
        RowSelection::Ids(ids) => {
            let mut seen = HashSet::new();
            let mut rows = Vec::with_capacity(ids.len());
            for id in ids.iter().map(|id| id.trim()) {
                if !seen.insert(id) {
                    return Err(Error::NamedTwice { id: id.into() });
                }
                match found
                    .ids
                    .get(id)
                    .map(|row| RowId(*row))
                    .filter(|row| !taken.contains(row))
                {
                    Some(row) => rows.push(row),
                    None if request.allow_missing => {}
                    None => return Err(change.absent(id)?),
                }
            }
            let missing = ids.len() - rows.len();
            Ok((rows, missing))
        }
        RowSelection::Subject { column, value } => {
            let has = &change.manifest.blueprint.subject;
            if has.as_ref() != Some(column) {
                return Err(Error::SubjectColumn {
                    asked: column.clone(),
                    has: has.clone(),
                });
            }
            let all = found
                .subjects
                .get(value.trim())
                .map_or(&[][..], Vec::as_slice);
            let rows: Vec<RowId> = all
                .iter()
                .map(|row| RowId(*row))
                .filter(|row| !taken.contains(row))
                .collect();
            if rows.is_empty() && !request.allow_missing && request.id.is_none() {
                return Err(Error::UnknownSubject {
                    column: column.clone(),
                    value: value.clone(),
                });
            }
            Ok((rows, 0))
        }
    }
}
