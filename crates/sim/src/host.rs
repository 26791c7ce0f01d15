//! Hosts of a world: a real endpoint with an application.

mod app;
mod context;
mod identity;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use courser_base::{Ecn, FourTuple, Time};
use courser_transport::{
    ClientConfig, Connection, ConnectionHandle, ConnectionStats, Endpoint, EndpointConfig, Event,
    NewPath, PacketTooBig, ReceiveMeta, RetryPolicy, ServerConfig, SocketId, Transmit,
    TransmitBuffer, TransportConfig,
};

use crate::apps::AppCounters;
use crate::node::Node;
use crate::packet::{Packet, TooBig};
use crate::seed::{derive, widen};

pub use self::app::App;
pub use self::context::Context;
pub use self::identity::{SERVER_NAME, certificate, client_tls, identity, server_tls};

/// The settings of a host.
#[derive(Clone, Debug)]
pub struct HostSpec {
    /// The address of the host, from which all packets are sent, including responses to another
    /// address.
    pub address: SocketAddr,
    /// Further addresses, each with a socket of its own. A client opens a path from each of them as soon as it can. See
    /// [`World::connect_from`](crate::World::connect_from) for their links.
    pub further: Vec<SocketAddr>,
    /// The seed of connection IDs, keys and challenges, see
    /// [`World::seed_for`](crate::World::seed_for).
    pub seed: u64,
    /// The settings of connections of clients and servers. By default they search for an MTU up to
    /// [`ETHERNET_PAYLOAD`], because links have no MTU by default. Its `sinks` record the
    /// connections.
    pub transport: TransportConfig,
    /// True if the host accepts connections.
    pub is_server: bool,
    /// The policy for address validation with Retry.
    pub retry: RetryPolicy,
    /// The only application protocol that the host offers (ALPN).
    pub alpn: Vec<u8>,
    /// Maximum number of datagrams sent in one batch, as on a system with segmentation offload.
    pub max_segments: usize,
}

impl HostSpec {
    /// Creates a client with default settings.
    pub fn client(address: SocketAddr, seed: u64) -> Self {
        Self {
            address,
            further: Vec::new(),
            seed,
            transport: TransportConfig {
                mtu_max: ETHERNET_PAYLOAD,
                ..TransportConfig::default()
            },
            is_server: false,
            retry: RetryPolicy::Never,
            alpn: b"perf".to_vec(),
            max_segments: DEFAULT_SEGMENTS,
        }
    }

    /// Creates a server with default settings, without address validation by Retry.
    pub fn server(address: SocketAddr, seed: u64) -> Self {
        Self {
            is_server: true,
            ..Self::client(address, seed)
        }
    }

    /// Replaces the settings of connections.
    #[must_use]
    pub fn with_transport(self, transport: TransportConfig) -> Self {
        Self { transport, ..self }
    }
}

/// The UDP payload of an Ethernet frame with 1500 bytes of IPv4.
pub const ETHERNET_PAYLOAD: u16 = 1472;

/// The default number of datagrams in a batch, which is usual for drivers of network devices.
pub const DEFAULT_SEGMENTS: usize = 16;

/// A host of a world: a real endpoint with an application.
///
/// TLS is real too, so keys and ciphertext differ between runs. Nothing else differs. All hosts
/// present the same test certificate, so that messages have the same sizes everywhere.
pub struct Host {
    address: SocketAddr,
    further: Vec<SocketAddr>,
    endpoint: Endpoint,
    client: ClientConfig,
    app: Box<dyn App>,
    is_started: bool,
    buffer: TransmitBuffer,
    outgoing: VecDeque<Packet>,
    arrived: Arrived,
    log: Vec<(Time, ConnectionHandle, Event)>,
    ended: BTreeMap<ConnectionHandle, ConnectionStats>,
}

/// Datagrams from one source that arrived at the same time, coalesced as by an operating system.
#[derive(Debug, Default)]
struct Arrived {
    source: Option<(SocketAddr, SocketId, Ecn)>,
    segment_size: usize,
    bytes: Vec<u8>,
}

/// Maximum number of events that a host keeps, without those of streams.
const MAX_LOG: usize = 10_000;

/// Maximum number of closed connections whose counters a host keeps.
const MAX_ENDED: usize = 10_000;

/// The size of a receive buffer.
const RECEIVE_BUFFER: usize = 65_535;

impl Host {
    /// Creates a host.
    ///
    /// # Panics
    /// If a setting of `spec.transport` is out of range.
    pub fn new(spec: HostSpec, app: impl App) -> Self {
        let valid = spec.transport.validate();
        assert!(valid.is_ok(), "{valid:?}");
        let transport = Arc::new(spec.transport);
        let server = spec.is_server.then(|| {
            let mut server = ServerConfig::new(server_tls(&spec.alpn));
            server.transport = Arc::clone(&transport);
            server.retry = spec.retry;
            Arc::new(server)
        });
        let mut client = ClientConfig::new(client_tls(&spec.alpn));
        client.transport = transport;
        let mut config = EndpointConfig {
            unix_seconds_at_epoch: EPOCH,
            ..EndpointConfig::from_seed(widen(derive(spec.seed, "keys")))
        };
        // One window gets an eighth of the budget for all, and memory is tight before it is full.
        let largest = client.transport.receive_window_max;
        config.receive_budget = config.receive_budget.max(largest.saturating_mul(8));
        config.memory_budget = config.memory_budget.max(largest.saturating_mul(8));
        Self {
            address: spec.address,
            further: spec.further,
            endpoint: Endpoint::new(config, server, widen(derive(spec.seed, "endpoint"))),
            client,
            app: Box::new(app),
            is_started: false,
            buffer: TransmitBuffer::new(spec.max_segments),
            outgoing: VecDeque::new(),
            arrived: Arrived::default(),
            log: Vec::new(),
            ended: BTreeMap::new(),
        }
    }

    /// Returns the address from which the host sends.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the application if it has this type.
    pub fn app<A: App>(&self) -> Option<&A> {
        let app: &dyn std::any::Any = &*self.app;
        app.downcast_ref()
    }

    /// Returns the counters of the application if it has any.
    pub fn counters(&self) -> Option<&AppCounters> {
        self.app.counters()
    }

    /// Returns the endpoint, to inspect its state.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Runs `act` with the application and its context, as in a callback.
    pub fn act<T>(
        &mut self,
        now: Time,
        act: impl FnOnce(&mut dyn App, &mut Context<'_>) -> T,
    ) -> T {
        self.with_app(now, act)
    }

    /// Returns the events of all connections in order, without those of streams.
    pub fn log(&self) -> &[(Time, ConnectionHandle, Event)] {
        &self.log
    }

    /// Returns the handles of all connections, open and closed, in the order of handles.
    pub fn connections(&self) -> Vec<ConnectionHandle> {
        let mut all: Vec<_> = self.endpoint.handles().collect();
        all.extend(self.ended.keys());
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns the counters of a connection, which are kept for the last 10 000 closed connections.
    pub fn stats(&self, handle: ConnectionHandle) -> Option<ConnectionStats> {
        match self.ended.get(&handle) {
            Some(stats) => Some(*stats),
            None => self.endpoint.connection(handle).map(Connection::stats),
        }
    }

    fn with_app<T>(
        &mut self,
        now: Time,
        act: impl FnOnce(&mut dyn App, &mut Context<'_>) -> T,
    ) -> T {
        let mut context = Context {
            now,
            endpoint: &mut self.endpoint,
            client: &self.client,
        };
        act(&mut *self.app, &mut context)
    }

    /// Passes the collected datagrams to the endpoint.
    fn flush(&mut self, now: Time) {
        let Some((source, socket, ecn)) = self.arrived.source.take() else {
            return;
        };
        let meta = ReceiveMeta {
            path: FourTuple::to(source),
            ecn,
            segment_size: self.arrived.segment_size.max(1),
        };
        self.endpoint
            .handle_datagrams_at(now, socket, &mut self.arrived.bytes, &meta);
        self.arrived.bytes.clear();
    }

    fn accept_all(&mut self, now: Time) {
        while let Some(incoming) = self.endpoint.poll_incoming() {
            // `accept` has already answered a client that has closed or that TLS refuses.
            let _ = self.endpoint.accept(now, incoming, None);
        }
    }

    fn dispatch_events(&mut self, now: Time, handle: ConnectionHandle) {
        while let Some(event) = self
            .endpoint
            .connection_mut(handle)
            .and_then(Connection::poll_event)
        {
            if let Event::Lost(_) = event
                && let Some(connection) = self.endpoint.connection(handle)
            {
                self.ended.insert(handle, connection.stats());
                if self.ended.len() > MAX_ENDED {
                    self.ended.pop_first();
                }
            }
            self.with_app(now, |app, context| {
                app::dispatch(app, context, handle, &event);
            });
            if matches!(event, Event::Confirmed | Event::MayOpenPath) {
                self.open_paths(now, handle);
            }
            if !matches!(event, Event::Stream(_)) && self.log.len() < MAX_LOG {
                self.log.push((now, handle, event));
            }
        }
        let connection = self.endpoint.connection(handle);
        if connection.is_some_and(Connection::is_drained) {
            self.endpoint.release(handle);
        }
    }

    /// Opens the paths from further addresses that are not open yet.
    fn open_paths(&mut self, now: Time, handle: ConnectionHandle) {
        let Some(connection) = self.endpoint.connection_mut(handle) else {
            return;
        };
        let mut paths = connection.several_paths();
        let open = paths.list().len().saturating_sub(1);
        for at in open..self.further.len() {
            let path = NewPath {
                local: None,
                socket: SocketId(u32::try_from(at + 1).unwrap_or(u32::MAX)),
                is_same_address: false,
                is_at_once: false,
            };
            // The connection reports when another attempt may succeed.
            if paths.open(now, &path).is_err() {
                break;
            }
        }
        self.endpoint.mark_ready(handle);
    }

    fn send(&mut self, now: Time, handle: ConnectionHandle) {
        while let Some(transmit) = self.endpoint.poll_transmit(now, handle, &mut self.buffer) {
            self.queue(&transmit);
        }
    }

    fn queue(&mut self, transmit: &Transmit) {
        let mut rest = Bytes::copy_from_slice(self.buffer.bytes());
        let size = transmit.segment_size.unwrap_or(transmit.len).max(1);
        let further = usize::try_from(transmit.socket.0)
            .ok()
            .and_then(|at| at.checked_sub(1));
        let further = further.and_then(|at| self.further.get(at));
        let source = further.copied().unwrap_or(self.address);
        while !rest.is_empty() {
            let payload = rest.split_to(size.min(rest.len()));
            self.outgoing.push_back(Packet {
                source,
                destination: transmit.destination,
                ecn: transmit.ecn,
                payload,
            });
        }
    }
}

impl Node for Host {
    fn receive(&mut self, now: Time, packet: Packet) {
        let at = self.further.iter().position(|it| *it == packet.destination);
        let socket = at.and_then(|at| u32::try_from(at + 1).ok());
        let socket = SocketId(socket.unwrap_or_default());
        let origin = (packet.source, socket, packet.ecn);
        let (len, held) = (packet.payload.len(), self.arrived.bytes.len());
        let size = self.arrived.segment_size;
        // Only the last datagram of a buffer may be shorter than the others.
        let joins = self.arrived.source == Some(origin)
            && len <= size
            && held % size == 0
            && held + len <= RECEIVE_BUFFER;
        if !joins {
            self.flush(now);
            self.arrived.source = Some(origin);
            self.arrived.segment_size = len.max(1);
        }
        self.arrived.bytes.extend_from_slice(&packet.payload);
    }

    fn packet_too_big(&mut self, now: Time, message: &TooBig) {
        let message = PacketTooBig {
            peer: message.packet.destination,
            mtu: message.mtu,
            quote: message.quote(),
        };
        self.endpoint.on_packet_too_big(now, &message);
    }

    fn run(&mut self, now: Time) {
        self.flush(now);
        self.endpoint.handle_timeout(now);
        if !std::mem::replace(&mut self.is_started, true) {
            self.with_app(now, |app, context| app.on_start(context));
        }
        if self.app.next_timer().is_some_and(|at| at <= now) {
            self.with_app(now, |app, context| app.on_timer(context));
        }
        self.accept_all(now);
        while let Some(handle) = self.endpoint.next_ready() {
            self.dispatch_events(now, handle);
            self.send(now, handle);
        }
        while let Some(transmit) = self.endpoint.poll_stateless_transmit(&mut self.buffer) {
            self.queue(&transmit);
        }
    }

    fn transmit(&mut self, _now: Time) -> Option<Packet> {
        self.outgoing.pop_front()
    }

    fn next_timeout(&self) -> Option<Time> {
        let app = self.app.next_timer();
        let endpoint = self.endpoint.next_timeout();
        app.into_iter().chain(endpoint).min()
    }
}

/// The calendar time at the start of a world. Tokens contain it, and their lifetimes count from it.
const EPOCH: u64 = 1_700_000_000;

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
