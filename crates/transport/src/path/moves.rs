//! Moves of a client to another path, and their pace.

use std::net::IpAddr;
use std::time::Duration;

use courser_base::{Pace, Time};

use crate::build::transmit::SocketId;

/// Moves that begin as soon as they are requested, and the interval of further ones (limit K281). Each
/// makes the server validate a path and issue a connection ID, and it endures a limited number of frames
/// without progress (limit K17).
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
    /// are kept then, and start anew otherwise (RFC 9000 §9.4).
    pub is_same_address: bool,
    /// True to use the path before it is validated, because the one in use is presumably gone. If
    /// validation fails, the connection returns to it.
    pub is_at_once: bool,
}

/// The pace of moves, and the one that waits for its time. Made at the first move.
#[derive(Debug, Default)]
pub(crate) struct Moves(Option<Box<Made>>);

#[derive(Debug)]
struct Made {
    pace: Pace,
    /// The move that waits, and its time.
    postponed: Option<(Time, NewPath)>,
}

impl Moves {
    fn made(&mut self) -> &mut Made {
        self.0.get_or_insert_with(|| {
            Box::new(Made {
                pace: Pace::new(BURST, INTERVAL),
                postponed: None,
            })
        })
    }

    /// Returns true if a move may begin now.
    pub(crate) fn is_allowed(&mut self, now: Time) -> bool {
        self.made().pace.next(now) <= now
    }

    /// Records that a move has begun, in place of the one that waits.
    pub(crate) fn on_begun(&mut self, now: Time) {
        let made = self.made();
        made.pace.take(now);
        made.postponed = None;
    }

    /// Keeps a move for later, in place of an earlier one.
    pub(crate) fn postpone(&mut self, now: Time, path: &NewPath) {
        let made = self.made();
        made.postponed = Some((made.pace.next(now), *path));
    }

    /// Returns when the move that waits begins.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        let postponed = self.0.as_ref()?.postponed.as_ref();
        postponed.map(|(at, _)| *at)
    }

    /// Takes the move that waits, if it is time.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<NewPath> {
        let waiting = &mut self.0.as_mut()?.postponed;
        waiting.take_if(|(at, _)| *at <= now).map(|(_, path)| path)
    }
}
