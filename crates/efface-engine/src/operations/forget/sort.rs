//! Which requests are new, and which were answered before.

use std::collections::{HashMap, HashSet};

use efface::RowId;
use efface_receipt::{CommitmentLabel, CommitmentOpening, Hash};

use super::answer::replay;
use super::identity::{check_name, identity};
use super::plan::{ForgetPlan, RequestName, SubjectName, look_up, resolve, rows_digest};
use crate::error::{Error, Result};
use crate::ledger::{TrustedTree, requests};
use crate::operations::change::OpenedChange;
use crate::operations::report::ChangeReport;
use crate::operations::request::{ForgetRequest, RowSelection};
use crate::randomness::random_bytes;

/// Requests after a first look at the file.
pub(super) struct SortedRequests {
    /// Those that are to be carried out. Requests that find rows come first: all of them start from
    /// the model as it was.
    pub(super) plans: Vec<ForgetPlan>,
    /// For each request its answer, where it is known already.
    pub(super) answers: Vec<Option<Result<ChangeReport>>>,
    /// Requests that came twice in one group: the place of the second, and that of the first.
    pub(super) twins: Vec<(usize, usize)>,
    /// What is known of the table of requests that were answered.
    pub(super) answered: TrustedTree,
}

/// Sorts out which requests are new, and which rows they are about. Those that need no work are
/// answered here.
pub(super) fn sort_out(
    change: &OpenedChange<'_>,
    requests: &[ForgetRequest],
) -> Result<SortedRequests> {
    let found = look_up(change, requests)?;
    let names = requests
        .iter()
        .map(|request| name_of(change, request))
        .collect::<Result<Vec<_>>>()?;
    let commitments: Vec<Hash> = names
        .iter()
        .flatten()
        .flatten()
        .map(|name: &RequestName| name.commitment)
        .collect();
    let mut trusted = TrustedTree::default();
    let known = change.store().with(|connection| {
        requests::find(
            connection,
            &change.manifest.ledger,
            &commitments,
            &mut trusted,
        )
    })?;
    let mut known = known.into_iter();
    let mut named: HashMap<Hash, (usize, Hash)> = HashMap::new();
    let mut taken: HashSet<RowId> = HashSet::new();
    let mut sorted = SortedRequests {
        plans: Vec::new(),
        answers: requests.iter().map(|_| None).collect(),
        twins: Vec::new(),
        answered: trusted,
    };
    for ((at, request), name) in requests.iter().enumerate().zip(names) {
        let name = match name {
            Ok(name) => name,
            Err(error) => {
                sorted.answers[at] = Some(Err(error));
                continue;
            }
        };
        if let Some(RequestName { commitment, body }) = name {
            let reused = || Error::RequestReused {
                id: request.id.clone().unwrap_or_default(),
            };
            if let Some(known) = known.next().flatten() {
                let answer = if known.body == body {
                    replay(change, &known)
                } else {
                    Err(reused())
                };
                sorted.answers[at] = Some(answer);
                continue;
            }
            if let Some((twin, asked)) = named.get(&commitment) {
                if *asked == body {
                    sorted.twins.push((at, *twin));
                } else {
                    sorted.answers[at] = Some(Err(reused()));
                }
                continue;
            }
        }
        match resolve(change, request, &found, &taken) {
            Ok((rows, missing)) => {
                let rows_digest = rows_digest(change, &rows);
                let expected = request.expected_rows;
                if expected.is_some_and(|expected| expected != rows_digest) {
                    sorted.answers[at] = Some(Err(Error::RowsChanged));
                    continue;
                }
                if let Some(name) = name {
                    named.insert(name.commitment, (at, name.body));
                }
                taken.extend(&rows);
                let subject = match &request.who {
                    // A nonce of its own, which is told and not kept: nothing links two receipts of
                    // a person.
                    RowSelection::Subject { value, .. } => {
                        let opening = CommitmentOpening(Hash(*random_bytes()?));
                        let value = value.trim();
                        let commitment =
                            opening.commitment(CommitmentLabel::Subject, value.as_bytes());
                        Some(SubjectName {
                            value: value.to_owned(),
                            commitment,
                            opening: opening.0,
                        })
                    }
                    RowSelection::Ids(_) => None,
                };
                sorted.plans.push(ForgetPlan {
                    at,
                    name,
                    subject,
                    rows,
                    rows_digest,
                    missing,
                });
            }
            Err(error) => sorted.answers[at] = Some(Err(error)),
        }
    }
    sorted.plans.sort_by_key(|plan| plan.rows.is_empty());
    Ok(sorted)
}

/// The name of a request as the file keeps it, None for one without; inside, why the name cannot be
/// used.
fn name_of(
    change: &OpenedChange<'_>,
    request: &ForgetRequest,
) -> Result<Result<Option<RequestName>>> {
    let Some(id) = &request.id else {
        return Ok(Ok(None));
    };
    let id = match check_name(id) {
        Ok(id) => id,
        Err(error) => return Ok(Err(error)),
    };
    let names = change.names()?;
    let commitment = names.commit(CommitmentLabel::Request, id.as_bytes());
    let body = names.commit(CommitmentLabel::Request, &identity(request)?);
    Ok(Ok(Some(RequestName { commitment, body })))
}
