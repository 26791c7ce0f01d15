//! CUBIC, RFC 9438.

use std::time::Duration;

use courser_base::{Rate, Time};

use super::hystart::HyStart;
use super::recovery_period::RecoveryPeriod;
use super::{
    AckSample, Controller, LossSample, MAX_WINDOW, initial_window, minimum_window, window_rate,
};
use crate::RttEstimator;

/// Grows along a cubic curve through the window at which congestion was last met.
///
/// Windows are in bytes, times in seconds. The threshold after congestion is taken from the
/// window, not from what is in flight, which RFC 9438 §4.6 allows where the window does not grow
/// unless it is used, as here.
#[derive(Clone, Debug)]
pub struct Cubic {
    mtu: u16,
    window: f64,
    ssthresh: Option<u64>,
    recovery: RecoveryPeriod,
    slow_start: HyStart,
    /// The window before the last reduction, lowered further by fast convergence.
    w_max: f64,
    /// The window when `ssthresh` was last set.
    cwnd_prior: f64,
    /// The present congestion avoidance stage; `None` until its first acknowledgement.
    stage: Option<Stage>,
    /// Congestion avoidance is, or will be, entered from slow start and not from a reduction.
    is_after_slow_start: bool,
    /// The last event that the stage's clock has seen.
    clock: Time,
    is_untouched: bool,
}

/// A congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
struct Stage {
    /// `t` without the periods in which the application was the limit.
    elapsed: Duration,
    /// Seconds from the start until the curve is back at `w_max`.
    k: f64,
    /// What Reno would have.
    w_est: f64,
}

impl Cubic {
    /// A controller with the initial window for datagrams of `mtu` bytes.
    pub fn new(mtu: u16) -> Self {
        Self {
            mtu,
            window: from_bytes(initial_window(mtu)),
            ssthresh: None,
            recovery: RecoveryPeriod::default(),
            slow_start: HyStart::new(),
            w_max: 0.0,
            cwnd_prior: 0.0,
            stage: None,
            is_after_slow_start: true,
            clock: Time::ZERO,
            is_untouched: true,
        }
    }

    /// See [`CongestionController::set_unpaced`](super::CongestionController::set_unpaced).
    pub fn set_unpaced(&mut self) {
        self.slow_start.set_unpaced();
    }

    fn on_slow_start_ack(&mut self, sample: &AckSample<'_>) {
        let growth = self.slow_start.on_ack(sample, self.mtu);
        let limit = from_bytes(self.ssthresh.unwrap_or(MAX_WINDOW));
        self.window = (self.window + from_bytes(growth.bytes)).min(limit);
        if growth.is_over {
            // RFC 9438 §4.10.
            self.ssthresh = Some(self.window());
            self.cwnd_prior = self.window;
        }
    }

    fn on_avoidance_ack(&mut self, sample: &AckSample<'_>) {
        let since_last = sample.now - self.clock;
        self.clock = sample.now.max(self.clock);
        if sample.app_limited {
            return;
        }
        let mtu = from_bytes(u64::from(self.mtu).max(1));
        let mut stage = match self.stage {
            Some(stage) => Stage {
                elapsed: stage.elapsed.saturating_add(since_last),
                ..stage
            },
            None => self.start_stage(mtu),
        };
        let acked = (from_bytes(sample.acked_bytes) / self.window).min(1.0);
        // RFC 9438 §4.3: the slope of Reno once the old window is reached again.
        let alpha = if stage.w_est >= self.cwnd_prior {
            1.0
        } else {
            ALPHA
        };
        stage.w_est += alpha * mtu * acked;

        let t = stage.elapsed.as_secs_f64();
        let w_cubic = |t: f64| C * mtu * (t - stage.k).powi(3) + self.w_max;
        let grown = if w_cubic(t) < stage.w_est {
            // The Reno-friendly region. The curve may have been ahead: never step back.
            self.window.max(stage.w_est)
        } else {
            // The concave and the convex region, RFC 9438 §4.4 and §4.5.
            let target = w_cubic(t + sample.rtt.smoothed().as_secs_f64());
            let target = target.clamp(self.window, MAX_GROWTH * self.window);
            self.window + (target - self.window) * acked
        };
        self.window = grown.min(from_bytes(MAX_WINDOW));
        self.stage = Some(stage);
    }

    fn start_stage(&mut self, mtu: f64) -> Stage {
        // After slow start the curve begins at its flat point: RFC 9438 §4.8, §4.10.
        if self.is_after_slow_start {
            self.w_max = self.window;
        }
        let k = ((self.w_max - self.window).max(0.0) / (C * mtu)).cbrt();
        Stage {
            elapsed: Duration::ZERO,
            k,
            w_est: self.window,
        }
    }

    /// Multiplicative decrease and fast convergence, RFC 9438 §4.6 and §4.7.
    fn reduce(&mut self) {
        let has_less_room = self.window < self.w_max;
        self.w_max = if has_less_room {
            self.window * (1.0 + BETA) / 2.0
        } else {
            self.window
        };
        self.cwnd_prior = self.window;
        self.window = (self.window * BETA).max(from_bytes(minimum_window(self.mtu)));
        self.ssthresh = Some(self.window());
        self.stage = None;
        self.is_after_slow_start = false;
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, now: Time, bytes: u64, last_pn: u64, bytes_in_flight: u64) {
        self.slow_start.on_sent(last_pn);
        // The first packet after idleness restarts the clock: RFC 9438 §4.2, §5.8.
        if bytes_in_flight <= bytes {
            self.clock = self.clock.max(now);
        }
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        self.is_untouched = false;
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
        if !self.recovery.covers(sample.largest_lost_sent) {
            self.recovery.start(sample.now);
            self.slow_start.on_congestion();
            self.reduce();
        }
        if sample.persistent {
            // What a retransmission timeout is to TCP: RFC 9438 §4.8, RFC 9002 §7.6.2.
            self.window = from_bytes(minimum_window(self.mtu));
            self.recovery.clear();
            self.stage = None;
            self.is_after_slow_start = true;
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu;
        if self.is_untouched {
            self.window = from_bytes(initial_window(mtu));
        }
        self.window = self.window.max(from_bytes(minimum_window(mtu)));
    }

    fn window(&self) -> u64 {
        to_bytes(self.window)
    }

    fn ssthresh(&self) -> Option<u64> {
        self.ssthresh
    }

    fn pacing_rate(&self, rtt: &RttEstimator) -> Option<Rate> {
        Some(window_rate(self.window(), rtt, self.in_slow_start()))
    }

    fn in_slow_start(&self) -> bool {
        self.ssthresh
            .is_none_or(|ssthresh| self.window() < ssthresh)
    }

    fn name(&self) -> &'static str {
        "cubic"
    }
}

/// Exact below 2^53, and no window comes near it.
fn from_bytes(bytes: u64) -> f64 {
    bytes as f64
}

/// Rounds down; saturates.
fn to_bytes(bytes: f64) -> u64 {
    bytes as u64
}

/// Datagrams per second cubed: how steep the curve is. RFC 9438 §5.
const C: f64 = 0.4;
/// What is left of the window after congestion. RFC 9438 §4.6.
const BETA: f64 = 0.7;
/// Datagrams per round trip that make up for the gentler decrease. RFC 9438 §4.3.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// In one round trip the window grows by no more than half. RFC 9438 §4.2.
const MAX_GROWTH: f64 = 1.5;

#[cfg(test)]
mod tests;
