//! A datagram that was received.

use courser_base::{Ecn, Time};

use crate::path::Place;

/// The metadata of a received datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedDatagram {
    pub(crate) now: Time,
    /// Time of arrival, which is before `now` for packets that had to wait for their keys.
    pub(crate) arrived: Time,
    /// The addresses, and the socket that received it.
    pub(crate) place: Place,
    pub(crate) ecn: Ecn,
    /// Length of the UDP payload in bytes; for a buffered packet, the length of that packet.
    pub(crate) len: usize,
}
