//! The metadata of an arriving datagram.

use courser_base::{Ecn, FourTuple, Time};

use crate::build::transmit::SocketId;
use crate::path::Place;

/// The time, path, socket and ECN mark of an arriving datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrived {
    pub now: Time,
    pub path: FourTuple,
    pub socket: SocketId,
    pub ecn: Ecn,
    /// True if another shard has forwarded it.
    pub is_handed_on: bool,
    /// True if its network sends too much, so that it is dropped unless it belongs to a connection at its
    /// validated address (limit K117).
    pub is_over_share: bool,
}

impl Arrived {
    /// Returns the addresses and the socket of the datagram.
    pub fn place(&self) -> Place {
        Place {
            tuple: self.path,
            socket: self.socket,
        }
    }
}
