//! The law of the window, in which the classic controllers differ.

use std::fmt;

use courser_base::{Ecn, Rate, Time};

use super::sample::{AckSample, LossSample};
use super::window::window_rate;
use crate::rtt::RttEstimator;

/// The law by which the window of a [`Classic`](super::classic::Classic) controller grows and
/// shrinks.
///
/// The law owns the window, because some laws keep fractions of a byte. Methods with a default are
/// for laws that respond to ECN marks.
pub trait WindowLaw: Clone + fmt::Debug + Send {
    /// The state before a reduction, restored when the losses turn out to be spurious.
    type Saved: Clone + fmt::Debug + Send;

    /// The name of the algorithm, for telemetry and configuration.
    const NAME: &'static str;

    /// Creates the law with a window in bytes.
    fn new(window: u64) -> Self;

    /// Returns the window in bytes.
    fn window(&self) -> u64;

    /// Sets the window, which a change of the datagram size may require.
    fn set_window(&mut self, window: u64);

    /// Adds `bytes` to the window in slow start, up to `limit`.
    fn grow(&mut self, bytes: u64, limit: u64);

    /// Ends slow start without congestion.
    fn on_slow_start_end(&mut self) {}

    /// Increases the window in congestion avoidance.
    fn increase(&mut self, sample: &AckSample<'_>, mtu: u16);

    /// Decreases the window for a new congestion event, to no less than the minimum window.
    fn decrease(&mut self, sample: &LossSample<'_>, mtu: u16);

    /// Sets the window to `minimum` bytes on persistent congestion. Slow start follows.
    fn collapse(&mut self, minimum: u64) {
        self.set_window(minimum);
    }

    /// Resets the state of earlier congestion and keeps the window, which then grows as in slow
    /// start.
    fn reset_congestion(&mut self);

    /// Returns the state to be restored if the next reduction turns out to be spurious.
    fn save(&self) -> Self::Saved;

    /// Undoes a reduction. Keeps the window if it is larger than before.
    fn restore(&mut self, saved: Self::Saved);

    /// Records that a packet has been sent after the path was idle.
    fn on_idle_end(&mut self, _now: Time) {}

    /// Counts an acknowledgement, including those during a recovery period.
    fn observe(&mut self, _sample: &AckSample<'_>) {}

    /// Decides the response to a congestion signal. `is_covered` is true if the recovery period
    /// already responds to it.
    fn respond(&mut self, _sample: &LossSample<'_>, is_covered: bool, _mtu: u16) -> Response {
        Response::usual(is_covered)
    }

    /// Called after an acknowledgement has been processed.
    fn on_ack_processed(&mut self, _rtt: &RttEstimator, _in_slow_start: bool) {}

    /// Returns true if the window grows exponentially below a threshold and during a capacity
    /// search.
    fn has_slow_start(&self) -> bool {
        true
    }

    /// Returns the bytes that may be in flight outside recovery.
    fn allowance(&self, _mtu: u16) -> u64 {
        self.window()
    }

    /// Returns the pacing rate.
    fn pacing_rate(&self, rtt: &RttEstimator, in_slow_start: bool) -> Rate {
        window_rate(self.window(), rtt, in_slow_start)
    }

    /// Returns the bytes to send in one batch; `None` leaves the choice to the pacer.
    fn send_quantum(&self, _mtu: u16) -> Option<u64> {
        None
    }

    /// Returns the codepoint of sent packets where ECN works.
    fn ecn_codepoint(&self) -> Ecn {
        Ecn::Ect0
    }
}

/// The response of a controller to a congestion signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Response {
    /// The signal is new: the window is reduced, and a recovery period begins.
    Reduce,
    /// The signal belongs to the present recovery period.
    Covered,
    /// The law has already responded, without a recovery period.
    Done,
}

impl Response {
    /// The response of RFC 9002 §7.3.2: one reduction per recovery period.
    pub(super) fn usual(is_covered: bool) -> Self {
        if is_covered {
            Self::Covered
        } else {
            Self::Reduce
        }
    }
}
