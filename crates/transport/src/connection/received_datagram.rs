//! A datagram that was received.

use courser_base::{Ecn, Time};

use crate::path::Place;

/// The properties of a whole datagram, beside its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedDatagram {
    pub(crate) now: Time,
    /// Time of arrival, which is before `now` for packets that had to wait for their keys.
    pub(crate) arrived: Time,
    /// The addresses, and the socket that received it.
    pub(crate) place: Place,
    pub(crate) ecn: Ecn,
    /// Length in bytes.
    pub(crate) len: usize,
}
