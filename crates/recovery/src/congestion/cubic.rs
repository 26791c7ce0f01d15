//! CUBIC, RFC 9438.

use std::time::Duration;

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
    /// During recovery.
    prr: Option<Prr>,
    undo: Undo<Saved>,
    slow_start: HyStart,
    capacity: CapacityRise,
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

/// What a reduction changes: RFC 9438 §4.9.2.
#[derive(Clone, Copy, Debug)]
struct Saved {
    window: f64,
    ssthresh: Option<u64>,
    w_max: f64,
    cwnd_prior: f64,
    stage: Option<Stage>,
    is_after_slow_start: bool,
    slow_start: hystart::Saved,
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
            prr: None,
            undo: Undo::new(),
            slow_start: HyStart::new(),
            capacity: CapacityRise::new(),
            w_max: 0.0,
            cwnd_prior: 0.0,
            stage: None,
            is_after_slow_start: true,
            clock: Time::ZERO,
            is_untouched: true,
        }
    }

    /// A controller that takes over where another one held `window`, past slow start unless
    /// `ssthresh` is above. Its curve begins flat, as after slow start (RFC 9438 §4.10).
    pub(super) fn resume(mtu: u16, window: u64, ssthresh: Option<u64>) -> Self {
        let window = from_bytes(window.clamp(minimum_window(mtu), MAX_WINDOW));
        Self {
            window,
            ssthresh,
            cwnd_prior: window,
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
        self.w_max = 0.0;
        self.stage = None;
        self.is_after_slow_start = true;
        self.undo = Undo::new();
    }

    /// Goes on in congestion avoidance with the window of another controller. RFC 9438 §4.10.
    pub(super) fn take_over(&mut self, window: u64) {
        self.window = from_bytes(window.clamp(minimum_window(self.mtu), MAX_WINDOW));
        self.ssthresh = Some(self.window());
        self.w_max = self.window;
        self.cwnd_prior = self.window;
        self.stage = None;
        self.is_after_slow_start = true;
        self.is_untouched = false;
        self.slow_start.on_congestion();
        self.recovery.clear();
        self.prr = None;
        self.undo = Undo::new();
    }

    fn on_slow_start_ack(&mut self, sample: &AckSample<'_>) {
        let growth = self.slow_start.on_ack(sample, self.mtu, self.window());
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

    fn saved(&self) -> Saved {
        Saved {
            window: self.window,
            ssthresh: self.ssthresh,
            w_max: self.w_max,
            cwnd_prior: self.cwnd_prior,
            stage: self.stage,
            is_after_slow_start: self.is_after_slow_start,
            slow_start: self.slow_start.saved(),
        }
    }

    /// RFC 9438 §4.9.2. What was gained since stays, and so does the time: the curve goes on as
    /// if it had never been left.
    fn restore(&mut self, saved: Saved) {
        let since = self.stage.map_or(Duration::ZERO, |stage| stage.elapsed);
        self.window = self.window.max(saved.window);
        self.ssthresh = higher_threshold(self.ssthresh, saved.ssthresh);
        self.w_max = saved.w_max;
        self.cwnd_prior = saved.cwnd_prior;
        self.stage = saved.stage.map(|stage| Stage {
            elapsed: stage.elapsed.saturating_add(since),
            ..stage
        });
        self.is_after_slow_start = saved.is_after_slow_start;
        self.slow_start.resume(saved.slow_start);
        self.recovery.clear();
        self.prr = None;
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, now: Time, bytes: u64, last_pn: u64, bytes_in_flight: u64) {
        self.slow_start.on_sent(last_pn);
        if let Some(prr) = &mut self.prr {
            prr.on_sent(bytes);
        }
        // The first packet after idleness restarts the clock: RFC 9438 §4.2, §5.8.
        if bytes_in_flight <= bytes {
            self.clock = self.clock.max(now);
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
            self.undo.begin(sample, self.saved());
            self.recovery.start(sample.now);
            self.slow_start.on_congestion();
            self.capacity.on_congestion();
            self.reduce();
            self.prr = Some(Prr::new(sample, self.window(), self.mtu));
        }
        if sample.persistent {
            // What a retransmission timeout is to TCP: RFC 9438 §4.8, RFC 9002 §7.6.2.
            self.window = from_bytes(minimum_window(self.mtu));
            self.recovery.collapse(sample.now);
            self.prr = None;
            self.stage = None;
            self.is_after_slow_start = true;
        }
    }

    fn on_spurious_loss(&mut self, loss: &SpuriousLoss) {
        if let Some(saved) = self.undo.on_spurious_loss(loss) {
            self.restore(saved);
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu;
        if let Some(prr) = &mut self.prr {
            prr.on_mtu_update(mtu);
        }
        if self.is_untouched {
            self.window = from_bytes(initial_window(mtu));
        }
        self.window = self.window.max(from_bytes(minimum_window(mtu)));
    }

    fn window(&self) -> u64 {
        to_bytes(self.window)
    }

    fn room(&self, bytes_in_flight: u64) -> u64 {
        match &self.prr {
            Some(prr) => prr.room(self.window(), bytes_in_flight),
            None => self.window().saturating_sub(bytes_in_flight),
        }
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

    fn state(&self) -> &'static str {
        match (&self.prr, self.in_slow_start()) {
            (Some(_), _) => "recovery",
            (None, true) => "slow_start",
            (None, false) => "congestion_avoidance",
        }
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
