//! The table of fields: name, allowed values and parser of each.

use std::time::Duration;

use super::{
    Blackhole, Change, DropList, Gilbert, LinkSpec, Mtu, NatSpec, Policer, QueueLimit, Remark,
    RemarkTo, Reorder, Repeated,
};
use crate::probability::Probability;
use crate::quantity::{
    MAX_DURATION, parse_bytes, parse_count, parse_duration, parse_mask, parse_probability,
    parse_rate, parse_thousandths,
};

/// A field of a specification, with the parser of its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    /// The allowed values, which complete the message "'x' is not ...".
    pub(super) allowed: &'static str,
    pub(super) read: fn(&str, &mut Draft) -> Option<()>,
}

/// A specification that is being parsed, with the fields that depend on each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    pub(super) spec: LinkSpec,
    pub(super) aqm: Option<AqmName>,
    pub(super) target: Option<Duration>,
    pub(super) interval: Option<Duration>,
    pub(super) step: Option<Duration>,
    pub(super) nat: Option<NatSpec>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AqmName {
    DropTail,
    CoDel,
    CoDelEcn,
    L4s,
}

pub(super) fn find(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == name)
}

/// The fields whose value can change at a scheduled time, with `@`.
pub(super) const STEPPED: &[&str] = &["rate", "delay", "jitter", "loss", "mtu", "policer"];

/// Parses the value of a change.
pub(super) fn read_change(name: &str, text: &str) -> Option<Change> {
    match name {
        "rate" => parse_rate(text).map(Change::Rate),
        "delay" => parse_duration(text).map(Change::Delay),
        "jitter" => parse_duration(text).map(Change::Jitter),
        "loss" => parse_repeated(text).map(Change::Loss),
        "mtu" => parse_mtu(text).map(Change::Mtu),
        "policer" => parse_policer(text).map(Change::Policer),
        _ => None,
    }
}

pub(super) fn parse_aqm(text: &str) -> Option<AqmName> {
    match text {
        "droptail" => Some(AqmName::DropTail),
        "codel" => Some(AqmName::CoDel),
        "codel-ecn" => Some(AqmName::CoDelEcn),
        "l4s" => Some(AqmName::L4s),
        _ => None,
    }
}

pub(super) const DURATION: &str = "a time with its unit (ns, us, ms, s, min), such as 40ms";
pub(super) const RATE: &str =
    "a rate of whole bytes from 8bit to 10tbit (bit, kbit, mbit, gbit, tbit), such as 20mbit";
const SHARE: &str = "a probability from 0% to 100%, such as 1% or 0.01";
const SHARE_BURST: &str =
    "a probability from 0% to 100%, such as 1%, or with the largest number in a row: 30%:3";

pub(super) const FIELDS: &[Field] = &[
    Field {
        name: "rate",
        allowed: RATE,
        read: |text, draft| {
            draft.spec.rate = Some(parse_rate(text)?);
            Some(())
        },
    },
    Field {
        name: "delay",
        allowed: DURATION,
        read: |text, draft| {
            draft.spec.delay = Some(parse_duration(text)?);
            Some(())
        },
    },
    Field {
        name: "rtt",
        allowed: DURATION,
        read: |text, draft| {
            draft.spec.rtt = Some(parse_duration(text)?);
            Some(())
        },
    },
    Field {
        name: "jitter",
        allowed: DURATION,
        read: |text, draft| {
            draft.spec.jitter = parse_duration(text)?;
            Some(())
        },
    },
    Field {
        name: "loss",
        allowed: SHARE_BURST,
        read: |text, draft| {
            draft.spec.loss = Some(parse_repeated(text)?);
            Some(())
        },
    },
    Field {
        name: "gilbert",
        allowed: "TO_BAD:TO_GOOD[:LOSS_IN_BAD[:LOSS_IN_GOOD]] in probabilities, TO_GOOD above 0, \
                  such as 0.5%:20%",
        read: |text, draft| {
            draft.spec.gilbert = Some(parse_gilbert(text)?);
            Some(())
        },
    },
    Field {
        name: "drop",
        allowed: "packet numbers from 1 or ranges, such as 1,3,7 or 2-7, at most 10000",
        read: |text, draft| read_drop(text, &mut draft.spec),
    },
    Field {
        name: "first",
        allowed: "a number of packets, such as 3",
        read: |text, draft| {
            let count = parse_count(text)?;
            draft.spec.drop.add(1..=count);
            Some(())
        },
    },
    Field {
        name: "mask",
        allowed: "a mask of at most 64 bits, the lowest for packet 1, such as 0b101 or 0x5",
        read: |text, draft| {
            let mask = DropList::from_mask(parse_mask(text)?);
            for range in mask.ranges() {
                draft.spec.drop.add(range.clone());
            }
            Some(())
        },
    },
    Field {
        name: "every",
        allowed: "a number of packets from 1, such as 100",
        read: |text, draft| {
            draft.spec.every = Some(parse_count(text).filter(|every| *every > 0)?);
            Some(())
        },
    },
    Field {
        name: "reorder",
        allowed: "PROBABILITY:TIME, such as 5%:25ms",
        read: |text, draft| {
            let (share, by) = text.split_once(':')?;
            draft.spec.reorder = Some(Reorder {
                probability: parse_probability(share)?,
                by: parse_duration(by).filter(|by| !by.is_zero())?,
            });
            Some(())
        },
    },
    Field {
        name: "aggregate",
        allowed: "a time above zero, such as 10ms",
        read: |text, draft| {
            let period = parse_duration(text).filter(|period| !period.is_zero())?;
            draft.spec.aggregate = Some(period);
            Some(())
        },
    },
    Field {
        name: "duplicate",
        allowed: SHARE,
        read: |text, draft| read_share(text, &mut draft.spec.duplicate),
    },
    Field {
        name: "corrupt",
        allowed: SHARE_BURST,
        read: |text, draft| {
            draft.spec.corrupt = Some(parse_repeated(text)?);
            Some(())
        },
    },
    Field {
        name: "truncate",
        allowed: SHARE,
        read: |text, draft| read_share(text, &mut draft.spec.truncate),
    },
    Field {
        name: "extend",
        allowed: SHARE,
        read: |text, draft| read_share(text, &mut draft.spec.extend),
    },
    Field {
        name: "queue",
        allowed: "a size: bytes (64k, 64KiB), packets (25p), time at the rate (100ms) or \
                  bandwidth-delay products (1bdp, up to 1000bdp)",
        read: |text, draft| {
            draft.spec.queue = Some(parse_queue(text)?);
            Some(())
        },
    },
    Field {
        name: "aqm",
        allowed: "droptail, codel, codel-ecn or l4s",
        read: |text, draft| {
            draft.aqm = Some(parse_aqm(text)?);
            Some(())
        },
    },
    Field {
        name: "target",
        allowed: DURATION,
        read: |text, draft| {
            draft.target = Some(parse_duration(text)?);
            Some(())
        },
    },
    Field {
        name: "interval",
        allowed: "a time from 1us to 100s, such as 100ms",
        read: |text, draft| {
            let range = Duration::from_micros(1)..=Duration::from_secs(100);
            draft.interval = Some(parse_duration(text).filter(|time| range.contains(time))?);
            Some(())
        },
    },
    Field {
        name: "step",
        allowed: DURATION,
        read: |text, draft| {
            draft.step = Some(parse_duration(text)?);
            Some(())
        },
    },
    Field {
        name: "policer",
        allowed: "RATE:BYTES with at least 1 byte, such as 10mbit:64k",
        read: |text, draft| {
            draft.spec.policer = Some(parse_policer(text)?);
            Some(())
        },
    },
    Field {
        name: "ecn",
        allowed: "bleach, ect0, ect1, ce or swap, optionally with a share or a start: ce:5%, \
                  bleach@1s",
        read: |text, draft| {
            draft.spec.ecn = Some(parse_remark(text)?);
            Some(())
        },
    },
    Field {
        name: "mtu",
        allowed: "a length of IP packets from 29 to 65575 bytes, such as 1280, or 1280/icmp \
                  to report larger packets to their sender",
        read: |text, draft| {
            draft.spec.mtu = Some(parse_mtu(text)?);
            Some(())
        },
    },
    Field {
        name: "blackhole",
        allowed: "FROM:FOR[:EVERY] in times, EVERY longer than FOR, such as 5s:2s or 5s:2s:30s",
        read: |text, draft| {
            draft.spec.blackhole = Some(parse_blackhole(text)?);
            Some(())
        },
    },
    Field {
        name: "rebind",
        allowed: "[addr:][FIRST:]EVERY in times of at least 1ms, EVERY may be never, or \
                  [addr:]idle:TIME, such as 5s, 1s:5s, addr:1s:never or idle:30s",
        read: |text, draft| {
            draft.nat = Some(parse_nat(text)?);
            Some(())
        },
    },
];

fn read_share(text: &str, share: &mut Probability) -> Option<()> {
    *share = parse_probability(text)?;
    Some(())
}

fn parse_repeated(text: &str) -> Option<Repeated> {
    let (share, burst) = match text.split_once(':') {
        Some((share, burst)) => {
            let burst = u32::try_from(parse_count(burst)?).ok();
            (share, Some(burst.filter(|burst| *burst > 0)?))
        }
        None => (text, None),
    };
    let probability = parse_probability(share)?;
    Some(Repeated { probability, burst })
}

fn parse_gilbert(text: &str) -> Option<Gilbert> {
    let mut parts = text.split(':').map(parse_probability);
    let gilbert = Gilbert {
        to_bad: parts.next()??,
        to_good: parts
            .next()?
            .filter(|chance| *chance > Probability::NEVER)?,
        loss_in_bad: parts.next().unwrap_or(Some(Probability::ALWAYS))?,
        loss_in_good: parts.next().unwrap_or(Some(Probability::NEVER))?,
    };
    parts.next().is_none().then_some(gilbert)
}

fn read_drop(text: &str, spec: &mut LinkSpec) -> Option<()> {
    for part in text.split(',').map(str::trim) {
        let (start, end) = part.split_once('-').unwrap_or((part, part));
        let (start, end) = (parse_count(start)?, parse_count(end)?);
        if start == 0 || start > end || spec.drop.ranges().len() >= DropList::MAX_RANGES {
            return None;
        }
        spec.drop.add(start..=end);
    }
    Some(())
}

fn parse_queue(text: &str) -> Option<QueueLimit> {
    if let Some(multiple) = text.strip_suffix("bdp") {
        let thousandths = parse_thousandths(multiple.trim())?;
        return Some(QueueLimit::Bdp { thousandths });
    }
    for suffix in ["packets", "packet", "p"] {
        if let Some(count) = text.strip_suffix(suffix) {
            return parse_count(count.trim()).map(QueueLimit::Packets);
        }
    }
    // A 0 without a unit is a size in bytes.
    parse_bytes(text)
        .map(QueueLimit::Bytes)
        .or_else(|| parse_duration(text).map(QueueLimit::Time))
}

fn parse_mtu(text: &str) -> Option<Mtu> {
    let (count, answers) = match text.split_once('/') {
        Some((count, "icmp")) => (count, true),
        Some(_) => return None,
        None => (text, false),
    };
    let bytes = u32::try_from(parse_count(count.trim())?).ok()?;
    let is_possible = (29..=65_575).contains(&bytes);
    is_possible.then_some(Mtu { bytes, answers })
}

fn parse_policer(text: &str) -> Option<Policer> {
    let (rate, burst) = text.split_once(':')?;
    Some(Policer {
        rate: parse_rate(rate)?,
        burst: parse_bytes(burst).filter(|burst| *burst > 0)?,
    })
}

fn parse_remark(text: &str) -> Option<Remark> {
    let (rest, from) = match text.split_once('@') {
        Some((rest, from)) => (rest, parse_duration(from)?),
        None => (text, Duration::ZERO),
    };
    let (to, probability) = match rest.split_once(':') {
        Some((to, share)) => (to, parse_probability(share)?),
        None => (rest, Probability::ALWAYS),
    };
    let to = match to {
        "bleach" => RemarkTo::NotEct,
        "ect0" => RemarkTo::Ect0,
        "ect1" => RemarkTo::Ect1,
        "ce" => RemarkTo::Ce,
        "swap" => RemarkTo::Swapped,
        _ => return None,
    };
    Some(Remark {
        to,
        probability,
        from,
    })
}

fn parse_blackhole(text: &str) -> Option<Blackhole> {
    let mut parts = text.split(':').map(parse_duration);
    let from = parts.next()??;
    let lasts = parts.next()?.filter(|lasts| !lasts.is_zero())?;
    let every = match parts.next() {
        Some(every) => Some(every.filter(|every| *every > lasts)?),
        None => None,
    };
    let blackhole = Blackhole { from, lasts, every };
    parts.next().is_none().then_some(blackhole)
}

fn parse_nat(text: &str) -> Option<NatSpec> {
    let (address, text) = match text.strip_prefix("addr:") {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix("port:").unwrap_or(text)),
    };
    let time = |text| {
        let range = Duration::from_millis(1)..=MAX_DURATION;
        parse_duration(text).filter(|time| range.contains(time))
    };
    if let Some(after) = text.strip_prefix("idle:") {
        let idle = NatSpec::idle(time(after)?);
        return Some(NatSpec { address, ..idle });
    }
    let (first, every) = match text.split_once(':') {
        Some((first, "never")) => (time(first)?, None),
        Some((first, every)) => (time(first)?, Some(time(every)?)),
        None => (time(text)?, Some(time(text)?)),
    };
    Some(NatSpec {
        first,
        every,
        address,
        idle: None,
    })
}
