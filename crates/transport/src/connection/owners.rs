//! The parts whose frames packets carry.

use super::header_bits::HeaderBits;
use super::trace::Trace;
use crate::acknowledger::Acknowledger;
use crate::cid::ConnectionIds;
use crate::datagram::Datagrams;
use crate::handshake::Handshake;
use crate::path::paths::Paths;
use crate::pings::Pings;
use crate::rng::Rng;
use crate::stream::Streams;

/// The parts whose frames packets carry, borrowed side by side for the three matches over frames:
/// `dispatch` for received ones, `fill` for those to be sent, `fate` for those that were sent.
#[derive(Debug)]
pub(super) struct Owners<'a> {
    pub(super) acknowledger: &'a mut Acknowledger,
    pub(super) handshake: &'a mut Handshake,
    pub(super) paths: &'a mut Paths,
    pub(super) ids: &'a mut ConnectionIds,
    pub(super) streams: &'a mut Streams,
    pub(super) datagrams: &'a mut Datagrams,
    pub(super) pings: &'a mut Pings,
    pub(super) trace: &'a mut Trace,
    pub(super) bits: &'a mut HeaderBits,
    /// For the data of challenges, and for greasing.
    pub(super) rng: &'a mut Rng,
}
