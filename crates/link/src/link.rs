//! One direction of a link.

use std::collections::BTreeMap;
use std::time::Duration;

use courser_base::{Rate, Time};

use crate::histogram::Histogram;
use crate::hop::{self, Hop};
use crate::packet::{Packet, TooBig};
use crate::probability::derived;
use crate::spec::{Change, DuplexSpec, LinkSpec};
use crate::stats::{LinkStats, QueueState};

/// One direction of a link.
///
/// [`send`](Link::send) and [`poll`](Link::poll) may be called late. Effects still apply to packets
/// in the order and at the times that follow from the times at which the packets were sent. A time
/// earlier than that of the previous call counts as that time.
#[derive(Debug)]
pub struct Link {
    /// The hops in order, at least one.
    hops: Vec<Hop>,
    seed: u64,
    now: Time,
    max_bytes: u64,
    /// Reports to senders, by the time at which they arrive and a number.
    reports: BTreeMap<(Time, u64), TooBig>,
    answered: u64,
}

impl Link {
    /// Maximum number of packets inside one hop. Packets beyond it are dropped and counted as
    /// overflow.
    pub const MAX_PACKETS: usize = hop::MAX_PACKETS;

    /// Maximum number of payload bytes inside one hop, unless [`Link::set_max_bytes`] sets another
    /// limit. Packets beyond it are dropped and counted as overflow. Enough for 10 Gbit/s over
    /// three seconds.
    pub const MAX_BYTES: u64 = hop::MAX_BYTES;

    /// Maximum number of reports in transit to senders. Further packets that are too large are
    /// dropped without a report, as routers also limit the rate of ICMP messages (RFC 1812
    /// §4.3.2.8).
    pub const MAX_REPORTS: usize = 64;

    /// Creates a link whose random decisions follow from `seed`.
    ///
    /// The size of a queue in BDP is based on twice the delay of the link, unless the specification
    /// has `rtt`.
    pub fn new(spec: &LinkSpec, seed: u64) -> Self {
        Self::with_rtt(spec, seed, spec.total_delay().saturating_mul(2))
    }

    /// Creates a link with a round-trip time for queues in BDP, which the `rtt` of a specification
    /// overrides.
    pub fn with_rtt(spec: &LinkSpec, seed: u64, rtt: Duration) -> Self {
        let hops = spec.hops().enumerate();
        Self {
            hops: hops
                .map(|(at, spec)| Hop::new(spec, seed, at, rtt))
                .collect(),
            seed,
            now: Time::ZERO,
            max_bytes: Self::MAX_BYTES,
            reports: BTreeMap::new(),
            answered: 0,
        }
    }

    /// Limits the payload bytes inside each hop, regardless of delay and rate. Packets beyond the limit
    /// are dropped and counted as overflow.
    pub fn set_max_bytes(&mut self, bytes: u64) {
        self.max_bytes = bytes;
        self.hops
            .iter_mut()
            .for_each(|hop| hop.set_max_bytes(bytes));
    }

    /// Sends a packet into the link.
    pub fn send(&mut self, now: Time, packet: Packet) {
        self.now = self.now.max(now);
        self.enter(0, self.now, packet);
    }

    /// Sends a packet into a hop. Queues a report to the sender if the packet is too large.
    fn enter(&mut self, at: usize, now: Time, packet: Packet) {
        let Some(refused) = self.hops[at].send(now, packet) else {
            return;
        };
        if self.reports.len() < Self::MAX_REPORTS {
            let back: Duration = self.hops[..at].iter().map(Hop::delay).sum();
            self.answered += 1;
            self.reports.insert((now + back, self.answered), refused);
        }
    }

    /// Returns the next report to the sender of a packet that was too large, if it arrives by `now`.
    pub fn poll_report(&mut self, now: Time) -> Option<TooBig> {
        let first = self.reports.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// Returns the time of the next event inside the link, at which [`poll`](Link::poll) or
    /// [`poll_report`](Link::poll_report) may return `Some`. Returns `None` if the link is empty.
    pub fn next_time(&self) -> Option<Time> {
        let report = self.reports.first_key_value().map(|((at, _), _)| *at);
        let packets = self.hops.iter().filter_map(Hop::next_time);
        packets.chain(report).min()
    }

    /// Returns the next packet that leaves by `now`, in the order in which packets leave.
    pub fn poll(&mut self, now: Time) -> Option<Packet> {
        self.poll_with_time(now).map(|(_, packet)| packet)
    }

    /// Returns the next packet as [`poll`](Link::poll) does, with the time at which it leaves.
    pub fn poll_with_time(&mut self, now: Time) -> Option<(Time, Packet)> {
        self.now = self.now.max(now);
        let last = self.hops.len() - 1;
        for at in 0..last {
            while let Some((time, packet)) = self.hops[at].pop(self.now) {
                self.enter(at + 1, time, packet);
            }
        }
        self.hops[last].pop(self.now)
    }

    /// Returns the counters of all hops together.
    pub fn stats(&self) -> LinkStats {
        let first = *self.hops[0].stats();
        let rest = self.hops[1..].iter();
        let stats = rest.fold(first, |stats, hop| stats.then(hop.stats()));
        LinkStats {
            answered: self.answered,
            ..stats
        }
    }

    /// Returns the state of all queues together, at the time of the last call.
    pub fn queue(&self) -> QueueState {
        let mut all = QueueState::default();
        for state in self.hops.iter().map(Hop::queue) {
            all.bytes += state.bytes;
            all.packets += state.packets;
            all.delay += state.delay;
        }
        all
    }

    /// Returns the queueing delays so far, one for each packet and hop with a rate.
    pub fn queue_delays(&self) -> Histogram {
        let mut all = Histogram::new();
        for delays in self.hops.iter().filter_map(Hop::queue_delays) {
            all.add(delays);
        }
        all
    }

    /// Returns the queueing delays and clears them, for figures that exclude the start of a transfer.
    pub fn take_queue_delays(&mut self) -> Histogram {
        let mut all = Histogram::new();
        for delays in self.hops.iter_mut().filter_map(Hop::take_queue_delays) {
            all.add(&delays);
        }
        all
    }

    /// Changes one property of the first hop.
    pub fn change(&mut self, now: Time, change: Change) {
        self.now = self.now.max(now);
        self.hops[0].change(self.now, change);
    }

    /// Changes the rate of the first hop, from the next packet on.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.change(now, Change::Rate(rate));
    }

    /// Replaces the specification. Packets inside stay, and packet numbers continue.
    ///
    /// Times in the schedule still count from [`Time::ZERO`]. Hops that the new specification lacks
    /// forward every packet unchanged.
    pub fn set_spec(&mut self, now: Time, spec: &LinkSpec) {
        self.now = self.now.max(now);
        let rtt = spec.total_delay().saturating_mul(2);
        let nothing = LinkSpec::default();
        let mut specs = spec.hops();
        for hop in &mut self.hops {
            hop.set_spec(self.now, specs.next().unwrap_or(&nothing), rtt);
        }
        for spec in specs {
            let at = self.hops.len();
            let mut hop = Hop::new(spec, self.seed, at, rtt);
            hop.set_max_bytes(self.max_bytes);
            self.hops.push(hop);
        }
    }
}

impl DuplexSpec {
    /// Creates the links of both directions, forward first, with different random numbers from one
    /// seed.
    ///
    /// The size of queues in BDP is based on the delay of both directions together.
    pub fn links(&self, seed: u64) -> (Link, Link) {
        let rtt = self.base_rtt();
        (
            Link::with_rtt(&self.forward, derived(seed, 1), rtt),
            Link::with_rtt(&self.back, derived(seed, 2), rtt),
        )
    }
}

#[cfg(test)]
mod tests;
