//! HyStart++: ends slow start before the queue overflows, RFC 9406.

use std::time::Duration;

use courser_base::Rate;

use super::ack_rate::AckRate;
use super::sample::AckSample;

/// Determines the growth of the window in slow start.
///
/// HyStart++ monitors the smallest round-trip time of each round. When it rises, growth slows down
/// for a few rounds (conservative slow start). If it stays high, slow start ends; if it falls back,
/// the rise was noise. The same happens if acknowledgements arrive too slowly for the window. Only
/// the first slow start is monitored (RFC 9406 §4.3).
///
/// Peers that acknowledge a whole batch at once may give fewer samples in a round than the eight
/// that the RFC requires, so that slow start would end only with loss. Such a round is evaluated at
/// its end, see [`N_THINNED_SAMPLE`].
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    phase: Phase,
    round: Round,
    ack_rate: AckRate,
    /// True until the rate has led to conservative slow start without a queue.
    uses_rate: bool,
    last_sent: u64,
    /// True while the congestion event that has ended the first slow start may be undone. Rounds are
    /// still observed then.
    is_suspended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    SlowStart,
    /// Conservative slow start: the window grows more slowly, to confirm the queue.
    Conservative {
        /// The round-trip time below which the phase ends: there is no queue.
        baseline: Duration,
        rounds: u32,
        /// The first packet whose delay counts. Zero if delay and not the rate led to the phase.
        since: u64,
    },
    /// Standard slow start, after congestion or the end of the first slow start.
    Off,
}

/// The state of slow start before a congestion event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    is_monitored: bool,
}

/// One round trip, counted by packet numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// The first packet number of the next round, whose acknowledgement ends this one.
    window_end: u64,
    min_rtt: Option<Duration>,
    last_min_rtt: Option<Duration>,
    samples: u32,
    /// Bytes acknowledged in this round.
    acked: u64,
}

impl Round {
    /// Returns true if a round that is over has enough samples to be evaluated.
    fn is_conclusive(&self, mtu: u16) -> bool {
        self.samples >= N_THINNED_SAMPLE && self.acked >= u64::from(N_RTT_SAMPLE) * u64::from(mtu)
    }
}

/// The effect of an acknowledgement on the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Growth {
    /// Bytes to add to the window.
    pub(super) bytes: u64,
    /// True if slow start is over, so that the threshold becomes the window.
    pub(super) is_over: bool,
}

impl HyStart {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::SlowStart,
            round: Round::default(),
            ack_rate: AckRate::default(),
            uses_rate: true,
            last_sent: 0,
            is_suspended: false,
        }
    }

    pub(super) fn on_sent(&mut self, last_pn: u64) {
        self.last_sent = last_pn;
    }

    /// Returns the largest packet number sent.
    pub(super) fn last_sent(&self) -> u64 {
        self.last_sent
    }

    /// Returns the state to be restored if a congestion event turns out to be spurious.
    pub(super) fn saved(&self) -> Saved {
        Saved {
            is_monitored: self.phase != Phase::Off && !self.is_suspended,
        }
    }

    /// Continues after a spurious congestion event. Returns true if slow start has ended in the
    /// meantime.
    pub(super) fn resume(&mut self, earlier: Saved) -> bool {
        if !earlier.is_monitored {
            return false;
        }
        self.is_suspended = false;
        self.phase == Phase::Off
    }

    /// Ends the first slow start on a congestion event.
    pub(super) fn on_congestion(&mut self) {
        // The first of two events in a row is no longer undone.
        if self.is_suspended {
            self.phase = Phase::Off;
        }
        self.is_suspended = self.phase != Phase::Off;
    }

    /// Observes an acknowledgement that does not make the window grow in slow start.
    ///
    /// Reordering may end slow start several times in a round trip, and each time the event is
    /// undone. A round without the acknowledgements in between would hardly ever have enough samples
    /// to be evaluated, and the window would double until the queue overflows.
    pub(super) fn observe(&mut self, sample: &AckSample<'_>, mtu: u16, window: u64) {
        if self.is_suspended {
            self.monitor(sample, mtu, window);
        }
    }

    /// Returns the growth for an acknowledgement. `window` is the window before it.
    pub(super) fn on_ack(&mut self, sample: &AckSample<'_>, mtu: u16, window: u64) -> Growth {
        let bytes = if sample.app_limited {
            0
        } else {
            self.step(sample.acked_bytes)
        };
        let is_over = self.monitor(sample, mtu, window) && !self.is_suspended;
        Growth { bytes, is_over }
    }

    /// Adds an acknowledgement to the round and evaluates it. Returns true if that ends slow start.
    fn monitor(&mut self, sample: &AckSample<'_>, mtu: u16, window: u64) -> bool {
        if self.phase == Phase::Off {
            return false;
        }
        // This must precede counting the sample: the packet that ends a round belongs to the next.
        let is_over = self.end_round(sample, mtu);
        self.round.acked = self.round.acked.saturating_add(sample.acked_bytes);
        if let Some(rate) = self.ack_rate.on_ack(sample, mtu) {
            self.evaluate_rate(rate, window);
        } else if sample.app_limited {
            self.reset_rate();
        }
        // Packets of a window that is not full do not meet a queue of our own.
        if !sample.app_limited
            && !self.is_sent_too_early(sample.largest_acked)
            && let Some(rtt) = sample.rtt_sample
        {
            self.round.min_rtt = Some(self.round.min_rtt.map_or(rtt, |min| min.min(rtt)));
            self.round.samples = self.round.samples.saturating_add(1);
            if self.round.samples >= N_RTT_SAMPLE {
                self.evaluate_round(MAX_RTT_THRESH);
            }
        }
        is_over
    }

    /// Returns true if the packet was sent before those whose delay counts.
    fn is_sent_too_early(&self, pn: u64) -> bool {
        matches!(self.phase, Phase::Conservative { since, .. } if pn < since)
    }

    /// Returns the growth of the window for `acked` bytes: as much, or a fraction of it in conservative slow start.
    ///
    /// RFC 9406 §4.3 recommends no limit for a sender that paces its packets.
    fn step(&self, acked: u64) -> u64 {
        match self.phase {
            _ if self.is_suspended => acked,
            Phase::Conservative { since: 0, .. } => acked / CSS_GROWTH_DIVISOR,
            Phase::Conservative { .. } => acked / KNOWN_RATE_GROWTH_DIVISOR,
            Phase::SlowStart | Phase::Off => acked,
        }
    }

    /// Enters or leaves conservative slow start. Called once the round has enough samples.
    fn evaluate_round(&mut self, max_threshold: Duration) {
        let Some(min) = self.round.min_rtt else {
            return;
        };
        match self.phase {
            Phase::SlowStart => {
                let Some(last) = self.round.last_min_rtt else {
                    return;
                };
                if min >= last.saturating_add(threshold(last, max_threshold)) {
                    self.phase = Phase::Conservative {
                        baseline: min,
                        rounds: 0,
                        since: 0,
                    };
                }
            }
            Phase::Conservative {
                baseline, since, ..
            } if min < baseline => match since {
                0 => self.phase = Phase::SlowStart,
                _ => self.disable_rate(),
            },
            Phase::Conservative { .. } | Phase::Off => {}
        }
    }

    /// Enters conservative slow start if the window is larger than what a round trip delivers.
    ///
    /// Deviates: RFC 9406 waits until a whole round is delayed. Where the bottleneck has the rate
    /// at which half a window arrived, the first packets of a round still find an empty queue while
    /// the last ones fill it, and the first round that is delayed as a whole is the one that
    /// overflows: 1 MB over 10 Mbit/s x 50 ms with a queue of one BDP lost a sixth of its packets.
    fn evaluate_rate(&mut self, rate: Rate, window: u64) {
        let (Phase::SlowStart, Some(last)) = (self.phase, self.round.last_min_rtt) else {
            return;
        };
        let (numerator, denominator) = FULL;
        if !self.uses_rate || window <= rate.scaled(numerator, denominator).bytes_in(last) {
            return;
        }
        // Packets sent from now on must show a queue, or there is no bottleneck.
        self.phase = Phase::Conservative {
            baseline: last.saturating_add(threshold(last, Duration::MAX)),
            rounds: 0,
            since: self.last_sent.saturating_add(1),
        };
        self.round.min_rtt = None;
        self.round.samples = 0;
    }

    /// Starts a new round if the old one is acknowledged. Returns true if that ends slow start.
    fn end_round(&mut self, sample: &AckSample<'_>, mtu: u16) -> bool {
        if sample.largest_acked < self.round.window_end {
            return false;
        }
        if self.round.samples < N_RTT_SAMPLE && self.round.is_conclusive(mtu) {
            self.evaluate_round(Duration::MAX);
        }
        let standing = sample.rtt.min().saturating_mul(2);
        let has_standing_queue = self.round.min_rtt.is_some_and(|min| min >= standing);
        let ended = self.round;
        self.ack_rate.end_round();
        self.round = Round {
            window_end: self.last_sent.saturating_add(1),
            last_min_rtt: ended.min_rtt,
            ..Round::default()
        };
        // The partial round in which the phase began counts as well.
        let Phase::Conservative { rounds, since, .. } = &mut self.phase else {
            return false;
        };
        if *since > 0 {
            // Packets sent before `since` do not count.
            self.round.last_min_rtt = ended.min_rtt.or(ended.last_min_rtt);
            if *rounds >= TRANSITION_ROUNDS && !ended.is_conclusive(mtu) {
                return false;
            }
        }
        *rounds += 1;
        let needed = match (*since, has_standing_queue) {
            (0, true) => STANDING_QUEUE_ROUNDS,
            (0, false) => CSS_ROUNDS,
            _ => TRANSITION_ROUNDS + CONFIRMATION_ROUNDS,
        };
        if *rounds < needed {
            return false;
        }
        self.phase = Phase::Off;
        true
    }

    /// Ignores the rate of acknowledgements from now on, because there was no queue.
    fn disable_rate(&mut self) {
        self.phase = Phase::SlowStart;
        self.uses_rate = false;
    }

    /// Leaves conservative slow start after a pause of the sender, which may have emptied the
    /// queue.
    fn reset_rate(&mut self) {
        if matches!(self.phase, Phase::Conservative { since: 1.., .. }) {
            self.phase = Phase::SlowStart;
            self.round.last_min_rtt = None;
        }
    }
}

/// Returns `RttThresh`, RFC 9406 §4.2.
fn threshold(last: Duration, max: Duration) -> Duration {
    (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, max)
}

/// Samples that a round needs to be evaluated. The constants are those of RFC 9406 §4.3.
const N_RTT_SAMPLE: u32 = 8;
/// Samples that a finished round needs if acknowledgements are rare.
///
/// Deviates: RFC 9406 §4.2 evaluates no round of fewer than eight samples, because it expects one
/// for every other packet. Here the round must still have delivered eight datagrams. Its threshold
/// is an eighth of the round-trip time without the upper bound of 16 ms, because each sample
/// includes the time that its packet waited behind its own batch.
const N_THINNED_SAMPLE: u32 = 3;
/// The smallest rise that counts. Smaller ones are noise of the hosts on short paths.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u32 = 8;
/// The divisor of growth in conservative slow start that delay has caused.
const CSS_GROWTH_DIVISOR: u64 = 4;
/// Rounds of conservative slow start.
const CSS_ROUNDS: u32 = 5;
/// Rounds of conservative slow start if even the fastest packet of a round took twice the shortest
/// round-trip time of the path.
///
/// Deviates: RFC 9406 §4.3 recommends five rounds in all cases. With short round trips the
/// threshold of 4 ms lets the window grow to five times what the path holds before growth slows
/// down, and five more rounds fill a queue of ten times that. If the queue holds more than the path
/// during a whole round, the rise is not noise.
const STANDING_QUEUE_ROUNDS: u32 = 2;
/// The divisor of growth if the rate of acknowledgements has led to conservative slow start: the
/// window is larger than what the path holds.
const KNOWN_RATE_GROWTH_DIVISOR: u64 = 8;
/// Rounds after such a start that contain packets sent before: the round of the detection and the
/// next.
const TRANSITION_ROUNDS: u32 = 2;
/// Rounds after those that must show a queue for every packet. With one such round, jitter of half
/// a round trip ends slow start too early 1.5 times as often as without the rate. With two it does
/// not.
const CONFIRMATION_ROUNDS: u32 = 2;
/// The window above which the path must be full, as a multiple of what it delivers in a round trip
/// at its highest rate. On a path that is not full the multiple is about one: a window is sent in
/// half a round trip, and the next one is twice as large.
const FULL: (u32, u32) = (7, 5);

#[cfg(test)]
mod tests;
