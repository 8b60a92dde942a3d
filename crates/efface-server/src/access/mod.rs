//! Who may do what: tokens, their scopes, and how many requests each may send.

mod caller;
mod rate;
mod token;
mod token_store;

pub(crate) use caller::{Caller, ClientAddress, authenticate};
pub(crate) use rate::RateLimiter;
pub use token::{NewToken, Scope, TokenGrant, TokenRecord};
pub use token_store::{TokenError, TokenStore};
