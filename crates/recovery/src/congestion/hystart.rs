//! HyStart++: leaving slow start before the queue overflows, RFC 9406.

use std::time::Duration;

use courser_base::Rate;

use super::ack_rate::AckRate;
use super::sample::AckSample;

/// The growth of the window in slow start.
///
/// Watches the smallest round-trip time of each round. When it rises, growth slows down for a
/// few rounds (conservative slow start); if it stays up, slow start is over, and if it falls
/// back, the rise was noise. The same happens when acknowledgements come too slowly for the
/// window. Only the first slow start is watched (RFC 9406 §4.3), and one after the path has become
/// wider.
///
/// Peers that acknowledge a whole batch at once may give fewer samples in a round than the eight
/// that the RFC wants, and slow start would end only with loss. Such a round is judged when it is
/// over, see [`N_THINNED_SAMPLE`].
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    phase: Phase,
    is_paced: bool,
    round: Round,
    ack_rate: AckRate,
    /// The rate has not led to conservative slow start in vain.
    trusts_rate: bool,
    last_sent: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    SlowStart,
    /// Conservative slow start: `baseline` is the smallest round-trip time that led here.
    Conservative {
        baseline: Duration,
        rounds: u32,
        /// The first packet whose delay is compared. Not zero if it was the rate that led here.
        since: u64,
    },
    /// There was congestion or an exit: any later slow start is the plain one.
    Off,
}

/// Where slow start was before a congestion event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    phase: Phase,
    round: Round,
}

/// One round trip, counted by packet numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// The round is over when this number, the first one sent in the next, is acknowledged.
    window_end: u64,
    min_rtt: Option<Duration>,
    last_min_rtt: Option<Duration>,
    samples: u32,
    /// Bytes acknowledged.
    acked: u64,
}

impl Round {
    /// There are samples enough to judge it by, now that it is over.
    fn is_telling(&self, mtu: u16) -> bool {
        self.samples >= N_THINNED_SAMPLE && self.acked >= u64::from(N_RTT_SAMPLE) * u64::from(mtu)
    }
}

/// What an acknowledgement does to the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Growth {
    /// Bytes to add.
    pub(super) bytes: u64,
    /// Slow start is over: the threshold becomes the window.
    pub(super) is_over: bool,
}

impl HyStart {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::SlowStart,
            is_paced: true,
            round: Round::default(),
            ack_rate: AckRate::default(),
            trusts_rate: true,
            last_sent: 0,
        }
    }

    pub(super) fn set_unpaced(&mut self) {
        self.is_paced = false;
    }

    pub(super) fn on_sent(&mut self, last_pn: u64) {
        self.last_sent = last_pn;
    }

    /// The largest packet number that has been sent.
    pub(super) fn last_sent(&self) -> u64 {
        self.last_sent
    }

    /// What a congestion event that turns out to be none gives back.
    pub(super) fn saved(&self) -> Saved {
        Saved {
            phase: self.phase,
            round: self.round,
        }
    }

    /// The congestion event was none: goes on from an earlier state.
    pub(super) fn resume(&mut self, earlier: Saved) {
        self.phase = earlier.phase;
        self.round = earlier.round;
    }

    /// The path has become another one: its slow start is watched like the first.
    pub(super) fn restart(&mut self) {
        self.phase = Phase::SlowStart;
        self.ack_rate = AckRate::default();
        self.trusts_rate = true;
        self.round = Round {
            window_end: self.last_sent.saturating_add(1),
            ..Round::default()
        };
    }

    /// A congestion event ends the first slow start.
    pub(super) fn on_congestion(&mut self) {
        self.phase = Phase::Off;
    }

    /// `window` is what the acknowledgement found.
    pub(super) fn on_ack(&mut self, sample: &AckSample<'_>, mtu: u16, window: u64) -> Growth {
        let bytes = if sample.app_limited {
            0
        } else {
            self.step(sample.acked_bytes, mtu)
        };
        if self.phase == Phase::Off {
            return Growth {
                bytes,
                is_over: false,
            };
        }
        // Before the sample is counted: the packet that ends a round belongs to the next.
        let is_over = self.end_round(sample, mtu);
        self.round.acked = self.round.acked.saturating_add(sample.acked_bytes);
        if let Some(rate) = self.ack_rate.on_ack(sample, mtu) {
            self.judge_rate(rate, window);
        } else if sample.app_limited {
            self.forget_rate();
        }
        // Packets of a half-empty window do not meet a queue of our making.
        if !sample.app_limited
            && !self.is_too_early(sample.largest_acked)
            && let Some(rtt) = sample.rtt_sample
        {
            self.round.min_rtt = Some(self.round.min_rtt.map_or(rtt, |min| min.min(rtt)));
            self.round.samples = self.round.samples.saturating_add(1);
            if self.round.samples >= N_RTT_SAMPLE {
                self.judge_round(MAX_RTT_THRESH);
            }
        }
        Growth { bytes, is_over }
    }

    /// The packet left before what it would be asked about.
    fn is_too_early(&self, pn: u64) -> bool {
        matches!(self.phase, Phase::Conservative { since, .. } if pn < since)
    }

    /// RFC 9406 §4.2: `min(N, L * SMSS)`, a part of it in conservative slow start.
    fn step(&self, acked: u64, mtu: u16) -> u64 {
        let bytes = if self.is_paced {
            acked
        } else {
            acked.min(UNPACED_LIMIT * u64::from(mtu))
        };
        match self.phase {
            Phase::Conservative { since: 0, .. } => bytes / CSS_GROWTH_DIVISOR,
            Phase::Conservative { .. } => bytes / KNOWN_RATE_GROWTH_DIVISOR,
            Phase::SlowStart | Phase::Off => bytes,
        }
    }

    /// Enters or leaves conservative slow start. Call it once the round has enough samples.
    fn judge_round(&mut self, max_threshold: Duration) {
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
                _ => self.distrust_rate(),
            },
            Phase::Conservative { .. } | Phase::Off => {}
        }
    }

    /// Enters conservative slow start when the window is larger than what a round trip delivers.
    ///
    /// Deviates: RFC 9406 waits until all of a round is late. Where the path narrows to the rate at
    /// which half a window arrived, the first packets of a round still find an empty queue when the
    /// last ones fill it, and the round in which all are late is the one that overflows: 1 MB
    /// over 10 Mbit/s x 50 ms with a queue of one BDP lost a sixth of its packets.
    fn judge_rate(&mut self, rate: Rate, window: u64) {
        let (Phase::SlowStart, Some(last)) = (self.phase, self.round.last_min_rtt) else {
            return;
        };
        let (numerator, denominator) = FULL;
        if !self.trusts_rate || window <= rate.scaled(numerator, denominator).bytes_in(last) {
            return;
        }
        // A queue has to show in what leaves from now on, or this was no bottleneck.
        self.phase = Phase::Conservative {
            baseline: last.saturating_add(threshold(last, Duration::MAX)),
            rounds: 0,
            since: self.last_sent.saturating_add(1),
        };
        self.round.min_rtt = None;
        self.round.samples = 0;
    }

    /// Starts a new round when the old one is acknowledged; true when that ends slow start.
    fn end_round(&mut self, sample: &AckSample<'_>, mtu: u16) -> bool {
        if sample.largest_acked < self.round.window_end {
            return false;
        }
        if self.round.samples < N_RTT_SAMPLE && self.round.is_telling(mtu) {
            self.judge_round(Duration::MAX);
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
        // The partial round in which the phase began counts too.
        let Phase::Conservative { rounds, since, .. } = &mut self.phase else {
            return false;
        };
        if *since > 0 {
            // Packets that left too early do not count.
            self.round.last_min_rtt = ended.min_rtt.or(ended.last_min_rtt);
            if *rounds >= UNASKED_ROUNDS && !ended.is_telling(mtu) {
                return false;
            }
        }
        *rounds += 1;
        let needed = match (*since, has_standing_queue) {
            (0, true) => STANDING_QUEUE_ROUNDS,
            (0, false) => CSS_ROUNDS,
            _ => UNASKED_ROUNDS + ASKED_ROUNDS,
        };
        if *rounds < needed {
            return false;
        }
        self.phase = Phase::Off;
        true
    }

    /// There is no queue: the rate of acknowledgements says nothing on this path.
    fn distrust_rate(&mut self) {
        self.phase = Phase::SlowStart;
        self.trusts_rate = false;
    }

    /// The sender has paused, which empties queues: the next packets say nothing of what came before.
    fn forget_rate(&mut self) {
        if matches!(self.phase, Phase::Conservative { since: 1.., .. }) {
            self.phase = Phase::SlowStart;
            self.round.last_min_rtt = None;
        }
    }
}

/// `RttThresh`, RFC 9406 §4.2.
fn threshold(last: Duration, max: Duration) -> Duration {
    (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, max)
}

/// Samples that a round needs before it is judged. All constants: RFC 9406 §4.3.
const N_RTT_SAMPLE: u32 = 8;
/// Samples that a finished round needs when acknowledgements are few.
///
/// Deviates: RFC 9406 §4.2 judges no round of fewer than eight samples, because it expects one for
/// every other packet. Here the round must have delivered eight datagrams all the same, and it is
/// judged by an eighth of the round-trip time without the upper bound of 16 ms: each sample
/// carries the time that its packet waited behind its own batch.
const N_THINNED_SAMPLE: u32 = 3;
/// No rise smaller than this counts: on short paths it is noise of the hosts.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
/// Rounds of conservative slow start when even the fastest packet of a round took twice as long
/// as the path can do.
///
/// Deviates: RFC 9406 §4.3 recommends five in any case. On short round trips the threshold of 4 ms
/// lets the window come to five times what the path holds before growth slows down, and five
/// rounds more fill a queue of ten times. A rise is not noise when the queue holds more than the
/// path does for all of a round.
const STANDING_QUEUE_ROUNDS: u32 = 2;
/// The same when the rate of acknowledgements has led to conservative slow start: the window is larger
/// than what the path holds. The round in which that was noticed and the next have packets that left
/// before; two in which a queue was there for every packet leave little to find out. With one, jitter
/// of half a round trip ends slow start too early half as often again as without looking at the
/// rate; with two it does not.
const KNOWN_RATE_GROWTH_DIVISOR: u64 = 8;
const UNASKED_ROUNDS: u32 = 2;
const ASKED_ROUNDS: u32 = 2;
/// The window, as a multiple of what the path delivers in a round trip at its fastest, from which on
/// the path must be full. Where it is not it is about one: a window leaves in half a round trip, and the
/// next is twice as large.
const FULL: (u32, u32) = (7, 5);
/// Datagrams that one acknowledgement may add when nothing spreads them over time.
const UNPACED_LIMIT: u64 = 8;

#[cfg(test)]
mod tests;
