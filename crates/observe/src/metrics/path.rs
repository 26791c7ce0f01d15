//! Counters of paths, separately for both address families.

use std::net::IpAddr;
use std::time::Duration;

use courser_base::FourTuple;
use courser_telemetry::{LossTrigger, SendLimit};

use super::family::{Family, Value};
use super::histogram::{Histogram, SECONDS};
use super::value_counters::ValueCounters;
use crate::names;

/// The address family of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum IpFamily {
    #[default]
    V4,
    V6,
}

impl IpFamily {
    /// Returns the address family that is used on the wire: IPv4 for an IPv4-mapped IPv6 address (RFC 4291
    /// §2.5.5.2).
    pub(super) fn of(path: FourTuple) -> Self {
        match path.peer.ip().to_canonical() {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::V4 => "ipv4",
            Self::V6 => "ipv6",
        }
    }
}

/// The counters of the paths of both address families.
#[derive(Debug)]
pub(super) struct PathCounts([FamilyCounts; 2]);

#[derive(Debug)]
struct FamilyCounts {
    family: IpFamily,
    smoothed_rtt: Histogram,
    /// Time for which each limit held a sender back, in nanoseconds.
    limited: ValueCounters<SendLimit, 6>,
    lost: ValueCounters<LossTrigger, 3>,
}

impl Default for PathCounts {
    fn default() -> Self {
        Self([IpFamily::V4, IpFamily::V6].map(|family| FamilyCounts {
            family,
            smoothed_rtt: Histogram::new(&SECONDS),
            limited: ValueCounters::new(&LIMITS),
            lost: ValueCounters::new(&TRIGGERS),
        }))
    }
}

impl PathCounts {
    fn of(&self, family: IpFamily) -> &FamilyCounts {
        match family {
            IpFamily::V4 => &self.0[0],
            IpFamily::V6 => &self.0[1],
        }
    }

    pub(super) fn on_rtt(&self, family: IpFamily, smoothed: Duration) {
        let rtt = smoothed.as_secs_f64();
        self.of(family).smoothed_rtt.observe(rtt);
    }

    pub(super) fn on_limited(&self, family: IpFamily, by: SendLimit, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.of(family).limited.add(by, nanos);
    }

    pub(super) fn on_lost(&self, family: IpFamily, trigger: Option<LossTrigger>) {
        // All losses of packets have a trigger; see `LossRecovery`.
        if let Some(trigger) = trigger {
            self.of(family).lost.add(trigger, 1);
        }
    }

    /// Returns all counters as families of metrics.
    pub(super) fn families(&self) -> [Family; 3] {
        let mut lost = Family::new("packets_lost", "Packets declared lost");
        let mut limited = Family::new(
            "send_limited_seconds",
            "Time for which a limit held a sender back, counted when the limit changes",
        );
        let mut rtt = Family::new(
            "smoothed_rtt_seconds",
            "Smoothed round-trip time at the end of connections",
        );
        for of in &self.0 {
            let family = || ("family", of.family.name().to_owned());
            for (trigger, count) in of.lost.named(|it| names::loss_trigger(Some(it))) {
                let labels = vec![("trigger", trigger.to_owned()), family()];
                lost.push(labels, Value::Counter(count));
            }
            for (by, nanos) in of.limited.named(names::limit) {
                let time = Duration::from_nanos(nanos).as_secs_f64();
                limited.push(vec![("by", by.to_owned()), family()], Value::Seconds(time));
            }
            let distribution = of.smoothed_rtt.distribution();
            rtt.push(vec![family()], Value::Histogram(distribution));
        }
        [lost, limited, rtt]
    }
}

const LIMITS: [SendLimit; 6] = [
    SendLimit::Application,
    SendLimit::CongestionWindow,
    SendLimit::Pacer,
    SendLimit::FlowControl,
    SendLimit::StreamFlowControl,
    SendLimit::Amplification,
];

const TRIGGERS: [LossTrigger; 3] = [
    LossTrigger::ReorderingThreshold,
    LossTrigger::TimeThreshold,
    LossTrigger::ProbeTimeout,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_and_trigger_has_a_counter_in_each_family() {
        let counts = PathCounts::default();
        for family in [IpFamily::V4, IpFamily::V6] {
            for limit in LIMITS {
                counts.on_limited(family, limit, Duration::from_secs(1));
            }
            for trigger in TRIGGERS {
                counts.on_lost(family, Some(trigger));
            }
            counts.on_rtt(family, Duration::from_millis(20));
        }
        let [lost, limited, rtt] = counts.families();
        assert_eq!(
            (lost.series.len(), limited.series.len(), rtt.series.len()),
            (6, 12, 2)
        );
        let all = lost.series.iter().chain(&limited.series).chain(&rtt.series);
        for series in all {
            match &series.value {
                Value::Counter(count) => assert_eq!(*count, 1, "{series:?}"),
                Value::Seconds(time) => assert!((time - 1.0).abs() < 1e-9, "{series:?}"),
                Value::Histogram(of) => assert_eq!(of.count, 1, "{series:?}"),
                Value::Gauge(_) | Value::Least(_) => unreachable!("{series:?}"),
            }
        }
    }

    #[test]
    fn mapped_address_belongs_to_ipv4() {
        for (peer, family) in [
            ("192.0.2.1:443", IpFamily::V4),
            ("[::ffff:192.0.2.1]:443", IpFamily::V4),
            ("[2001:db8::1]:443", IpFamily::V6),
        ] {
            let path = FourTuple::to(peer.parse().expect("an address"));
            assert_eq!(IpFamily::of(path), family, "{peer}");
        }
    }
}
