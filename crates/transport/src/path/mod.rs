//! Network paths: addresses, and whether the peer has proven to be reachable there.

pub mod amplification;
pub mod paths;
pub mod validation;

use courser_base::FourTuple;

use self::amplification::Amplification;
use self::validation::Validation;

/// No useful packet fits into a smaller datagram: header, one small frame, tag.
pub const MIN_DATAGRAM: usize = 64;

/// One network path: its addresses and the state of their validation.
///
/// Round-trip time, window and datagram size belong to its route in loss recovery. A path whose
/// peer has only changed its port takes over the route of the path before it.
#[derive(Debug)]
pub struct Path {
    /// Addresses.
    pub tuple: FourTuple,
    /// Budget before the peer's address is validated.
    pub amplification: Amplification,
    /// Challenges sent and responses owed.
    pub validation: Validation,
    /// The ID of its route in loss recovery.
    pub route: u32,
    /// Sequence number of the ID of the peer that probes of this path carry, while another path
    /// is in use (RFC 9000 §9.5).
    pub peer_id: Option<u64>,
}

impl Path {
    /// Creates a path whose peer has proven nothing.
    pub fn new(tuple: FourTuple, route: u32) -> Self {
        Self {
            tuple,
            amplification: Amplification::default(),
            validation: Validation::default(),
            route,
            peer_id: None,
        }
    }

    /// Counts a datagram that left.
    pub fn on_datagram_sent(&mut self, len: usize) {
        self.amplification.on_sent(len);
    }
}
