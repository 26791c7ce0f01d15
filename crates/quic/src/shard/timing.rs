//! The decision when bytes are sent.
//!
//! Small writes are held back until their task waits for something, so that a request and its end
//! share a packet. A task may send so once before the driver's next turn: many a task looks at several futures, and writes
//! again. A write that fills half a batch is sent by its caller. While the driver lets
//! the tasks run that it has woken, writes wait for it, so that they share packets with its
//! acknowledgements, except for large numbers of them (`docs/design/0002`, `docs/design/0016`).

use courser_transport::{SocketId, Transmit};

/// Bytes from which on a write is sent by the caller itself: half a batch, so that the system
/// call is worth it. When every write was sent at once, requests cost twice as much and small
/// writes in a row up to nine times; between 16 and 64 KiB there was no difference.
pub(crate) const INLINE_BYTES: usize = 32 * 1024;

/// Writes and changes of one connection after which its first batch leaves in an open turn, some 32 small
/// requests. With batches of 32, 64, 100 uses and none, 100 requests in flight reached 778, 774, 571 and 374 k/s.
const FIRST_USES: u32 = 64;

/// The state of a shard that decides when bytes are sent. No other state does.
///
/// ```text
///        used            about_to_wait
/// Idle ───────► Pending ───────────────► Idle      a call of the application
///   └──────────────┴──► TurnOpen ──────► Idle      a turn of the driver
///                      any ──► Blocked ──► Idle    the socket is full, and takes more again
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum SendTiming {
    /// All written bytes were sent, as far as congestion control and the peer allow.
    #[default]
    Idle,
    /// Something was written or changed. It leaves when its task waits, or when the driver runs.
    Pending,
    /// The driver has woken tasks, and sends what they write together with its own packets.
    TurnOpen {
        /// Nothing more has arrived yet, so that the peer may wait for what is written.
        is_urgent: bool,
    },
    /// The socket is full. The driver sends when it takes more.
    Blocked(KeptBatch),
    /// Nothing leaves any more.
    Stopped,
}

/// A batch in the buffer of which the first bytes have left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptBatch {
    pub(crate) transmit: Transmit,
    pub(crate) sent: usize,
}

impl SendTiming {
    /// Records that something was written or changed. Returns true if the caller may send it; false
    /// if the driver does that later.
    #[inline]
    pub(crate) fn on_used(&mut self) -> bool {
        match self {
            Self::Idle | Self::Pending => {
                *self = Self::Pending;
                true
            }
            Self::TurnOpen { .. } | Self::Blocked(_) | Self::Stopped => false,
        }
    }

    /// Returns true if a connection with this many writes and changes in an open turn should send now, so that
    /// the peer has work while the other tasks run: otherwise the two ends of many small requests take turns. The
    /// batches grow twofold, because large ones cost less. While more has arrived the peer has enough to do.
    #[inline]
    pub(crate) fn is_due_in_turn(&self, uses: u32) -> bool {
        let is_due = uses >= FIRST_USES && uses.is_power_of_two();
        is_due && matches!(self, Self::TurnOpen { is_urgent: true })
    }

    /// Returns true if something was written that leaves when its task waits.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self, Self::Pending)
    }

    /// Returns true if sending now can make room: something may wait, and nothing but the timing
    /// is in its way.
    pub(crate) fn may_hold_back(&self) -> bool {
        matches!(self, Self::Pending | Self::TurnOpen { .. })
    }

    /// Returns true while a batch waits for the socket.
    #[inline]
    pub(crate) fn is_blocked(&self) -> bool {
        matches!(self, Self::Blocked(_))
    }

    /// Returns the socket that a batch waits for.
    pub(crate) fn kept_socket(&self) -> Option<SocketId> {
        match self {
            Self::Blocked(kept) => Some(kept.transmit.socket),
            _ => None,
        }
    }

    /// Returns true if the socket takes batches, as far as is known.
    #[inline]
    pub(crate) fn can_send(&self) -> bool {
        !matches!(self, Self::Blocked(_) | Self::Stopped)
    }

    /// Records that everything was sent that could be. A turn of the driver stays open.
    #[inline]
    pub(crate) fn on_sent(&mut self) {
        if self.is_pending() {
            *self = Self::Idle;
        }
    }

    /// Opens a turn, in which the driver lets the tasks run that it has woken.
    pub(crate) fn open_turn(&mut self, is_urgent: bool) {
        if self.can_send() {
            *self = Self::TurnOpen { is_urgent };
        }
    }

    /// Closes the turn. The tasks have run, and the driver sends now.
    pub(crate) fn close_turn(&mut self) {
        if matches!(self, Self::TurnOpen { .. }) {
            *self = Self::Pending;
        }
    }

    /// Takes the batch that waits for the socket, to try it again.
    pub(crate) fn take_kept(&mut self) -> Option<KeptBatch> {
        match *self {
            Self::Blocked(kept) => {
                *self = Self::Pending;
                Some(kept)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use courser_base::Ecn;

    use super::*;

    fn blocked() -> SendTiming {
        let transmit = Transmit {
            destination: ([10, 0, 0, 1], 443).into(),
            source: None,
            socket: SocketId::default(),
            ecn: Ecn::NotEct,
            segment_size: None,
            len: 1200,
        };
        SendTiming::Blocked(KeptBatch { transmit, sent: 0 })
    }

    #[test]
    fn a_write_is_pending_until_it_is_sent() {
        let mut timing = SendTiming::default();
        assert!(!timing.is_pending());
        assert!(timing.on_used() && timing.on_used());
        assert!(timing.is_pending());
        timing.on_sent();
        assert!(!timing.is_pending() && timing.can_send());
    }

    #[test]
    fn writes_in_an_open_turn_are_left_to_the_driver() {
        let mut timing = SendTiming::default();
        timing.open_turn(false);
        assert!(!timing.on_used() && !timing.is_pending());
        assert!(timing.may_hold_back());
        assert!(!timing.is_due_in_turn(FIRST_USES));
        // An urgent write does not end the turn.
        timing.on_sent();
        assert!(!timing.on_used());
        timing.close_turn();
        assert!(timing.is_pending());
    }

    #[test]
    fn many_writes_in_an_open_turn_leave_in_growing_batches() {
        let mut timing = SendTiming::default();
        let due = |timing: &SendTiming| -> Vec<_> {
            (0..600)
                .filter(|uses| timing.is_due_in_turn(*uses))
                .collect()
        };
        assert!(due(&timing).is_empty());
        timing.open_turn(true);
        assert_eq!(due(&timing), [64, 128, 256, 512]);
        timing.close_turn();
        assert!(due(&timing).is_empty());
    }

    #[test]
    fn a_full_socket_leaves_everything_to_the_driver() {
        let mut timing = blocked();
        timing.open_turn(false);
        assert!(timing.is_blocked() && !timing.can_send());
        assert!(!timing.on_used() && !timing.may_hold_back());
        timing.close_turn();
        assert!(timing.take_kept().is_some());
        assert!(timing.is_pending() && timing.take_kept().is_none());
    }

    #[test]
    fn nothing_leaves_after_the_end() {
        let mut timing = SendTiming::Stopped;
        timing.open_turn(false);
        timing.on_sent();
        assert!(!timing.on_used() && !timing.can_send());
    }
}
