//! Writes the results as JSON.

use std::collections::BTreeMap;

use courser_sim::report::{FlowReport, MEASURES, Measure, Measures, RunReport};
use serde::Serialize;

use super::outcome::Outcome;
use super::sources::Source;
use crate::error::Failure;
use crate::sim::spread::Spread;
use crate::sim::verdict::Judged;

#[derive(Serialize)]
struct Document<'a> {
    holds: bool,
    scenarios: Vec<ScenarioPart<'a>>,
}

#[derive(Serialize)]
struct ScenarioPart<'a> {
    scenario: &'a str,
    file: String,
    /// Values over all runs by the name of the measure; units are seconds, bits per second, shares.
    measures: BTreeMap<&'static str, Spread>,
    bounds: Vec<BoundPart>,
    runs: Vec<RunPart<'a>>,
}

#[derive(Serialize)]
struct BoundPart {
    bound: String,
    holds: bool,
    value: Option<f64>,
    worst_seed: Option<u64>,
    replay: Option<String>,
}

#[derive(Serialize)]
struct RunPart<'a> {
    seed: u64,
    /// The digest in hexadecimal: numbers of JSON would lose its last digits.
    digest: String,
    seconds: f64,
    measures: &'a Measures,
    flows: Vec<FlowPart<'a>>,
}

#[derive(Serialize)]
struct FlowPart<'a> {
    name: &'a str,
    controller: &'a str,
    goodput: f64,
    bytes_delivered: u64,
    packets_sent: u64,
    packets_lost: u64,
    spurious_losses: Option<u64>,
    retransmitted_bytes: u64,
    congestion_events: u64,
    ptos: u64,
    handshake_seconds: Option<f64>,
    completion_seconds: Option<f64>,
    failure: Option<&'a str>,
}

/// Writes the results as JSON. `replay` returns the command that repeats a run of a scenario with a
/// seed.
pub(super) fn document(
    outcomes: &[Outcome<'_>],
    replay: impl Fn(&Source, u64) -> String,
) -> Result<String, Failure> {
    let mut all = outcomes.iter().flat_map(|outcome| &outcome.judged);
    let document = Document {
        holds: all.all(|judged| judged.verdict.holds),
        scenarios: outcomes.iter().map(|it| scenario(it, &replay)).collect(),
    };
    serde_json::to_string_pretty(&document)
        .map_err(|error| Failure::new(format!("cannot write JSON: {error}")))
}

fn scenario<'a>(
    outcome: &'a Outcome<'_>,
    replay: impl Fn(&Source, u64) -> String,
) -> ScenarioPart<'a> {
    let bound = |judged: &Judged| BoundPart {
        bound: judged.bound.to_string(),
        holds: judged.verdict.holds,
        value: judged.verdict.value,
        worst_seed: judged.verdict.worst_seed,
        replay: judged
            .verdict
            .worst_seed
            .map(|seed| replay(outcome.source, seed)),
    };
    ScenarioPart {
        scenario: &outcome.source.scenario.name,
        file: outcome.source.path.display().to_string(),
        measures: spreads(outcome.runs),
        bounds: outcome.judged.iter().map(bound).collect(),
        runs: outcome.runs.iter().map(run).collect(),
    }
}

fn spreads(runs: &[RunReport]) -> BTreeMap<&'static str, Spread> {
    let spread = |measure: &'static Measure| {
        let values = runs.iter().filter_map(|it| (measure.of)(&it.measures));
        let spread = Spread::of(&values.collect::<Vec<_>>())?;
        Some((measure.name, spread))
    };
    MEASURES.iter().filter_map(spread).collect()
}

fn run(report: &RunReport) -> RunPart<'_> {
    RunPart {
        seed: report.seed,
        digest: format!("{:016x}", report.digest),
        seconds: report.duration.as_secs_f64(),
        measures: &report.measures,
        flows: report.flows.iter().map(flow).collect(),
    }
}

fn flow(report: &FlowReport) -> FlowPart<'_> {
    FlowPart {
        name: &report.name,
        controller: &report.controller,
        goodput: report.goodput,
        bytes_delivered: report.bytes_delivered,
        packets_sent: report.packets_sent,
        packets_lost: report.packets_lost,
        spurious_losses: report.spurious_losses,
        retransmitted_bytes: report.retransmitted_bytes,
        congestion_events: report.congestion_events,
        ptos: report.ptos,
        handshake_seconds: report.handshake_time.map(|time| time.as_secs_f64()),
        completion_seconds: report.completion_time.map(|time| time.as_secs_f64()),
        failure: report.failure.as_deref(),
    }
}
