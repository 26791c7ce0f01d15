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
