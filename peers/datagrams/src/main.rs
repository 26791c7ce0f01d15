//! A VPN and a conference over datagrams of courser and of quinn, in one interleaved run. See peers/README.md.
//!
//! Client, router and server stand in network namespaces of their own. The router is the kernel's, or an emulated link
//! with a delay and a rate.

mod measure;
mod network;
#[allow(unreachable_pub, reason = "the crate for quinn exports it")]
mod program;
mod report;
mod scenarios;
mod stack;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use peers_common::Failure;

use measure::{Measurement, Stack};
use scenarios::Scenario;

/// Measures a VPN and a conference over datagrams of courser and of quinn. Needs root, and ip of iproute2.
#[derive(Debug, Parser)]
#[command(name = "datagram-programs")]
struct Options {
    /// Pairs of measurements of each scenario.
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Seconds of load of a measurement.
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Scenarios, all by default.
    #[arg(long, value_delimiter = ',')]
    scenarios: Vec<Scenario>,
    /// Prints each measurement as a line of JSON on standard error.
    #[arg(long)]
    verbose: bool,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let result = match arguments.next().as_deref().and_then(|word| word.to_str()) {
        Some("end-courser") => program::run(std::env::args_os().skip(1)),
        Some("end-quinn") => peers_datagrams_quinn::run(std::env::args_os().skip(1)),
        _ => compare(&Options::parse()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("datagram-programs: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn compare(options: &Options) -> Result<(), Failure> {
    if let Some(reason) = network::missing() {
        println!("SKIPPED: {reason}");
        return Ok(());
    }
    let folder = std::env::temp_dir().join(format!("datagram-programs-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    peers_common::identity::generate(&folder)?;
    let result = measure_all(options, &folder);
    std::fs::remove_dir_all(&folder)?;
    result
}

fn measure_all(options: &Options, identity: &Path) -> Result<(), Failure> {
    println!(
        "courser {}, quinn {}: {} pairs, {} s of load. Medians, and the ratio courser / quinn with its 95 % interval.\n",
        peers_common::locked_version("courser"),
        peers_common::locked_version("quinn"),
        options.pairs,
        options.seconds
    );
    let all = Scenario::ALL;
    let scenarios = match options.scenarios.as_slice() {
        [] => &all,
        some => some,
    };
    for scenario in scenarios {
        let mut pairs: Vec<[Measurement; 2]> = Vec::new();
        for pair in 0..options.pairs {
            let measure = |stack| measure::run(*scenario, stack, options.seconds, identity, pair);
            // The order alternates as well.
            let both = match pair % 2 {
                0 => {
                    let courser = measure(Stack::Courser)?;
                    [courser, measure(Stack::Quinn)?]
                }
                _ => {
                    let quinn = measure(Stack::Quinn)?;
                    [measure(Stack::Courser)?, quinn]
                }
            };
            if options.verbose {
                eprintln!("{} {}", scenario.name(), serde_json::to_string(&both)?);
            }
            pairs.push(both);
        }
        println!("{}", report::table(*scenario, &pairs));
    }
    Ok(())
}
