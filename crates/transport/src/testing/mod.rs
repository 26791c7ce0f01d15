//! Two endpoints in memory, connected in virtual time, and tools to forge packets.

pub(crate) mod eye;
pub(crate) mod first_datagram;
pub(crate) mod forge;
pub(crate) mod forgery;
pub(crate) mod identity;
pub(crate) mod ledger;
pub(crate) mod link;
pub(crate) mod tampering;
pub(crate) mod traffic;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use courser_base::{FourTuple, Time};

use crate::build::transmit::{SocketId, Transmit, TransmitBuffer};
use crate::cid::{ConnectionIdGenerator, RandomIdGenerator};
use crate::config::{ClientConfig, EndpointConfig, ServerConfig, TransportConfig};
use crate::connection::{Connection, Event, TlsTask};
use crate::endpoint::{ConnectionHandle, Endpoint, ReceiveMeta};

use self::identity::{client_tls, server_tls};
use self::ledger::Ledger;
use self::link::{BatchFault, Datagram, Link};

/// An endpoint with its address and the events that its application received.
pub(crate) struct End {
    pub(crate) endpoint: Endpoint,
    pub(crate) address: SocketAddr,
    /// The addresses of its sockets from the second on.
    pub(crate) sockets: Vec<SocketAddr>,
    /// Further addresses of the first socket.
    pub(crate) other_addresses: Vec<SocketAddr>,
    /// True if the system reports the local addresses of datagrams.
    pub(crate) reports_local: bool,
    pub(crate) events: Vec<Event>,
    pub(crate) handle: Option<ConnectionHandle>,
    /// Every datagram sent, in order.
    pub(crate) sent: Vec<Datagram>,
    /// The number of datagrams in each batch sent, in order.
    pub(crate) batches: Vec<usize>,
    /// The fate of batches.
    pub(crate) batch_fault: BatchFault,
    /// TLS tasks in progress, and the times at which they complete.
    pub(crate) tls_tasks: Vec<(Time, ConnectionHandle, TlsTask)>,
    buffer: TransmitBuffer,
    /// True if drained connections are released.
    pub(crate) releases: bool,
}

impl End {
    pub(crate) fn connection(&mut self) -> &mut Connection {
        let handle = self.handle.expect("a connection exists");
        self.endpoint
            .connection_mut(handle)
            .unwrap_or_else(|| panic!("the connection is forgotten: {:?}", self.events))
    }

    pub(crate) fn has(&self, event: &Event) -> bool {
        self.events.contains(event)
    }

    /// Runs the TLS tasks that are due.
    fn finish_tls_tasks(&mut self, now: Time) {
        while let Some(at) = self.tls_tasks.iter().position(|(due, ..)| *due <= now) {
            let (_, handle, task) = self.tls_tasks.remove(at);
            self.endpoint.finish_tls_task(now, handle, task.run());
        }
    }

    /// Returns the address from which a batch is sent.
    fn source_of(&self, transmit: &Transmit) -> SocketAddr {
        let extra = usize::try_from(transmit.socket.0).expect("few sockets");
        let socket = extra.checked_sub(1).map(|index| self.sockets[index]);
        let mut from = socket.unwrap_or(self.address);
        if let Some(ip) = transmit.source {
            from.set_ip(ip);
        }
        from
    }

    /// Returns the socket that has the address `to`.
    fn socket_at(&self, to: SocketAddr) -> SocketId {
        let index = self.sockets.iter().position(|socket| *socket == to);
        SocketId(index.map_or(0, |index| u32::try_from(index + 1).expect("few sockets")))
    }

    /// Returns true if datagrams to `to` arrive here.
    fn has_address(&self, to: SocketAddr) -> bool {
        self.address == to || self.other_addresses.contains(&to) || self.sockets.contains(&to)
    }

    /// Marks the connection as used, as a driver does.
    pub(crate) fn touch(&mut self) {
        let handle = self.handle.expect("a connection exists");
        self.endpoint.mark_ready(handle);
    }
}

/// A client and a server with a link between them.
pub(crate) struct Pair {
    pub(crate) now: Time,
    pub(crate) client: End,
    pub(crate) server: End,
    pub(crate) link: Link,
    /// True if the server accepts all connections.
    pub(crate) accepts: bool,
    pub(crate) client_config: ClientConfig,
    pub(crate) server_config: Arc<ServerConfig>,
    pub(crate) ledger: Ledger,
    /// Duration of offloaded TLS tasks.
    pub(crate) tls_delay: Duration,
    seed: u8,
    server_ids: Option<Ids>,
}

/// The settings of a pair.
pub(crate) struct Setup {
    pub(crate) seed: u8,
    pub(crate) client: TransportConfig,
    pub(crate) server: ServerConfig,
    pub(crate) client_tls: Arc<dyn courser_crypto::ClientTls>,
    pub(crate) max_segments: usize,
    pub(crate) client_cid_len: usize,
    pub(crate) client_ids: Option<Ids>,
    pub(crate) server_ids: Option<Ids>,
}

/// A generator of connection IDs.
pub(crate) type Ids = Arc<dyn ConnectionIdGenerator>;

/// Returns settings without an MTU search, whose probes would change the counts of packets in tests.
pub(crate) fn steady() -> TransportConfig {
    TransportConfig {
        mtu_discovery: false,
        ..TransportConfig::default()
    }
}

impl Default for Setup {
    fn default() -> Self {
        let mut server = ServerConfig::new(server_tls(&[b"test"]));
        server.transport = Arc::new(steady());
        Self {
            seed: 7,
            client: steady(),
            server,
            client_tls: client_tls(&[b"test"]),
            max_segments: 16,
            client_cid_len: 8,
            client_ids: None,
            server_ids: None,
        }
    }
}

pub(crate) const RTT: Duration = Duration::from_millis(20);

pub(crate) fn client_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 50_000))
}

pub(crate) fn server_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 2], 4433))
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self::with(Setup::default())
    }

    pub(crate) fn with(setup: Setup) -> Self {
        let end = |address, server, seed: u8, ids| End {
            endpoint: endpoint(server, seed, 1, ids),
            address,
            sockets: Vec::new(),
            other_addresses: Vec::new(),
            reports_local: false,
            events: Vec::new(),
            handle: None,
            sent: Vec::new(),
            batches: Vec::new(),
            batch_fault: BatchFault::None,
            tls_tasks: Vec::new(),
            buffer: TransmitBuffer::new(setup.max_segments),
            releases: true,
        };
        let mut client_config = ClientConfig::new(Arc::clone(&setup.client_tls));
        client_config.transport = Arc::new(setup.client.clone());
        let server_config = Arc::new(setup.server.clone());
        let server = Some(Arc::clone(&server_config));
        let random = || RandomIdGenerator::new(setup.client_cid_len).expect("20 bytes at most");
        let client_ids = setup
            .client_ids
            .clone()
            .or_else(|| Some(Arc::new(random())));
        Self {
            now: Time::ZERO + Duration::from_secs(1),
            client: end(client_address(), None, setup.seed, client_ids),
            server: end(
                server_address(),
                server,
                setup.seed.wrapping_add(100),
                setup.server_ids.clone(),
            ),
            link: Link::new(RTT / 2, u64::from(setup.seed)),
            accepts: true,
            client_config,
            server_config,
            ledger: Ledger::default(),
            tls_delay: Duration::ZERO,
            seed: setup.seed,
            server_ids: setup.server_ids,
        }
    }

    /// Restarts the server with the same keys and without its connections.
    pub(crate) fn restart_server(&mut self) {
        let server = Some(Arc::clone(&self.server_config));
        self.server.endpoint = endpoint(
            server,
            self.seed.wrapping_add(100),
            2,
            self.server_ids.clone(),
        );
        self.server.handle = None;
    }

    /// Creates a pair whose handshake is confirmed at both ends.
    pub(crate) fn connected() -> Self {
        let mut pair = Self::new();
        pair.connect();
        pair
    }

    /// Starts a connection and runs until it is confirmed on both sides.
    pub(crate) fn connect(&mut self) {
        self.start();
        let done = self.run_until(Duration::from_secs(20), |pair| {
            pair.client.has(&Event::Confirmed) && pair.server.has(&Event::Confirmed)
        });
        assert!(
            done,
            "no handshake: client {:?}, server {:?}",
            self.client.events, self.server.events
        );
        // Connection IDs and tokens follow the handshake.
        self.run_for(RTT * 3);
    }

    /// Starts a connection without running it.
    pub(crate) fn start(&mut self) {
        let peer = self.server.address;
        let config = self.client_config.clone();
        let handle = self
            .client
            .endpoint
            .connect(self.now, &config, peer, "localhost")
            .expect("configuration works");
        self.client.handle = Some(handle);
    }

    /// Runs until `done` returns true or `limit` has passed. Returns the last result of `done`.
    pub(crate) fn run_until(&mut self, limit: Duration, done: impl Fn(&mut Self) -> bool) -> bool {
        let end = self.now + limit;
        let (mut instant, mut steps) = (self.now, 0);
        loop {
            steps = if self.now == instant { steps + 1 } else { 0 };
            instant = self.now;
            assert!(steps < 10_000, "time does not advance at {instant:?}");
            self.drive();
            if done(self) {
                return true;
            }
            match self.next_time() {
                Some(at) if at <= end => self.advance_to(at),
                _ => {
                    self.now = end;
                    return done(self);
                }
            }
        }
    }

    /// Runs both ends for `time`, including the timers at its end.
    pub(crate) fn run_for(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Polls events and datagrams of both ends at the present time, until there are no more.
    pub(crate) fn drive(&mut self) {
        for _ in 0..10_000 {
            let progress = self.drive_end(true) | self.drive_end(false);
            if !progress {
                return;
            }
        }
        panic!("the ends send without end");
    }

    fn drive_end(&mut self, is_client: bool) -> bool {
        let now = self.now;
        let end = if is_client {
            &mut self.client
        } else {
            &mut self.server
        };
        let mut progress = false;
        while let Some(incoming) = if self.accepts {
            end.endpoint.poll_incoming()
        } else {
            None
        } {
            if let Ok(handle) = end.endpoint.accept(now, incoming, None) {
                end.handle = Some(handle);
            }
            progress = true;
        }
        let mut outgoing = Vec::new();
        while let Some(handle) = end.endpoint.next_ready() {
            progress = true;
            while let Some(event) = end
                .endpoint
                .connection_mut(handle)
                .and_then(Connection::poll_event)
            {
                end.events.push(event);
            }
            let connection = end.endpoint.connection(handle);
            if end.releases && connection.is_some_and(Connection::is_drained) {
                end.endpoint.release(handle);
            }
            while let Some(transmit) = end.endpoint.poll_transmit(now, handle, &mut end.buffer) {
                let from = end.source_of(&transmit);
                let batch = Datagram::split(&transmit, end.buffer.bytes(), from);
                end.batches.push(batch.len());
                let kept = end.batch_fault.kept(&batch);
                end.sent.extend(batch.iter().cloned());
                outgoing.extend(batch.into_iter().take(kept));
            }
        }
        while let Some((handle, task)) = end.endpoint.poll_tls_task() {
            end.tls_tasks.push((now + self.tls_delay, handle, task));
            progress = true;
        }
        while let Some(transmit) = end.endpoint.poll_stateless_transmit(&mut end.buffer) {
            let from = end.source_of(&transmit);
            let datagrams = Datagram::split(&transmit, end.buffer.bytes(), from);
            end.sent.extend(datagrams.iter().cloned());
            outgoing.extend(datagrams);
            progress = true;
        }
        if !is_client {
            outgoing
                .iter()
                .for_each(|datagram| self.ledger.on_sent(datagram));
        }
        for datagram in outgoing {
            self.link.send(now, datagram);
        }
        progress
    }

    fn next_time(&self) -> Option<Time> {
        let tasks = self.client.tls_tasks.iter().chain(&self.server.tls_tasks);
        [
            tasks.map(|(due, ..)| *due).min(),
            self.link.next_arrival(),
            self.client.endpoint.next_timeout(),
            self.server.endpoint.next_timeout(),
        ]
        .into_iter()
        .flatten()
        .min()
        .map(|at| at.max(self.now))
    }

    fn advance_to(&mut self, at: Time) {
        self.now = at;
        while let Some(datagram) = self.link.receive(at) {
            self.deliver(datagram);
        }
        self.client.finish_tls_tasks(at);
        self.server.finish_tls_tasks(at);
        self.client.endpoint.handle_timeout(at);
        self.server.endpoint.handle_timeout(at);
    }

    /// Delivers a datagram to the end that has its address.
    pub(crate) fn deliver(&mut self, mut datagram: Datagram) {
        let to_server = self.server.has_address(datagram.to);
        if !to_server && self.client.has_address(datagram.from) {
            // No host has the address.
            return;
        }
        let end = if to_server {
            &mut self.server
        } else {
            &mut self.client
        };
        if to_server {
            self.ledger.on_received(&datagram);
        }
        let meta = ReceiveMeta {
            path: FourTuple {
                peer: datagram.from,
                local: end.reports_local.then(|| datagram.to.ip()),
            },
            ecn: datagram.ecn,
            segment_size: datagram.bytes.len().max(1),
        };
        let socket = end.socket_at(datagram.to);
        end.endpoint
            .handle_datagrams_at(self.now, socket, &mut datagram.bytes, &meta);
    }

    /// Returns the code with which the server ended the connection because of an error.
    pub(crate) fn server_error(&mut self) -> Option<u64> {
        transport_code(&self.server.events)
    }

    /// Returns the code of the CONNECTION_CLOSE of type 0x1c that the server received.
    pub(crate) fn close_received_by_server(&self) -> Option<u64> {
        received_code(&self.server.events)
    }

    /// Like [`Pair::close_received_by_server`] for the client.
    pub(crate) fn close_received_by_client(&self) -> Option<u64> {
        received_code(&self.client.events)
    }

    /// Like [`Pair::server_error`] for the client.
    pub(crate) fn client_error(&mut self) -> Option<u64> {
        transport_code(&self.client.events)
    }
}

fn endpoint(server: Option<Arc<ServerConfig>>, seed: u8, start: u8, ids: Option<Ids>) -> Endpoint {
    let mut config = EndpointConfig::from_seed([seed; 32]);
    config.connection_ids = ids;
    config.unix_seconds_at_epoch = 1_700_000_000;
    Endpoint::new(config, server, [seed.wrapping_add(start); 32])
}

fn transport_code(events: &[Event]) -> Option<u64> {
    events.iter().find_map(|event| match event {
        Event::Lost(crate::connection::ConnectionError::TransportError(error)) => {
            Some(error.code.value())
        }
        _ => None,
    })
}

fn received_code(events: &[Event]) -> Option<u64> {
    events.iter().find_map(|event| match event {
        Event::Lost(crate::connection::ConnectionError::ConnectionClosed(close)) => {
            Some(close.code.value())
        }
        _ => None,
    })
}
