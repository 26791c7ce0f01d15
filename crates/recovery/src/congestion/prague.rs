//! Prague, for L4S queues: draft-briscoe-iccrg-prague-congestion-control-04, RFC 9331.

mod scalable;

use courser_base::{Ecn, Rate, Time};

use self::scalable::Scalable;
use super::classic::Classic;
use super::cubic::CubicLaw;
use super::law::{Response, WindowLaw};
use super::sample::{AckSample, LossSample};
use super::window::{MAX_WINDOW, window_rate};
use crate::rtt::RttEstimator;

/// Prague: sends ECT(1) and responds to the share of CE marks, so that an L4S queue stays short at
/// full rate.
///
/// Until the network marks the first packet, the path cannot be distinguished from a classic one,
/// and CUBIC with HyStart++ applies. The first mark ends slow start and activates the scalable law:
/// `alpha`, the moving average of the share of marked packets, takes `alpha / 2` of the window once
/// per virtual round trip, and unmarked bytes add one datagram per round trip to it. The response
/// to loss is that of CUBIC (draft §2.4.1). Two losses without a mark in between mean that the
/// bottleneck has become a classic one, and CUBIC applies again.
///
/// A classic ECN queue marks ECT(1) like ECT(0), and other flows reduce their window by a third for
/// each mark. The scalable law would take nearly all of the capacity from them. If marked packets
/// have waited for longer than an L4S queue permits in several rounds in a row, the bottleneck is
/// such a queue. CUBIC then applies for the rest of the connection, and sends ECT(0) (RFC 9331
/// §4.3).
pub type Prague = Classic<PragueLaw>;

/// The window law of Prague: that of CUBIC until the first mark, then the scalable one.
#[derive(Clone, Debug)]
pub struct PragueLaw {
    /// Applies while `scalable` is `None`.
    cubic: CubicLaw,
    /// Boxed, because most connections never receive a mark.
    scalable: Option<Box<Scalable>>,
    /// True if the bottleneck is a classic ECN queue.
    is_classic: bool,
    /// The pacing rate after the last acknowledgement, for the quantum.
    rate: Option<Rate>,
}

/// The state of the law that applied before a reduction.
#[derive(Clone, Copy, Debug)]
pub enum Saved {
    /// The state of CUBIC.
    Cubic(<CubicLaw as WindowLaw>::Saved),
    /// The window of the scalable law.
    Scalable(f64),
}

impl Prague {
    /// Returns the share of marked packets, between 0 and 1; `None` before the first mark.
    pub fn alpha(&self) -> Option<f64> {
        let scalable = self.law.scalable.as_ref();
        scalable.map(|scalable| scalable.alpha())
    }
}

impl WindowLaw for PragueLaw {
    type Saved = Saved;

    const NAME: &'static str = "prague";

    fn new(window: u64) -> Self {
        Self {
            cubic: CubicLaw::new(window),
            scalable: None,
            is_classic: false,
            rate: None,
        }
    }

    fn window(&self) -> u64 {
        match &self.scalable {
            Some(scalable) => scalable.window(),
            None => self.cubic.window(),
        }
    }

    fn set_window(&mut self, window: u64) {
        match &mut self.scalable {
            Some(scalable) => scalable.set_window(window),
            None => self.cubic.set_window(window),
        }
    }

    fn grow(&mut self, bytes: u64, limit: u64) {
        self.cubic.grow(bytes, limit);
    }

    fn on_slow_start_end(&mut self) {
        self.cubic.on_slow_start_end();
    }

    fn increase(&mut self, sample: &AckSample<'_>, mtu: u16) {
        match &mut self.scalable {
            Some(scalable) => scalable.increase(sample, mtu),
            None => self.cubic.increase(sample, mtu),
        }
    }

    fn decrease(&mut self, sample: &LossSample<'_>, mtu: u16) {
        match &mut self.scalable {
            Some(scalable) if sample.is_ecn => scalable.on_first_mark(sample.now, mtu),
            Some(scalable) => scalable.on_loss(sample, mtu),
            None => self.cubic.decrease(sample, mtu),
        }
    }

    fn collapse(&mut self, minimum: u64) {
        self.cubic.collapse(minimum);
    }

    fn reset_congestion(&mut self) {
        self.cubic.reset_congestion();
    }

    fn save(&self) -> Saved {
        match &self.scalable {
            Some(scalable) => Saved::Scalable(scalable.save()),
            None => Saved::Cubic(self.cubic.save()),
        }
    }

    /// Restores the state of the law that applies. Each change of laws begins a new recovery period
    /// with a state of its own, so the saved state is never that of the other law.
    fn restore(&mut self, saved: Saved) {
        match (&mut self.scalable, saved) {
            (Some(scalable), Saved::Scalable(window)) => scalable.restore(window),
            (None, Saved::Cubic(saved)) => self.cubic.restore(saved),
            (Some(_), Saved::Cubic(_)) | (None, Saved::Scalable(_)) => {
                debug_assert!(false, "saved by the other law");
            }
        }
    }

    fn on_idle_end(&mut self, now: Time) {
        self.cubic.on_idle_end(now);
    }

    fn observe(&mut self, sample: &AckSample<'_>) {
        if let Some(scalable) = &mut self.scalable {
            scalable.observe(sample);
        }
    }

    /// The scalable law responds to marks, to the first one by halving the window. If no packet was
    /// marked since the last loss, or the queue is a classic one, CUBIC takes over and responds.
    fn respond(&mut self, sample: &LossSample<'_>, is_covered: bool, mtu: u16) -> Response {
        match &mut self.scalable {
            None if sample.is_ecn && !self.is_classic => {
                self.scalable = Some(Box::new(Scalable::new(self.cubic.window())));
                Response::Reduce
            }
            None => Response::usual(is_covered),
            Some(scalable) if sample.is_ecn && scalable.has_classic_queue() => {
                self.cubic.take_over(scalable.window());
                self.scalable = None;
                self.is_classic = true;
                Response::Reduce
            }
            Some(scalable) if sample.is_ecn => {
                scalable.on_mark(sample, is_covered, mtu);
                Response::Done
            }
            Some(scalable) if sample.persistent || !is_covered && !scalable.has_new_marks() => {
                self.cubic.take_over(scalable.window());
                self.scalable = None;
                Response::Reduce
            }
            Some(_) => Response::usual(is_covered),
        }
    }

    fn on_ack_processed(&mut self, rtt: &RttEstimator, in_slow_start: bool) {
        self.rate = Some(self.pacing_rate(rtt, in_slow_start));
    }

    fn has_slow_start(&self) -> bool {
        self.scalable.is_none()
    }

    fn allowance(&self, mtu: u16) -> u64 {
        match &self.scalable {
            Some(scalable) => scalable.allowance(mtu),
            None => self.cubic.window(),
        }
    }

    /// Returns a window per round trip, because any more would form a queue (draft §2.5.1).
    fn pacing_rate(&self, rtt: &RttEstimator, in_slow_start: bool) -> Rate {
        match &self.scalable {
            Some(scalable) => Rate::from_bytes_in(scalable.window(), rtt.smoothed()),
            None => window_rate(self.cubic.window(), rtt, in_slow_start),
        }
    }

    /// Returns the bytes of a quarter of a millisecond, because an L4S queue marks at less than one
    /// (draft §2.5.2).
    fn send_quantum(&self, mtu: u16) -> Option<u64> {
        let rate = self.rate.filter(|_| self.scalable.is_some())?;
        let bytes = rate.as_bytes_per_second() / QUANTA_PER_SECOND;
        Some(bytes.clamp(u64::from(mtu), MAX_WINDOW))
    }

    fn ecn_codepoint(&self) -> Ecn {
        if self.is_classic {
            Ecn::Ect0
        } else {
            Ecn::Ect1
        }
    }
}

/// The number of quanta per second.
const QUANTA_PER_SECOND: u64 = 4000;

#[cfg(test)]
mod tests;
