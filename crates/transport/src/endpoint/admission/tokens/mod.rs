//! Tokens by which clients prove that they receive at their address (RFC 9000 §8.1).

pub mod address_token;
pub mod token_filter;
pub mod validation_token;
