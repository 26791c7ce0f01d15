//! The controller of RFC 9002 §7 and appendix B.

use courser_base::{Rate, Time};

use super::hystart::HyStart;
use super::recovery_period::RecoveryPeriod;
use super::{
    AckSample, Controller, LossSample, MAX_WINDOW, initial_window, minimum_window, window_rate,
};
use crate::RttEstimator;

/// Grows by a datagram per window, halves on congestion.
#[derive(Clone, Debug)]
pub struct NewReno {
    mtu: u16,
    window: u64,
    ssthresh: Option<u64>,
    recovery: RecoveryPeriod,
    slow_start: HyStart,
    /// Bytes acknowledged since the window last grew in congestion avoidance.
    acked: u64,
    is_untouched: bool,
}

impl NewReno {
    /// A controller with the initial window for datagrams of `mtu` bytes.
    pub fn new(mtu: u16) -> Self {
        Self {
            mtu,
            window: initial_window(mtu),
            ssthresh: None,
            recovery: RecoveryPeriod::default(),
            slow_start: HyStart::new(),
            acked: 0,
            is_untouched: true,
        }
    }

    /// See [`CongestionController::set_unpaced`](super::CongestionController::set_unpaced).
    pub fn set_unpaced(&mut self) {
        self.slow_start.set_unpaced();
    }

    /// RFC 9002 §7.3.1.
    fn on_slow_start_ack(&mut self, sample: &AckSample<'_>) {
        let growth = self.slow_start.on_ack(sample, self.mtu);
        let limit = self.ssthresh.unwrap_or(MAX_WINDOW);
        self.window = self.window.saturating_add(growth.bytes).min(limit);
        if growth.is_over {
            self.ssthresh = Some(self.window);
        }
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
    fn on_sent(&mut self, _now: Time, _bytes: u64, last_pn: u64, _bytes_in_flight: u64) {
        self.slow_start.on_sent(last_pn);
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        self.is_untouched = false;
        // Nothing sent before the reduction makes the window grow: RFC 9002 appendix B.5.
        if self.recovery.covers(sample.earliest_acked_sent) {
            return;
        }
        if self.in_slow_start() {
            self.on_slow_start_ack(sample);
        } else {
            self.on_avoidance_ack(sample);
        }
    }

    fn on_congestion(&mut self, sample: &LossSample<'_>) {
        self.is_untouched = false;
        let minimum = minimum_window(self.mtu);
        if !self.recovery.covers(sample.largest_lost_sent) {
            self.recovery.start(sample.now);
            self.slow_start.on_congestion();
            self.window = (self.window / 2).max(minimum);
            self.ssthresh = Some(self.window);
            self.acked = 0;
        }
        if sample.persistent {
            self.window = minimum;
            self.recovery.clear();
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu;
        if self.is_untouched {
            self.window = initial_window(mtu);
        }
        self.window = self.window.max(minimum_window(mtu));
    }

    fn window(&self) -> u64 {
        self.window
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

    fn name(&self) -> &'static str {
        "newreno"
    }
}

#[cfg(test)]
mod tests;
