//! The controller of RFC 9002 §7 and appendix B.

use courser_base::{Rate, Time};

use super::capacity_rise::CapacityRise;
use super::controller::Controller;
use super::hystart::{self, HyStart};
use super::prr::Prr;
use super::recovery_period::RecoveryPeriod;
use super::sample::{AckSample, LossSample, SpuriousLoss};
use super::undo::{Undo, higher_threshold};
use super::window::{MAX_WINDOW, initial_window, minimum_window, window_rate};
use crate::rtt::RttEstimator;

/// Grows by a datagram per window, halves on congestion.
#[derive(Clone, Debug)]
pub struct NewReno {
    mtu: u16,
    window: u64,
    ssthresh: Option<u64>,
    recovery: RecoveryPeriod,
    /// During recovery.
    prr: Option<Prr>,
    undo: Undo<Saved>,
    slow_start: HyStart,
    capacity: CapacityRise,
    /// Bytes acknowledged since the window last grew in congestion avoidance.
    acked: u64,
    is_untouched: bool,
}

/// What a reduction changes.
#[derive(Clone, Copy, Debug)]
struct Saved {
    window: u64,
    ssthresh: Option<u64>,
    acked: u64,
    slow_start: hystart::Saved,
}

impl NewReno {
    /// A controller with the initial window for datagrams of `mtu` bytes.
    pub fn new(mtu: u16) -> Self {
        Self {
            mtu,
            window: initial_window(mtu),
            ssthresh: None,
            recovery: RecoveryPeriod::default(),
            prr: None,
            undo: Undo::new(),
            slow_start: HyStart::new(),
            capacity: CapacityRise::new(),
            acked: 0,
            is_untouched: true,
        }
    }

    /// A controller that takes over where another one held `window`, past slow start unless
    /// `ssthresh` is above.
    pub(super) fn resume(mtu: u16, window: u64, ssthresh: Option<u64>) -> Self {
        Self {
            window: window.clamp(minimum_window(mtu), MAX_WINDOW),
            ssthresh,
            is_untouched: false,
            ..Self::new(mtu)
        }
    }

    /// See [`CongestionController::set_unpaced`](super::CongestionController::set_unpaced).
    pub fn set_unpaced(&mut self) {
        self.slow_start.set_unpaced();
    }

    /// See [`CongestionController::ignore_capacity_rise`](super::CongestionController).
    pub(super) fn ignore_capacity_rise(&mut self) {
        self.capacity.switch_off();
    }

    /// The path carries more than at the last congestion: slow start from the window as it is, and
    /// no way back to what held before.
    fn search_again(&mut self) {
        self.ssthresh = None;
        self.slow_start.restart();
        self.acked = 0;
        self.undo = Undo::new();
    }

    /// RFC 9002 §7.3.1.
    fn on_slow_start_ack(&mut self, sample: &AckSample<'_>) {
        let growth = self.slow_start.on_ack(sample, self.mtu, self.window());
        let limit = self.ssthresh.unwrap_or(MAX_WINDOW);
        self.window = self.window.saturating_add(growth.bytes).min(limit);
        if growth.is_over {
            self.ssthresh = Some(self.window);
        }
    }

    /// RFC 9002 §7.3.2.
    fn begin_recovery(&mut self, sample: &LossSample<'_>) {
        let saved = Saved {
            window: self.window,
            ssthresh: self.ssthresh,
            acked: self.acked,
            slow_start: self.slow_start.saved(),
        };
        self.undo.begin(sample, saved);
        self.recovery.start(sample.now);
        self.slow_start.on_congestion();
        self.capacity.on_congestion();
        self.window = (self.window / 2).max(minimum_window(self.mtu));
        self.ssthresh = Some(self.window);
        self.acked = 0;
        self.prr = Some(Prr::new(sample, self.window, self.mtu));
    }

    /// RFC 9002 §7.3.3: one datagram for each window acknowledged.
    fn on_avoidance_ack(&mut self, sample: &AckSample<'_>) {
        if sample.app_limited {
            return;
        }
        self.acked = self.acked.saturating_add(sample.acked_bytes);
        if self.acked >= self.window {
            self.acked = (self.acked - self.window).min(self.window);
            self.window = (self.window + u64::from(self.mtu)).min(MAX_WINDOW);
        }
    }
}

impl Controller for NewReno {
    fn on_sent(&mut self, _now: Time, bytes: u64, last_pn: u64, _bytes_in_flight: u64) {
        self.slow_start.on_sent(last_pn);
        if let Some(prr) = &mut self.prr {
            prr.on_sent(bytes);
        }
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        self.is_untouched = false;
        if !self.recovery.covers(sample.largest_acked_sent) {
            self.prr = None;
        }
        if let Some(prr) = &mut self.prr {
            prr.on_ack(sample);
        }
        let last_sent = self.slow_start.last_sent();
        let is_wider = self.capacity.on_ack(sample, self.mtu, last_sent);
        // Nothing sent before the reduction makes the window grow: RFC 9002 appendix B.5.
        if self.recovery.holds(sample.earliest_acked_sent) {
            return;
        }
        if is_wider && !self.in_slow_start() {
            self.search_again();
        }
        if self.in_slow_start() {
            self.on_slow_start_ack(sample);
        } else {
            self.on_avoidance_ack(sample);
        }
    }

    fn on_congestion(&mut self, sample: &LossSample<'_>) {
        self.is_untouched = false;
        if self.recovery.covers(sample.largest_lost_sent) {
            self.undo.extend(sample);
            if let Some(prr) = &mut self.prr {
                prr.on_lost(sample);
            }
        } else {
            self.begin_recovery(sample);
        }
        if sample.persistent {
            self.window = minimum_window(self.mtu);
            self.recovery.collapse(sample.now);
            self.prr = None;
        }
    }

    fn on_spurious_loss(&mut self, loss: &SpuriousLoss) {
        if let Some(saved) = self.undo.on_spurious_loss(loss) {
            self.window = self.window.max(saved.window);
            self.ssthresh = higher_threshold(self.ssthresh, saved.ssthresh);
            self.acked = saved.acked;
            self.slow_start.resume(saved.slow_start);
            self.recovery.clear();
            self.prr = None;
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu;
        if let Some(prr) = &mut self.prr {
            prr.on_mtu_update(mtu);
        }
        if self.is_untouched {
            self.window = initial_window(mtu);
        }
        self.window = self.window.max(minimum_window(mtu));
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn room(&self, bytes_in_flight: u64) -> u64 {
        match &self.prr {
            Some(prr) => prr.room(self.window, bytes_in_flight),
            None => self.window.saturating_sub(bytes_in_flight),
        }
    }

    fn ssthresh(&self) -> Option<u64> {
        self.ssthresh
    }

    fn pacing_rate(&self, rtt: &RttEstimator) -> Option<Rate> {
        Some(window_rate(self.window, rtt, self.in_slow_start()))
    }

    fn in_slow_start(&self) -> bool {
        self.ssthresh.is_none_or(|ssthresh| self.window < ssthresh)
    }

    fn state(&self) -> &'static str {
        match (&self.prr, self.in_slow_start()) {
            (Some(_), _) => "recovery",
            (None, true) => "slow_start",
            (None, false) => "congestion_avoidance",
        }
    }

    fn name(&self) -> &'static str {
        "newreno"
    }
}

#[cfg(test)]
mod tests;
