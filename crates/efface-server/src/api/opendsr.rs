//! OpenDSR 2.0: erasure requests as controllers send them to all their processors, with signed
//! answers. The specification is <https://github.com/opengdpr/OpenDSR>;
//! docs/integrations/opendsr.md says what of it is here.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use efface_receipt::Time;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::body::read_bytes;
use super::erasures::{accept, answered, is_refused, open_state};
use super::path::NameInPath;
use super::time::parse_time;
use crate::access::{Caller, Scope};
use crate::app::ServiceState;
use crate::callbacks::{CallbackForm, CallbackTarget};
use crate::erasures::{self, ErasureOrder, ErasureTarget, OpenState, RowChoice};
use crate::opendsr::OpenDsrService;
use crate::problem::{Problem, ProblemCode, ProblemDetails};

/// The version of the specification.
const VERSION: &str = "2.0";

/// How long a request may take that is done at once: what a controller is told to expect.
const EXPECTED: Duration = Duration::from_secs(86_400);

/// Identities in one request, at most.
const MOST_IDENTITIES: usize = 100;

/// An identity of a person.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct SubjectIdentity {
    identity_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity_value: Option<String>,
    /// `raw` or `sha256`.
    identity_format: String,
}

/// A request of a controller. Fields that are not listed are passed over.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct SubjectRequest {
    /// `gdpr` or `ccpa`.
    regulation: Option<String>,
    /// A UUID, by which the request is known from here on.
    subject_request_id: String,
    /// `erasure`; the others are not supported.
    subject_request_type: String,
    subject_identities: Vec<SubjectIdentity>,
    /// When the person asked.
    submitted_time: String,
    /// Who is told when the request is done or cancelled.
    #[serde(default)]
    status_callback_urls: Vec<String>,
}

/// What the server supports.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DiscoveryAnswer {
    api_version: &'static str,
    supported_identities: Vec<SubjectIdentity>,
    supported_subject_request_types: [&'static str; 1],
    processor_certificate: String,
}

/// What is said of a request; which fields are there depends on what was asked.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct SubjectAnswer {
    controller_id: String,
    subject_request_id: String,
    api_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    expected_completion_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    received_time: Option<Time>,
    /// The whole body of the request, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoded_request: Option<String>,
    /// `pending`, `in_progress`, `completed` or `cancelled`, also where a model refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_status: Option<&'static str>,
    /// Rows that were erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    results_count: Option<u64>,
}

/// An error as OpenDSR has it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SubjectRefusal {
    error: RefusalReason,
}

#[derive(Debug, Serialize, ToSchema)]
struct RefusalReason {
    code: u16,
    message: String,
}

/// A problem, in the form of OpenDSR where it is about the request.
pub(super) struct OpenDsrProblem(Problem);

impl From<Problem> for OpenDsrProblem {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for OpenDsrProblem {
    fn into_response(self) -> Response {
        let kind = self.0.code.kind();
        // The specification knows 400 alone; a request that is not known and a token that is
        // missing stay what they are.
        let status = match kind.status {
            409 | 413 | 415 | 422 => 400,
            status => status,
        };
        if matches!(
            self.0.code,
            ProblemCode::Unauthenticated | ProblemCode::Forbidden
        ) || status >= 500
        {
            return self.0.into_response();
        }
        let error = RefusalReason {
            code: status,
            message: self.0.detail,
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
        (status, Json(SubjectRefusal { error })).into_response()
    }
}

/// Says what the server supports. Needs no token.
#[utoipa::path(
    get, path = "/opendsr/v2/discovery", tag = "opendsr",
    responses((status = 200, description = "What is supported", body = DiscoveryAnswer),
        (status = "default", description = "A problem", content((SubjectRefusal = "application/json"), (ProblemDetails = "application/problem+json"))))
)]
pub(super) async fn discovery(
    State(state): State<Arc<ServiceState>>,
) -> Result<Json<DiscoveryAnswer>, OpenDsrProblem> {
    let service = service(&state)?;
    let formats: &[&str] = if service.settings.is_hashed {
        &["raw", "sha256"]
    } else {
        &["raw"]
    };
    let mut supported = Vec::new();
    for kind in &service.settings.identities {
        for format in formats {
            let identity_format = (*format).to_owned();
            supported.push(SubjectIdentity {
                identity_type: kind.clone(),
                identity_value: None,
                identity_format,
            });
        }
    }
    Ok(Json(DiscoveryAnswer {
        api_version: VERSION,
        supported_identities: supported,
        supported_subject_request_types: ["erasure"],
        processor_certificate: format!(
            "https://{}/opendsr/v2/certificate.pem",
            service.settings.domain
        ),
    }))
}

/// Gives the certificate whose key signs. Needs no token.
#[utoipa::path(
    get, path = "/opendsr/v2/certificate.pem", tag = "opendsr",
    responses((status = 200, description = "The certificate", body = String, content_type = "application/x-pem-file"),
        (status = "default", description = "A problem", content((SubjectRefusal = "application/json"), (ProblemDetails = "application/problem+json"))))
)]
pub(super) async fn certificate(
    State(state): State<Arc<ServiceState>>,
) -> Result<Response, OpenDsrProblem> {
    let service = service(&state)?;
    Ok((
        [(header::CONTENT_TYPE, "application/x-pem-file")],
        service.signer.chain.clone(),
    )
        .into_response())
}

/// Takes a request in. It is done soon, in all models that say whose their rows are.
#[utoipa::path(
    post, path = "/opendsr/v2/requests", tag = "opendsr", security(("token" = [])), request_body = SubjectRequest,
    responses((status = 201, description = "Taken in", body = SubjectAnswer),
        (status = "default", description = "A problem", content((SubjectRefusal = "application/json"), (ProblemDetails = "application/problem+json"))))
)]
pub(super) async fn create(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    request: Request,
) -> Result<Response, OpenDsrProblem> {
    caller.allow(Scope::Erase, None)?;
    let service = service(&state)?;
    let body = read_bytes(request).await?;
    let unreadable = |error: serde_json::Error| {
        Problem::invalid(format!(
            "line {}, column {}: the body is no OpenDSR request",
            error.line(),
            error.column()
        ))
    };
    let request: SubjectRequest = serde_json::from_slice(&body).map_err(unreadable)?;
    let order = order(&state, service, &caller, request)?;
    let id = order.id.clone();
    if service.is_cancelled(&id)? {
        return Err(
            Problem::new(ProblemCode::Refused, "a request of this id was cancelled").into(),
        );
    }
    accept(&state, order, Duration::ZERO).await?;
    let now = state.settings.clock.milliseconds();
    let answer = SubjectAnswer {
        expected_completion_time: time(now.saturating_add(millis(EXPECTED))),
        received_time: time(now),
        encoded_request: Some(data_encoding::BASE64.encode(&body)),
        ..SubjectAnswer::about(&caller, id)
    };
    signed(service, StatusCode::CREATED, &answer)
}

/// Says where a request stands.
#[utoipa::path(
    get, path = "/opendsr/v2/requests/{id}", tag = "opendsr", security(("token" = [])),
    params(("id" = String, Path, description = "The subject_request_id")),
    responses((status = 200, description = "Where it stands", body = SubjectAnswer),
        (status = "default", description = "A problem", content((SubjectRefusal = "application/json"), (ProblemDetails = "application/problem+json"))))
)]
pub(super) async fn show(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(id): NameInPath,
) -> Result<Response, OpenDsrProblem> {
    caller
        .allow(Scope::Audit, None)
        .or_else(|_| caller.allow(Scope::Erase, None))?;
    let service = service(&state)?;
    let id = id.to_ascii_lowercase();
    let mut answer = SubjectAnswer::about(&caller, id.clone());
    answer.expected_completion_time = time(
        state
            .settings
            .clock
            .milliseconds()
            .saturating_add(millis(EXPECTED)),
    );
    answer.request_status = Some(match open_state(&state, &caller, &id) {
        Some(OpenState::AwaitingApproval { .. }) => "pending",
        Some(OpenState::Running) => "in_progress",
        None if service.is_cancelled(&id)? => "cancelled",
        None => {
            let found = answered(&state, &caller, &id).await?;
            if found.is_empty() {
                return Err(
                    Problem::new(ProblemCode::NotFound, "there is no request of that id").into(),
                );
            }
            answer.results_count =
                Some(found.iter().map(|(_, receipt)| receipt.rows.removed).sum());
            // OpenDSR knows no failure.
            if is_refused(&found) {
                "cancelled"
            } else {
                "completed"
            }
        }
    });
    signed(service, StatusCode::OK, &answer)
}

/// Cancels a request that waits for approval.
#[utoipa::path(
    delete, path = "/opendsr/v2/requests/{id}", tag = "opendsr", security(("token" = [])),
    params(("id" = String, Path, description = "The subject_request_id")),
    responses((status = 202, description = "Cancelled", body = SubjectAnswer),
        (status = "default", description = "A problem", content((SubjectRefusal = "application/json"), (ProblemDetails = "application/problem+json"))))
)]
pub(super) async fn cancel(
    State(state): State<Arc<ServiceState>>,
    caller: Caller,
    NameInPath(id): NameInPath,
) -> Result<Response, OpenDsrProblem> {
    caller.allow(Scope::Erase, None)?;
    let service = service(&state)?;
    let id = id.to_ascii_lowercase();
    erasures::withdraw(&state, &id, &ErasureTarget::AllModels).await?;
    service.remember_cancelled(&id)?;
    let answer = SubjectAnswer {
        received_time: time(state.settings.clock.milliseconds()),
        ..SubjectAnswer::about(&caller, id)
    };
    signed(service, StatusCode::ACCEPTED, &answer)
}

impl SubjectAnswer {
    fn about(caller: &Caller, id: String) -> Self {
        let controller_id = caller.id().to_owned();
        Self {
            controller_id,
            subject_request_id: id,
            api_version: VERSION,
            ..Self::default()
        }
    }
}

fn service(state: &ServiceState) -> Result<&OpenDsrService, Problem> {
    let none = || {
        Problem::new(
            ProblemCode::NotFound,
            "this server was not told to speak OpenDSR",
        )
    };
    state.opendsr.as_ref().ok_or_else(none)
}

/// The order that a request amounts to.
fn order(
    state: &ServiceState,
    service: &OpenDsrService,
    caller: &Caller,
    request: SubjectRequest,
) -> Result<ErasureOrder, Problem> {
    if let Some(regulation) = &request.regulation
        && !["gdpr", "ccpa"].contains(&regulation.as_str())
    {
        return Err(Problem::invalid("regulation must be gdpr or ccpa"));
    }
    if request.subject_request_type != "erasure" {
        return Err(Problem::invalid(
            "only requests of the type erasure are supported",
        ));
    }
    let id = request.subject_request_id.to_ascii_lowercase();
    if !is_uuid(&id) {
        return Err(Problem::invalid("subject_request_id is no UUID"));
    }
    let submitted = parse_time(&request.submitted_time);
    let submitted =
        submitted.ok_or_else(|| Problem::invalid("submitted_time is no time as in RFC 3339"))?;
    if request.subject_identities.is_empty() || request.subject_identities.len() > MOST_IDENTITIES {
        return Err(Problem::invalid(format!(
            "subject_identities must be 1 to {MOST_IDENTITIES}"
        )));
    }
    let known = |identity: &SubjectIdentity| {
        service
            .settings
            .identities
            .contains(&identity.identity_type)
    };
    if !request.subject_identities.iter().all(known) {
        return Err(Problem::invalid(
            "an identity is of a type that /opendsr/v2/discovery does not list",
        ));
    }
    let mut people = Vec::new();
    for identity in request.subject_identities {
        let value = person(identity, service.settings.is_hashed)?;
        if !people.contains(&value) {
            people.push(value);
        }
    }
    let mut targets = Vec::new();
    for url in request.status_callback_urls {
        let none = || Problem::invalid("this server was not told where it may send callbacks");
        state.callbacks.as_ref().ok_or_else(none)?.check_url(&url)?;
        targets.push(CallbackTarget {
            url,
            form: CallbackForm::OpenDsr,
        });
    }
    Ok(ErasureOrder {
        id,
        target: ErasureTarget::AllModels,
        rows: RowChoice::Subjects(people),
        method: efface::Method::default(),
        allow_worse: false,
        allow_missing: true,
        requested_at: Some(submitted),
        asked_by: caller.id().to_owned(),
        needs_approval: false,
        approved_by: None,
        callbacks: targets,
        expected_rows: None,
    })
}

/// The person as the subject columns name them: as they are, or by a hash.
fn person(identity: SubjectIdentity, is_hashed: bool) -> Result<String, Problem> {
    let value = identity.identity_value.unwrap_or_default();
    let value = value.trim();
    if value.is_empty() {
        return Err(Problem::invalid("an identity has no identity_value"));
    }
    match (identity.identity_format.as_str(), is_hashed) {
        ("raw", false) => Ok(value.to_owned()),
        ("raw", true) => Ok(data_encoding::HEXLOWER.encode(&Sha256::digest(value.as_bytes()))),
        ("sha256", true) => {
            let is_hash = value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_hash
                .then(|| value.to_ascii_lowercase())
                .ok_or_else(|| Problem::invalid("a sha256 is 64 hexadecimal digits"))
        }
        _ => Err(Problem::invalid(
            "an identity is of a format that /opendsr/v2/discovery does not list",
        )),
    }
}

fn is_uuid(text: &str) -> bool {
    let is_place = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_place)
}

/// An answer with the signature of its bytes.
fn signed(
    service: &OpenDsrService,
    status: StatusCode,
    answer: &SubjectAnswer,
) -> Result<Response, OpenDsrProblem> {
    let failed = || Problem::new(ProblemCode::Internal, "the answer could not be signed");
    let body = serde_json::to_vec(answer).map_err(|_| failed())?;
    let headers = service.signer.headers(&body).ok_or_else(failed)?;
    let mut response = (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
    for (name, value) in headers {
        let value = HeaderValue::from_str(&value).map_err(|_| failed())?;
        response
            .headers_mut()
            .insert(HeaderName::from_static(name), value);
    }
    Ok(response)
}

fn time(milliseconds: u64) -> Option<Time> {
    i64::try_from(milliseconds)
        .ok()
        .and_then(Time::from_unix_milliseconds)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
