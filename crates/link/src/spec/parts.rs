//! What the fields of a specification hold.

use std::time::Duration;

use courser_base::Rate;

use crate::probability::Probability;

/// Something that happens by chance, but not more than so often in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repeated {
    /// How likely it is for each packet.
    pub probability: Probability,
    /// After so many in a row the next packet is spared; at least 1. `None`: no limit.
    pub burst: Option<u32>,
}

impl Repeated {
    /// So likely for each packet, whatever befell the one before.
    pub const fn independent(probability: Probability) -> Self {
        Self {
            probability,
            burst: None,
        }
    }
}

/// Loss in bursts: a channel that is good or bad, and may change with each packet.
///
/// The model of Gilbert and Elliott; bursts last `1 / to_good` packets on average.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gilbert {
    /// How likely the channel turns bad.
    pub to_bad: Probability,
    /// How likely it turns good again; more than nothing.
    pub to_good: Probability,
    /// How likely a packet is lost while it is bad.
    pub loss_in_bad: Probability,
    /// How likely a packet is lost while it is good.
    pub loss_in_good: Probability,
}

/// Packets that are late, so that others pass them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reorder {
    /// How many.
    pub probability: Probability,
    /// By how much at most; how much is random for each. More than nothing.
    pub by: Duration,
}

/// How much may wait for the rate; the packet that is leaving does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueLimit {
    /// Bytes, headers included.
    Bytes(u64),
    /// Packets of any size.
    Packets(u64),
    /// What the first rate moves in this time.
    Time(Duration),
    /// Multiples of what the first rate moves in a round-trip time.
    Bdp {
        /// 1000 is one bandwidth-delay product.
        thousandths: u32,
    },
}

impl QueueLimit {
    /// What holds where nothing is said.
    pub const DEFAULT: Self = Self::Time(Duration::from_millis(100));

    /// So many whole bandwidth-delay products.
    pub const fn bdp(multiple: u32) -> Self {
        Self::Bdp {
            thousandths: multiple.saturating_mul(1000),
        }
    }
}

/// Active queue management: when to drop or mark before the queue is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Aqm {
    /// Never.
    #[default]
    DropTail,
    /// CoDel, RFC 8289.
    CoDel {
        /// Delay that may stand.
        target: Duration,
        /// How long more than that may stand.
        interval: Duration,
        /// Packets of ECN-capable senders are marked, not dropped.
        ecn: bool,
    },
    /// Marks for L4S: ECT(1) from a step of delay on, all others as CoDel with marks would.
    ///
    /// Both kinds wait in one queue. RFC 9332 has two, so that L4S packets do not wait behind
    /// classic ones; with one kind of flow at a time that makes no difference.
    L4s {
        /// From this delay on ECT(1) is marked.
        step: Duration,
        /// CoDel for all others: delay that may stand.
        target: Duration,
        /// CoDel for all others: how long more than that may stand.
        interval: Duration,
    },
}

impl Aqm {
    /// What CoDel lets stand. RFC 8289 §4.3.
    pub const TARGET: Duration = Duration::from_millis(5);
    /// What CoDel takes for a round-trip time. RFC 8289 §4.3.
    pub const INTERVAL: Duration = Duration::from_millis(100);
    /// Where marks of L4S begin; RFC 9332 appendix A has about as much.
    pub const STEP: Duration = Duration::from_millis(1);

    /// CoDel with the times of its RFC.
    pub const fn codel() -> Self {
        Self::CoDel {
            target: Self::TARGET,
            interval: Self::INTERVAL,
            ecn: false,
        }
    }

    /// CoDel that marks where it can.
    pub const fn codel_ecn() -> Self {
        Self::CoDel {
            target: Self::TARGET,
            interval: Self::INTERVAL,
            ecn: true,
        }
    }

    /// L4S with a step at 1 ms.
    pub const fn l4s() -> Self {
        Self::L4s {
            step: Self::STEP,
            target: Self::TARGET,
            interval: Self::INTERVAL,
        }
    }
}

/// How long IP packets may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mtu {
    /// Bytes, headers included, from 29.
    pub bytes: u32,
    /// Senders of longer packets are told, as a router does by ICMP; otherwise these vanish.
    pub answers: bool,
}

impl Mtu {
    /// Longer packets vanish.
    pub const fn silent(bytes: u32) -> Self {
        Self {
            bytes,
            answers: false,
        }
    }

    /// Longer packets are dropped and their senders told.
    pub const fn with_answer(bytes: u32) -> Self {
        Self {
            bytes,
            answers: true,
        }
    }
}

/// A token bucket that drops what comes faster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policer {
    /// How fast tokens come; more than nothing.
    pub rate: Rate,
    /// How many bytes of tokens it holds; it starts full.
    pub burst: u64,
}

/// A change of ECN marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remark {
    /// What they become.
    pub to: RemarkTo,
    /// How many packets.
    pub probability: Probability,
    /// From when on.
    pub from: Duration,
}

/// What becomes of the marks of ECN-capable packets. Others stay as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemarkTo {
    /// All marks are cleared.
    NotEct,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// Congestion experienced.
    Ce,
    /// ECT(0) and ECT(1) change places.
    Swapped,
}

/// When nothing passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blackhole {
    /// When it begins.
    pub from: Duration,
    /// How long it lasts; more than nothing.
    pub lasts: Duration,
    /// From the beginning of one to that of the next, longer than one lasts; `None`: once.
    pub every: Option<Duration>,
}

/// A change at a point in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// When.
    pub at: Duration,
    /// What.
    pub change: Change,
}

/// What can change while packets are under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// The rate, from the next packet on; a queue keeps its limit in bytes.
    Rate(Rate),
    /// The delay, for packets that leave from now on; none passes those before it.
    Delay(Duration),
    /// The jitter.
    Jitter(Duration),
    /// Random loss.
    Loss(Repeated),
    /// The longest IP packet.
    Mtu(Mtu),
    /// A policer, in place of another or of none; its bucket is full.
    Policer(Policer),
}
