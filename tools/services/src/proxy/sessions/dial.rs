//! Connections to the upstream server of sessions.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use courser::server::Cause;
use courser::webtransport::{self, Config, Monitor};
use courser::{ClientConfig, Connection, Endpoint, Side, h3};
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep, timeout};

use super::backend::SessionBackend;
use super::failure;
use crate::body::BoxError;
use crate::proxy::facts::UpstreamFacts;
use crate::proxy::failure::{Failure, NameNotFound};

/// Opens connections to a server.
pub(super) struct SessionDialer {
    backend: SessionBackend,
    client: ClientConfig,
    http3: h3::Config,
    monitor: Monitor,
    /// One for each core, because the connections of an endpoint share a lock. IPv4 first.
    endpoints: [Box<[OnceLock<Endpoint>]>; 2],
    next: AtomicUsize,
}

/// A connection to the upstream server, which lives as long as its session.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) http3: h3::Client,
}

impl SessionDialer {
    pub(super) fn new(
        backend: SessionBackend,
        client: ClientConfig,
        limit: usize,
    ) -> Result<Self, String> {
        let mut http3 = h3::Config::new(Side::Client);
        let config = Config {
            max_all_sessions: limit as u64,
            ..Config::new()
        };
        let monitor = webtransport::enable(&mut http3, Side::Client, config);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let slots = || {
            (0..cores.min(MAX_ENDPOINTS))
                .map(|_| OnceLock::new())
                .collect()
        };
        Ok(Self {
            backend,
            client: client.alpn([h3::ALPN]),
            http3,
            monitor: monitor.map_err(|error| error.to_string())?,
            endpoints: [slots(), slots()],
            next: AtomicUsize::new(0),
        })
    }

    pub(super) const fn backend(&self) -> &SessionBackend {
        &self.backend
    }

    pub(super) const fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// Connects to the first address of the server that answers, within this time for all of them.
    pub(super) async fn connect(
        &self,
        limit: Duration,
        facts: &mut UpstreamFacts,
    ) -> Result<Connected, Failure> {
        let began = Instant::now();
        let addresses = timeout(limit, self.addresses()).await;
        let addresses = addresses.unwrap_or_else(|_| Err(Cause::UpstreamNameNotFound.into()))?;
        let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        let mut failed = None;
        for address in addresses {
            facts.address = Some(address);
            let connecting = self.connect_to(address);
            let connected = match timeout(limit / count, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(Cause::UpstreamConnectTimeout.into()),
            };
            match connected {
                Ok(connection) => {
                    facts.connecting = Some(began.elapsed());
                    let http3 = h3::Client::with_config(connection, self.http3.clone());
                    return Ok(Connected { http3 });
                }
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        Err(failed.unwrap_or_else(|| Cause::UpstreamNameNotFound.into()))
    }

    async fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        let (host, port) = (self.backend.host(), self.backend.port());
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(vec![(ip, port).into()]);
        }
        match tokio::net::lookup_host((host, port)).await {
            Ok(found) => Ok(found.take(MAX_ADDRESSES).collect()),
            Err(error) => Err(Failure::new(
                Cause::UpstreamNameNotFound,
                NameNotFound(error),
            )),
        }
    }

    async fn connect_to(&self, address: SocketAddr) -> Result<Connection, Failure> {
        let endpoint = self.endpoint(address.ip())?;
        let connecting = endpoint
            .connect_with(self.client.clone(), address, self.backend.host())
            .map_err(|error| Failure::new(Cause::UpstreamUnreachable, error))?;
        tokio::select! {
            connected = connecting => connected.map_err(failure::of_connection),
            () = port_closed(address) => Err(Cause::UpstreamRefused.into()),
        }
    }

    /// Returns the next endpoint of a family of addresses.
    fn endpoint(&self, peer: IpAddr) -> Result<Endpoint, Failure> {
        let any: IpAddr = match peer {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let family = &self.endpoints[usize::from(any.is_ipv6())];
        let slot = &family[self.next.fetch_add(1, Relaxed) % family.len()];
        if let Some(endpoint) = slot.get() {
            return Ok(endpoint.clone());
        }
        let opened = Endpoint::client((any, 0).into());
        let opened = opened.map_err(|error| Failure::connecting(BoxError::from(error)))?;
        // Of two tasks that open one, the second drops its own.
        Ok(slot.get_or_init(|| opened).clone())
    }
}

/// Waits until the system reports that no program listens on a UDP port. Without such a report it never completes.
///
/// A connected socket gets the report; that of an endpoint does not know to which of its connections it belongs.
async fn port_closed(address: SocketAddr) {
    sleep(BEFORE_PROBE).await;
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let probe = async {
        let socket = UdpSocket::bind((any, 0)).await?;
        socket.connect(address).await?;
        // One byte is no packet of any version, so that servers drop it.
        socket.send(&[0]).await?;
        socket.recv(&mut [0; 16]).await
    };
    let refused = std::io::ErrorKind::ConnectionRefused;
    if !probe.await.is_err_and(|error| error.kind() == refused) {
        std::future::pending().await
    }
}

/// Endpoints of a family of addresses (limit K667).
const MAX_ENDPOINTS: usize = 16;
/// Addresses of a name that are tried (limit K667).
const MAX_ADDRESSES: usize = 4;
/// Time for the handshake before the port is probed: longer than the handshake on most paths.
const BEFORE_PROBE: Duration = Duration::from_millis(150);
