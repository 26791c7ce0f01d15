//! `courser load`, the client that all servers of HTTP are measured with.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use peers::command_line::Scenario;
use peers::latency::Latency;
use peers::{ClientResult, Failure, identity, settings, web};
use serde::Deserialize;

use super::plan::{Plan, Workload};

/// The program with what is the same in every measurement.
pub(crate) fn command(
    program: &Path,
    protocol: &str,
    identity: &Path,
    server: SocketAddr,
) -> Command {
    let mut command = Command::new(program);
    command.args(["load", "--json", protocol, "--ca"]);
    command.arg(identity.join(identity::CERTIFICATE_PEM));
    command.args(["--connect-to", &server.to_string()]);
    command
}

/// What it is to do. Windows and datagrams are those of [`settings`].
pub(crate) fn work(plan: &Plan, workload: Workload) -> Vec<String> {
    let (count, size) = match workload {
        Workload::HttpDown => (1, plan.bytes()),
        _ => (plan.requests, plan.response_size),
    };
    let connections = workload.connections();
    let mut arguments = vec![
        format!("--requests={count}"),
        format!("--clients={connections}"),
        format!(
            "--max-concurrent-streams={}",
            workload.in_flight() / connections
        ),
        format!("https://{}{}", settings::SERVER_NAME, web::path(size)),
    ];
    if !plan.transport.own_settings {
        let bits = |window: u32| window.ilog2();
        arguments.extend([
            format!("--window-bits={}", bits(settings::STREAM_WINDOW)),
            format!(
                "--connection-window-bits={}",
                bits(settings::CONNECTION_WINDOW)
            ),
            format!("--max-udp-payload-size={}", plan.transport.datagram),
        ]);
    }
    arguments
}

/// What it prints, as far as it matters here.
#[derive(Debug, Deserialize)]
pub(crate) struct LoadReport {
    summary: Summary,
    requests: Requests,
    latency: Times,
    traffic: Traffic,
    #[serde(rename = "errorDistribution")]
    errors: serde_json::Value,
}

#[derive(Debug, Deserialize)]
struct Summary {
    /// Seconds, handshakes included.
    total: f64,
}

#[derive(Debug, Deserialize)]
struct Requests {
    asked: u64,
    succeeded: u64,
}

#[derive(Debug, Deserialize)]
struct Times {
    median: f64,
    p99: f64,
}

#[derive(Debug, Deserialize)]
struct Traffic {
    data: u64,
}

impl LoadReport {
    /// The same as a peer program says it.
    ///
    /// # Errors
    /// When a request failed.
    pub(crate) fn result(self) -> Result<ClientResult, Failure> {
        let Requests { asked, succeeded } = self.requests;
        if succeeded != asked {
            return Err(format!("{succeeded} of {asked} requests: {}", self.errors).into());
        }
        Ok(ClientResult {
            version: String::new(),
            scenario: Scenario::Http,
            bytes: self.traffic.data,
            count: succeeded,
            seconds: self.summary.total,
            latency: Some(Latency {
                p50_us: self.latency.median * 1e6,
                p99_us: self.latency.p99 * 1e6,
            }),
            peak_rss_kib: 0,
            path: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(succeeded: u64) -> LoadReport {
        let text = format!(
            r#"{{"summary": {{"total": 2.0, "x": 1}}, "traffic": {{"data": 7}},
                "requests": {{"asked": 7, "succeeded": {succeeded}}},
                "latency": {{"median": 0.001, "p99": 0.002}},
                "errorDistribution": {{"connection reset": 1}}}}"#
        );
        serde_json::from_str(&text).expect("as `courser load` prints it")
    }

    #[test]
    fn a_report_becomes_a_result() {
        let result = report(7).result().expect("all succeeded");
        assert_eq!((result.count, result.bytes), (7, 7));
        assert!((result.seconds - 2.0).abs() < 1e-9);
        assert_eq!(result.latency.map(|latency| latency.p99_us), Some(2000.0));
    }

    #[test]
    fn failed_requests_spoil_it() {
        let failure = report(6).result().expect_err("one failed");
        assert!(
            failure.to_string().contains("connection reset"),
            "{failure}"
        );
    }
}
