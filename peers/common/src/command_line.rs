//! The command line that all peer programs share.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::settings;

/// One end of a measurement.
#[derive(Debug, Parser)]
pub struct CommandLine {
    /// The end.
    #[command(subcommand)]
    pub role: Role,
}

/// Which end this program is.
#[derive(Debug, Subcommand)]
pub enum Role {
    /// Answers until standard input ends.
    Server(ServerOptions),
    /// Does one piece of work and ends.
    Client(ClientOptions),
}

/// The options of a server.
#[derive(Clone, Debug, Args)]
pub struct ServerOptions {
    /// Folder with `certificate.der` and `key.der`.
    #[arg(long)]
    pub identity: PathBuf,
    /// Address to listen on; port 0 for any.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Bidirectional streams that a client may have open.
    #[arg(long, default_value_t = 100)]
    pub streams: u32,
    /// Count unreliable datagrams.
    #[arg(long)]
    pub datagrams: bool,
    /// The settings of the transport.
    #[command(flatten)]
    pub transport: TransportOptions,
}

/// The options of a client.
#[derive(Clone, Debug, Args)]
pub struct ClientOptions {
    /// Folder with `certificate.der`, which alone is trusted.
    #[arg(long)]
    pub identity: PathBuf,
    /// Address of the server.
    #[arg(long)]
    pub server: SocketAddr,
    /// The work.
    #[arg(long)]
    pub scenario: Scenario,
    /// Bytes to move in `up` and `down` over all streams, and beside the requests of `latency`;
    /// length of each response in `http`.
    #[arg(long, default_value_t = 0)]
    pub bytes: u64,
    /// Handshakes, requests or datagrams in `handshake`, `rr`, `http` and `datagrams`.
    #[arg(long, default_value_t = 0)]
    pub count: u64,
    /// Handshakes or requests that are under way at the same time.
    #[arg(long, default_value_t = 1)]
    pub in_flight: u32,
    /// Connections that `http` spreads its requests over, `up` and `down` their bytes; idle ones.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,
    /// Streams of each connection in `up` and `down`.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub streams: u32,
    /// Bytes of each datagram of `datagrams`.
    #[arg(long, default_value_t = settings::DATAGRAM_PAYLOAD)]
    pub payload: usize,
    /// The settings of the transport.
    #[command(flatten)]
    pub transport: TransportOptions,
}

impl ClientOptions {
    /// Returns the local address of a UDP socket that can reach the server.
    pub fn local(&self) -> SocketAddr {
        let local = match self.server.ip() {
            address if address.is_loopback() => address,
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        SocketAddr::from((local, 0))
    }
}

/// The settings of the transport of a QUIC stack; TCP ignores them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct TransportOptions {
    /// UDP payload of full packets, without discovery; QUIC allows 1200 and more.
    #[arg(long, value_name = "BYTES", default_value_t = settings::PACKET_SIZE,
          value_parser = clap::value_parser!(u16).range(1200..=9000))]
    pub datagram: u16,
    /// The stack's own packet sizes, discovery and windows; CUBIC all the same.
    #[arg(long, conflicts_with = "datagram")]
    pub own_settings: bool,
}

impl TransportOptions {
    /// The arguments that say this; none for what holds without any.
    pub fn arguments(&self) -> Vec<String> {
        if self.own_settings {
            vec!["--own-settings".to_owned()]
        } else if self.datagram == settings::PACKET_SIZE {
            Vec::new()
        } else {
            vec!["--datagram".to_owned(), self.datagram.to_string()]
        }
    }
}

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// Streams from client to server; the clock runs from opening them to the last empty answer.
    Up,
    /// Streams from server to client; the clock runs from opening them to the last byte.
    Down,
    /// Full handshakes, each connection closed as soon as it stands.
    Handshake,
    /// One byte there and one back on one connection, each time on a stream of its own.
    Rr,
    /// `GET /N`, answered with N bytes.
    Http,
    /// As `rr`, beside one stream from client to server on the same connection.
    LatencyUp,
    /// As `rr`, beside one stream from server to client on the same connection.
    LatencyDown,
    /// Unreliable datagrams from client to server.
    Datagrams,
    /// Connections that are kept without any traffic until standard input ends. Each then has to
    /// answer a request.
    Idle,
}
