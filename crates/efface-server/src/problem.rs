//! Errors over HTTP: RFC 9457 problem details, from one table. A problem never repeats the content
//! of a row, and never a path of the server's: what concerns the machine goes to its log.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use efface_engine::{Error, ErrorKind};
use serde::Serialize;
use utoipa::ToSchema;

/// What can be wrong with a request, or with the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemCode {
    /// The request contradicts itself, or is not the JSON that is asked for.
    InvalidRequest,
    /// Rows that cannot be used.
    InvalidRows,
    /// No token, or none that is known.
    Unauthenticated,
    /// A token that may not do this.
    Forbidden,
    /// A page of another site, or under another name, sent it.
    CrossSite,
    /// There is no such page, model, erasure or receipt.
    NotFound,
    /// The model holds no such row or person.
    RowNotFound,
    /// The row was forgotten before.
    AlreadyForgotten,
    /// There is such a page, but not with this method.
    MethodNotAllowed,
    /// The answer cannot be had in the form that was asked for.
    NotAcceptable,
    /// The request took too long to arrive.
    RequestTimeout,
    /// The key of the request was used for another request.
    KeyReused,
    /// The rows that the request names are not those of its preview.
    RowsChanged,
    /// The row is in the model already.
    AlreadyThere,
    /// The row was forgotten and must not come back.
    MustNotComeBack,
    /// The state of the model, or of the request, does not allow it.
    Refused,
    /// The body is larger than the server takes.
    BodyTooLarge,
    /// The body is of another type than the server takes.
    UnsupportedMedia,
    /// More requests than the token may send.
    TooManyRequests,
    /// A mistake of the server's.
    Internal,
    /// The server has more to do than it can.
    Overloaded,
    /// Another process holds the model.
    Busy,
    /// The model cannot be used, or nothing can be signed.
    ModelUnusable,
}

/// A line of the table of problems.
#[derive(Debug, Clone, Copy)]
pub struct ProblemKind {
    /// Its name, which is also its anchor in the documentation.
    pub code: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What it is, in a few words.
    pub title: &'static str,
    /// What to do about it.
    pub advice: &'static str,
}

impl ProblemCode {
    /// Every code, in the order of the table in the documentation.
    pub const ALL: [Self; 23] = [
        Self::InvalidRequest,
        Self::InvalidRows,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::CrossSite,
        Self::NotFound,
        Self::RowNotFound,
        Self::AlreadyForgotten,
        Self::MethodNotAllowed,
        Self::NotAcceptable,
        Self::RequestTimeout,
        Self::KeyReused,
        Self::RowsChanged,
        Self::AlreadyThere,
        Self::MustNotComeBack,
        Self::Refused,
        Self::BodyTooLarge,
        Self::UnsupportedMedia,
        Self::TooManyRequests,
        Self::Internal,
        Self::Overloaded,
        Self::Busy,
        Self::ModelUnusable,
    ];

    /// The line of this code.
    #[must_use]
    pub const fn kind(self) -> ProblemKind {
        match self {
            Self::InvalidRequest => kind(
                "invalid_request",
                400,
                "The request makes no sense",
                "compare it with /openapi.json; the detail names the place",
            ),
            Self::InvalidRows => kind(
                "invalid_rows",
                422,
                "The rows cannot be used",
                "the detail names the row and the column; send rows like those that the model was fitted on",
            ),
            Self::Unauthenticated => kind(
                "unauthenticated",
                401,
                "A token is needed",
                "send `Authorization: Bearer TOKEN` with a token that `efface token` made and that has not expired",
            ),
            Self::Forbidden => kind(
                "forbidden",
                403,
                "The token may not do this",
                "use a token with the scope and the model that the detail names",
            ),
            Self::CrossSite => kind(
                "cross_site",
                403,
                "The request comes from a page of another site",
                "open the server under the name that it listens on; programs need no Origin header",
            ),
            Self::NotFound => kind(
                "not_found",
                404,
                "There is no such thing",
                "GET /v1/models lists the models; /openapi.json lists the paths",
            ),
            Self::RowNotFound => kind(
                "row_not_found",
                404,
                "The model holds no such row or person",
                "send `allow_missing: true` if the log shall record that nothing was found",
            ),
            Self::AlreadyForgotten => kind(
                "already_forgotten",
                410,
                "The row was forgotten before",
                "nothing is left to do; the receipt of that request is the proof",
            ),
            Self::MethodNotAllowed => kind(
                "method_not_allowed",
                405,
                "The path does not take this method",
                "the header Allow lists those that it takes",
            ),
            Self::NotAcceptable => kind(
                "not_acceptable",
                406,
                "The answer does not exist in that form",
                "accept application/json, or application/cose for receipts",
            ),
            Self::RequestTimeout => kind(
                "request_timeout",
                408,
                "The request took too long to arrive",
                "send the whole request at once",
            ),
            Self::KeyReused => kind(
                "key_reused",
                409,
                "The Idempotency-Key was used for another request",
                "give every request a key of its own",
            ),
            Self::RowsChanged => kind(
                "rows_changed",
                409,
                "The rows are not those of the preview",
                "look at the request again with `dry_run: true`",
            ),
            Self::AlreadyThere => kind(
                "already_there",
                409,
                "The row is in the model already",
                "PATCH corrects rows that are there; POST adds new ones",
            ),
            Self::MustNotComeBack => kind(
                "must_not_come_back",
                409,
                "The row was forgotten and must not come back",
                "if it is another row, give it another id; where consent was given anew, the model's policy can let it in",
            ),
            Self::Refused => kind(
                "refused",
                409,
                "The state of the model does not allow it",
                "the detail says what stands against it",
            ),
            Self::BodyTooLarge => kind(
                "body_too_large",
                413,
                "The body is larger than the server takes",
                "send fewer rows at a time, or have the limit of the server raised",
            ),
            Self::UnsupportedMedia => kind(
                "unsupported_media",
                415,
                "The body is of a type that the server does not take",
                "send application/json",
            ),
            Self::TooManyRequests => kind(
                "too_many_requests",
                429,
                "More requests than the token may send",
                "wait as long as Retry-After says",
            ),
            Self::Internal => kind(
                "internal",
                500,
                "A mistake of the server's",
                "the server's log names the request id; please report it",
            ),
            Self::Overloaded => kind(
                "overloaded",
                503,
                "The server has more to do than it can",
                "wait as long as Retry-After says",
            ),
            Self::Busy => kind(
                "busy",
                503,
                "Another process holds the model",
                "wait as long as Retry-After says, and send the same request again",
            ),
            Self::ModelUnusable => kind(
                "model_unusable",
                503,
                "The model cannot be used",
                "the server's log says why; `efface verify` looks closer",
            ),
        }
    }
}

const fn kind(
    code: &'static str,
    status: u16,
    title: &'static str,
    advice: &'static str,
) -> ProblemKind {
    ProblemKind {
        code,
        status,
        title,
        advice,
    }
}

/// Why a request was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Which line of the table.
    pub code: ProblemCode,
    /// What happened this time.
    pub detail: String,
}

/// The JSON of a problem, as RFC 9457 has it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemDetails {
    /// Where the problem is explained.
    #[serde(rename = "type")]
    kind: String,
    /// What it is, in a few words.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// The name of the problem, for programs.
    code: ProblemCode,
    /// What happened this time.
    detail: String,
    /// What to do about it.
    advice: &'static str,
}

impl Problem {
    pub(crate) fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
        }
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ProblemCode::InvalidRequest, detail)
    }

    /// The JSON of this problem.
    #[must_use]
    pub fn details(&self) -> ProblemDetails {
        let kind = self.code.kind();
        ProblemDetails {
            kind: format!("/problems#{}", kind.code),
            title: kind.title,
            status: kind.status,
            code: self.code,
            detail: self.detail.clone(),
            advice: kind.advice,
        }
    }

    /// Whether the same request may succeed a little later.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(
            self.code,
            ProblemCode::Busy | ProblemCode::Overloaded | ProblemCode::TooManyRequests
        )
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.kind().status)
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self.details())).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if self.is_passing() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.code == ProblemCode::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::UnknownRow { .. } | Error::UnknownSubject { .. } => ProblemCode::RowNotFound,
            Error::WasForgotten { .. } => ProblemCode::AlreadyForgotten,
            Error::UnknownReceipt { .. } => ProblemCode::NotFound,
            Error::SubjectColumn { .. } => ProblemCode::InvalidRequest,
            Error::RequestReused { .. } => ProblemCode::KeyReused,
            Error::RowsChanged => ProblemCode::RowsChanged,
            Error::AlreadyThere { .. } => ProblemCode::AlreadyThere,
            Error::ComesBack { .. } => ProblemCode::MustNotComeBack,
            Error::Locked { .. } => ProblemCode::Busy,
            Error::Key { .. }
            | Error::Signing { .. }
            | Error::NoiseSeed { .. }
            | Error::Encoder(_) => ProblemCode::ModelUnusable,
            error => match error.kind() {
                ErrorKind::Usage => ProblemCode::InvalidRequest,
                ErrorKind::Data => ProblemCode::InvalidRows,
                ErrorKind::NotFound => ProblemCode::NotFound,
                ErrorKind::Refused => ProblemCode::Refused,
                ErrorKind::BadModel | ErrorKind::Io => ProblemCode::ModelUnusable,
                ErrorKind::Internal => ProblemCode::Internal,
            },
        };
        match code {
            // These name files of the server, which are nobody's business outside.
            ProblemCode::Busy => Self::new(code, "another process is changing the model"),
            ProblemCode::ModelUnusable | ProblemCode::Internal => {
                tracing::error!(%error, "the engine failed");
                Self::new(code, "the server's log says what is wrong")
            }
            code => Self::new(code, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_their_own_names_and_statuses_are_errors() {
        for code in ProblemCode::ALL {
            let kind = code.kind();
            assert_eq!(serde_json::to_value(code).unwrap(), kind.code);
            assert!((400..600).contains(&kind.status), "{kind:?}");
        }
    }

    #[test]
    fn what_concerns_the_machine_stays_there() {
        let locked = Error::Locked {
            path: "/srv/models/houses.efface".into(),
        };
        let damaged = Error::Damaged {
            path: "/srv/models/houses.efface".into(),
            what: "page 3".into(),
        };
        for error in [locked, damaged] {
            assert!(!Problem::from(error).detail.contains("srv"));
        }
    }
}
