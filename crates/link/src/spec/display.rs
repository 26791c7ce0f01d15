//! Formats specifications as text that parses back to the same specification.

use std::fmt;
use std::time::Duration;

use super::{
    Aqm, Blackhole, Change, DuplexSpec, Gilbert, LinkSpec, Mtu, NatSpec, Policer, QueueLimit,
    Remark, RemarkTo, Repeated, Step,
};
use crate::probability::Probability;
use crate::quantity::{bytes, duration, probability, rate, thousandths};

impl fmt::Display for LinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, hop) in self.hops().enumerate() {
            if index > 0 {
                f.write_str(" | ")?;
            }
            f.write_str(&fields(hop).join(","))?;
        }
        Ok(())
    }
}

impl fmt::Display for DuplexSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.forward)?;
        if let Some(nat) = &self.nat {
            write!(f, ",rebind={}", nat_text(nat))?;
        }
        if self.back != self.forward {
            write!(f, ";{}", self.back)?;
        }
        Ok(())
    }
}

/// Returns the fields that differ from their defaults, or `none` if all are defaults.
fn fields(spec: &LinkSpec) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut put = |name: &str, value: Option<String>| {
        texts.extend(value.map(|value| format!("{name}={value}")));
    };
    put("rate", spec.rate.map(rate));
    put("delay", spec.delay.map(duration));
    put("rtt", spec.rtt.map(duration));
    put("jitter", above_zero(spec.jitter));
    put("loss", spec.loss.map(repeated));
    put("gilbert", spec.gilbert.map(gilbert));
    put("drop", (!spec.drop.is_empty()).then(|| drop(spec)));
    put("every", spec.every.map(|every| every.to_string()));
    let reorder = spec.reorder;
    put(
        "reorder",
        reorder.map(|late| format!("{}:{}", probability(late.probability), duration(late.by))),
    );
    put("aggregate", spec.aggregate.map(duration));
    put("duplicate", likely(spec.duplicate));
    put("corrupt", spec.corrupt.map(repeated));
    put("truncate", likely(spec.truncate));
    put("extend", likely(spec.extend));
    put("queue", spec.queue.map(queue));
    let policer = spec.policer;
    put("policer", policer.map(policed));
    put("ecn", spec.ecn.map(remark));
    put("mtu", spec.mtu.map(mtu));
    put("blackhole", spec.blackhole.map(blackhole));
    texts.extend(aqm(spec.aqm));
    texts.extend(spec.steps.iter().map(step));
    if texts.is_empty() {
        texts.push("none".to_owned());
    }
    texts
}

fn above_zero(time: Duration) -> Option<String> {
    (!time.is_zero()).then(|| duration(time))
}

fn likely(chance: Probability) -> Option<String> {
    (chance > Probability::NEVER).then(|| probability(chance))
}

fn repeated(repeated: Repeated) -> String {
    let share = probability(repeated.probability);
    match repeated.burst {
        Some(burst) => format!("{share}:{burst}"),
        None => share,
    }
}

fn gilbert(gilbert: Gilbert) -> String {
    let parts = [
        gilbert.to_bad,
        gilbert.to_good,
        gilbert.loss_in_bad,
        gilbert.loss_in_good,
    ];
    parts.map(probability).join(":")
}

fn drop(spec: &LinkSpec) -> String {
    let ranges = spec.drop.ranges().iter().map(|range| {
        if range.start() == range.end() {
            range.start().to_string()
        } else {
            format!("{}-{}", range.start(), range.end())
        }
    });
    ranges.collect::<Vec<_>>().join(",")
}

fn queue(limit: QueueLimit) -> String {
    match limit {
        QueueLimit::Bytes(count) => bytes(count),
        QueueLimit::Packets(count) => format!("{count}p"),
        QueueLimit::Time(time) => duration(time),
        QueueLimit::Bdp { thousandths: parts } => format!("{}bdp", thousandths(parts)),
    }
}

fn aqm(aqm: Aqm) -> Vec<String> {
    let codel = |name: &str, target: Duration, interval: Duration| {
        let mut texts = vec![format!("aqm={name}")];
        if target != Aqm::TARGET {
            texts.push(format!("target={}", duration(target)));
        }
        if interval != Aqm::INTERVAL {
            texts.push(format!("interval={}", duration(interval)));
        }
        texts
    };
    match aqm {
        Aqm::DropTail => Vec::new(),
        Aqm::CoDel {
            target,
            interval,
            ecn,
        } => codel(if ecn { "codel-ecn" } else { "codel" }, target, interval),
        Aqm::L4s {
            step,
            target,
            interval,
        } => {
            let mut texts = codel("l4s", target, interval);
            if step != Aqm::STEP {
                texts.push(format!("step={}", duration(step)));
            }
            texts
        }
    }
}

fn remark(remark: Remark) -> String {
    let mut text = match remark.to {
        RemarkTo::NotEct => "bleach",
        RemarkTo::Ect0 => "ect0",
        RemarkTo::Ect1 => "ect1",
        RemarkTo::Ce => "ce",
        RemarkTo::Swapped => "swap",
    }
    .to_owned();
    if remark.probability != Probability::ALWAYS {
        text.push(':');
        text.push_str(&probability(remark.probability));
    }
    if !remark.from.is_zero() {
        text.push('@');
        text.push_str(&duration(remark.from));
    }
    text
}

fn policed(policer: Policer) -> String {
    format!("{}:{}", rate(policer.rate), bytes(policer.burst))
}

fn mtu(mtu: Mtu) -> String {
    let answers = if mtu.answers { "/icmp" } else { "" };
    format!("{}{answers}", mtu.bytes)
}

fn blackhole(hole: Blackhole) -> String {
    let mut text = format!("{}:{}", duration(hole.from), duration(hole.lasts));
    if let Some(every) = hole.every {
        text.push(':');
        text.push_str(&duration(every));
    }
    text
}

fn step(step: &Step) -> String {
    let (name, value) = match step.change {
        Change::Rate(value) => ("rate", rate(value)),
        Change::Delay(value) => ("delay", duration(value)),
        Change::Jitter(value) => ("jitter", duration(value)),
        Change::Loss(value) => ("loss", repeated(value)),
        Change::Mtu(value) => ("mtu", mtu(value)),
        Change::Policer(value) => ("policer", policed(value)),
    };
    format!("{name}@{}={value}", duration(step.at))
}

fn nat_text(nat: &NatSpec) -> String {
    let kind = if nat.address { "addr:" } else { "" };
    let first = duration(nat.first);
    if let Some(after) = nat.idle {
        return format!("{kind}idle:{}", duration(after));
    }
    match nat.every {
        None => format!("{kind}{first}:never"),
        Some(every) if every == nat.first => format!("{kind}{first}"),
        Some(every) => format!("{kind}{first}:{}", duration(every)),
    }
}
