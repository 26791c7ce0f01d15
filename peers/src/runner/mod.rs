//! The runner: a plan, measurements one after another, a report.
//!
//! Every measurement starts a fresh server and a fresh client. A pair is one measurement of each
//! stack for one workload, next to one another in time; what is compared are the two halves of a
//! pair, so that a slow hour of the machine slows both.

mod bars;
mod build;
mod child;
mod files;
mod host;
mod link;
mod load;
mod measure;
mod plan;
mod registry;
mod report;
mod veth;
mod workload;

use std::process::ExitCode;

use clap::Parser;
use peers::Failure;
use serde::Serialize;

use measure::{Measurement, Measurer};
use plan::Plan;
use registry::Stack;
use report::{Ratio, Summary};

/// Plans, measures and reports; the exit code says whether every measurement came to its end.
pub(crate) fn run() -> Result<ExitCode, Failure> {
    let plan = Plan::parse();
    plan.check()?;
    if !plan.no_build {
        build::programs(&plan)?;
    }
    let stacks = registry::select(&plan)?;
    if plan.link.is_some() {
        link::program()?;
    }
    if cfg!(debug_assertions) {
        eprintln!("peers: a debug build; its figures say nothing");
    }
    // A connection over TCP is a descriptor at either end.
    peers::descriptors::raise()?;
    let mut measurer = Measurer::new(&plan)?;
    let measurements = measure_all(&plan, &stacks, &mut measurer)?;
    let summary = Summary {
        discarded: measurer.discarded(),
        ..Summary::new(&plan, &stacks, &measurements)
    };
    let ratios = Ratio::all(&plan, &stacks, &measurements);
    if let Some(file) = &plan.svg {
        std::fs::write(file, bars::draw(&plan, &summary))
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    if plan.json {
        peers::print(&Line::Summary {
            summary: &summary,
            ratios: &ratios,
        })?;
    } else {
        print!("{}", report::render(&plan, &summary, &ratios));
    }
    Ok(if measurer.failures() == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Pairs outermost, so that a run that is broken off has whole pairs of every workload.
fn measure_all(
    plan: &Plan,
    stacks: &[Stack],
    measurer: &mut Measurer<'_>,
) -> Result<Vec<Measurement>, Failure> {
    let mut measurements = Vec::new();
    for pair in 0..plan.pairs {
        for workload in &plan.workloads {
            for stack in stacks.iter().filter(|stack| stack.does(*workload)) {
                match measurer.measure(stack, *workload, pair) {
                    Ok(measurement) => {
                        if plan.json {
                            peers::print(&Line::Measurement(&measurement))?;
                        }
                        measurements.push(measurement);
                    }
                    Err(failure) => {
                        let (name, failure) = (stack.name.as_str(), failure.to_string());
                        eprintln!("peers: pair {pair} {workload} {name}: {failure}");
                        if plan.json {
                            let workload = workload.to_string();
                            peers::print(&Line::Failure {
                                pair,
                                workload,
                                stack: name,
                                failure,
                            })?;
                        }
                    }
                }
            }
        }
        eprintln!("pair {} of {} done", pair + 1, plan.pairs);
    }
    Ok(measurements)
}

/// A line of `--json`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'a> {
    Measurement(&'a Measurement),
    Failure {
        pair: usize,
        workload: String,
        stack: &'a str,
        failure: String,
    },
    Summary {
        summary: &'a Summary,
        ratios: &'a [Ratio],
    },
}
