//! HyStart++: leaving slow start before the queue overflows, RFC 9406.

use std::time::Duration;

use super::AckSample;

/// The growth of the window in slow start.
///
/// Watches the smallest round-trip time of each round. When it rises, growth slows down for a
/// few rounds (conservative slow start); if it stays up, slow start is over, and if it falls
/// back, the rise was noise. Only the first slow start is watched (RFC 9406 §4.3), and one after
/// the path has become wider.
///
/// Peers that acknowledge a whole batch at once may give fewer samples in a round than the eight
/// that the RFC wants, and slow start would end only with loss. Such a round is judged when it is
/// over, see [`N_THINNED_SAMPLE`].
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    phase: Phase,
    is_paced: bool,
    round: Round,
    last_sent: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    SlowStart,
    /// Conservative slow start: `baseline` is the smallest round-trip time that led here.
    Conservative {
        baseline: Duration,
        rounds: u32,
    },
    /// There was congestion or an exit: any later slow start is the plain one.
    Off,
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

    /// The congestion event was none: goes on from an earlier state.
    pub(super) fn resume(&mut self, earlier: Self) {
        self.phase = earlier.phase;
        self.round = earlier.round;
    }

    /// The path has become another one: its slow start is watched like the first.
    pub(super) fn restart(&mut self) {
        self.phase = Phase::SlowStart;
        self.round = Round {
            window_end: self.last_sent.saturating_add(1),
            ..Round::default()
        };
    }

    /// A congestion event ends the first slow start.
    pub(super) fn on_congestion(&mut self) {
        self.phase = Phase::Off;
    }

    pub(super) fn on_ack(&mut self, sample: &AckSample<'_>, mtu: u16) -> Growth {
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
        // Packets of a half-empty window do not meet a queue of our making.
        if !sample.app_limited
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

    /// RFC 9406 §4.2: `min(N, L * SMSS)`, a quarter of it in conservative slow start.
    fn step(&self, acked: u64, mtu: u16) -> u64 {
        let bytes = if self.is_paced {
            acked
        } else {
            acked.min(UNPACED_LIMIT * u64::from(mtu))
        };
        match self.phase {
            Phase::Conservative { .. } => bytes / CSS_GROWTH_DIVISOR,
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
                let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, max_threshold);
                if min >= last.saturating_add(threshold) {
                    self.phase = Phase::Conservative {
                        baseline: min,
                        rounds: 0,
                    };
                }
            }
            Phase::Conservative { baseline, .. } if min < baseline => {
                self.phase = Phase::SlowStart;
            }
            Phase::Conservative { .. } | Phase::Off => {}
        }
    }

    /// Starts a new round when the old one is acknowledged; true when that ends slow start.
    fn end_round(&mut self, sample: &AckSample<'_>, mtu: u16) -> bool {
        if sample.largest_acked < self.round.window_end {
            return false;
        }
        let is_thinned = (N_THINNED_SAMPLE..N_RTT_SAMPLE).contains(&self.round.samples);
        if is_thinned && self.round.acked >= u64::from(N_RTT_SAMPLE) * u64::from(mtu) {
            self.judge_round(Duration::MAX);
        }
        let standing = sample.rtt.min().saturating_mul(2);
        let has_standing_queue = self.round.min_rtt.is_some_and(|min| min >= standing);
        self.round = Round {
            window_end: self.last_sent.saturating_add(1),
            min_rtt: None,
            last_min_rtt: self.round.min_rtt,
            samples: 0,
            acked: 0,
        };
        // The partial round in which the phase began counts too.
        if let Phase::Conservative { rounds, .. } = &mut self.phase {
            *rounds += 1;
            let needed = if has_standing_queue {
                STANDING_QUEUE_ROUNDS
            } else {
                CSS_ROUNDS
            };
            if *rounds >= needed {
                self.phase = Phase::Off;
                return true;
            }
        }
        false
    }
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
/// Datagrams that one acknowledgement may add when nothing spreads them over time.
const UNPACED_LIMIT: u64 = 8;

#[cfg(test)]
mod tests;
