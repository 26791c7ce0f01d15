//! Frames of connections with several paths. RFC 10069 §4.
//!
//! Path IDs have 32 bits. Frames carry them as variable-length integers, and a value that is too large is
//! a PROTOCOL_VIOLATION like any other value above the limit of the receiver (§4), not an encoding error. So
//! decoding keeps all 62 bits, and the connection compares them with its limit.

mod max_path_id;
mod path_abandon;
mod path_ack;
mod path_cids_blocked;
mod path_new_connection_id;
mod path_retire_connection_id;
mod path_status;
mod paths_blocked;

pub use max_path_id::MaxPathId;
pub use path_abandon::PathAbandon;
pub use path_ack::PathAck;
pub use path_cids_blocked::PathCidsBlocked;
pub use path_new_connection_id::PathNewConnectionId;
pub use path_retire_connection_id::PathRetireConnectionId;
pub use path_status::PathStatus;
pub use paths_blocked::PathsBlocked;

#[cfg(test)]
mod tests;
