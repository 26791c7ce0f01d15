//! A datagram that arrived.

use courser_base::{Ecn, Time};

use crate::path::Place;

/// The properties of a whole datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) now: Time,
    /// Time of arrival, which is before `now` for packets that had to wait for their keys.
    pub(crate) arrived: Time,
    pub(crate) path: Place,
    pub(crate) ecn: Ecn,
    /// Length of the datagram.
    pub(crate) len: usize,
}
