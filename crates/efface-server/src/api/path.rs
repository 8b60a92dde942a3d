//! Names in paths.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use crate::problem::Problem;

/// The name in a path, decoded. A name is looked up and never becomes a path of the machine.
pub(super) struct NameInPath(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for NameInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let found = Path::<String>::from_request_parts(parts, state).await;
        let Path(name) =
            found.map_err(|_| Problem::invalid("the name in the path is not UTF-8"))?;
        Ok(Self(name))
    }
}
