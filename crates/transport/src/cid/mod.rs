//! Connection IDs: those we give to the peer and those the peer gives to us (RFC 9000 §5.1).

pub mod connection_ids;
pub mod generator;
pub mod issued;
pub mod peer;
mod retirements;
mod rotation;
pub mod server_ids;
pub(crate) mod source;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub(crate) use connection_ids::ConnectionIds;
pub use generator::{
    ConnectionIdError, ConnectionIdGenerator, ConnectionIdRotation, RandomIdGenerator,
};
pub(crate) use issued::IssuedIds;
pub(crate) use peer::PeerIds;
pub use peer::TokenChange;
pub use server_ids::{ServerIdError, ServerIdGenerator};
pub(crate) use source::IdSource;

/// A stateless reset token (RFC 9000 §10.3).
pub type ResetToken = [u8; 16];

/// The `active_connection_id_limit` that we announce, and the most IDs that we issue at a time even
/// if the peer allows more (limit K04): one in use, one spare for each of three paths.
pub const ACTIVE_CONNECTION_ID_LIMIT: u64 = 4;
