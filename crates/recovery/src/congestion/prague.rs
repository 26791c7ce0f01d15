//! Prague, for L4S queues: draft-briscoe-iccrg-prague-congestion-control-04, RFC 9331.

mod scalable;

use courser_base::{Ecn, Rate, Time};

use self::scalable::Scalable;
use super::controller::Controller;
use super::cubic::Cubic;
use super::sample::{AckSample, LossSample, SpuriousLoss};
use super::window::MAX_WINDOW;
use crate::rtt::RttEstimator;

/// Sends ECT(1) and answers CE marks by their share, so that an L4S queue stays short at full
/// rate.
///
/// Until the network marks the first packet it cannot be told from a classic path, and CUBIC with
/// HyStart++ is in charge. The first mark ends slow start and brings the scalable law in:
/// `alpha`, the moving average of the share of marked packets, takes `alpha / 2` of the window
/// once per virtual round trip, and unmarked bytes add one datagram per round trip to it. Loss is
/// answered as CUBIC does (draft §2.4.1); two losses without a mark in between mean that the
/// bottleneck is a classic one by now, and CUBIC is in charge again.
///
/// Not done: telling a classic ECN queue, which marks ECT(1) as it does ECT(0), from an L4S one by
/// the variation of delay (draft §3). The reference implementation has it turned off, for
/// it takes jitter for a queue; RFC 9331 §4.3 leaves it to monitoring where such queues exist.
#[derive(Clone, Debug)]
pub struct Prague {
    /// In charge while `scalable` is `None`; its window then is the window.
    cubic: Cubic,
    /// Boxed, for most connections never see a mark.
    scalable: Option<Box<Scalable>>,
    mtu: u16,
    /// Remembered for the quantum.
    rate: Option<Rate>,
}

impl Prague {
    /// A controller with the initial window for datagrams of `mtu` bytes.
    pub fn new(mtu: u16) -> Self {
        Self {
            cubic: Cubic::new(mtu),
            scalable: None,
            mtu,
            rate: None,
        }
    }

    /// A controller that takes over from another one, until the first mark as CUBIC would.
    pub(super) fn resume(mtu: u16, window: u64, ssthresh: Option<u64>) -> Self {
        Self {
            cubic: Cubic::resume(mtu, window, ssthresh),
            ..Self::new(mtu)
        }
    }

    /// See [`CongestionController::set_unpaced`](super::CongestionController::set_unpaced).
    pub fn set_unpaced(&mut self) {
        self.cubic.set_unpaced();
    }

    /// See [`CongestionController::ignore_capacity_rise`](super::CongestionController).
    pub(super) fn ignore_capacity_rise(&mut self) {
        self.cubic.ignore_capacity_rise();
    }

    /// The share of marked packets, between 0 and 1; `None` before the first mark.
    pub fn alpha(&self) -> Option<f64> {
        self.scalable.as_ref().map(|scalable| scalable.alpha())
    }

    /// Marks are answered by the scalable law, the first by half of the window.
    fn on_mark(&mut self, sample: &LossSample<'_>) {
        match &mut self.scalable {
            Some(scalable) => scalable.on_mark(sample),
            None => {
                let mut scalable = Scalable::new(self.cubic.window(), self.mtu);
                scalable.on_first_mark(sample);
                self.scalable = Some(Box::new(scalable));
            }
        }
    }

    fn on_loss(&mut self, sample: &LossSample<'_>) {
        let Some(scalable) = &mut self.scalable else {
            self.cubic.on_congestion(sample);
            return;
        };
        let has_new_marks = scalable.on_loss(sample);
        if !has_new_marks || sample.persistent {
            let window = scalable.window_before_loss();
            self.scalable = None;
            self.cubic.take_over(window);
            self.cubic.on_congestion(sample);
        }
    }
}

impl Controller for Prague {
    fn on_sent(&mut self, now: Time, bytes: u64, last_pn: u64, bytes_in_flight: u64) {
        self.cubic.on_sent(now, bytes, last_pn, bytes_in_flight);
        if let Some(scalable) = &mut self.scalable {
            scalable.on_sent(bytes);
        }
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        match &mut self.scalable {
            Some(scalable) => scalable.on_ack(sample),
            None => self.cubic.on_ack(sample),
        }
        self.rate = self.pacing_rate(sample.rtt);
    }

    fn on_congestion(&mut self, sample: &LossSample<'_>) {
        if sample.is_ecn {
            self.on_mark(sample);
        } else {
            self.on_loss(sample);
        }
    }

    fn on_spurious_loss(&mut self, loss: &SpuriousLoss) {
        match &mut self.scalable {
            Some(scalable) => scalable.on_spurious_loss(loss),
            None => self.cubic.on_spurious_loss(loss),
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu;
        self.cubic.on_mtu_update(mtu);
        if let Some(scalable) = &mut self.scalable {
            scalable.on_mtu_update(mtu);
        }
    }

    fn window(&self) -> u64 {
        match &self.scalable {
            Some(scalable) => scalable.window(),
            None => self.cubic.window(),
        }
    }

    fn room(&self, bytes_in_flight: u64) -> u64 {
        match &self.scalable {
            Some(scalable) => scalable.room(bytes_in_flight),
            None => self.cubic.room(bytes_in_flight),
        }
    }

    fn ssthresh(&self) -> Option<u64> {
        match &self.scalable {
            Some(scalable) => Some(scalable.window()),
            None => self.cubic.ssthresh(),
        }
    }

    /// A window per round trip: what is more would be a queue (draft §2.5.1).
    fn pacing_rate(&self, rtt: &RttEstimator) -> Option<Rate> {
        match &self.scalable {
            Some(scalable) => Some(Rate::from_bytes_in(scalable.window(), rtt.smoothed())),
            None => self.cubic.pacing_rate(rtt),
        }
    }

    /// A quarter of a millisecond, for an L4S queue marks at less than one (draft §2.5.2).
    fn send_quantum(&self) -> Option<u64> {
        let rate = self.rate.filter(|_| self.scalable.is_some())?;
        let bytes = rate.as_bytes_per_second() / QUANTUMS_PER_SECOND;
        Some(bytes.clamp(u64::from(self.mtu), MAX_WINDOW))
    }

    fn ecn_codepoint(&self) -> Ecn {
        Ecn::Ect1
    }

    fn in_slow_start(&self) -> bool {
        self.scalable.is_none() && self.cubic.in_slow_start()
    }

    fn state(&self) -> &'static str {
        match &self.scalable {
            Some(scalable) => scalable.state(),
            None => self.cubic.state(),
        }
    }

    fn name(&self) -> &'static str {
        "prague"
    }
}

const QUANTUMS_PER_SECOND: u64 = 4000;

#[cfg(test)]
mod tests;
