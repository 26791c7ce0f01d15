//! What one direction of a link does, as data.

use std::time::Duration;

use courser_base::Rate;

use super::drop_list::DropList;
use super::parts::{
    Aqm, Blackhole, Gilbert, Mtu, Policer, QueueLimit, Remark, Reorder, Repeated, Step,
};
use crate::probability::Probability;

/// What one direction of a link does to the packets on it.
///
/// Written as text, the fields stand in any order between commas: `20mbit,40ms,1%,queue=64k`.
/// A rate, a delay and a loss need no name. In TOML the same text is a string, or each field is
/// a key of a table: `{ rate = "20mbit", delay = "40ms", drop = [1, 3, 7] }`.
///
/// | field | text | effect |
/// |---|---|---|
/// | `rate` | `20mbit`, `1.5gbit` | serialisation; 28 (IPv4) or 48 (IPv6) bytes of headers count |
/// | `delay` | `40ms`, `250us` | one way |
/// | `rtt` | `80ms` | delay of half as much each way, unless `delay` says otherwise |
/// | `jitter` | `5ms` | up to so much more delay; order is kept |
/// | `loss` | `1%`, `30%:3` | random; with `:N` the packet after N drops in a row passes |
/// | `gilbert` | `0.5%:20%:100%:0%` | bursts: to bad, to good, loss in bad, loss in good |
/// | `drop` | `1,3,7`, `2-7` | exactly these, counted from 1 |
/// | `first` | `3` | `drop` from 1 to so many |
/// | `mask` | `0b101`, `0x5` | `drop` by bits, the lowest bit is packet 1 |
/// | `every` | `100` | each 100th |
/// | `reorder` | `5%:25ms` | these are late by up to so much, others pass them |
/// | `duplicate` | `1%` | twice |
/// | `corrupt` | `2%`, `30%:3` | one of the first 50 bytes changes; never Version Negotiation |
/// | `truncate` | `1%` | a random part of the end is missing |
/// | `extend` | `1%` | up to 32 random bytes more |
/// | `queue` | `64k`, `25p`, `100ms`, `1bdp` | what may wait; bytes, packets, time at the rate, BDP |
/// | `aqm` | `codel`, `codel-ecn`, `l4s` | when the queue drops or marks before it is full |
/// | `target`, `interval` | `5ms`, `100ms` | of CoDel |
/// | `step` | `1ms` | from which delay on `l4s` marks ECT(1) |
/// | `policer` | `10mbit:64k` | drops what a token bucket has no tokens for |
/// | `ecn` | `bleach`, `ce:5%`, `swap@1s` | changes marks |
/// | `mtu` | `1280`, `1280/icmp` | larger IP packets vanish; with `/icmp` their sender is told |
/// | `blackhole` | `5s:2s`, `5s:2s:30s` | from when, for how long, how often |
/// | `rate@10s` | `5mbit` | from then on; also `delay@`, `jitter@`, `loss@`, `mtu@`, `policer@` |
///
/// `|` puts another link behind: `100mbit,queue=20p | 20mbit,40ms,aqm=codel`.
///
/// A packet meets the effects in this order: blackhole, MTU, exact drops, loss, changed bytes,
/// changed marks, duplication, policer, queue and rate, delay with jitter and reordering.
/// The word about a packet that is too large comes from the entrance of its stretch, and takes as
/// long to the sender as packets take from there, rates not counted: at once from the first
/// stretch, after 20 ms from the second in `20ms | 1ms,mtu=1400/icmp`.
/// Times in a schedule count from [`Time::ZERO`](courser_base::Time::ZERO).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinkSpec {
    /// How fast packets leave; `None`: at once.
    pub rate: Option<Rate>,
    /// Time on the way, after the last byte left; `None`: half of `rtt`, or nothing.
    pub delay: Option<Duration>,
    /// Round-trip time that a queue in BDP is meant for; `None`: twice the delay.
    pub rtt: Option<Duration>,
    /// Up to so much is added to the delay of each packet. Packets do not pass each other.
    pub jitter: Duration,
    /// Random loss.
    pub loss: Option<Repeated>,
    /// Loss in bursts.
    pub gilbert: Option<Gilbert>,
    /// Exactly these packets are lost.
    pub drop: DropList,
    /// Each so-many-th packet is lost; at least 1.
    pub every: Option<u64>,
    /// Some packets are late.
    pub reorder: Option<Reorder>,
    /// How many packets arrive twice.
    pub duplicate: Probability,
    /// How many packets have a byte changed.
    pub corrupt: Option<Repeated>,
    /// How many packets lose their end.
    pub truncate: Probability,
    /// How many packets get bytes behind their end.
    pub extend: Probability,
    /// How much may wait for the rate; `None`: [`QueueLimit::DEFAULT`].
    pub queue: Option<QueueLimit>,
    /// When the queue drops or marks before it is full.
    pub aqm: Aqm,
    /// A limit of rate without a queue.
    pub policer: Option<Policer>,
    /// What becomes of ECN marks.
    pub ecn: Option<Remark>,
    /// Longest IP packet that passes.
    pub mtu: Option<Mtu>,
    /// When nothing passes.
    pub blackhole: Option<Blackhole>,
    /// What changes later, in order of time.
    pub steps: Vec<Step>,
    /// The link behind this one.
    pub then: Option<Box<LinkSpec>>,
}

impl LinkSpec {
    /// A link with this rate and one-way delay, and nothing else.
    pub fn new(rate: Rate, delay: Duration) -> Self {
        Self {
            rate: Some(rate),
            delay: Some(delay),
            ..Self::default()
        }
    }

    /// How long a packet is on this stretch, the rate and stretches behind not counted.
    pub fn one_way_delay(&self) -> Duration {
        let half = || self.rtt.unwrap_or_default() / 2;
        self.delay.unwrap_or_else(half)
    }

    /// This stretch and those behind it, in order.
    pub fn hops(&self) -> impl Iterator<Item = &LinkSpec> {
        std::iter::successors(Some(self), |spec| spec.then.as_deref())
    }

    /// How long a packet is on its way over all stretches, the rates not counted.
    pub fn total_delay(&self) -> Duration {
        self.hops().map(Self::one_way_delay).sum()
    }

    /// Bytes that may wait at this stretch: [`LinkSpec::queue`] with rate and round-trip time.
    ///
    /// `rtt` holds if the specification has none. `None` when packets are counted, not bytes,
    /// or when there is no rate to wait for.
    pub fn queue_bytes(&self, rtt: Duration) -> Option<u64> {
        let rate = self.rate?;
        match self.queue.unwrap_or(QueueLimit::DEFAULT) {
            QueueLimit::Bytes(bytes) => Some(bytes),
            QueueLimit::Packets(_) => None,
            QueueLimit::Time(time) => Some(rate.bytes_in(time)),
            QueueLimit::Bdp { thousandths } => {
                let bdp = rate.bytes_in(self.rtt.unwrap_or(rtt));
                Some(bdp.saturating_mul(u64::from(thousandths)) / 1000)
            }
        }
    }
}
