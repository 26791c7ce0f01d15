//! Links made of stacked effects: rate, delay, loss, queues and all that real paths do.
//!
//! A [`Link`] is one direction. It has no clock: time is handed in, and all that happens follows
//! from the [`LinkSpec`], the seed and what was sent when.
//!
//! ```
//! use courser_base::{Ecn, Time};
//! use courser_link::{Link, LinkSpec};
//! use courser_link::packet::Packet;
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
//! # Ok::<(), courser_link::SpecError>(())
//! ```

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::time::Duration;

use courser_base::{Rate, Time};

use crate::packet::{Packet, TooBig};
use hop::Hop;

pub use histogram::Histogram;
pub use nat::Nat;
pub use spec::{
    Aqm, Blackhole, Change, DropList, DuplexSpec, Gilbert, LinkSpec, Mtu, NatSpec, Policer,
    Probability, QueueLimit, Remark, RemarkTo, Reorder, Repeated, SpecError, Step,
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
pub mod packet;
mod payload;
mod policer;
mod probability;
mod queue;
mod remark;
pub mod seed;
pub mod spec;
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
    max_bytes: u64,
    /// What senders are told, by when it is there; a number keeps those of one time apart.
    answers: BTreeMap<(Time, u64), TooBig>,
    answered: u64,
}

impl Link {
    /// Most packets inside one stretch at once; more are dropped and counted as overflow.
    pub const MAX_PACKETS: usize = 1 << 20;

    /// Most bytes of payload inside one stretch at once, unless [`Link::set_max_bytes`] says
    /// otherwise; packets beyond are dropped and counted as overflow. Enough for 10 Gbit/s over
    /// three seconds.
    pub const MAX_BYTES: u64 = 4 << 30;

    /// Words to senders under way at once; more are not said, as routers limit them too
    /// (RFC 1812 §4.3.2.8).
    pub const MAX_ANSWERS: usize = 64;

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
            max_bytes: Self::MAX_BYTES,
            answers: BTreeMap::new(),
            answered: 0,
        }
    }

    /// Limits what each stretch holds to so many bytes of payload, whatever delay and rate ask
    /// for; what is beyond is dropped and counted as overflow.
    pub fn set_max_bytes(&mut self, bytes: u64) {
        self.max_bytes = bytes;
        self.hops
            .iter_mut()
            .for_each(|hop| hop.set_max_bytes(bytes));
    }

    /// A packet enters.
    pub fn send(&mut self, now: Time, packet: Packet) {
        self.now = self.now.max(now);
        self.enter(0, self.now, packet);
    }

    /// A packet enters a stretch, or its sender is told why it does not.
    fn enter(&mut self, at: usize, now: Time, packet: Packet) {
        let Some(refused) = self.hops[at].send(now, packet) else {
            return;
        };
        if self.answers.len() < Self::MAX_ANSWERS {
            let back: Duration = self.hops[..at].iter().map(Hop::delay).sum();
            self.answered += 1;
            self.answers.insert((now + back, self.answered), refused);
        }
    }

    /// The next word to a sender whose packet was too large, that is there by `now`.
    pub fn poll_answer(&mut self, now: Time) -> Option<TooBig> {
        let first = self.answers.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// When [`poll`](Link::poll) or [`poll_answer`](Link::poll_answer) has something new to do or
    /// to give; `None`: the link is empty.
    pub fn next_time(&self) -> Option<Time> {
        let answer = self.answers.first_key_value().map(|((at, _), _)| *at);
        let packets = self.hops.iter().filter_map(Hop::next_time);
        packets.chain(answer).min()
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
                self.enter(at + 1, time, packet);
            }
        }
        self.hops[last].pop(self.now)
    }

    /// What the link has done so far.
    pub fn stats(&self) -> LinkStats {
        let first = *self.hops[0].stats();
        let rest = self.hops[1..].iter();
        let stats = rest.fold(first, |stats, hop| stats.then(hop.stats()));
        LinkStats {
            answered: self.answered,
            ..stats
        }
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
            let mut hop = Hop::new(spec, self.seed, at, rtt);
            hop.set_max_bytes(self.max_bytes);
            self.hops.push(hop);
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
