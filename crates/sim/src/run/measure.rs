//! Computes the measures of a run from its observations.

use std::time::Duration;

use courser_base::Time;
use courser_transport::ConnectionStats;

use super::capacity::{bytes_between, rate_at};
use super::ideal::{self, Path, to_f64};
use super::sampler::Sampler;
use super::stage::Stage;
use crate::apps::{Amount, TransferDirection};
use crate::link::LinkSpec;
use crate::report::{Buckets, FlowReport, Measures, jain, quantile};
use crate::scenario::{Kind, Scenario};
use crate::world::LinkId;

/// The bytes of a full datagram that are not payload: flags, connection ID of eight bytes, packet
/// number of two, tag, and a STREAM frame's type, stream ID and offset of four. A share may still
/// be a little above one: data in the queue at the start of the measured time counts when it
/// arrives.
const PACKET_OVERHEAD: u64 = 1 + 8 + 2 + 16 + 1 + 1 + 4;
/// The headers of IPv4 and UDP.
const HEADERS: u64 = 28;

pub(super) fn measures(scenario: &Scenario, stage: &Stage, seen: &Sampler) -> Measures {
    let ends = seen.flows.iter().map(|flow| flow.end);
    let run = Observed {
        scenario,
        stage,
        seen,
        from: scenario.measured_from,
        end: ends.max().unwrap_or(Time::ZERO),
        efficiency: efficiency(stage),
    };
    let mut measures = run.flow_measures();
    run.add_link_measures(&mut measures);
    run.add_ideal_measures(&mut measures);
    run.add_loss_measures(&mut measures);
    run.add_exchange_measures(&mut measures);
    measures
}

/// The observations of a run.
struct Observed<'a> {
    scenario: &'a Scenario,
    stage: &'a Stage,
    seen: &'a Sampler,
    /// The start of the measured time.
    from: Time,
    /// The end of the measured time.
    end: Time,
    /// The largest possible share of payload in the bytes on the wire.
    efficiency: f64,
}

impl Observed<'_> {
    /// Returns the measures of the flows.
    fn flow_measures(&self) -> Measures {
        let flows = &self.seen.flows;
        let delivered = flows.iter().map(|flow| &flow.delivered);
        let bytes: u64 = delivered.map(|it| it.between(self.from, self.end)).sum();
        let time = (self.end - self.from).as_secs_f64();
        let rates = bulk_rates(self.scenario, flows);
        let total: f64 = rates.iter().sum();
        let least = rates.iter().copied().min_by(f64::total_cmp);
        let failures = flows.iter().filter(|flow| flow.failure.is_some());
        Measures {
            goodput: (time > 0.0).then(|| to_f64(bytes) * 8.0 / time),
            goodput_share: self.share_of_capacity(bytes),
            jain: jain(&rates),
            least_share: least.filter(|_| total > 0.0).map(|least| least / total),
            completion_time: longest(self.scenario, flows),
            handshake_time: longest_handshake(flows),
            recovery_time: self.recovery_time(),
            failures: Some(count(failures.count())),
            unfinished: Some(count(unfinished(self.scenario, self.stage))),
            ..Measures::default()
        }
    }

    /// Returns the link in the direction of the payload.
    fn link(&self) -> &LinkSpec {
        match payload_direction(self.scenario) {
            TransferDirection::Up => &self.scenario.link.forward,
            TransferDirection::Down => &self.scenario.link.back,
        }
    }

    /// Returns the ID of the link in the direction of the payload.
    fn link_id(&self) -> LinkId {
        match payload_direction(self.scenario) {
            TransferDirection::Up => self.stage.link.forward,
            TransferDirection::Down => self.stage.link.back,
        }
    }

    /// Returns the payload as a share of the bytes that the link can carry in the measured time.
    fn share_of_capacity(&self, bytes: u64) -> Option<f64> {
        let capacity = bytes_between(self.link(), self.from, self.end)?;
        (capacity > 0).then(|| to_f64(bytes) / (to_f64(capacity) * self.efficiency))
    }

    /// Returns the longest time from a change of the link to nine tenths of its new capacity, over a
    /// round trip and at least four samples. Returns `None` without a change, or if the flow does not
    /// recover before the next one.
    fn recovery_time(&self) -> Option<f64> {
        let flows = &self.seen.flows;
        let path_changes = self.scenario.path_changes();
        let width = flows.first()?.delivered.width();
        let span = self.scenario.base_rtt().max(width * 4);
        let mut longest: Option<Duration> = None;
        for (index, path_change) in path_changes.iter().enumerate() {
            if *path_change >= self.end {
                break;
            }
            let limit = path_changes.get(index + 1).copied().unwrap_or(self.end);
            let mut from = *path_change;
            loop {
                if from + span > limit {
                    return None;
                }
                let capacity = bytes_between(self.link(), from, from + span)?;
                let carried = delivered(flows.iter().map(|flow| &flow.delivered), from, span);
                if to_f64(carried) >= 0.9 * to_f64(capacity) * self.efficiency {
                    break;
                }
                from += width;
            }
            longest = longest.max(Some(from - *path_change));
        }
        longest.map(|time| time.as_secs_f64())
    }

    /// Returns the bytes that left the link as a share of its capacity, from a time on.
    fn utilization(&self, from: Time) -> Option<f64> {
        let id = self.link_id();
        let watched = self.seen.links.iter().find(|link| link.id == id)?;
        let carried = watched.report.carried.between(from, self.end);
        let capacity = bytes_between(self.link(), from, self.end).filter(|it| *it > 0)?;
        Some(to_f64(carried) / to_f64(capacity))
    }

    fn add_link_measures(&self, measures: &mut Measures) {
        if self.link().hops().all(|hop| hop.rate.is_none()) {
            return;
        }
        measures.utilization = self.utilization(self.from);
        let delays = self.stage.world.link(self.link_id()).queue_delays();
        if delays.count() > 0 {
            measures.queue_delay_median = Some(delays.median().as_secs_f64());
            measures.queue_delay_p95 = Some(delays.quantile(950).as_secs_f64());
        }
    }

    /// Adds the measures that compare with an ideal flow or with a model.
    fn add_ideal_measures(&self, measures: &mut Measures) {
        let Some(rate) = rate_at(self.link(), Time::ZERO) else {
            return;
        };
        let path = Path {
            rate,
            rtt: self.scenario.base_rtt(),
            mtu: mtu(self.stage),
            expansion: 1.0 / self.efficiency,
        };
        let from = ideal::steady_from(&path, self.from);
        if from < self.end {
            measures.steady_utilization = self.utilization(from);
            self.add_window_measures(measures, &path, from);
        }
        measures.start_drops = start_drops(self.seen, self.link_id());
        measures.completion_excess = completion_excess(self.scenario, &self.seen.flows, &path);
    }

    /// Adds the first flow's average window from a time on, relative to the one that CUBIC has with this random or
    /// regular loss, and relative to the one for the observed reductions.
    fn add_window_measures(&self, measures: &mut Measures, path: &Path, from: Time) {
        let loss = loss_probability(self.link());
        let model = ideal::cubic_window(path.rtt, loss) * to_f64(path.mtu);
        if loss <= 0.0 || model > path.product() {
            return;
        }
        // The samples are evenly spaced.
        let flow = self.seen.flows.first();
        let samples = flow.map(|it| it.congestion_window.sorted_from(from));
        let Some(samples) = samples.filter(|samples| !samples.is_empty()) else {
            return;
        };
        let sum: u64 = samples.iter().sum();
        let average = to_f64(sum) / to_f64(samples.len() as u64);
        let error = |ratio: f64| (ratio - 1.0).abs();
        measures.window_ratio = Some(average / model);
        measures.window_error = measures.window_ratio.map(error);
        let of_events = event_rate(self.stage, self.seen)
            .map(|rate| ideal::cubic_window(path.rtt, rate) * to_f64(path.mtu));
        measures.event_window_ratio = of_events.map(|model| average / model);
        measures.event_window_error = measures.event_window_ratio.map(error);
    }

    fn add_loss_measures(&self, measures: &mut Measures) {
        let mut sums = [0_u64; 5];
        for (actor, before) in self.stage.actors.iter().zip(&self.seen.before) {
            let Some(stats) = self.stage.stats(self.stage.sender(actor)) else {
                continue;
            };
            let new = [
                stats.packets_sent - before.packets_sent,
                stats.packets_lost - before.packets_lost,
                stats.packets_spuriously_lost - before.packets_spuriously_lost,
                stats.data_sent - before.data_sent,
                stats.data_retransmitted - before.data_retransmitted,
            ];
            for (sum, new) in sums.iter_mut().zip(new) {
                *sum += new;
            }
        }
        let [sent, lost, spurious, data, again] = sums;
        let share = |part: u64, whole: u64| (whole > 0).then(|| to_f64(part) / to_f64(whole));
        measures.loss_rate = share(lost, sent);
        measures.spurious_share = share(spurious, sent);
        measures.retransmitted_share = share(again, data);
    }

    fn add_exchange_measures(&self, measures: &mut Measures) {
        let mut times = Vec::new();
        for actor in &self.stage.actors {
            let exchanges = &self.stage.counters(actor.client).exchanges;
            let measured = exchanges.iter().filter(|(at, _)| *at >= self.from);
            times.extend(measured.map(|(_, took)| took.as_secs_f64()));
        }
        measures.exchange_median = quantile(&times, 0.5);
        measures.exchange_p99 = quantile(&times, 0.99);
    }
}

/// Returns the direction of the payload.
fn payload_direction(scenario: &Scenario) -> TransferDirection {
    let is_bulk = |kind: &Kind| matches!(kind, Kind::Bulk { .. });
    let bulk = scenario.flows.iter().find(|flow| is_bulk(&flow.kind));
    let first = bulk.or(scenario.flows.first());
    first.map_or(TransferDirection::Up, |flow| flow.kind.direction())
}

/// Returns the largest possible share of payload in the bytes on the wire.
fn efficiency(stage: &Stage) -> f64 {
    let mtu = mtu(stage);
    to_f64(mtu - PACKET_OVERHEAD) / to_f64(mtu + HEADERS)
}

/// Returns the largest UDP payload of the senders.
fn mtu(stage: &Stage) -> u64 {
    let senders = stage.actors.iter().map(|actor| stage.sender(actor));
    senders
        .filter_map(|sender| stage.stats(sender))
        .map(|stats| u64::from(stats.path.mtu))
        .max()
        .unwrap_or(1200)
}

fn bulk_rates(scenario: &Scenario, flows: &[FlowReport]) -> Vec<f64> {
    let kinds = scenario.flows.iter().map(|flow| &flow.kind);
    let bulk = kinds
        .zip(flows)
        .filter(|(kind, _)| matches!(kind, Kind::Bulk { .. }));
    bulk.map(|(_, flow)| flow.goodput).collect()
}

fn longest(scenario: &Scenario, flows: &[FlowReport]) -> Option<f64> {
    let mut longest: Option<Duration> = None;
    for (_, flow) in scenario
        .flows
        .iter()
        .zip(flows)
        .filter(|(spec, _)| matches!(spec.kind, Kind::Bulk { .. }) && spec.kind.is_finite())
    {
        longest = longest.max(Some(flow.completion_time?));
    }
    longest.map(|time| time.as_secs_f64())
}

fn longest_handshake(flows: &[FlowReport]) -> Option<f64> {
    let times: Option<Vec<Duration>> = flows.iter().map(|flow| flow.handshake_time).collect();
    times?.into_iter().max().map(|time| time.as_secs_f64())
}

fn unfinished(scenario: &Scenario, stage: &Stage) -> usize {
    let finite = scenario.flows.iter().map(|flow| flow.kind.is_finite());
    finite
        .zip(&stage.actors)
        .filter(|(is_finite, actor)| *is_finite && stage.finished_at(actor).is_none())
        .count()
}

fn delivered<'a>(all: impl Iterator<Item = &'a Buckets>, from: Time, span: Duration) -> u64 {
    all.map(|buckets| buckets.between(from, from + span)).sum()
}

/// Returns the share of packets that a link loses at random or regularly.
fn loss_probability(spec: &LinkSpec) -> f64 {
    let mut passes = 1.0;
    for hop in spec.hops() {
        let random = hop
            .loss
            .map_or(0, |it| it.probability.as_parts_per_billion());
        passes *= 1.0 - f64::from(random) / 1e9;
        passes *= 1.0 - hop.every.map_or(0.0, |every| 1.0 / to_f64(every.max(1)));
    }
    1.0 - passes
}

/// Returns the reductions of the first flow's window per packet that it sent, in the measured time.
fn event_rate(stage: &Stage, seen: &Sampler) -> Option<f64> {
    let stats = stage.stats(stage.sender(stage.actors.first()?))?;
    let before = seen.before.first()?;
    let cuts = |stats: &ConnectionStats| {
        let undone = stats.congestion_events_undone;
        stats.congestion_events.saturating_sub(undone)
    };
    let events = cuts(&stats).saturating_sub(cuts(before));
    let sent = stats.packets_sent.saturating_sub(before.packets_sent);
    (events > 0 && sent > 0).then(|| to_f64(events) / to_f64(sent))
}

/// Returns the drops of the queue at the time at which the first flow got a slow-start threshold.
fn start_drops(seen: &Sampler, id: LinkId) -> Option<f64> {
    let left = seen.flows.first()?.ssthresh.points().first()?.at;
    let watched = seen.links.iter().find(|link| link.id == id)?;
    let before = watched.report.drops.points().iter().rev();
    let drops = before.into_iter().find(|point| point.at <= left);
    Some(to_f64(drops.map_or(0, |point| point.value)))
}

fn completion_excess(scenario: &Scenario, flows: &[FlowReport], path: &Path) -> Option<f64> {
    let mut longest: Option<f64> = None;
    for (flow, report) in scenario.flows.iter().zip(flows) {
        let Kind::Bulk {
            direction,
            amount: Amount::Bytes(bytes),
        } = flow.kind
        else {
            continue;
        };
        let ideal = path.ideal_completion(bytes, direction).as_secs_f64();
        let excess = report.completion_time?.as_secs_f64() - ideal;
        longest = Some(longest.map_or(excess, |longest| longest.max(excess)));
    }
    longest
}

fn count(number: usize) -> f64 {
    to_f64(number as u64)
}
