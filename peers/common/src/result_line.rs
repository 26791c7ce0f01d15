//! The lines that a program prints for the runner.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use crate::command_line::Scenario;
use crate::latency::Latency;
use crate::process::{self, CpuTime};
use crate::tally::Tally;

/// A server's first line: it listens.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Ready {
    /// The address, with the port that was found.
    pub listening: SocketAddr,
}

/// A server's last line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerResult {
    /// The stack's version, where the client's result does not tell it.
    #[serde(default)]
    pub version: String,
    /// Connections whose handshake came to its end.
    pub connections: u64,
    /// Streams, or requests, answered to the end.
    pub answers: u64,
    /// Bytes received, headers apart.
    pub received: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Peak resident memory.
    pub peak_rss_kib: u64,
    /// Counts of the connection that ended last, if the stack reports them.
    #[serde(default)]
    pub path: Option<PathCounts>,
    /// True when the server does not report counts: those above are 0.
    #[serde(default)]
    pub is_uncounted: bool,
    /// CPU time of the server, where it is a child of the program that prints this.
    #[serde(default)]
    pub cpu: Option<CpuTime>,
    /// Unreliable datagrams that came on the connection that ended last.
    #[serde(default)]
    pub datagrams: Option<Datagrams>,
    /// Datagrams that the kernel dropped at the program's sockets; absent from programs that do not
    /// look.
    #[serde(default)]
    pub socket_drops: Option<u64>,
}

/// Unreliable datagrams that a server received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Datagrams {
    /// Their number.
    pub received: u64,
    /// From the first to the last.
    pub seconds: f64,
}

impl ServerResult {
    /// Returns the counts, and the memory used so far.
    pub fn new(tally: &Tally) -> Self {
        Self {
            version: String::new(),
            connections: tally.connections.load(Ordering::Relaxed),
            answers: tally.answers.load(Ordering::Relaxed),
            received: tally.received.load(Ordering::Relaxed),
            sent: tally.sent.load(Ordering::Relaxed),
            peak_rss_kib: process::peak_rss_kib(),
            path: tally.path(),
            is_uncounted: false,
            cpu: None,
            datagrams: tally.datagrams(),
            socket_drops: process::socket_drops(),
        }
    }
}

/// The counts of the sending half of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathCounts {
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets declared lost; what was in them is sent again.
    pub packets_lost: u64,
    /// Of these, packets that were acknowledged later; a stack that does not count them says 0.
    #[serde(default)]
    pub packets_spuriously_lost: u64,
    /// Datagrams that the socket gave.
    #[serde(default)]
    pub datagrams_received: u64,
    /// As the stack counts them: cuts of the window in courser, detections of loss in quinn.
    pub congestion_events: u64,
    /// UDP payload of full packets at the end.
    pub datagram: u16,
    /// Smoothed round-trip time at the end.
    pub rtt_ms: f64,
}

/// A client's only line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClientResult {
    /// The stack's version.
    pub version: String,
    /// The work that was done.
    pub scenario: Scenario,
    /// Bytes moved in `up`, `down` and beside requests of `latency`, 0 else.
    pub bytes: u64,
    /// Handshakes, requests, datagrams or idle connections, 0 else.
    pub count: u64,
    /// The duration of the work; without the handshake, but in `handshake` and `idle`.
    pub seconds: f64,
    /// Of single handshakes or requests.
    pub latency: Option<Latency>,
    /// Peak resident memory.
    pub peak_rss_kib: u64,
    /// Counts of the connection, where there is one and the stack reports them.
    #[serde(default)]
    pub path: Option<PathCounts>,
    /// As [`ServerResult::socket_drops`].
    #[serde(default)]
    pub socket_drops: Option<u64>,
}

/// Prints one line of JSON and does not leave it in a buffer.
///
/// # Errors
/// When standard output is closed.
pub fn print(line: &impl Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// The version of `package` in a lock file of Cargo.
pub fn version_in(lock: &str, package: &str) -> String {
    let entry = format!("name = \"{package}\"\nversion = \"");
    let found = lock
        .split_once(&entry)
        .and_then(|(_, rest)| rest.split_once('"'));
    found.map_or_else(|| "?".to_owned(), |(version, _)| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_a_lock_file() {
        let lock = "[[package]]\nname = \"quinn\"\nversion = \"0.11.12\"\nsource = \"here\"\n";
        assert_eq!(version_in(lock, "quinn"), "0.11.12");
        assert_eq!(version_in(lock, "no-such-package"), "?");
    }
}
