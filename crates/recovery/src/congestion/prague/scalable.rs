//! The response to the share of marked packets: the core of DCTCP (RFC 8257) and Prague.

use std::time::Duration;

use courser_base::Time;

use crate::congestion::recovery_period::RecoveryPeriod;
use crate::congestion::sample::{AckSample, LossSample};
use crate::congestion::window::{MAX_WINDOW, minimum_window};

/// A window that marks reduce in proportion to their share.
#[derive(Clone, Debug)]
pub(super) struct Scalable {
    /// The window in bytes, with fractions: a small share of a small window must not be rounded
    /// away.
    window: f64,
    /// The moving average of the share of marked packets.
    alpha: f64,
    /// Packets and marks since the last update of `alpha`.
    share: Share,
    /// Round trips since slow start, at most [`TRANSITION_ROUNDS`].
    rounds: u32,
    /// Rounds in a row without a mark.
    unmarked_rounds: u32,
    smoothed_rtt: Duration,
    /// The round trip after a reduction for marks.
    reduced: RecoveryPeriod,
    reduced_at: Time,
    /// The bytes that one acknowledgement covers: the recent maximum.
    batch: f64,
    /// True if there were marks since the last loss.
    has_new_marks: bool,
    /// Rounds in a row with marks whose packets have all waited in a queue.
    queue_rounds: u32,
}

/// The packets and marks of a round trip or a virtual one.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// The start of the round, which ends when a packet sent later is acknowledged.
    since: Time,
    packets: u64,
    marked: u64,
    /// The shortest round-trip time, if there was a sample.
    fastest: Option<Duration>,
}

impl Scalable {
    pub(super) fn new(window: u64) -> Self {
        Self {
            window: from_bytes(window),
            // Draft §2.3.2: the first response is that of a classic sender.
            alpha: 1.0,
            share: Share::default(),
            rounds: 0,
            unmarked_rounds: 0,
            smoothed_rtt: Duration::ZERO,
            reduced: RecoveryPeriod::default(),
            reduced_at: Time::ZERO,
            batch: 0.0,
            has_new_marks: true,
            queue_rounds: 0,
        }
    }

    /// Returns true if the queue that marks packets is not an L4S queue, because packets wait in it
    /// for longer.
    pub(super) fn has_classic_queue(&self) -> bool {
        self.queue_rounds >= CLASSIC_ROUNDS
    }

    pub(super) fn alpha(&self) -> f64 {
        self.alpha
    }

    pub(super) fn has_new_marks(&self) -> bool {
        self.has_new_marks
    }

    pub(super) fn window(&self) -> u64 {
        to_bytes(self.window)
    }

    pub(super) fn set_window(&mut self, window: u64) {
        self.window = from_bytes(window);
    }

    /// Returns the bytes that may be in flight outside recovery.
    ///
    /// Deviates: a receiver that acknowledges less often than every second packet withholds up to
    /// `batch` bytes that have arrived. These are no longer on the path. If the window included
    /// them, the path would never hold a whole window: pacing sends a window per round trip, and no
    /// queue compensates for a pause. With acknowledgements an eighth of a round trip apart, the
    /// pause cost a tenth of the link.
    pub(super) fn allowance(&self, mtu: u16) -> u64 {
        let usual = from_bytes(2 * u64::from(mtu));
        let held_back = (self.batch - usual).clamp(0.0, self.window * MAX_BATCH);
        to_bytes(self.window + held_back).min(MAX_WINDOW)
    }

    /// Halves the window for the mark that ends slow start.
    pub(super) fn on_first_mark(&mut self, now: Time, mtu: u16) {
        self.share.since = now;
        self.reduce_for_marks(now, mtu);
    }

    /// Reduces the window for a mark, draft §2.4.2: once per round trip, or once per virtual round
    /// trip when the law no longer depends on the real one.
    pub(super) fn on_mark(&mut self, sample: &LossSample<'_>, is_covered: bool, mtu: u16) {
        self.has_new_marks = true;
        let is_early = self.is_rtt_independent() && sample.now - self.reduced_at < VIRTUAL_RTT;
        let is_answered = is_covered || self.reduced.covers(sample.largest_lost_sent);
        if !is_early && !is_answered {
            self.reduce_for_marks(sample.now, mtu);
        }
    }

    fn reduce_for_marks(&mut self, now: Time, mtu: u16) {
        self.reduced.start(now);
        self.reduced_at = now;
        self.bound_window(self.window * (1.0 - self.alpha / 2.0), mtu);
    }

    /// Reduces the window for a loss, draft §2.4.1.
    pub(super) fn on_loss(&mut self, sample: &LossSample<'_>, mtu: u16) {
        // A reduction for marks in the same round trip is part of the response.
        let share = if self.reduced.covers(sample.largest_lost_sent) {
            (LOSS_FACTOR / (1.0 - self.alpha / 2.0)).min(1.0)
        } else {
            LOSS_FACTOR
        };
        self.bound_window(self.window * share, mtu);
        self.has_new_marks = false;
    }

    pub(super) fn save(&self) -> f64 {
        self.window
    }

    /// Undoes the reduction for a spurious loss.
    pub(super) fn restore(&mut self, window: f64) {
        self.window = self.window.max(window);
        self.has_new_marks = true;
    }

    /// Counts packets and marks, also during recovery.
    pub(super) fn observe(&mut self, sample: &AckSample<'_>) {
        self.smoothed_rtt = sample.rtt.smoothed();
        let batch = from_bytes(sample.acked_bytes);
        self.batch = batch.max(self.batch * BATCH_DECAY);
        self.count(sample);
    }

    /// Updates `alpha` once per round trip, draft §2.3.2, and at most once per virtual round trip,
    /// so that the same number of marks counts the same in short and long round trips.
    fn count(&mut self, sample: &AckSample<'_>) {
        let marked = sample.ce_packets.min(sample.ecn_capable_packets);
        self.share.packets = self
            .share
            .packets
            .saturating_add(sample.ecn_capable_packets);
        self.share.marked = self.share.marked.saturating_add(marked);
        let fastest = [self.share.fastest, sample.rtt_sample];
        self.share.fastest = fastest.into_iter().flatten().min();
        let is_early = self.is_rtt_independent() && sample.now - self.share.since < VIRTUAL_RTT;
        if sample.largest_acked_sent <= self.share.since || is_early {
            return;
        }
        if self.share.packets > 0 {
            let share = self.share.marked as f64 / self.share.packets as f64;
            self.alpha += GAIN * (share - self.alpha);
        }
        self.evaluate_queue(sample.rtt.min());
        self.rounds = (self.rounds + 1).min(TRANSITION_ROUNDS);
        self.unmarked_rounds = match self.share.marked {
            0 => self.unmarked_rounds.saturating_add(1),
            _ => 0,
        };
        self.share = Share {
            since: sample.now,
            ..Share::default()
        };
    }

    /// Compares the shortest delay of a round that has marks with that of an L4S queue.
    ///
    /// The draft (§3) compares the variation of the delay, which mistakes jitter for a queue. But jitter
    /// does not delay every packet of many rounds.
    fn evaluate_queue(&mut self, path_min: Duration) {
        let (1.., Some(fastest)) = (self.share.marked, self.share.fastest) else {
            return;
        };
        let wait = fastest.saturating_sub(path_min);
        // A few packets are a long queue on a slow link.
        let queued = self.window * (wait.as_secs_f64() / fastest.as_secs_f64());
        self.queue_rounds = if wait >= CLASSIC_WAIT && queued >= CLASSIC_QUEUE {
            self.queue_rounds.saturating_add(1)
        } else {
            0
        };
    }

    /// Adds a datagram per round trip and window for unmarked bytes, draft §2.4.3, also between a
    /// mark and the end of its round trip. The growth is scaled to a longer round trip to be fair
    /// to flows that have one, §2.4.4.
    pub(super) fn increase(&mut self, sample: &AckSample<'_>, mtu: u16) {
        if sample.app_limited {
            return;
        }
        let packets = sample.ecn_capable_packets.max(1) as f64;
        let marked = sample.ce_packets as f64;
        let unmarked = from_bytes(sample.acked_bytes) * (1.0 - marked / packets).max(0.0);
        let ratio = if self.is_rtt_independent() {
            self.smoothed_rtt.as_secs_f64() / VIRTUAL_RTT.as_secs_f64()
        } else {
            1.0
        };
        let round = (ratio * ratio).min(1.0) * from_bytes(u64::from(mtu));
        let step = round.max(self.accelerated_growth(mtu)) * (unmarked / self.window).min(1.0);
        self.bound_window(self.window + step, mtu);
    }

    /// Returns the growth of this round after too many rounds without marks; usually zero.
    ///
    /// Deviates: draft §3.1 leaves open how a flow reaches a higher rate. A marked burst ends slow
    /// start, and a link may become faster. A datagram per round trip would take minutes then. A
    /// full L4S queue marks at least once in as many rounds as it takes to recover from a
    /// reduction, about the square root of the window. After twice as many rounds, growth doubles
    /// each round.
    fn accelerated_growth(&self, mtu: u16) -> f64 {
        let mtu = from_bytes(u64::from(mtu));
        let usual_rounds = if self.alpha > UNSETTLED_ALPHA {
            UNSETTLED_ROUNDS
        } else {
            UNSETTLED_ROUNDS + 2 * (self.window / mtu.max(1.0)).sqrt() as u32
        };
        match self.unmarked_rounds.checked_sub(usual_rounds) {
            None | Some(0) => 0.0,
            Some(doublings) => {
                let datagrams = from_bytes(1 << doublings.min(32));
                (datagrams * mtu).min(self.window / ACCELERATION_DIVISOR)
            }
        }
    }

    fn is_rtt_independent(&self) -> bool {
        self.rounds >= TRANSITION_ROUNDS && self.smoothed_rtt < VIRTUAL_RTT
    }

    fn bound_window(&mut self, window: f64, mtu: u16) {
        let minimum = from_bytes(minimum_window(mtu));
        self.window = window.clamp(minimum, from_bytes(MAX_WINDOW));
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

/// The weight of the newest round trip in `alpha`. Draft §2.3.2.
const GAIN: f64 = 1.0 / 16.0;
/// The virtual round trip: flows with a shorter one behave as if it took this long. Draft §2.4.4.
const VIRTUAL_RTT: Duration = Duration::from_millis(25);
/// Round trips after slow start in which a flow still depends on its real round trip. Draft §2.4.4.
const TRANSITION_ROUNDS: u32 = 500;
/// The value above which `alpha` counts as not yet measured. It starts at one.
const UNSETTLED_ALPHA: f64 = 0.25;
/// Rounds without a mark that are normal at any window.
const UNSETTLED_ROUNDS: u32 = 3;
/// The divisor of the window that limits its growth in a round to an eighth. The queue that this
/// leaves when the link is full at last drains within a round trip.
const ACCELERATION_DIVISOR: f64 = 8.0;
/// The factor by which the largest batch decays with each acknowledgement.
const BATCH_DECAY: f64 = 0.95;
/// The largest part of the window that acknowledgements may withhold. RFC 9000 §13.2.1 lets
/// receivers wait for `max_ack_delay`. For receivers that acknowledge less often, the part is
/// limited to a quarter.
const MAX_BATCH: f64 = 0.25;
/// Minimum delay of a classic queue. An L4S queue marks at about 1 ms (RFC 9332), CoDel at 5 ms
/// (RFC 8289), PIE at 15 ms (RFC 8033).
const CLASSIC_WAIT: Duration = Duration::from_millis(4);
/// Minimum number of bytes in a classic queue: four packets.
const CLASSIC_QUEUE: f64 = 6000.0;
/// Rounds in a row that show a classic queue. The queue that slow start leaves behind drains sooner.
const CLASSIC_ROUNDS: u32 = 8;
/// The part of the window that remains after a loss, as with CUBIC (draft §2.4.1, RFC 9438 §4.6).
const LOSS_FACTOR: f64 = 0.7;
