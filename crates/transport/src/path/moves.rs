//! The pace at which a client may move to other paths.

use std::net::IpAddr;
use std::time::Duration;

use courser_base::{Pace, Time};

use crate::build::transmit::SocketId;

/// Moves that begin as soon as they are requested, and the interval of further ones (limit K281). Each
/// makes the server validate a path and issue a connection ID, and servers tolerate a limited number of
/// frames without progress (limit K17).
const BURST: u32 = 16;
const INTERVAL: Duration = Duration::from_millis(250);

/// A path from this client to its server that is to replace the one in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewPath {
    /// The local address to send from; `None` lets the system choose.
    pub local: Option<IpAddr>,
    /// The socket to send from.
    pub socket: SocketId,
    /// True if only the local port changes. Round-trip time, congestion window and datagram size
    /// are kept then, and reset otherwise (RFC 9000 §9.4).
    pub is_same_address: bool,
    /// True to use the path before it is validated, because the one in use presumably failed. If
    /// validation fails, the connection returns to the previous path.
    pub is_at_once: bool,
}

/// The pace of moves, and the postponed one. Created at the first move.
#[derive(Debug, Default)]
pub(crate) struct Moves(Option<Box<PacedMoves>>);

#[derive(Debug)]
struct PacedMoves {
    pace: Pace,
    /// The postponed move, and the time at which it may begin.
    postponed: Option<(Time, NewPath)>,
}

impl Moves {
    fn paced(&mut self) -> &mut PacedMoves {
        self.0.get_or_insert_with(|| {
            Box::new(PacedMoves {
                pace: Pace::new(BURST, INTERVAL),
                postponed: None,
            })
        })
    }

    /// Returns true if a move may begin now.
    pub(crate) fn is_allowed(&mut self, now: Time) -> bool {
        self.paced().pace.next(now) <= now
    }

    /// Records that a move has begun, which replaces the postponed one.
    pub(crate) fn on_begun(&mut self, now: Time) {
        let paced = self.paced();
        paced.pace.take(now);
        paced.postponed = None;
    }

    /// Postpones a move, in place of an earlier one.
    pub(crate) fn postpone(&mut self, now: Time, path: &NewPath) {
        let paced = self.paced();
        paced.postponed = Some((paced.pace.next(now), *path));
    }

    /// Returns the time at which the postponed move may begin.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        let postponed = self.0.as_ref()?.postponed.as_ref();
        postponed.map(|(at, _)| *at)
    }

    /// Removes and returns the postponed move if its time has come.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<NewPath> {
        let waiting = &mut self.0.as_mut()?.postponed;
        waiting.take_if(|(at, _)| *at <= now).map(|(_, path)| path)
    }
}
