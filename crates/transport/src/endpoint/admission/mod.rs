//! Decides which new clients may connect (RFC 9000 §8.1).

pub mod address_filter;
pub mod backlog;
pub mod claim;
pub mod client;
pub mod creation_limiter;
pub mod fair_queue;
pub mod fair_shares;
pub mod handshake_counts;
pub mod handshakes;
pub mod incoming;
mod recent_handshakes;
pub mod tokens;
pub mod waiting_room;
