//! Values of the fields of a specification.

use std::time::Duration;

use courser_base::Rate;

use crate::probability::Probability;

/// A random event with an optional limit on consecutive ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repeated {
    /// The probability for each packet.
    pub probability: Probability,
    /// The number of consecutive events after which a packet is spared, at least 1; `None` is no
    /// limit.
    pub burst: Option<u32>,
}

impl Repeated {
    /// Creates an event with this probability for each packet, independent of the previous one.
    pub const fn independent(probability: Probability) -> Self {
        Self {
            probability,
            burst: None,
        }
    }
}

/// Loss in bursts: a channel that is in a good or a bad state, which may change with each packet.
///
/// This is the model of Gilbert and Elliott. Bursts last `1 / to_good` packets on average.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gilbert {
    /// The probability per packet that a good channel becomes bad.
    pub to_bad: Probability,
    /// The probability per packet that a bad channel becomes good, above zero.
    pub to_good: Probability,
    /// The probability of a loss while the channel is bad.
    pub loss_in_bad: Probability,
    /// The probability of a loss while the channel is good.
    pub loss_in_good: Probability,
}

/// Packets that arrive late, so that others overtake them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reorder {
    /// The share of late packets.
    pub probability: Probability,
    /// The largest additional delay, above zero. That of each packet is random.
    pub by: Duration,
}

/// The limit of a queue, without the packet that is being transmitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueLimit {
    /// Bytes of IP packets, headers included.
    Bytes(u64),
    /// Packets of any size.
    Packets(u64),
    /// The bytes that the first rate transmits in this time.
    Time(Duration),
    /// A multiple of the bytes that the first rate transmits in a round-trip time.
    Bdp {
        /// The multiple in thousandths: 1000 is one bandwidth-delay product.
        thousandths: u32,
    },
}

impl QueueLimit {
    /// The limit of a specification without one.
    pub const DEFAULT: Self = Self::Time(Duration::from_millis(100));

    /// Creates a limit of whole bandwidth-delay products.
    pub const fn bdp(multiple: u32) -> Self {
        Self::Bdp {
            thousandths: multiple.saturating_mul(1000),
        }
    }
}

/// Active queue management, which drops or marks packets before the queue is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Aqm {
    /// No management: packets are dropped when the queue is full.
    #[default]
    DropTail,
    /// CoDel (RFC 8289), which acts on packets that have waited too long.
    CoDel {
        /// The acceptable standing delay.
        target: Duration,
        /// The time for which the delay may exceed the target.
        interval: Duration,
        /// True if packets of ECN-capable senders are marked instead of dropped.
        ecn: bool,
    },
    /// Marks for L4S: ECT(1) from a step of delay on, all other packets as CoDel with marks.
    ///
    /// All packets share one queue. RFC 9332 has two, so that L4S packets do not wait behind
    /// classic ones. This makes no difference if there is one kind of flow at a time.
    L4s {
        /// The queueing delay from which ECT(1) is marked.
        step: Duration,
        /// The acceptable standing delay of all other packets.
        target: Duration,
        /// The time for which the delay of all other packets may exceed the target.
        interval: Duration,
    },
}

impl Aqm {
    /// The default target of CoDel (RFC 8289 §4.3).
    pub const TARGET: Duration = Duration::from_millis(5);
    /// The default interval of CoDel, about a round-trip time (RFC 8289 §4.3).
    pub const INTERVAL: Duration = Duration::from_millis(100);
    /// The default step of L4S. RFC 9332 appendix A has a similar one.
    pub const STEP: Duration = Duration::from_millis(1);

    /// Creates CoDel with the default target and interval of RFC 8289, without ECN.
    pub const fn codel() -> Self {
        Self::CoDel {
            target: Self::TARGET,
            interval: Self::INTERVAL,
            ecn: false,
        }
    }

    /// Creates CoDel that marks packets of ECN-capable senders.
    pub const fn codel_ecn() -> Self {
        Self::CoDel {
            target: Self::TARGET,
            interval: Self::INTERVAL,
            ecn: true,
        }
    }

    /// Creates L4S with a step at 1 ms.
    pub const fn l4s() -> Self {
        Self::L4s {
            step: Self::STEP,
            target: Self::TARGET,
            interval: Self::INTERVAL,
        }
    }
}

/// The limit on the size of IP packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mtu {
    /// The size in bytes, headers included, at least 29.
    pub bytes: u32,
    /// True if senders of larger packets receive a report, as by ICMP from a router.
    pub answers: bool,
}

impl Mtu {
    /// Creates a limit that drops larger packets without a report.
    pub const fn silent(bytes: u32) -> Self {
        Self {
            bytes,
            answers: false,
        }
    }

    /// Creates a limit that drops larger packets and reports to their senders.
    pub const fn with_answer(bytes: u32) -> Self {
        Self {
            bytes,
            answers: true,
        }
    }
}

/// A token bucket that drops packets above its rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policer {
    /// The rate of tokens, above zero.
    pub rate: Rate,
    /// The capacity in bytes. The bucket starts full.
    pub burst: u64,
}

/// A change of ECN marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remark {
    /// The mark that replaces the present one.
    pub to: RemarkTo,
    /// The share of packets with a changed mark.
    pub probability: Probability,
    /// The time at which the change starts.
    pub from: Duration,
}

/// The new mark of ECN-capable packets. Other packets keep theirs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemarkTo {
    /// Not-ECT: all marks are cleared.
    NotEct,
    /// ECT(0), for packets with any mark.
    Ect0,
    /// ECT(1), for packets with any mark.
    Ect1,
    /// CE, as if every packet had met congestion.
    Ce,
    /// ECT(0) and ECT(1) are swapped.
    Swapped,
}

/// A period in which every packet is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blackhole {
    /// The time at which the period starts.
    pub from: Duration,
    /// The length of the period, above zero.
    pub lasts: Duration,
    /// The time from one start to the next, longer than `lasts`; `None` for a single period.
    pub every: Option<Duration>,
}

/// A change of a property at a scheduled time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The time of the change, since the start of the link.
    pub at: Duration,
    /// The property and its new value.
    pub change: Change,
}

/// A property that can change while packets are in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// The rate, from the next packet on. A queue keeps its limit in bytes.
    Rate(Rate),
    /// The delay of packets that leave from now on. They do not overtake earlier ones.
    Delay(Duration),
    /// The jitter of packets that leave from now on.
    Jitter(Duration),
    /// The random loss of packets that arrive from now on.
    Loss(Repeated),
    /// The largest IP packet that passes from now on.
    Mtu(Mtu),
    /// The policer. Its bucket starts full.
    Policer(Policer),
}
