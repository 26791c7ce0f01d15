//! One hop of a link: all effects of one specification, in their order.

use std::time::Duration;

use courser_base::{Rate, Time};

use crate::blackhole::is_in_blackhole;
use crate::bottleneck::Bottleneck;
use crate::flight::Flight;
use crate::gilbert::Channel;
use crate::histogram::Histogram;
use crate::loss::Chance;
use crate::packet::{Packet, TooBig};
use crate::payload::{corrupted, extended, is_version_negotiation, truncated};
use crate::policer::Bucket;
use crate::probability::{Effect, Keyed, Numbers, Probability};
use crate::queue::{Limit, Numbered};
use crate::remark::Remarker;
use crate::spec::{Blackhole, Change, DropList, LinkSpec, Mtu, QueueLimit, Repeated, Step};
use crate::stats::{LinkStats, QueueState};

/// A hop with its state.
#[derive(Debug)]
pub(super) struct Hop {
    randomness: HopSeed,
    /// The number of packets that arrived so far.
    index: u64,
    /// The latest time that a caller passed.
    now: Time,
    effects: Effects,
    bottleneck: Option<Bottleneck>,
    flight: Flight,
    /// Scheduled changes, the next one last.
    steps: Vec<Step>,
    stats: LinkStats,
    max_bytes: u64,
}

/// The seed of the link and the index of the hop, which determine the random numbers of the hop.
#[derive(Clone, Copy, Debug)]
struct HopSeed {
    seed: u64,
    hop: usize,
}

/// The effects that apply to packets on arrival.
#[derive(Debug)]
struct Effects {
    blackhole: Option<Blackhole>,
    mtu: Option<Mtu>,
    drop: DropList,
    every: Option<u64>,
    loss: Chance,
    gilbert: Option<Channel>,
    corrupt: Option<Chance>,
    truncate: Probability,
    extend: Probability,
    duplicate: Probability,
    remark: Option<Remarker>,
    policer: Option<Bucket>,
}

impl Hop {
    /// Creates a hop. `rtt` is the round-trip time for queue limits in BDP unless the specification
    /// has one.
    pub(super) fn new(spec: &LinkSpec, seed: u64, hop: usize, rtt: Duration) -> Self {
        let randomness = HopSeed { seed, hop };
        let mut new = Self {
            randomness,
            index: 0,
            now: Time::ZERO,
            effects: Effects::new(spec, randomness),
            bottleneck: None,
            flight: Flight::new(seed, hop),
            steps: Vec::new(),
            stats: LinkStats::default(),
            max_bytes: MAX_BYTES,
        };
        new.set_spec(Time::ZERO, spec, rtt);
        new
    }

    /// Replaces the specification. Packets inside keep their times.
    pub(super) fn set_spec(&mut self, now: Time, spec: &LinkSpec, rtt: Duration) {
        self.advance(now);
        self.effects = Effects::new(spec, self.randomness);
        self.flight.set_delay(spec.one_way_delay());
        self.flight.set_jitter(spec.jitter);
        self.flight.set_reorder(spec.reorder);
        self.flight.set_aggregate(spec.aggregate);
        self.steps = spec.steps.clone();
        self.steps.sort_by_key(|step| std::cmp::Reverse(step.at));
        // Of several changes at the same time, the last in the specification applies.
        reverse_ties(&mut self.steps);
        let limit = limit(spec, rtt);
        match (&mut self.bottleneck, spec.rate) {
            (Some(bottleneck), Some(rate)) => bottleneck.set_rule(rate, limit, spec.aqm),
            // Without a rate the queue drains as fast as possible.
            (Some(bottleneck), None) => bottleneck.set_rule(UNLIMITED, limit, spec.aqm),
            (none, Some(rate)) => *none = Some(Bottleneck::new(rate, limit, spec.aqm)),
            (None, None) => {}
        }
        self.advance(now);
    }

    pub(super) fn set_max_bytes(&mut self, bytes: u64) {
        self.max_bytes = bytes;
    }

    /// Returns the delay of packets that leave now, without jitter and reordering.
    pub(super) fn delay(&self) -> Duration {
        self.flight.delay()
    }

    /// Changes one property of the hop from `now` on.
    pub(super) fn change(&mut self, now: Time, change: Change) {
        self.advance(now);
        self.apply(change);
    }

    /// Receives a packet. Returns a report to its sender if it was too large.
    pub(super) fn send(&mut self, now: Time, mut packet: Packet) -> Option<TooBig> {
        self.advance(now);
        let now = self.now;
        self.index += 1;
        self.stats.packets_in += 1;
        self.stats.bytes_in += packet.payload.len() as u64;
        let index = self.index;
        let dropped_before = self.stats.dropped.mtu;
        if self.effects.drops(now, index, &packet, &mut self.stats) {
            let is_too_large = self.stats.dropped.mtu > dropped_before;
            let mtu = self.effects.mtu.filter(|mtu| is_too_large && mtu.answers)?;
            return Some(TooBig {
                packet,
                mtu: mtu.bytes,
            });
        }
        let randomness = self.randomness;
        self.effects
            .alter(randomness, index, &mut packet, &mut self.stats);
        if let Some(remark) = &self.effects.remark {
            let mark = remark.apply(now, index, packet.ecn);
            self.stats.remarked += u64::from(mark != packet.ecn);
            packet.ecn = mark;
        }
        if randomness.decides(Effect::Duplicate, self.effects.duplicate, index) {
            self.stats.duplicated += 1;
            self.enter(
                now,
                Numbered {
                    index,
                    packet: packet.clone(),
                },
            );
            // The copy has a number that the count of packets never reaches.
            let index = index | 1 << 63;
            self.enter(now, Numbered { index, packet });
        } else {
            self.enter(now, Numbered { index, packet });
        }
        None
    }

    /// Returns the time of the next departure from the queue or arrival at the far end.
    pub(super) fn next_time(&self) -> Option<Time> {
        let arrival = self.flight.next_time();
        let departure = self.bottleneck.as_ref().and_then(Bottleneck::next_time);
        match (arrival, departure) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Returns the next packet that arrives at the far end by `now`, with the time of its arrival.
    pub(super) fn pop(&mut self, now: Time) -> Option<(Time, Packet)> {
        self.advance(now);
        let (at, packet) = self.flight.pop(now)?;
        self.stats.packets_out += 1;
        self.stats.bytes_out += packet.payload.len() as u64;
        self.stats.wire_bytes_out += packet.wire_size();
        Some((at, packet))
    }

    pub(super) fn stats(&self) -> &LinkStats {
        &self.stats
    }

    pub(super) fn queue(&self) -> QueueState {
        let state = |bottleneck: &Bottleneck| bottleneck.state(self.now);
        self.bottleneck.as_ref().map(state).unwrap_or_default()
    }

    pub(super) fn queue_delays(&self) -> Option<&Histogram> {
        self.bottleneck.as_ref().map(Bottleneck::delays)
    }

    pub(super) fn take_queue_delays(&mut self) -> Option<Histogram> {
        self.bottleneck.as_mut().map(Bottleneck::take_delays)
    }

    /// Processes everything that is due, each event at its own time.
    fn advance(&mut self, now: Time) {
        while let Some(bottleneck) = &self.bottleneck
            && let Some(time) = bottleneck.next_time().filter(|time| *time <= now)
        {
            self.apply_steps(time);
            let bottleneck = self.bottleneck.as_mut();
            if let Some((left, numbered)) = bottleneck.and_then(|b| b.pop(time, &mut self.stats)) {
                self.launch(left, numbered);
            }
        }
        self.apply_steps(now);
        self.now = self.now.max(now);
    }

    fn apply_steps(&mut self, now: Time) {
        let elapsed = now - Time::ZERO;
        while let Some(step) = self.steps.pop_if(|step| step.at <= elapsed) {
            self.apply(step.change);
        }
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Rate(rate) => match &mut self.bottleneck {
                Some(bottleneck) => bottleneck.set_rate(rate),
                None => {
                    let limit = Limit::Bytes(rate.bytes_in(DEFAULT_QUEUE));
                    self.bottleneck = Some(Bottleneck::new(rate, limit, Default::default()));
                }
            },
            Change::Delay(delay) => self.flight.set_delay(delay),
            Change::Jitter(jitter) => self.flight.set_jitter(jitter),
            Change::Loss(rule) => self.effects.loss.set_rule(rule),
            Change::Mtu(mtu) => self.effects.mtu = Some(mtu),
            Change::Policer(rule) => self.effects.policer = Some(Bucket::new(rule)),
        }
    }

    /// Passes a packet that was not dropped to the policer and the queue.
    fn enter(&mut self, now: Time, numbered: Numbered) {
        let size = numbered.packet.wire_size();
        if let Some(policer) = &mut self.effects.policer
            && !policer.admits(now, size)
        {
            self.stats.dropped.policer += 1;
            return;
        }
        let len = numbered.packet.payload.len() as u64;
        if self.packets() >= MAX_PACKETS || self.bytes() + len > self.max_bytes {
            self.stats.dropped.overflow += 1;
            return;
        }
        let Some(bottleneck) = &mut self.bottleneck else {
            self.launch(now, numbered);
            return;
        };
        if !bottleneck.push(now, size, numbered) {
            self.stats.dropped.queue_full += 1;
            return;
        }
        // If no packet is being transmitted, the transmission of this one starts at once.
        self.advance(now);
        let waiting = self.queue();
        self.stats.max_queue_bytes = self.stats.max_queue_bytes.max(waiting.bytes);
        self.stats.max_queue_packets = self.stats.max_queue_packets.max(waiting.packets);
    }

    fn launch(&mut self, departure: Time, numbered: Numbered) {
        let is_late = self.flight.launch(departure, numbered);
        self.stats.reordered += u64::from(is_late);
    }

    fn bytes(&self) -> u64 {
        let waiting = self.bottleneck.as_ref().map_or(0, Bottleneck::bytes);
        self.flight.bytes() + waiting
    }

    fn packets(&self) -> usize {
        let waiting = self.bottleneck.as_ref().map_or(0, Bottleneck::packets);
        self.flight.packets() + waiting
    }
}

impl Effects {
    fn new(spec: &LinkSpec, randomness: HopSeed) -> Self {
        let HopSeed { seed, hop } = randomness;
        let never = Repeated::independent(Probability::NEVER);
        let loss = spec.loss.unwrap_or(never);
        let corrupt = |rule| Chance::new(rule, seed, hop, Effect::Corrupt);
        Self {
            blackhole: spec.blackhole,
            mtu: spec.mtu,
            drop: spec.drop.clone(),
            every: spec.every.map(|every| every.max(1)),
            loss: Chance::new(loss, seed, hop, Effect::Loss),
            gilbert: spec.gilbert.map(|rule| Channel::new(rule, seed, hop)),
            corrupt: spec.corrupt.map(corrupt),
            truncate: spec.truncate,
            extend: spec.extend,
            duplicate: spec.duplicate,
            remark: spec.ecn.map(|rule| Remarker::new(rule, seed, hop)),
            policer: spec.policer.map(Bucket::new),
        }
    }

    /// Returns true if the packet is lost, and counts the first reason.
    fn drops(&mut self, now: Time, index: u64, packet: &Packet, stats: &mut LinkStats) -> bool {
        let dropped = &mut stats.dropped;
        // Effects with state count every packet, including those that others drop.
        let by_chance = self.loss.hits(index);
        let in_burst = self
            .gilbert
            .as_mut()
            .is_some_and(|channel| channel.drops(index));
        let is_in_blackhole_now = self
            .blackhole
            .is_some_and(|hole| is_in_blackhole(&hole, now));
        let is_too_large = self
            .mtu
            .is_some_and(|mtu| packet.wire_size() > u64::from(mtu.bytes));
        let counter = if is_in_blackhole_now {
            &mut dropped.blackhole
        } else if is_too_large {
            &mut dropped.mtu
        } else if self.drop.contains(index) {
            &mut dropped.listed
        } else if self.every.is_some_and(|every| index.is_multiple_of(every)) {
            &mut dropped.every
        } else if by_chance {
            &mut dropped.loss
        } else if in_burst {
            &mut dropped.gilbert
        } else {
            return false;
        };
        *counter += 1;
        true
    }

    /// Corrupts, truncates and extends the payload.
    fn alter(
        &mut self,
        randomness: HopSeed,
        index: u64,
        packet: &mut Packet,
        stats: &mut LinkStats,
    ) {
        let payload = &mut packet.payload;
        if let Some(corrupt) = &mut self.corrupt
            && corrupt.hits(index)
            && !payload.is_empty()
            && !is_version_negotiation(payload)
        {
            *payload = corrupted(payload, randomness.numbers(Effect::Corrupt, index));
            stats.corrupted += 1;
        }
        if randomness.decides(Effect::Truncate, self.truncate, index) && payload.len() > 1 {
            *payload = truncated(payload, randomness.numbers(Effect::Truncate, index));
            stats.truncated += 1;
        }
        if randomness.decides(Effect::Extend, self.extend, index) {
            *payload = extended(payload, randomness.numbers(Effect::Extend, index));
            stats.extended += 1;
        }
    }
}

impl HopSeed {
    fn decides(self, effect: Effect, chance: Probability, index: u64) -> bool {
        chance > Probability::NEVER
            && chance.decides(Keyed::new(self.seed, self.hop, effect).first(index))
    }

    /// Returns random numbers for the details of an effect that was chosen for a packet.
    fn numbers(self, effect: Effect, index: u64) -> Numbers {
        Keyed::new(self.seed, self.hop, effect).numbers(index)
    }
}

/// Returns the limit of the queue in bytes or packets.
fn limit(spec: &LinkSpec, rtt: Duration) -> Limit {
    match (spec.queue, spec.queue_bytes(rtt)) {
        (Some(QueueLimit::Packets(packets)), _) => Limit::Packets(packets),
        (_, Some(bytes)) => Limit::Bytes(bytes),
        (_, None) => Limit::Bytes(u64::MAX),
    }
}

fn reverse_ties(steps: &mut [Step]) {
    for ties in steps.chunk_by_mut(|a, b| a.at == b.at) {
        ties.reverse();
    }
}

/// The value of [`Link::MAX_PACKETS`](crate::Link::MAX_PACKETS).
pub(super) const MAX_PACKETS: usize = 1 << 20;

/// The value of [`Link::MAX_BYTES`](crate::Link::MAX_BYTES).
pub(super) const MAX_BYTES: u64 = 4 << 30;

/// The length of a queue that a change of rate creates, in time at that rate.
const DEFAULT_QUEUE: Duration = Duration::from_millis(100);

/// A rate at which the largest packet takes a nanosecond.
const UNLIMITED: Rate = Rate::from_bytes_per_second(65_575_000_000_000);

#[cfg(test)]
mod tests;
