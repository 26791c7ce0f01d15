//! The specification of one direction of a link.

use std::time::Duration;

use courser_base::Rate;

use super::drop_list::DropList;
use super::parts::{
    Aqm, Blackhole, Gilbert, Mtu, Policer, QueueLimit, Remark, Reorder, Repeated, Step,
};
use crate::probability::Probability;

/// The specification of one direction of a link: its effects on packets.
///
/// As text, it is a list of fields in any order, separated by commas: `20mbit,40ms,1%,queue=64k`.
/// A rate, a delay and a loss need no name. In TOML it is the same text as a string, or a table with a
/// key for each field: `{ rate = "20mbit", delay = "40ms", drop = [1, 3, 7] }`.
///
/// | field | text | effect |
/// |---|---|---|
/// | `rate` | `20mbit`, `1.5gbit` | transmission time, with 28 (IPv4) or 48 (IPv6) bytes of headers |
/// | `delay` | `40ms`, `250us` | one way |
/// | `rtt` | `80ms` | half of it is the delay each way, unless there is a `delay` |
/// | `jitter` | `5ms` | random additional delay up to this, without reordering |
/// | `loss` | `1%`, `30%:3` | random loss; with `:N` at most N drops in a row |
/// | `gilbert` | `0.5%:20%:100%:0%` | loss in bursts: to bad, to good, loss in bad, loss in good |
/// | `drop` | `1,3,7`, `2-7` | drops exactly these packets, counted from 1 |
/// | `first` | `3` | `drop` from 1 to this number |
/// | `mask` | `0b101`, `0x5` | `drop` by bits, the lowest bit for packet 1 |
/// | `every` | `100` | drops each 100th packet |
/// | `reorder` | `5%:25ms` | delays these by up to 25 ms more, so that others overtake them |
/// | `aggregate` | `10ms` | delivers packets together at multiples of this time |
/// | `duplicate` | `1%` | delivers these twice |
/// | `corrupt` | `2%`, `30%:3` | changes one of the first 50 bytes, never in Version Negotiation |
/// | `truncate` | `1%` | cuts off a random part of the end |
/// | `extend` | `1%` | appends up to 32 random bytes |
/// | `queue` | `64k`, `25p`, `100ms`, `1bdp` | limit of the queue: bytes, packets, time at the rate, BDP |
/// | `aqm` | `codel`, `codel-ecn`, `l4s` | drops or marks before the queue is full |
/// | `target`, `interval` | `5ms`, `100ms` | the parameters of CoDel |
/// | `step` | `1ms` | queueing delay from which `l4s` marks ECT(1) |
/// | `policer` | `10mbit:64k` | drops packets for which a token bucket has no tokens |
/// | `ecn` | `bleach`, `ce:5%`, `swap@1s` | changes ECN marks |
/// | `mtu` | `1280`, `1280/icmp` | drops larger IP packets; with `/icmp` their sender gets a report |
/// | `blackhole` | `5s:2s`, `5s:2s:30s` | drops everything: start, length, period |
/// | `rate@10s` | `5mbit` | the rate from then on; also `delay@`, `jitter@`, `loss@`, `mtu@`, `policer@` |
///
/// `|` adds another hop after this one: `100mbit,queue=20p | 20mbit,40ms,aqm=codel`.
///
/// The effects apply to a packet in this order: blackhole, MTU, exact drops, loss, changed bytes,
/// changed marks, duplication, policer, queue and rate, delay with jitter, reordering and
/// aggregation. The report about a packet that is too large is sent from the entrance of the hop.
/// It takes as long to the sender as packets take in the other direction, without transmission
/// times: no time from the first hop, 20 ms from the second in `20ms | 1ms,mtu=1400/icmp`. Times in
/// a schedule count from [`Time::ZERO`](courser_base::Time::ZERO).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinkSpec {
    /// The rate at which packets leave; `None` is unlimited.
    pub rate: Option<Rate>,
    /// The delay after the last byte has left; `None` is half of `rtt`, or zero.
    pub delay: Option<Duration>,
    /// The round-trip time for a queue in BDP; `None` is twice the delay.
    pub rtt: Option<Duration>,
    /// The largest random addition to the delay of each packet, without reordering.
    pub jitter: Duration,
    /// Independent random loss of packets.
    pub loss: Option<Repeated>,
    /// Loss in bursts, by the model of Gilbert and Elliott.
    pub gilbert: Option<Gilbert>,
    /// The numbers of packets that are lost.
    pub drop: DropList,
    /// The period of lost packets, at least 1.
    pub every: Option<u64>,
    /// Packets that arrive late, so that others overtake them.
    pub reorder: Option<Reorder>,
    /// The period at which packets are delivered together, above zero. Wi-Fi and cable modems
    /// aggregate packets like this, in particular acknowledgements.
    pub aggregate: Option<Duration>,
    /// The share of packets that arrive twice.
    pub duplicate: Probability,
    /// The share of packets with a changed byte.
    pub corrupt: Option<Repeated>,
    /// The share of packets that are truncated.
    pub truncate: Probability,
    /// The share of packets with random bytes appended.
    pub extend: Probability,
    /// The limit of the queue; `None` is [`QueueLimit::DEFAULT`].
    pub queue: Option<QueueLimit>,
    /// Active queue management, which drops or marks before the queue is full.
    pub aqm: Aqm,
    /// A rate limit without a queue.
    pub policer: Option<Policer>,
    /// Changes of ECN marks.
    pub ecn: Option<Remark>,
    /// The largest IP packet that passes.
    pub mtu: Option<Mtu>,
    /// The time during which every packet is lost.
    pub blackhole: Option<Blackhole>,
    /// Scheduled changes, in order of time.
    pub steps: Vec<Step>,
    /// The hop that follows this one; `None` for the last.
    pub then: Option<Box<LinkSpec>>,
}

impl LinkSpec {
    /// Creates a link with this rate and one-way delay, and no other effect.
    pub fn new(rate: Rate, delay: Duration) -> Self {
        Self {
            rate: Some(rate),
            delay: Some(delay),
            ..Self::default()
        }
    }

    /// Returns the delay of this hop, without transmission times.
    pub fn one_way_delay(&self) -> Duration {
        let half = || self.rtt.unwrap_or_default() / 2;
        self.delay.unwrap_or_else(half)
    }

    /// Returns this hop and those that follow it, in order.
    pub fn hops(&self) -> impl Iterator<Item = &LinkSpec> {
        std::iter::successors(Some(self), |spec| spec.then.as_deref())
    }

    /// Returns the delay of all hops, without transmission times.
    pub fn total_delay(&self) -> Duration {
        self.hops().map(Self::one_way_delay).sum()
    }

    /// Returns the limit of this hop's queue in bytes, from [`LinkSpec::queue`], rate and round-trip
    /// time.
    ///
    /// `rtt` is the round-trip time if the specification has none. Returns `None` if the limit is in
    /// packets, or if there is no rate.
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
