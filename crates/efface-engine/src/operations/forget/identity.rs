//! What makes two requests the same: the name that the caller gave, and a hash of what was asked.

use efface::Method;
use efface_receipt::{canonical, sha256};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::operations::request::{ForgetRequest, RowSelection};

/// The longest name of a request.
const LONGEST: usize = 256;

/// A name that can be kept apart from others: not empty, not long, printable.
pub(crate) fn check_name(id: &str) -> Result<&str> {
    let name = id.trim();
    if name.is_empty() || name.len() > LONGEST || name.chars().any(char::is_control) {
        return Err(Error::request(
            "a request id has 1 to 256 bytes and no control characters",
            "a ticket number or a UUID will do",
        ));
    }
    Ok(name)
}

/// The version of [`RequestIdentity`]. Requests of another version are other requests.
const IDENTITY_VERSION: u32 = 1;

/// All that makes two requests the same, in the form whose hash is kept. A field is never renamed
/// or dropped within a version: the hash decides whether a request that comes again is answered
/// again or refused.
#[derive(Serialize)]
struct RequestIdentity<'a> {
    version: u32,
    rows: IdentifiedRows<'a>,
    method: &'a Method,
    clear_dead_columns: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    allow_worse: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    new_seed: bool,
    allow_missing: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum IdentifiedRows<'a> {
    Ids(Vec<&'a str>),
    Subject { column: &'a str, value: &'a str },
}

/// The SHA-256 of what was asked, as canonical JSON (RFC 8785). Ids are a set, so that their order
/// does not count.
pub(super) fn identity(request: &ForgetRequest) -> Result<[u8; 32]> {
    let rows = match &request.who {
        RowSelection::Ids(ids) => {
            let mut ids: Vec<&str> = ids.iter().map(|id| id.trim()).collect();
            ids.sort_unstable();
            IdentifiedRows::Ids(ids)
        }
        RowSelection::Subject { column, value } => IdentifiedRows::Subject {
            column,
            value: value.trim(),
        },
    };
    // JSON has no number for a setting that is none. Such a setting is out of its range in any
    // case.
    request.method.check()?;
    let identity = RequestIdentity {
        version: IDENTITY_VERSION,
        rows,
        method: &request.method,
        clear_dead_columns: request.clear_dead_columns,
        allow_worse: request.allow_worse,
        new_seed: request.new_seed,
        allow_missing: request.allow_missing,
    };
    Ok(sha256(&canonical::to_bytes(&identity)?).0)
}

#[cfg(test)]
mod tests {
    use efface::methods::{Newton, Scrub};

    use super::*;

    fn hex(request: &ForgetRequest) -> String {
        identity(request)
            .unwrap()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// A change of these values makes every request that was answered before another one.
    #[test]
    fn the_identity_of_a_request_is_pinned() {
        let plain = ForgetRequest::new(RowSelection::Ids(vec![" r2".into(), "r1 ".into()]));
        let person = RowSelection::Subject {
            column: "user".into(),
            value: "é".into(),
        };
        let full = ForgetRequest {
            method: Newton {
                steps: 3,
                measure: true,
            }
            .into(),
            clear_dead_columns: true,
            allow_missing: true,
            id: Some("not part of it".into()),
            ..ForgetRequest::new(person)
        };
        let network = ForgetRequest {
            method: Scrub {
                learning_rate: Some(1e-7),
                ..Scrub::default()
            }
            .into(),
            ..plain.clone()
        };
        assert_eq!(
            [plain, full, network].map(|request| hex(&request)),
            [
                "25da588139891ac10e11d2b280d58172429635fba110c9da1dfd472616a7dbc3",
                "46bd039c65bdb8b024ca932f2a97356eeace435c1071b990cee56a937353480f",
                "5a0b474a704ecd45e2f80cc45352cece7e7c88fb8aecea8ec5d5d7be63a250c2"
            ]
            .map(String::from)
        );
    }

    #[test]
    fn what_is_asked_makes_another_request_and_the_order_of_ids_does_not() {
        let ids = |list: [&str; 2]| {
            ForgetRequest::new(RowSelection::Ids(list.map(String::from).to_vec()))
        };
        let one = ids(["a", "b"]);
        assert_eq!(hex(&one), hex(&ids(["b", "a"])));
        assert_ne!(hex(&one), hex(&ids(["a,b", ""])));
        assert_ne!(
            hex(&one),
            hex(&ForgetRequest {
                method: Method::Exact,
                ..one.clone()
            })
        );
        assert_ne!(
            hex(&one),
            hex(&ForgetRequest {
                allow_missing: true,
                ..one.clone()
            })
        );
        assert_ne!(
            hex(&one),
            hex(&ForgetRequest {
                allow_worse: true,
                ..one.clone()
            })
        );
        let nonsense = Newton {
            steps: 0,
            measure: false,
        }
        .into();
        assert!(
            identity(&ForgetRequest {
                method: nonsense,
                ..one
            })
            .is_err()
        );
    }
}
