//! Careful Resume: a controller that starts from the measurements of an earlier connection (RFC
//! 9959).

use std::time::Duration;

use courser_base::{Ecn, Rate, Time};

use super::algorithm::Algorithm;
use super::controller::Controller;
use super::sample::{AckSample, LossSample, SpuriousLoss};
use super::window::initial_window;
use crate::rtt::RttEstimator;

/// The properties of a path, as observed by an earlier connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SavedPath {
    /// Bytes that the path delivered in a round trip.
    pub window: u64,
    /// The smallest round-trip time.
    pub min_rtt: Duration,
}

impl SavedPath {
    /// Returns the window to jump to: half of the saved one (RFC 9959), and never more than
    /// [`MAX_JUMP`].
    pub(super) fn jump(&self) -> u64 {
        (self.window / 2).min(MAX_JUMP)
    }

    /// Returns true if a path resembles this one: its round-trip time is between half and ten times
    /// the saved one.
    pub(super) fn resembles(&self, rtt: &RttEstimator) -> bool {
        let saved = self.min_rtt;
        rtt.has_sample() && (saved / 2..=saved * 10).contains(&rtt.min())
    }
}

/// A controller that can continue from another window with the same settings.
pub(super) trait Resumable: Controller {
    /// Returns a controller with the same settings that continues from `window`, with slow start up to
    /// `ssthresh`, or without limit if that is `None`.
    fn successor(&self, window: u64, ssthresh: Option<u64>) -> Box<dyn Resumable>;
    /// Stays in congestion avoidance when the capacity of the path rises.
    fn ignore_capacity_rise(&mut self);
    /// Returns true if the controller ignores a rise in capacity.
    #[cfg(test)]
    fn ignores_capacity_rise(&self) -> bool;
}

/// A controller that jumps to half of the window of an earlier connection, if the path resembles
/// the earlier one.
///
/// ```text
///  Reconnaissance ------------> Unvalidated ---------> Validating
///        |     initial window       |    first packet      |   last packet
///        |     acknowledged         |    acknowledged      |   acknowledged
///        |                          | congestion           | congestion
///        | congestion, another      v                      v
///        | round-trip time     Safe Retreat <--------------'
///        |                          | last packet acknowledged
///        v                          v
///      Normal <---------------------'
/// ```
///
/// The packets in question are those sent in the Unvalidated phase. The inner controller decides in
/// the first and the last phase, and this one in between.
#[derive(Debug)]
pub struct CarefulResume {
    /// The controller that decides outside the three phases in the middle.
    inner: Box<dyn Resumable>,
    algorithm: Algorithm,
    saved: SavedPath,
    phase: Phase,
    /// The time at which the Safe Retreat phase began.
    retreated: Option<Time>,
    mtu: u16,
    /// The largest packet number that was sent.
    last_sent: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Waits until the initial window is acknowledged; `acked` counts its bytes.
    Reconnaissance { acked: u64 },
    /// Sends up to the window of the jump.
    Unvalidated { jump: Jump, first: u64, since: Time },
    /// Waits until all packets of the jump are acknowledged.
    Validating { jump: Jump, last: u64 },
    /// The jump was too far. Waits until its packets are acknowledged or lost.
    SafeRetreat { jump: Jump, last: u64 },
    /// Leaves all decisions to the inner controller.
    Normal,
}

/// A window that replaces that of the inner controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Jump {
    window: u64,
    /// Bytes that the path is known to hold: PipeSize in RFC 9959.
    pipe: u64,
}

impl CarefulResume {
    /// Creates a controller that begins as `inner`, whose algorithm is `algorithm`, and continues
    /// as its successor.
    pub(super) fn new(
        inner: Box<dyn Resumable>,
        algorithm: Algorithm,
        mtu: u16,
        saved: SavedPath,
    ) -> Self {
        Self {
            inner,
            algorithm,
            saved,
            phase: Phase::Reconnaissance { acked: 0 },
            retreated: None,
            mtu,
            last_sent: 0,
        }
    }

    /// Returns the algorithm outside the phases of the jump.
    pub(super) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the controller that decides outside the phases of the jump, and has the settings.
    pub(super) fn inner(&mut self) -> &mut dyn Resumable {
        &mut *self.inner
    }

    /// Decides at the end of the Reconnaissance phase.
    fn after_reconnaissance(&self, sample: &AckSample<'_>, acked: u64) -> Phase {
        if acked < initial_window(self.mtu) {
            return Phase::Reconnaissance { acked };
        }
        let window = self.saved.jump();
        if !self.saved.resembles(sample.rtt) || window <= self.inner.window() {
            return Phase::Normal;
        }
        if sample.app_limited {
            // Without data the window cannot be validated.
            return Phase::Reconnaissance { acked };
        }
        let pipe = sample.bytes_in_flight;
        Phase::Unvalidated {
            jump: Jump { window, pipe },
            first: self.last_sent + 1,
            since: sample.now,
        }
    }

    /// Replaces the inner controller by one with the same settings.
    fn continue_from(&mut self, window: u64, ssthresh: Option<u64>) -> Phase {
        self.inner = self.inner.successor(window, ssthresh);
        Phase::Normal
    }

    /// Continues with another inner controller from a window, and slow start up to a threshold.
    fn end_jump(&mut self, window: u64, ssthresh: Option<u64>) -> Phase {
        self.continue_from(window.max(initial_window(self.mtu)), ssthresh)
    }
}

impl Jump {
    fn carried(self, sample: &AckSample<'_>) -> Self {
        Self {
            pipe: self.pipe + sample.acked_bytes,
            ..self
        }
    }

    /// Returns the window after congestion: half of `pipe`.
    fn retreat(self, mtu: u16) -> Self {
        Self {
            window: (self.pipe / 2).max(initial_window(mtu)),
            ..self
        }
    }
}

impl Controller for CarefulResume {
    fn on_sent(&mut self, now: Time, bytes: u64, last_pn: u64, bytes_in_flight: u64) {
        self.last_sent = self.last_sent.max(last_pn);
        self.inner.on_sent(now, bytes, last_pn, bytes_in_flight);
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        self.phase = match self.phase {
            Phase::Normal => return self.inner.on_ack(sample),
            Phase::Reconnaissance { acked } => {
                self.inner.on_ack(sample);
                self.after_reconnaissance(sample, acked + sample.acked_bytes)
            }
            Phase::Unvalidated { jump, first, since } => {
                let jump = jump.carried(sample);
                let is_late = sample.now - since > sample.rtt.smoothed();
                if sample.largest_acked < first && !is_late {
                    Phase::Unvalidated { jump, first, since }
                } else if sample.bytes_in_flight <= jump.pipe {
                    // The application had less to send than the window.
                    self.end_jump(jump.pipe, None)
                } else {
                    let window = sample.bytes_in_flight;
                    Phase::Validating {
                        jump: Jump { window, ..jump },
                        last: self.last_sent,
                    }
                }
            }
            Phase::Validating { jump, last } => {
                let jump = jump.carried(sample);
                match sample.largest_acked >= last {
                    true => self.end_jump(jump.window, None),
                    false => Phase::Validating { jump, last },
                }
            }
            Phase::SafeRetreat { jump, last } => {
                let jump = jump.carried(sample);
                match sample.largest_acked >= last {
                    true => self.end_jump(jump.window, Some(jump.pipe)),
                    false => Phase::SafeRetreat { jump, last },
                }
            }
        };
    }

    fn on_congestion(&mut self, sample: &LossSample<'_>) {
        let is_answered = self
            .retreated
            .is_some_and(|at| sample.largest_lost_sent <= at);
        self.phase = match self.phase {
            // Packets from before the retreat: one reduction per round trip (RFC 9002 §7.3.2).
            phase if is_answered && !sample.persistent => phase,
            Phase::Normal | Phase::Reconnaissance { .. } => {
                self.inner.on_congestion(sample);
                Phase::Normal
            }
            Phase::Unvalidated { jump, .. }
            | Phase::Validating { jump, .. }
            | Phase::SafeRetreat { jump, .. }
                if sample.persistent =>
            {
                // Slow start from the minimum, as after persistent congestion at any other time.
                self.continue_from(0, Some(jump.pipe / 2))
            }
            Phase::Unvalidated { jump, .. } => {
                self.retreated = Some(sample.now);
                Phase::SafeRetreat {
                    jump: jump.retreat(self.mtu),
                    last: self.last_sent,
                }
            }
            Phase::Validating { jump, last } => {
                self.retreated = Some(sample.now);
                Phase::SafeRetreat {
                    jump: jump.retreat(self.mtu),
                    last,
                }
            }
            // The losses of the jump are answered already.
            retreat @ Phase::SafeRetreat { .. } => retreat,
        };
    }

    fn on_spurious_loss(&mut self, loss: &SpuriousLoss) {
        self.inner.on_spurious_loss(loss);
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu;
        self.inner.on_mtu_update(mtu);
    }

    fn window(&self) -> u64 {
        match self.jump() {
            Some(jump) => jump.window,
            None => self.inner.window(),
        }
    }

    fn room(&self, bytes_in_flight: u64) -> u64 {
        match self.jump() {
            Some(jump) => jump.window.saturating_sub(bytes_in_flight),
            None => self.inner.room(bytes_in_flight),
        }
    }

    fn ssthresh(&self) -> Option<u64> {
        match self.phase {
            Phase::SafeRetreat { jump, .. } => Some(jump.pipe),
            _ => self.inner.ssthresh(),
        }
    }

    fn pacing_rate(&self, rtt: &RttEstimator) -> Option<Rate> {
        match self.jump() {
            // The packets of the jump are spread over a round trip.
            Some(jump) => Some(Rate::from_bytes_in(jump.window, rtt.smoothed())),
            None => self.inner.pacing_rate(rtt),
        }
    }

    fn send_quantum(&self) -> Option<u64> {
        self.inner.send_quantum()
    }

    fn ecn_codepoint(&self) -> Ecn {
        self.inner.ecn_codepoint()
    }

    fn in_slow_start(&self) -> bool {
        match self.phase {
            Phase::SafeRetreat { .. } => false,
            Phase::Unvalidated { .. } | Phase::Validating { .. } => true,
            Phase::Reconnaissance { .. } | Phase::Normal => self.inner.in_slow_start(),
        }
    }

    fn state(&self) -> &'static str {
        match self.phase {
            Phase::Unvalidated { .. } => "careful_resume_unvalidated",
            Phase::Validating { .. } => "careful_resume_validating",
            Phase::SafeRetreat { .. } => "careful_resume_safe_retreat",
            Phase::Reconnaissance { .. } | Phase::Normal => self.inner.state(),
        }
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }
}

impl CarefulResume {
    /// Returns the window that replaces that of the inner controller, during the phases of the
    /// jump.
    fn jump(&self) -> Option<Jump> {
        match self.phase {
            Phase::Unvalidated { jump, .. }
            | Phase::Validating { jump, .. }
            | Phase::SafeRetreat { jump, .. } => Some(jump),
            Phase::Reconnaissance { .. } | Phase::Normal => None,
        }
    }
}

/// The largest window to jump to in bytes (limit K177): 200 Mbit/s over 320 ms. A path that has become
/// narrower loses no more than a part of this.
const MAX_JUMP: u64 = 8 << 20;

#[cfg(test)]
mod tests;
