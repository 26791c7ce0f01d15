//! NewReno, the controller of RFC 9002 §7 and appendix B.

use super::classic::Classic;
use super::law::WindowLaw;
use super::sample::{AckSample, LossSample};
use super::window::{MAX_WINDOW, minimum_window};

/// NewReno: grows by a datagram per window and halves on congestion. RFC 9002 appendix B.
pub type NewReno = Classic<NewRenoLaw>;

/// The window law of NewReno.
#[derive(Clone, Copy, Debug)]
pub struct NewRenoLaw {
    window: u64,
    /// Bytes acknowledged since the window last grew in congestion avoidance.
    acked: u64,
}

impl WindowLaw for NewRenoLaw {
    type Saved = Self;

    const NAME: &'static str = "newreno";

    fn new(window: u64) -> Self {
        Self { window, acked: 0 }
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn set_window(&mut self, window: u64) {
        self.window = window;
    }

    fn grow(&mut self, bytes: u64, limit: u64) {
        self.window = self.window.saturating_add(bytes).min(limit);
    }

    /// Adds one datagram for each window acknowledged, RFC 9002 §7.3.3.
    fn increase(&mut self, sample: &AckSample<'_>, mtu: u16) {
        if sample.app_limited {
            return;
        }
        self.acked = self.acked.saturating_add(sample.acked_bytes);
        if self.acked >= self.window {
            self.acked = (self.acked - self.window).min(self.window);
            self.window = (self.window + u64::from(mtu)).min(MAX_WINDOW);
        }
    }

    /// Halves the window, RFC 9002 §7.3.2.
    fn decrease(&mut self, _sample: &LossSample<'_>, mtu: u16) {
        self.window = (self.window / 2).max(minimum_window(mtu));
        self.acked = 0;
    }

    fn reset_congestion(&mut self) {
        self.acked = 0;
    }

    fn save(&self) -> Self {
        *self
    }

    fn restore(&mut self, saved: Self) {
        self.window = self.window.max(saved.window);
        self.acked = saved.acked;
    }
}

#[cfg(test)]
mod tests;
