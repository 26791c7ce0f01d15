//! Links made of stacked effects: rate, delay, loss, queues and all that real paths do.
//!
//! A [`Link`] is one direction. It has no clock: time is handed in, and all that happens follows
//! from the [`LinkSpec`], the seed and what was sent when.
//!
//! ```
//! use courser_base::{Ecn, Time};
//! use courser_sim::link::{Link, LinkSpec};
//! use courser_sim::packet::Packet;
//!
//! let spec: LinkSpec = "10mbit,40ms,queue=25p".parse()?;
//! let mut link = Link::new(&spec, 7);
//! link.send(Time::ZERO, Packet {
//!     source: ([10, 0, 0, 1], 1).into(),
//!     destination: ([10, 0, 0, 2], 2).into(),
//!     ecn: Ecn::Ect0,
//!     payload: vec![0; 1222].into(),
//! });
//! // 1250 bytes with headers take 1 ms at 10 Mbit/s, and 40 ms on the way.
//! assert!(link.poll(Time::from_nanos(40_999_999)).is_none());
//! assert!(link.poll(Time::from_nanos(41_000_000)).is_some());
//! # Ok::<(), courser_sim::link::SpecError>(())
//! ```

use std::time::Duration;

use courser_base::{Rate, Time};

use crate::packet::Packet;
use hop::Hop;

pub use histogram::Histogram;
pub use nat::Nat;
pub use spec::{
    Aqm, Blackhole, Change, DropList, DuplexSpec, Gilbert, LinkSpec, NatSpec, Policer, Probability,
    QueueLimit, Remark, RemarkTo, Reorder, Repeated, SpecError, Step,
};
pub use stats::{Dropped, LinkStats, QueueState};

mod blackhole;
mod bottleneck;
mod codel;
mod flight;
mod gilbert;
mod histogram;
mod hop;
mod loss;
mod nat;
mod payload;
mod policer;
mod probability;
mod queue;
mod remark;
pub(crate) mod spec;
mod stats;
mod transmitter;

/// One direction of a link.
///
/// [`send`](Link::send) and [`poll`](Link::poll) may be called late: packets still meet the
/// effects, and leave, in the order and at the times that follow from when they were sent. A
/// time earlier than one before counts as that one.
#[derive(Debug)]
pub struct Link {
    /// At least one.
    hops: Vec<Hop>,
    seed: u64,
    now: Time,
}

impl Link {
    /// Most packets inside one stretch at once; more are dropped and counted as overflow.
    pub const MAX_PACKETS: usize = 1 << 20;

    /// A link as specified, that decides everything from this seed.
    ///
    /// A queue in BDP is for twice the delay of the link, unless the specification has `rtt`.
    pub fn new(spec: &LinkSpec, seed: u64) -> Self {
        Self::with_rtt(spec, seed, spec.total_delay().saturating_mul(2))
    }

    /// The same with a round-trip time for queues in BDP, unless the specification has `rtt`.
    pub fn with_rtt(spec: &LinkSpec, seed: u64, rtt: Duration) -> Self {
        let hops = spec.hops().enumerate();
        Self {
            hops: hops
                .map(|(at, spec)| Hop::new(spec, seed, at, rtt))
                .collect(),
            seed,
            now: Time::ZERO,
        }
    }

    /// A packet enters.
    pub fn send(&mut self, now: Time, packet: Packet) {
        self.now = self.now.max(now);
        self.hops[0].send(self.now, packet);
    }

    /// When [`poll`](Link::poll) has something new to do or to give; `None`: the link is empty.
    pub fn next_time(&self) -> Option<Time> {
        self.hops.iter().filter_map(Hop::next_time).min()
    }

    /// The next packet that leaves by `now`, in order of leaving.
    pub fn poll(&mut self, now: Time) -> Option<Packet> {
        self.poll_with_time(now).map(|(_, packet)| packet)
    }

    /// The same, with the time when it leaves, which is not later than `now`.
    pub fn poll_with_time(&mut self, now: Time) -> Option<(Time, Packet)> {
        self.now = self.now.max(now);
        let last = self.hops.len() - 1;
        for at in 0..last {
            while let Some((time, packet)) = self.hops[at].pop(self.now) {
                self.hops[at + 1].send(time, packet);
            }
        }
        self.hops[last].pop(self.now)
    }

    /// What the link has done so far.
    pub fn stats(&self) -> LinkStats {
        let first = *self.hops[0].stats();
        let rest = self.hops[1..].iter();
        rest.fold(first, |stats, hop| stats.then(hop.stats()))
    }

    /// What waits for the rate now, over all stretches, as of the last call.
    pub fn queue(&self) -> QueueState {
        let mut all = QueueState::default();
        for state in self.hops.iter().map(Hop::queue) {
            all.bytes += state.bytes;
            all.packets += state.packets;
            all.delay += state.delay;
        }
        all
    }

    /// How long packets have waited for the rate so far, for each stretch with a rate.
    pub fn queue_delays(&self) -> Histogram {
        let mut all = Histogram::new();
        for delays in self.hops.iter().filter_map(Hop::queue_delays) {
            all.add(delays);
        }
        all
    }

    /// The same, and begins anew: for figures that leave out how a transfer begins.
    pub fn take_queue_delays(&mut self) -> Histogram {
        let mut all = Histogram::new();
        for delays in self.hops.iter_mut().filter_map(Hop::take_queue_delays) {
            all.add(&delays);
        }
        all
    }

    /// Changes one thing on the first stretch.
    pub fn change(&mut self, now: Time, change: Change) {
        self.now = self.now.max(now);
        self.hops[0].change(self.now, change);
    }

    /// Changes the rate of the first stretch, from the next packet on.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.change(now, Change::Rate(rate));
    }

    /// Makes it another link; packets inside stay, and packet numbers go on.
    ///
    /// Times in the schedule still count from [`Time::ZERO`]. Stretches that the new
    /// specification lacks let everything pass.
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
            self.hops.push(Hop::new(spec, self.seed, at, rtt));
        }
    }
}

/// Bytes of a packet on the wire: payload, UDP header, and IPv4 (20) or IPv6 (40) header.
fn wire_size(packet: &Packet) -> u64 {
    let headers = if packet.destination.is_ipv4() { 28 } else { 48 };
    packet.payload.len() as u64 + headers
}

#[cfg(test)]
mod tests;
