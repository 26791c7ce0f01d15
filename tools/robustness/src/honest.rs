//! Honest clients that run `courser load` at a fixed rate.

mod storeys;

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

pub(super) use self::storeys::{Clients, Storey};

/// A running `courser load`.
pub(super) struct Load(Child);

/// The service that honest clients received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Service {
    pub(super) succeeded: u64,
    /// The 99th percentile of the response time in seconds.
    pub(super) p99: f64,
    /// Datagrams sent to the server.
    pub(super) datagrams: u64,
}

impl Load {
    /// Starts requests for the small file at a rate far below the capacity of a core.
    pub(super) fn start(
        courser: &Path,
        server: SocketAddr,
        time: Duration,
    ) -> Result<Self, String> {
        Command::new(courser)
            .args(["load", "--h3", "--insecure", "--json", "--no-tui"])
            .args([
                "--clients",
                "4",
                "--max-concurrent-streams",
                "8",
                "--qps",
                RATE,
            ])
            .args(["--connect-timeout", "1s", "--timeout", "2s"])
            .arg("--duration")
            .arg(format!("{}ms", time.as_millis()))
            .arg(format!("https://{server}/"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map(Self)
            .map_err(|error| format!("cannot start {}: {error}", courser.display()))
    }

    /// Waits for the report. Without one, no request counts as successful.
    pub(super) fn finish(self) -> Service {
        let Ok(output) = self.0.wait_with_output() else {
            return Service::default();
        };
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        Service {
            succeeded: report["requests"]["succeeded"].as_u64().unwrap_or(0),
            p99: report["latency"]["p99"].as_f64().unwrap_or(0.0),
            datagrams: report["connections"]["datagramsSent"].as_u64().unwrap_or(0),
        }
    }
}

/// Requests per second over all connections.
const RATE: &str = "400";
