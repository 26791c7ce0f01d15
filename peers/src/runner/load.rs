//! `courser load`, the client that all servers of HTTP are measured with.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use peers::command_line::Scenario;
use peers::installed::Protocol;
use peers::latency::Latency;
use peers::{ClientResult, Failure, identity, settings, web};
use serde::Deserialize;

use super::files;
use super::plan::Plan;
use super::workload::{Content, Workload};

/// The program with what is the same in every measurement.
pub(crate) fn command(
    program: &Path,
    protocol: Protocol,
    identity: &Path,
    server: SocketAddr,
) -> Command {
    let mut command = Command::new(program);
    command.args(["load", "--json", flag(protocol), "--ca"]);
    command.arg(identity.join(identity::CERTIFICATE_PEM));
    command.args(["--connect-to", &server.to_string()]);
    command
}

/// Returns its flag for a protocol.
const fn flag(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::H1 => "--h1",
        Protocol::H2 => "--h2",
        Protocol::H3 => "--h3",
    }
}

/// Returns the arguments of the load generator, with the folder of the run. Windows and datagrams are
/// those of [`settings`].
pub(crate) fn work(
    plan: &Plan,
    workload: Workload,
    protocol: Protocol,
    folder: &Path,
) -> Vec<OsString> {
    let (count, target) = match workload {
        Workload::HttpDown => (1, url(&web::path(plan.bytes()))),
        Workload::Files { content, .. } => (
            plan.requests,
            match content {
                Content::One | Content::Origin => url(files::ONE),
                Content::Folder => {
                    let mut list = OsString::from("--input-file=");
                    list.push(files::list(folder));
                    list
                }
            },
        ),
        _ => (plan.requests, url(&web::path(plan.response_size))),
    };
    // HTTP/1.1 has one request in flight on a connection.
    let connections = match protocol {
        Protocol::H1 => workload.in_flight(),
        Protocol::H2 | Protocol::H3 => workload.connections(),
    };
    let mut arguments = vec![
        format!("--requests={count}"),
        format!("--clients={connections}"),
        format!(
            "--max-concurrent-streams={}",
            workload.in_flight() / connections
        ),
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
    let mut arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    arguments.push(target);
    arguments
}

fn url(path: &str) -> OsString {
    format!("https://{}{path}", settings::SERVER_NAME).into()
}

/// The part of the report that matters here.
#[derive(Debug, Deserialize)]
pub(crate) struct LoadReport {
    summary: Summary,
    requests: Requests,
    latency: Times,
    traffic: Traffic,
    connections: Connections,
    tls: Option<Tls>,
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

#[derive(Debug, Deserialize)]
struct Connections {
    /// Those that ended before the run did.
    lost: u64,
}

#[derive(Debug, Deserialize)]
struct Tls {
    cipher: Option<String>,
}

impl LoadReport {
    /// The same as a peer program says it.
    ///
    /// # Errors
    /// When a request failed, a connection was lost, or another cipher suite was agreed on.
    pub(crate) fn result(self) -> Result<ClientResult, Failure> {
        let Requests { asked, succeeded } = self.requests;
        if succeeded != asked {
            return Err(format!("{succeeded} of {asked} requests: {}", self.errors).into());
        }
        if self.connections.lost > 0 {
            return Err(format!("{} connections were lost", self.connections.lost).into());
        }
        if let Some(cipher) = self.tls.and_then(|tls| tls.cipher)
            && cipher != settings::CIPHER
        {
            return Err(format!("the server agreed to {cipher}").into());
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
            socket_drops: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(succeeded: u64) -> LoadReport {
        with_cipher(succeeded, settings::CIPHER)
    }

    fn with_cipher(succeeded: u64, cipher: &str) -> LoadReport {
        let text = format!(
            r#"{{"summary": {{"total": 2.0, "x": 1}}, "traffic": {{"data": 7}},
                "requests": {{"asked": 7, "succeeded": {succeeded}}},
                "connections": {{"lost": 0}}, "tls": {{"cipher": "{cipher}"}},
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
    fn another_cipher_suite_is_refused() {
        let failure = with_cipher(7, "TLS_AES_256_GCM_SHA384").result();
        let failure = failure.expect_err("not what the others have").to_string();
        assert!(failure.contains("TLS_AES_256_GCM_SHA384"), "{failure}");
    }

    #[test]
    fn lost_connections_are_refused() {
        let mut report = report(7);
        report.connections.lost = 1;
        assert!(report.result().is_err());
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
