//! Samples flows and links at regular intervals.

use std::time::Duration;

use courser_base::Time;
use courser_transport::ConnectionStats;

use super::capacity::rate_at;
use super::ideal::to_f64;
use super::stage::{Actor, Stage};
use crate::link::{LinkSpec, LinkStats};
use crate::report::{Buckets, FlowReport, LinkReport, Series};
use crate::scenario::{Kind, Scenario};
use crate::world::LinkId;

/// The samples so far.
pub(super) struct Sampler {
    pub(super) flows: Vec<FlowReport>,
    /// The counters of the senders at the start of the measured time.
    pub(super) before: Vec<ConnectionStats>,
    pub(super) links: Vec<Watched>,
}

pub(super) struct Watched {
    pub(super) id: LinkId,
    spec: LinkSpec,
    pub(super) report: LinkReport,
    carried: u64,
}

impl Sampler {
    pub(super) fn new(
        scenario: &Scenario,
        stage: &Stage,
        interval: Duration,
        points: usize,
    ) -> Self {
        let flow = |actor: &Actor| FlowReport {
            name: actor.flow.name.clone(),
            controller: actor.flow.controller.to_string(),
            start: actor.flow.start,
            // Two more than the number of samples: the last interval may be incomplete.
            delivered: Buckets::new(interval, points + 2),
            sent: Series::new(points + 2),
            ..FlowReport::default()
        };
        let shared = [(stage.link, &scenario.link)].into_iter();
        let access = stage.access.iter().filter_map(|(index, pair)| {
            let spec = stage.actors.get(*index)?.flow.access.as_ref()?;
            Some((*pair, spec))
        });
        let links = shared
            .chain(access)
            .flat_map(|(pair, spec)| [(pair.forward, &spec.forward), (pair.back, &spec.back)]);
        let watch = |(id, spec): (LinkId, &LinkSpec)| Watched {
            id,
            spec: spec.clone(),
            report: LinkReport {
                name: stage.world.link_name(id).to_owned(),
                carried: Buckets::new(interval, points + 2),
                ..LinkReport::default()
            },
            carried: 0,
        };
        Self {
            flows: stage.actors.iter().map(flow).collect(),
            before: vec![ConnectionStats::default(); stage.actors.len()],
            links: links.map(watch).collect(),
        }
    }

    /// Starts the measured time.
    pub(super) fn begin(&mut self, stage: &mut Stage) {
        for (before, actor) in self.before.iter_mut().zip(&stage.actors) {
            *before = stage.stats(stage.sender(actor)).unwrap_or_default();
        }
        for watched in &self.links {
            let _ = stage
                .world
                .change_link(watched.id, crate::link::Link::take_queue_delays);
        }
    }

    pub(super) fn sample(&mut self, stage: &Stage) {
        let now = stage.world.now();
        for (report, actor) in self.flows.iter_mut().zip(&stage.actors) {
            sample_flow(report, stage, actor, now);
        }
        for watched in &mut self.links {
            watched.sample(stage, now);
        }
    }

    /// Completes the reports of all flows and links at the end of the run.
    pub(super) fn finish(&mut self, scenario: &Scenario, stage: &Stage) {
        for (report, actor) in self.flows.iter_mut().zip(&stage.actors) {
            finish_flow(report, scenario, stage, actor);
        }
        for watched in &mut self.links {
            watched.finish(stage);
        }
    }

    /// Returns the reports of all links.
    pub(super) fn into_links(self) -> Vec<LinkReport> {
        self.links.into_iter().map(|link| link.report).collect()
    }
}

fn sample_flow(report: &mut FlowReport, stage: &Stage, actor: &Actor, now: Time) {
    let received = stage.counters(stage.receiver(actor)).received;
    let new = received - report.bytes_delivered;
    report.bytes_delivered = received;
    // The interval that ends now is the one before the one that starts now.
    let just_before = now.saturating_sub(Duration::from_nanos(1));
    report.delivered.add(just_before, new);
    let Some(stats) = stage.stats(stage.sender(actor)) else {
        return;
    };
    report.received.push(now, received);
    report.sent.push(now, stats.data_sent);
    report.acked.push(now, stats.data_acked);
    let path = &stats.path;
    report.congestion_window.push(now, path.congestion_window);
    report.bytes_in_flight.push(now, path.bytes_in_flight);
    if let Some(ssthresh) = path.ssthresh {
        report.ssthresh.push(now, ssthresh);
    }
    if let Some(rate) = path.pacing_rate {
        report.pacing_rate.push(now, rate.as_bytes_per_second());
    }
    if !path.latest_rtt.is_zero() {
        report.latest_rtt.push(now, nanos(path.latest_rtt));
        report.smoothed_rtt.push(now, nanos(path.rtt));
        report.min_rtt.push(now, nanos(path.min_rtt));
    }
}

fn finish_flow(report: &mut FlowReport, scenario: &Scenario, stage: &Stage, actor: &Actor) {
    let finished = stage.finished_at(actor);
    report.end = finished.unwrap_or_else(|| stage.world.now());
    let from = scenario.measured_from.max(report.start);
    let time = (report.end - from).as_secs_f64();
    if time > 0.0 {
        let bytes = report.delivered.between(from, report.end);
        report.goodput = to_f64(bytes) * 8.0 / time;
    }
    if matches!(actor.flow.kind, Kind::Bulk { .. }) {
        report.completion_time = finished.map(|at| at - report.start);
    }
    if let Some(stats) = stage.stats(stage.sender(actor)) {
        report.controller = stats.path.controller.to_owned();
        report.packets_sent = stats.packets_sent;
        report.packets_lost = stats.packets_lost;
        report.spurious_losses = Some(stats.packets_spuriously_lost);
        report.retransmitted_bytes = stats.data_retransmitted;
        report.congestion_events = stats.congestion_events;
        report.ptos = stats.ptos;
    }
    report.handshake_time = stage.stats(actor.client).and_then(|it| it.handshake_time);
    for (at, took) in &stage.counters(actor.client).exchanges {
        report.exchanges.push(*at, nanos(*took));
    }
    report.failure = failure(stage, actor);
    report.losses = actor.losses.lock().clone();
}

fn failure(stage: &Stage, actor: &Actor) -> Option<String> {
    for (id, end) in [(actor.client, "client"), (actor.server, "server")] {
        let counters = stage.counters(id);
        if let Some(wrong) = counters.mismatch {
            let (stream, offset) = (wrong.stream, wrong.offset);
            return Some(format!("{end}: wrong bytes on {stream:?} behind {offset}"));
        }
        if let Some(failure) = counters.failures.first() {
            return Some(format!("{end}: {failure}"));
        }
    }
    None
}

impl Watched {
    fn sample(&mut self, stage: &Stage, now: Time) {
        let link = stage.world.link(self.id);
        let (stats, queue) = (link.stats(), link.queue());
        let just_before = now.saturating_sub(Duration::from_nanos(1));
        let report = &mut self.report;
        report
            .carried
            .add(just_before, stats.wire_bytes_out - self.carried);
        self.carried = stats.wire_bytes_out;
        if let Some(rate) = rate_at(&self.spec, now) {
            let bits = rate.as_bytes_per_second().saturating_mul(8);
            report.capacity.push(now, bits);
            report.queue_bytes.push(now, queue.bytes);
            report.queue_delay.push(now, nanos(queue.delay));
        }
        report.drops.push(now, stats.dropped.total());
        report.marks.push(now, stats.marked);
    }

    fn finish(&mut self, stage: &Stage) {
        let stats = stage.world.link(self.id).stats();
        let report = &mut self.report;
        report.packets_in = stats.packets_in;
        report.packets_out = stats.packets_out;
        report.dropped = reasons(&stats);
        report.marked = stats.marked;
        report.queue_bytes_max = stats.max_queue_bytes;
    }
}

fn reasons(stats: &LinkStats) -> Vec<(String, u64)> {
    let dropped = &stats.dropped;
    let all = [
        ("loss", dropped.loss),
        ("gilbert", dropped.gilbert),
        ("listed", dropped.listed),
        ("every", dropped.every),
        ("blackhole", dropped.blackhole),
        ("mtu", dropped.mtu),
        ("policer", dropped.policer),
        ("queue full", dropped.queue_full),
        ("aqm", dropped.aqm),
        ("overflow", dropped.overflow),
    ];
    let some = all.into_iter().filter(|(_, count)| *count > 0);
    some.map(|(reason, count)| (reason.to_owned(), count))
        .collect()
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
