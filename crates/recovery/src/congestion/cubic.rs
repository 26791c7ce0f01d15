//! CUBIC, RFC 9438.

use std::time::Duration;

use courser_base::Time;

use super::classic::Classic;
use super::law::WindowLaw;
use super::sample::{AckSample, LossSample};
use super::window::{MAX_WINDOW, minimum_window};

/// CUBIC: grows along a cubic curve through the window of the last congestion event. RFC 9438.
pub type Cubic = Classic<CubicLaw>;

/// The window law of CUBIC.
///
/// Windows are in bytes, times in seconds. The threshold after congestion is computed from the
/// window, not from the bytes in flight. RFC 9438 §4.6 allows this where the window grows only
/// while it is used, as here.
#[derive(Clone, Copy, Debug)]
pub struct CubicLaw {
    window: f64,
    /// The window before the last reduction, lowered further by fast convergence.
    w_max: f64,
    /// The window when `ssthresh` was last set.
    cwnd_prior: f64,
    /// The present congestion avoidance stage; `None` until its first acknowledgement.
    stage: Option<Stage>,
    /// Congestion avoidance is, or will be, entered from slow start and not from a reduction.
    is_after_slow_start: bool,
    /// The last event that the clock of the stage has counted.
    clock: Time,
}

/// A congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
struct Stage {
    /// `t` without the periods in which the application was the limit.
    elapsed: Duration,
    /// Seconds from the start until the curve is back at `w_max`.
    k: f64,
    /// The window that Reno would have.
    w_est: f64,
}

impl CubicLaw {
    /// Continues in congestion avoidance with the window of another law. RFC 9438 §4.10.
    pub(super) fn take_over(&mut self, window: u64) {
        self.window = from_bytes(window);
        self.w_max = self.window;
        self.cwnd_prior = self.window;
        self.stage = None;
        self.is_after_slow_start = true;
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
}

impl WindowLaw for CubicLaw {
    type Saved = Self;

    const NAME: &'static str = "cubic";

    /// Creates the law. The curve begins flat, as after slow start (RFC 9438 §4.10).
    fn new(window: u64) -> Self {
        let window = from_bytes(window);
        Self {
            window,
            w_max: 0.0,
            cwnd_prior: window,
            stage: None,
            is_after_slow_start: true,
            clock: Time::ZERO,
        }
    }

    fn window(&self) -> u64 {
        to_bytes(self.window)
    }

    fn set_window(&mut self, window: u64) {
        self.window = from_bytes(window);
    }

    fn grow(&mut self, bytes: u64, limit: u64) {
        self.window = (self.window + from_bytes(bytes)).min(from_bytes(limit));
    }

    /// Ends slow start, RFC 9438 §4.10.
    fn on_slow_start_end(&mut self) {
        self.cwnd_prior = self.window;
    }

    fn increase(&mut self, sample: &AckSample<'_>, mtu: u16) {
        let since_last = sample.now - self.clock;
        self.clock = sample.now.max(self.clock);
        if sample.app_limited {
            return;
        }
        let mtu = from_bytes(u64::from(mtu).max(1));
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
            // The Reno-friendly region. The window never shrinks, as the curve may have been ahead.
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

    /// Applies multiplicative decrease and fast convergence, RFC 9438 §4.6 and §4.7.
    fn decrease(&mut self, _sample: &LossSample<'_>, mtu: u16) {
        let is_below_w_max = self.window < self.w_max;
        self.w_max = if is_below_w_max {
            self.window * (1.0 + BETA) / 2.0
        } else {
            self.window
        };
        self.cwnd_prior = self.window;
        self.window = (self.window * BETA).max(from_bytes(minimum_window(mtu)));
        self.stage = None;
        self.is_after_slow_start = false;
    }

    /// Restarts from the minimum window, RFC 9438 §4.8.
    fn collapse(&mut self, minimum: u64) {
        self.window = from_bytes(minimum);
        self.stage = None;
        self.is_after_slow_start = true;
    }

    fn reset_congestion(&mut self) {
        self.w_max = 0.0;
        self.stage = None;
        self.is_after_slow_start = true;
    }

    fn save(&self) -> Self {
        *self
    }

    /// Restores the state, RFC 9438 §4.9.2. The time since the reduction counts as well: the curve
    /// continues as if the reduction had not happened.
    fn restore(&mut self, saved: Self) {
        let since = self.stage.map_or(Duration::ZERO, |stage| stage.elapsed);
        let stage = saved.stage.map(|stage| Stage {
            elapsed: stage.elapsed.saturating_add(since),
            ..stage
        });
        *self = Self {
            window: self.window.max(saved.window),
            clock: self.clock,
            stage,
            ..saved
        };
    }

    /// Restarts the clock with the first packet after an idle period, RFC 9438 §4.2, §5.8.
    fn on_idle_end(&mut self, now: Time) {
        self.clock = self.clock.max(now);
    }
}

/// Converts bytes without loss: exact below 2^53, which no window approaches.
fn from_bytes(bytes: u64) -> f64 {
    bytes as f64
}

/// Converts to whole bytes. Rounds down and saturates.
fn to_bytes(bytes: f64) -> u64 {
    bytes as u64
}

/// The steepness of the curve, in datagrams per second cubed. RFC 9438 §5.
const C: f64 = 0.4;
/// The part of the window that remains after congestion. RFC 9438 §4.6.
const BETA: f64 = 0.7;
/// Growth in datagrams per round trip that compensates for the smaller decrease. RFC 9438 §4.3.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The largest growth of the window in one round trip: a half. RFC 9438 §4.2.
const MAX_GROWTH: f64 = 1.5;

#[cfg(test)]
mod tests;
