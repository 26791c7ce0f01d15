//! Whom a client connects to, and how.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use courser::telemetry::SinkFactory;
use courser::{Algorithm, ClientConfig, HandshakeOffer, TransportConfig};
use courser_measure::CpuClock;
use courser_qlog::QlogDirectory;
use rustls::client::Resumption;
use tokio_rustls::TlsConnector;

use super::link::Connector;
use super::quic::QuicConnector;
use super::tcp::TcpConnector;
use crate::args::DEFAULT_PORT;
use crate::error::{Failure, Peer};
use crate::handshake::Tool;

/// Whom a client connects to, and how.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    /// As the user wrote it.
    pub(crate) target: String,
    pub(crate) address: SocketAddr,
    /// What the certificate has to be for.
    pub(crate) name: String,
    pub(crate) over: Over,
    pub(crate) congestion: Algorithm,
    pub(crate) mtu: Option<u16>,
    /// Many UDP datagrams leave in one system call, where the system can.
    pub(crate) segmentation_offload: bool,
    pub(crate) connect_timeout: Duration,
    /// What counts as this end's CPU time.
    pub(crate) clock: CpuClock,
    pub(crate) tls: Arc<rustls::ClientConfig>,
    /// Where traces go.
    pub(crate) qlog: Option<Arc<QlogDirectory>>,
}

/// What carries the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Over {
    Quic,
    Tcp,
}

impl Over {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Quic => "quic",
            Self::Tcp => "tls over tcp",
        }
    }
}

impl Remote {
    /// A socket to connect from.
    pub(crate) fn connector(&self) -> Result<Connector, Failure> {
        match self.over {
            Over::Quic => QuicConnector::new(self, self.quic_config()).map(Connector::Quic),
            Over::Tcp => {
                let connector = TlsConnector::from(self.tls.clone());
                Ok(Connector::Tcp(TcpConnector::new(connector)))
            }
        }
    }

    /// The same with sessions resumed by tickets; what is made from it shares them.
    #[must_use]
    pub(crate) fn resuming(&self) -> Self {
        let mut tls = rustls::ClientConfig::clone(&self.tls);
        tls.resumption = Resumption::in_memory_sessions(TICKETS);
        Self {
            tls: Arc::new(tls),
            ..self.clone()
        }
    }

    fn quic_config(&self) -> ClientConfig {
        let transport = TransportConfig {
            handshake_timeout: self.connect_timeout,
            max_uni_streams: super::server::MAX_STREAMS,
            sinks: self.qlog.clone().map(|qlog| qlog as Arc<dyn SinkFactory>),
            ..transport(self.congestion, self.mtu)
        };
        ClientConfig::with_rustls(self.tls.clone()).transport_config(transport)
    }

    pub(crate) fn peer(&self) -> Peer<'_> {
        Peer {
            address: self.address,
            name: &self.name,
            tool: Tool::Perf,
        }
    }

    /// Returns the offer of handshakes, for messages.
    pub(crate) fn offer(&self) -> HandshakeOffer {
        HandshakeOffer::of_tls13(&self.tls)
    }
}

/// What both ends set.
pub(crate) fn transport(congestion: Algorithm, mtu: Option<u16>) -> TransportConfig {
    let default = TransportConfig::default();
    TransportConfig {
        congestion,
        mtu: mtu.unwrap_or(default.mtu),
        // A size that was asked for stays, so that figures can be compared.
        mtu_discovery: mtu.is_none(),
        // The connection that asks for the server's counters is silent in between.
        keep_alive_interval: Some(Duration::from_secs(10)),
        ..default
    }
}

/// Splits `HOST[:PORT]`; the host of `[::1]:4433` is `::1`.
pub(crate) fn split_target(target: &str) -> Result<(&str, u16), Failure> {
    let wrong = |what: &str| Failure::new(format!("'{target}' is not HOST:PORT: {what}"));
    let port = |text: &str| match text.parse() {
        Ok(0) | Err(_) => Err(wrong("a port is a number from 1 to 65535")),
        Ok(port) => Ok(port),
    };
    if let Some(rest) = target.strip_prefix('[') {
        let (host, behind) = rest
            .split_once(']')
            .ok_or_else(|| wrong("']' is missing"))?;
        return match behind.strip_prefix(':') {
            Some(text) => Ok((host, port(text)?)),
            None if behind.is_empty() => Ok((host, DEFAULT_PORT)),
            None => Err(wrong("':' is missing after ']'")),
        };
    }
    let (host, port) = match target.split_once(':') {
        None => (target, DEFAULT_PORT),
        // An IPv6 address without brackets has no port.
        Some((_, rest)) if rest.contains(':') => (target, DEFAULT_PORT),
        Some((host, text)) => (host, port(text)?),
    };
    if host.is_empty() {
        Err(wrong("the host is missing"))
    } else {
        Ok((host, port))
    }
}

/// The addresses of a host, in the system's order of preference.
pub(crate) fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    let addresses: Vec<_> = match (host, port).to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        // RFC 6761 §6.3, where a container has no `/etc/hosts`.
        Err(_) if is_local(host) => {
            let loopback: [IpAddr; 2] = [Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
            loopback.map(|ip| SocketAddr::new(ip, port)).to_vec()
        }
        Err(error) => {
            return Err(Failure::new(format!("cannot resolve '{host}': {error}")));
        }
    };
    if addresses.is_empty() {
        return Err(Failure::new(format!(
            "cannot resolve '{host}': it has no address"
        )));
    }
    Ok(addresses)
}

fn is_local(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// Enough for many handshakes at once; each brings new ones.
const TICKETS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_may_leave_the_port_out() {
        assert_eq!(split_target("example.org"), Ok(("example.org", 4433)));
        assert_eq!(split_target("example.org:1"), Ok(("example.org", 1)));
        assert_eq!(split_target("[::1]:443"), Ok(("::1", 443)));
        assert_eq!(split_target("[::1]"), Ok(("::1", 4433)));
        assert_eq!(split_target("::1"), Ok(("::1", 4433)));
    }

    #[test]
    fn names_below_localhost_are_this_machine() {
        for host in ["localhost", "app.localhost", "App.LocalHost"] {
            let found = resolve(host, 1).expect(host);
            assert!(!found.is_empty(), "{host}");
            assert!(found.iter().all(|address| address.ip().is_loopback()));
        }
        assert!(!is_local("localhost.example") && !is_local("notlocalhost"));
    }

    #[test]
    fn what_is_no_target_says_why() {
        for wrong in [
            "host:0",
            "host:x",
            "host:70000",
            ":443",
            "[::1",
            "[::1]443",
            "host:",
            "",
        ] {
            let error = split_target(wrong).expect_err(wrong);
            assert!(
                error.to_string().contains("is not HOST:PORT"),
                "{wrong}: {error}"
            );
        }
    }
}
