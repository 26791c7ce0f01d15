//! A bottleneck: rate, queue and queue management.

use std::time::Duration;

use courser_base::{Ecn, Rate, Time};

use crate::codel::{CoDel, CoDelDecision};
use crate::histogram::Histogram;
use crate::queue::{Limit, Numbered, Queue, Waiting};
use crate::spec::Aqm;
use crate::stats::{LinkStats, QueueState};
use crate::transmitter::Transmitter;

/// A queue that a transmitter drains at a rate.
#[derive(Debug)]
pub(super) struct Bottleneck {
    transmitter: Transmitter,
    queue: Queue,
    management: Management,
    /// The size of the largest packet so far. CoDel and the step do not act on a queue of one
    /// packet.
    largest: u64,
    delays: Histogram,
}

/// Active queue management with its state.
#[derive(Debug)]
enum Management {
    None,
    CoDel { codel: CoDel, ecn: bool },
    L4s { step: Duration, codel: CoDel },
}

/// The decision about the packet at the head of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Pass,
    Mark,
    Drop,
}

impl Bottleneck {
    pub(super) fn new(rate: Rate, limit: Limit, aqm: Aqm) -> Self {
        Self {
            transmitter: Transmitter::new(rate),
            queue: Queue::new(limit),
            management: Management::new(aqm),
            largest: 0,
            delays: Histogram::new(),
        }
    }

    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.transmitter.set_rate(rate);
    }

    /// Replaces rate, limit and management. Packets in the queue stay.
    pub(super) fn set_rule(&mut self, rate: Rate, limit: Limit, aqm: Aqm) {
        self.transmitter.set_rate(rate);
        self.queue.set_limit(limit);
        self.management = Management::new(aqm);
    }

    /// Adds a packet of `size` bytes. Returns false if the queue is full and drops it.
    ///
    /// The caller must first remove the packets whose transmission could have started by `now`.
    pub(super) fn push(&mut self, now: Time, size: u64, numbered: Numbered) -> bool {
        let is_idle = self.queue.packets() == 0 && self.transmitter.free_at() <= now;
        if !is_idle && !self.queue.has_room(size) {
            return false;
        }
        self.largest = self.largest.max(size);
        self.queue.push(Waiting {
            since: now,
            size,
            numbered,
        });
        true
    }

    /// Returns the time at which the next transmission starts.
    pub(super) fn next_time(&self) -> Option<Time> {
        let since = self.queue.head_since()?;
        Some(since.max(self.transmitter.free_at()))
    }

    /// Removes the packet whose transmission starts at `now`, which is [`Bottleneck::next_time`].
    /// Returns it with the time at which the transmission ends.
    ///
    /// Returns `None` if queue management drops the whole queue.
    pub(super) fn pop(&mut self, now: Time, stats: &mut LinkStats) -> Option<(Time, Numbered)> {
        loop {
            let Some(mut head) = self.queue.pop() else {
                self.management.on_empty();
                return None;
            };
            let sojourn = now - head.since;
            let is_last = self.queue.bytes() <= self.largest;
            let mark = head.numbered.packet.ecn;
            match self.management.decide(now, sojourn, is_last, mark) {
                Fate::Drop => {
                    stats.dropped.aqm += 1;
                    continue;
                }
                Fate::Mark => {
                    stats.marked += u64::from(mark != Ecn::Ce);
                    head.numbered.packet.ecn = Ecn::Ce;
                }
                Fate::Pass => {}
            }
            self.delays.record(sojourn);
            let left = self.transmitter.send(now, head.size);
            return Some((left, head.numbered));
        }
    }

    pub(super) fn state(&self, now: Time) -> QueueState {
        let bytes = self.queue.bytes();
        let leaving = self.transmitter.free_at() - now;
        QueueState {
            bytes,
            packets: self.queue.packets(),
            delay: leaving + self.transmitter.rate().time_for(bytes),
        }
    }

    #[cfg(test)]
    pub(super) fn rate(&self) -> Rate {
        self.transmitter.rate()
    }

    /// Returns the number of packets in the queue.
    pub(super) fn packets(&self) -> usize {
        self.queue.len()
    }

    /// Returns the bytes in the queue, headers included.
    pub(super) fn bytes(&self) -> u64 {
        self.queue.bytes()
    }

    pub(super) fn delays(&self) -> &Histogram {
        &self.delays
    }

    pub(super) fn take_delays(&mut self) -> Histogram {
        std::mem::take(&mut self.delays)
    }
}

impl Management {
    fn new(aqm: Aqm) -> Self {
        match aqm {
            Aqm::DropTail => Self::None,
            Aqm::CoDel {
                target,
                interval,
                ecn,
            } => Self::CoDel {
                codel: CoDel::new(target, interval),
                ecn,
            },
            Aqm::L4s {
                step,
                target,
                interval,
            } => Self::L4s {
                step,
                codel: CoDel::new(target, interval),
            },
        }
    }

    fn on_empty(&mut self) {
        match self {
            Self::None => {}
            Self::CoDel { codel, .. } | Self::L4s { codel, .. } => codel.on_empty(),
        }
    }

    fn decide(&mut self, now: Time, sojourn: Duration, is_last: bool, mark: Ecn) -> Fate {
        match self {
            Self::None => Fate::Pass,
            // Marking starts at a step, without a ramp, as in the L queue of RFC 9332 appendix A.1.
            // A queue of one packet is not marked, as there.
            Self::L4s { step, .. } if mark == Ecn::Ect1 => {
                if sojourn > *step && !is_last {
                    Fate::Mark
                } else {
                    Fate::Pass
                }
            }
            Self::L4s { codel, .. } => signal(codel.decide(now, sojourn, is_last), true, mark),
            Self::CoDel { codel, ecn } => signal(codel.decide(now, sojourn, is_last), *ecn, mark),
        }
    }
}

fn signal(decision: CoDelDecision, marks: bool, mark: Ecn) -> Fate {
    match decision {
        CoDelDecision::Pass => Fate::Pass,
        CoDelDecision::Signal if marks && mark != Ecn::NotEct => Fate::Mark,
        CoDelDecision::Signal => Fate::Drop,
    }
}

#[cfg(test)]
mod tests;
