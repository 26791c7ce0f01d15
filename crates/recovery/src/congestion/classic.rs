//! The window-based controller that NewReno, CUBIC and Prague share (RFC 9002 §7, appendix B).

use courser_base::{Ecn, Rate, Time};

use super::capacity_rise::{CapacityRise, Rise};
use super::capacity_search::{CapacitySearch, Progress};
use super::careful_resume::Resumable;
use super::controller::Controller;
use super::hystart::{self, HyStart};
use super::law::{Response, WindowLaw};
use super::prr::Prr;
use super::recovery_period::RecoveryPeriod;
use super::sample::{AckSample, LossSample, SpuriousLoss};
use super::undo::{Undo, higher_threshold};
use super::utilization::Utilization;
use super::window::{MAX_WINDOW, initial_window, minimum_window};
use crate::rtt::RttEstimator;

/// A window-based controller whose window follows the law `L`.
///
/// Everything but the law is common to all algorithms: HyStart++ in slow start, one reduction per
/// recovery period, proportional rate reduction, the undo of spurious reductions, slow start
/// after persistent congestion, the search for a larger window after a rise in capacity, and the
/// initial window (`docs/design/0013`).
#[derive(Clone, Debug)]
pub struct Classic<L: WindowLaw> {
    pub(super) law: L,
    mtu: u16,
    ssthresh: Option<u64>,
    recovery: RecoveryPeriod,
    /// Proportional rate reduction; `Some` during recovery.
    prr: Option<Prr>,
    undo: Undo<Saved<L::Saved>>,
    slow_start: HyStart,
    capacity: CapacityRise,
    /// The search for a larger window after a rise in capacity; `Some` while it runs. It counts as
    /// slow start. Boxed, because it is rare.
    search: Option<Box<CapacitySearch>>,
    utilization: Utilization,
    /// True from slow start until a round trip has passed after a reduction without another one.
    ///
    /// Deviates: RFC 9002 §7.3.2 permits a reduction for each round trip. Slow start may end far
    /// above what the path holds. Packets that are sent while the flight shrinks to the reduced
    /// window meet the queue of the window before, and an AQM that drops or marks some of them
    /// caused four reductions in a row, to less than the path holds. So the losses of these packets
    /// count as the same congestion event. Later reductions, and those for losses that shrink the
    /// flight at once, are not affected.
    is_settling: bool,
    /// True until a packet is acknowledged or lost. The window is the initial one until then.
    is_untouched: bool,
}

/// The state that a reduction changes.
#[derive(Clone, Copy, Debug)]
struct Saved<S> {
    law: S,
    ssthresh: Option<u64>,
    slow_start: hystart::Saved,
}

impl<L: WindowLaw> Classic<L> {
    /// Creates a controller with the initial window for datagrams of `mtu` bytes.
    pub fn new(mtu: u16) -> Self {
        Self {
            law: L::new(initial_window(mtu)),
            mtu,
            ssthresh: None,
            recovery: RecoveryPeriod::default(),
            prr: None,
            undo: Undo::new(),
            slow_start: HyStart::new(),
            capacity: CapacityRise::new(),
            search: None,
            utilization: Utilization::default(),
            is_settling: true,
            is_untouched: true,
        }
    }

    /// Creates a controller that takes over from one that held `window`. Slow start continues
    /// below `ssthresh`, or without limit if that is `None`.
    pub(super) fn resume(mtu: u16, window: u64, ssthresh: Option<u64>) -> Self {
        Self {
            law: L::new(window.clamp(minimum_window(mtu), MAX_WINDOW)),
            ssthresh,
            is_untouched: false,
            ..Self::new(mtu)
        }
    }

    /// Stays in congestion avoidance when the capacity of the path rises.
    pub(super) fn ignore_capacity_rise(&mut self) {
        self.capacity.disable();
    }

    /// Begins to search for a larger window after a rise in capacity.
    fn begin_search(&mut self, rise: Rise) {
        self.search = Some(Box::new(CapacitySearch::new(self.window(), rise.bound)));
    }

    /// Continues the search for a larger window.
    fn search(&mut self, sample: &AckSample<'_>, mut search: Box<CapacitySearch>) {
        let (window, usable) = (self.window(), self.utilization.limit());
        let last_sent = self.slow_start.last_sent();
        match search.on_ack(sample, window, usable, last_sent) {
            Progress::Growing => self.law.grow(sample.acked_bytes, search.target()),
            Progress::FirstStepProven => {
                // The state before the last congestion event no longer describes the path.
                self.law.reset_congestion();
                self.undo = Undo::new();
            }
            Progress::Over { window } => {
                self.law.set_window(window.max(minimum_window(self.mtu)));
                self.ssthresh = Some(self.window());
                if search.has_proven_step() {
                    self.law.on_slow_start_end();
                    self.is_settling = true;
                    self.capacity.on_successful_search();
                } else {
                    self.capacity.on_failed_search();
                }
                return;
            }
        }
        self.search = Some(search);
    }

    fn grow(&mut self, sample: &AckSample<'_>) {
        if let Some(search) = self.search.take() {
            self.search(sample, search);
        } else if self.in_slow_start() {
            self.on_slow_start_ack(sample);
        } else {
            (self.slow_start).observe(sample, self.mtu, self.law.window());
            let rtt = sample.rtt.smoothed();
            self.is_settling &= !self
                .recovery
                .is_long_before(sample.earliest_acked_sent, rtt);
            let is_unused = self.window() >= self.utilization.limit();
            let sample = AckSample {
                app_limited: sample.app_limited || is_unused,
                ..*sample
            };
            self.law.increase(&sample, self.mtu);
        }
    }

    /// Increases the window in slow start, RFC 9002 §7.3.1.
    fn on_slow_start_ack(&mut self, sample: &AckSample<'_>) {
        let growth = self.slow_start.on_ack(sample, self.mtu, self.window());
        let limit = self.ssthresh.unwrap_or(MAX_WINDOW);
        // The window must not shrink.
        let used = self.utilization.limit().max(self.window());
        self.law.grow(growth.bytes, limit.min(used));
        if growth.is_over {
            self.ssthresh = Some(self.window());
            self.law.on_slow_start_end();
        }
    }

    /// Reduces the window and begins a recovery period, RFC 9002 §7.3.2.
    fn begin_recovery(&mut self, sample: &LossSample<'_>) {
        let saved = Saved {
            law: self.law.save(),
            ssthresh: self.ssthresh,
            slow_start: self.slow_start.saved(),
        };
        self.undo.begin(sample, saved);
        self.recovery.start(sample.now);
        self.search = None;
        self.slow_start.on_congestion();
        self.capacity.on_congestion();
        self.law.decrease(sample, self.mtu);
        self.ssthresh = Some(self.window());
        self.prr = Some(Prr::new(sample, self.window(), self.mtu));
    }
}

impl<L: WindowLaw + 'static> Resumable for Classic<L> {
    fn successor(&self, window: u64, ssthresh: Option<u64>) -> Box<dyn Resumable> {
        let mut successor = Self::resume(self.mtu, window, ssthresh);
        if self.capacity.is_disabled() {
            successor.ignore_capacity_rise();
        }
        Box::new(successor)
    }

    fn ignore_capacity_rise(&mut self) {
        self.capacity.disable();
    }

    #[cfg(test)]
    fn ignores_capacity_rise(&self) -> bool {
        self.capacity.is_disabled()
    }
}

impl<L: WindowLaw> Controller for Classic<L> {
    fn on_sent(&mut self, now: Time, bytes: u64, last_pn: u64, bytes_in_flight: u64) {
        self.slow_start.on_sent(last_pn);
        if let Some(prr) = &mut self.prr {
            prr.on_sent(bytes);
            if self.is_settling && prr.is_reducing(bytes_in_flight) {
                self.recovery.extend(now);
            }
        }
        if bytes_in_flight <= bytes {
            self.law.on_idle_end(now);
        }
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        self.is_untouched = false;
        self.law.observe(sample);
        if !self.recovery.precedes(sample.largest_acked_sent) {
            self.prr = None;
        }
        if let Some(prr) = &mut self.prr {
            prr.on_ack(sample);
        }
        let last_sent = self.slow_start.last_sent();
        self.utilization.on_ack(sample, last_sent);
        let rise = match self.law.has_slow_start() {
            true => (self.capacity).on_ack(sample, self.mtu, self.law.window(), last_sent),
            false => None,
        };
        // Packets sent before the reduction do not make the window grow: RFC 9002 appendix B.5.
        if !self.recovery.forbids_growth(sample.earliest_acked_sent) {
            if let Some(rise) = rise
                && !self.in_slow_start()
            {
                self.begin_search(rise);
            }
            self.grow(sample);
        } else {
            (self.slow_start).observe(sample, self.mtu, self.law.window());
        }
        let in_slow_start = self.in_slow_start();
        self.law.on_ack_processed(sample.rtt, in_slow_start);
    }

    fn on_congestion(&mut self, sample: &LossSample<'_>) {
        self.is_untouched = false;
        // If only the next law has slow start, its threshold is the present window.
        self.ssthresh = self.ssthresh();
        let is_covered = self.recovery.covers(sample.largest_lost_sent);
        match self.law.respond(sample, is_covered, self.mtu) {
            Response::Reduce => self.begin_recovery(sample),
            Response::Covered => {
                self.undo.extend(sample);
                if let Some(prr) = &mut self.prr {
                    prr.on_lost(sample);
                }
            }
            Response::Done => self.undo.extend(sample),
        }
        if sample.persistent && self.law.has_slow_start() {
            // The counterpart of TCP's retransmission timeout: RFC 9438 §4.8, RFC 9002 §7.6.2.
            self.law.collapse(minimum_window(self.mtu));
            self.recovery.collapse(sample.now);
            self.prr = None;
            self.search = None;
        }
    }

    fn on_spurious_loss(&mut self, loss: &SpuriousLoss) {
        if let Some(saved) = self.undo.on_spurious_loss(loss) {
            self.law.restore(saved.law);
            self.ssthresh = higher_threshold(self.ssthresh, saved.ssthresh);
            if self.slow_start.resume(saved.slow_start) {
                self.ssthresh = Some(self.window());
            }
            self.recovery.clear();
            self.prr = None;
            self.search = None;
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu;
        if let Some(prr) = &mut self.prr {
            prr.on_mtu_update(mtu);
        }
        if self.is_untouched {
            self.law.set_window(initial_window(mtu));
        }
        if self.window() < minimum_window(mtu) {
            self.law.set_window(minimum_window(mtu));
        }
    }

    fn window(&self) -> u64 {
        self.law.window()
    }

    fn room(&self, bytes_in_flight: u64) -> u64 {
        match &self.prr {
            Some(prr) => prr.room(self.window(), bytes_in_flight),
            None => self.law.allowance(self.mtu).saturating_sub(bytes_in_flight),
        }
    }

    /// Returns the threshold. For a law without slow start it is the window.
    fn ssthresh(&self) -> Option<u64> {
        if self.law.has_slow_start() {
            self.ssthresh
        } else {
            Some(self.window())
        }
    }

    fn pacing_rate(&self, rtt: &RttEstimator) -> Option<Rate> {
        Some(self.law.pacing_rate(rtt, self.in_slow_start()))
    }

    fn send_quantum(&self) -> Option<u64> {
        self.law.send_quantum(self.mtu)
    }

    fn ecn_codepoint(&self) -> Ecn {
        self.law.ecn_codepoint()
    }

    fn in_slow_start(&self) -> bool {
        let is_below = |ssthresh| self.window() < ssthresh;
        self.search.is_some() || self.ssthresh().is_none_or(is_below)
    }

    fn state(&self) -> &'static str {
        match (&self.prr, self.in_slow_start()) {
            (Some(_), _) => "recovery",
            (None, true) => "slow_start",
            (None, false) => "congestion_avoidance",
        }
    }

    fn name(&self) -> &'static str {
        L::NAME
    }
}
