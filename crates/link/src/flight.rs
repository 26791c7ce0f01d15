//! Packets in flight: delay, jitter, reordering and aggregation.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use courser_base::Time;

use crate::packet::Packet;
use crate::probability::{Effect, Keyed, scale};
use crate::queue::Numbered;
use crate::spec::Reorder;

/// Packets between the two ends of a hop.
///
/// Packets that stay in order are kept in a queue. Only late ones are sorted.
#[derive(Debug)]
pub(super) struct Flight {
    delay: Duration,
    jitter: Duration,
    reorder: Option<Reorder>,
    aggregate: Option<Duration>,
    jitter_numbers: Keyed,
    reorder_numbers: Keyed,
    in_order: VecDeque<Arrival>,
    late: BinaryHeap<Arrival>,
    /// The arrival of the last packet in order.
    last: Time,
    launched: u64,
    /// Bytes of payload in flight.
    bytes: u64,
}

#[derive(Debug)]
struct Arrival {
    at: Time,
    /// The order of packets that arrive at the same time.
    sequence: u64,
    packet: Packet,
}

impl Flight {
    pub(super) fn new(seed: u64, hop: usize) -> Self {
        Self {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            reorder: None,
            aggregate: None,
            jitter_numbers: Keyed::new(seed, hop, Effect::Jitter),
            reorder_numbers: Keyed::new(seed, hop, Effect::Reorder),
            in_order: VecDeque::new(),
            late: BinaryHeap::new(),
            last: Time::ZERO,
            launched: 0,
            bytes: 0,
        }
    }

    pub(super) fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    pub(super) fn delay(&self) -> Duration {
        self.delay
    }

    pub(super) fn set_jitter(&mut self, jitter: Duration) {
        self.jitter = jitter;
    }

    pub(super) fn set_reorder(&mut self, reorder: Option<Reorder>) {
        self.reorder = reorder;
    }

    pub(super) fn set_aggregate(&mut self, aggregate: Option<Duration>) {
        self.aggregate = aggregate;
    }

    /// Adds a packet that left at `departure`. Returns true if others may overtake it.
    pub(super) fn launch(&mut self, departure: Time, numbered: Numbered) -> bool {
        let Numbered { index, packet } = numbered;
        let at = departure + self.delay + self.jitter_of(index);
        let lateness = self.lateness_of(index);
        self.launched += 1;
        self.bytes += packet.payload.len() as u64;
        let sequence = self.launched;
        match lateness {
            Some(lateness) => {
                let at = self.aggregated(at + lateness);
                self.late.push(Arrival {
                    at,
                    sequence,
                    packet,
                });
                true
            }
            None => {
                self.last = self.last.max(self.aggregated(at));
                let at = self.last;
                self.in_order.push_back(Arrival {
                    at,
                    sequence,
                    packet,
                });
                false
            }
        }
    }

    pub(super) fn next_time(&self) -> Option<Time> {
        let in_order = self.in_order.front().map(|arrival| arrival.at);
        let late = self.late.peek().map(|arrival| arrival.at);
        match (in_order, late) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Returns the next packet that arrives by `now`, with the time of its arrival.
    pub(super) fn pop(&mut self, now: Time) -> Option<(Time, Packet)> {
        let is_late = match (self.in_order.front(), self.late.peek()) {
            // The greatest entry of the heap is the first to arrive.
            (Some(in_order), Some(late)) => late > in_order,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        let arrival = if is_late {
            if self.late.peek()?.at > now {
                return None;
            }
            self.late.pop()?
        } else {
            if self.in_order.front()?.at > now {
                return None;
            }
            self.in_order.pop_front()?
        };
        self.bytes -= arrival.packet.payload.len() as u64;
        Some((arrival.at, arrival.packet))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn packets(&self) -> usize {
        self.in_order.len() + self.late.len()
    }

    /// Returns the time at which the aggregate that includes `at` arrives, or `at` without
    /// aggregation.
    fn aggregated(&self, at: Time) -> Time {
        let period = self.aggregate.unwrap_or_default().as_nanos();
        let period = u64::try_from(period).unwrap_or(u64::MAX);
        if period == 0 {
            return at;
        }
        let next = at.as_nanos().checked_next_multiple_of(period);
        next.map_or(Time::MAX, Time::from_nanos)
    }

    fn jitter_of(&self, index: u64) -> Duration {
        if self.jitter.is_zero() {
            return Duration::ZERO;
        }
        let random = self.jitter_numbers.first(index);
        random_part(self.jitter, random)
    }

    /// Returns the additional delay of packet `index`, at least a nanosecond; `None` if it stays in
    /// order.
    fn lateness_of(&self, index: u64) -> Option<Duration> {
        let rule = self.reorder?;
        let mut numbers = self.reorder_numbers.numbers(index);
        let is_late = rule.probability.decides(numbers.next());
        is_late.then(|| random_part(rule.by, numbers.next()).max(Duration::from_nanos(1)))
    }
}

/// Returns a uniformly random duration from zero to `whole`.
fn random_part(whole: Duration, random: u64) -> Duration {
    let nanos = u64::try_from(whole.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(scale(random, nanos.saturating_add(1)))
}

impl Ord for Arrival {
    /// Orders by arrival, the first one greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Arrival {}

#[cfg(test)]
mod tests;
