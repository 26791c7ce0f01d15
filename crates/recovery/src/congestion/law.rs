//! The part of a classic controller that differs between algorithms: the law of its window.

use std::fmt;

use courser_base::{Ecn, Rate, Time};

use super::sample::{AckSample, LossSample};
use super::window::window_rate;
use crate::rtt::RttEstimator;

/// The law by which the window of a [`Classic`](super::classic::Classic) controller grows and
/// shrinks.
///
/// The law owns the window, because some laws keep fractions of a byte. Methods that have a
/// default concern laws that respond to ECN marks.
pub trait WindowLaw: Clone + fmt::Debug + Send {
    /// The state before a reduction, restored when the losses turn out to be spurious.
    type Saved: Clone + fmt::Debug + Send;

    /// The name of the algorithm, for records and configuration.
    const NAME: &'static str;

    /// Creates the law with a window in bytes.
    fn new(window: u64) -> Self;

    /// Returns the window in bytes.
    fn window(&self) -> u64;

    /// Sets the window to a bound for the datagram size.
    fn set_window(&mut self, window: u64);

    /// Adds `bytes` to the window in slow start, up to `limit`.
    fn grow(&mut self, bytes: u64, limit: u64);

    /// Ends slow start without congestion.
    fn on_slow_start_end(&mut self) {}

    /// Increases the window in congestion avoidance.
    fn increase(&mut self, sample: &AckSample<'_>, mtu: u16);

    /// Decreases the window for a new congestion event, to no less than the minimum window.
    fn decrease(&mut self, sample: &LossSample<'_>, mtu: u16);

    /// Sets the window to `least` bytes on persistent congestion. Slow start follows.
    fn collapse(&mut self, least: u64) {
        self.set_window(least);
    }

    /// Forgets earlier congestion and keeps the window. The window grows as in slow start then.
    fn forget_congestion(&mut self);

    /// Returns the state to be restored if the next reduction turns out to be spurious.
    fn save(&self) -> Self::Saved;

    /// Undoes a reduction. What the window has gained since is kept.
    fn restore(&mut self, saved: Self::Saved);

    /// Records that a packet has been sent after the path was idle.
    fn on_idle_end(&mut self, _now: Time) {}

    /// Counts an acknowledgement, including those during a recovery period.
    fn observe(&mut self, _sample: &AckSample<'_>) {}

    /// Decides the response to a sign of congestion. `is_covered` is true if the recovery period
    /// already responds to it.
    fn respond(&mut self, _sample: &LossSample<'_>, is_covered: bool, _mtu: u16) -> Response {
        Response::usual(is_covered)
    }

    /// Notes the end of an acknowledgement's processing.
    fn on_ack_processed(&mut self, _rtt: &RttEstimator, _in_slow_start: bool) {}

    /// Returns true if the law has slow start: below a threshold, and while a larger window is
    /// searched for.
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

    /// Returns the bytes to send in one go; `None` leaves the choice to the pacer.
    fn send_quantum(&self, _mtu: u16) -> Option<u64> {
        None
    }

    /// Returns the codepoint of sent packets where ECN works.
    fn ecn_codepoint(&self) -> Ecn {
        Ecn::Ect0
    }
}

/// The response of a controller to a sign of congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Response {
    /// The sign is new: the window is reduced, and a recovery period begins.
    Reduce,
    /// The sign belongs to the present recovery period.
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
