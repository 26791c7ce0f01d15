//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::scenarios::Scenario;
use crate::sender::Sender;

/// Measures senders beside TCP of the kernel, in a queue of the kernel. Needs root, ip and tc.
#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// Scenarios.
    #[arg(long, value_delimiter = ',', default_value = "come-and-go,share,step")]
    pub(crate) scenarios: Vec<Scenario>,
    /// Senders: courser, courser-no-rise, courser-newreno, courser-bbr, courser-prague, kernel-cubic,
    /// kernel-bbr, quinn, noq, s2n-quic.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "courser,courser-no-rise,kernel-cubic,quinn"
    )]
    pub(crate) senders: Vec<Sender>,
    /// Runs of each sender.
    #[arg(long, default_value_t = 1)]
    pub(crate) runs: u32,
    /// Seconds of a run.
    #[arg(long, default_value_t = 30)]
    pub(crate) seconds: u64,
    /// Rate of the link in Mbit/s, except for `step`.
    #[arg(long, default_value_t = 50.0)]
    pub(crate) megabits: f64,
    /// Round-trip time in milliseconds.
    #[arg(long, default_value_t = 40)]
    pub(crate) rtt: u64,
    /// The queue as a multiple of what the path holds, except for `step`.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) queue: f64,
    /// The program `courser` [default: beside this program]
    #[arg(long)]
    pub(crate) courser: Option<PathBuf>,
}

impl Options {
    pub(crate) fn rtt(&self) -> Duration {
        Duration::from_millis(self.rtt)
    }

    pub(crate) fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}
