//! Datagrams that are sent without a connection: Version Negotiation, Retry, refusals, stateless resets.

pub mod close;
pub mod reply_limiter;
pub mod reset;
pub mod version_negotiation;
