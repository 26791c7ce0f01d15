//! Finds the owners of datagrams (RFC 9000 §5.2).

mod connection_ids;
pub mod owner;
pub mod shard_routes;
pub mod tables;
