//! courser and other senders beside TCP of the kernel, in a queue of the kernel.
//!
//! Three network namespaces stand in a row. A relay in the middle one delays every frame, whatever
//! its protocol, and the queue discipline `tbf` on its interface to the receiver is the bottleneck.
//! So packets are counted and lost on the wire, and not by what a sender reports.

mod flows;
mod frame;
mod network;
mod options;
mod relay;
mod report;
mod scenarios;
mod sender;
mod tcp;

use std::process::ExitCode;

use clap::Parser as _;
use peers::Failure;

use network::{Link, Network};
use options::Options;

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(reason) = network::missing() {
        println!("SKIPPED: {reason}");
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("coexist: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let folder = std::env::temp_dir().join(format!("coexist-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    peers::identity::generate(&folder)?;
    let result = measure(options, &folder);
    std::fs::remove_dir_all(&folder)?;
    result
}

fn measure(options: &Options, identity: &std::path::Path) -> Result<(), Failure> {
    for scenario in &options.scenarios {
        println!("{}", scenario.heading(options));
        for round in 1..=options.runs {
            for sender in &options.senders {
                let network = Network::new(&scenario.link(options))?;
                let program = sender::Place {
                    network: &network,
                    identity,
                    courser: options.courser.as_deref(),
                };
                let row = scenario.run(&program, sender, options)?;
                println!("{}", report::line(sender, round, &row));
            }
        }
        println!();
    }
    Ok(())
}

impl Link {
    /// Returns a link whose queue holds `bdps` times what the path holds.
    fn with_queue(megabits: f64, rtt: std::time::Duration, bdps: f64) -> Self {
        let bytes = megabits * 125_000.0 * rtt.as_secs_f64() * bdps;
        Self {
            megabits,
            rtt,
            queue: bytes as u64,
        }
    }
}
