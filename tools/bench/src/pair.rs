//! Two ends that pass datagrams to each other.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use courser_base::{Ecn, FourTuple, Time};
use courser_transport::{
    ClientConfig, Connection, ConnectionHandle, Endpoint, EndpointConfig, Event, ReceiveMeta,
    ServerConfig, Streams, TransmitBuffer, TransportConfig,
};
use courser_wire::Versions;

use crate::meter::Meter;
use crate::null_tls::NullTls;
use crate::path::Path;

/// A client, a server, and the time.
pub struct Pair<'a> {
    /// The virtual time of both ends.
    pub now: Time,
    /// The end that connects.
    pub client: End<'a>,
    /// The end that accepts.
    pub server: End<'a>,
    meter: &'a Meter,
    config: ClientConfig,
}

/// One endpoint with at most one connection.
pub struct End<'a> {
    endpoint: Endpoint,
    handle: Option<ConnectionHandle>,
    address: SocketAddr,
    buffer: TransmitBuffer,
    meter: &'a Meter,
    /// The path that counts what this end sends.
    pub sends: Path,
    /// The path that counts how this end processes what arrives.
    pub receives: Path,
}

/// The paths of one end, for sending and for receiving.
pub type Paths = (Path, Path);

/// Datagrams that leave together.
pub struct Batch {
    bytes: Vec<u8>,
    segment_size: usize,
}

impl From<&[u8]> for Batch {
    /// Makes a batch of one datagram.
    fn from(datagram: &[u8]) -> Self {
        Self {
            bytes: datagram.to_vec(),
            segment_size: datagram.len().max(1),
        }
    }
}

impl Batch {
    /// Returns the datagrams in the order of sending.
    pub fn datagrams(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.bytes.chunks(self.segment_size)
    }
}

impl<'a> Pair<'a> {
    /// Creates two ends without a connection.
    pub fn new(meter: &'a Meter, client: Paths, server: Paths) -> Self {
        let transport = Arc::new(TransportConfig {
            // The search for larger datagrams would change the packets that are counted.
            mtu_discovery: false,
            ..TransportConfig::default()
        });
        let mut config = ClientConfig::new(Arc::new(NullTls));
        config.transport = Arc::clone(&transport);
        let mut accepting = ServerConfig::new(Arc::new(NullTls));
        accepting.transport = transport;
        accepting.versions = Versions::V1;
        Self {
            now: Time::from_nanos(1),
            client: End::new(meter, 1, client, None),
            server: End::new(meter, 2, server, Some(Arc::new(accepting))),
            meter,
            config,
        }
    }

    /// Creates two ends whose handshake is confirmed.
    pub fn connected(meter: &'a Meter, client: Paths, server: Paths) -> Self {
        let mut pair = Self::new(meter, client, server);
        pair.connect();
        pair
    }

    /// Runs a handshake until both ends have confirmed it.
    pub fn connect(&mut self) {
        let (client, config, to) = (&mut self.client, &self.config, self.server.address);
        let connecting = self.meter.count(client.sends, || {
            client.endpoint.connect(self.now, config, to, "localhost")
        });
        client.handle = Some(connecting.expect("the configuration is right"));
        while !self.client.is_confirmed() || !self.server.is_confirmed() {
            assert!(self.exchange() > 0, "the handshake has stopped");
        }
        // What follows the handshake: acknowledgments, connection IDs, tokens.
        while self.exchange() > 0 {}
    }

    /// Closes the connection, and waits until both ends have discarded it.
    pub fn close(&mut self) {
        let now = self.now;
        self.client.connection().close(now, 0, b"");
        self.exchange();
        self.now += Duration::from_secs(30);
        for end in [&mut self.client, &mut self.server] {
            end.endpoint.handle_timeout(self.now);
            let handle = end.handle.take().expect("connected");
            assert!(
                end.endpoint
                    .connection(handle)
                    .is_none_or(Connection::is_drained)
            );
            end.endpoint.release(handle);
        }
    }

    /// Passes the datagrams of the client to the server, and then those of the server to the client. Returns
    /// their number.
    pub fn exchange(&mut self) -> u64 {
        self.client_to_server() + self.server_to_client()
    }

    /// Passes the datagrams of the client to the server, and returns their number.
    pub fn client_to_server(&mut self) -> u64 {
        let (count, now) = pass(self.now, &mut self.client, &mut self.server);
        self.now = now;
        count
    }

    /// Passes the datagrams of the server to the client, and returns their number.
    pub fn server_to_client(&mut self) -> u64 {
        let (count, now) = pass(self.now, &mut self.server, &mut self.client);
        self.now = now;
        count
    }
}

/// Passes all datagrams of one end to the other. Returns their number, and the time at which they
/// arrive.
fn pass(now: Time, from: &mut End<'_>, to: &mut End<'_>) -> (u64, Time) {
    let batches = from.transmit(now);
    let arrival = now + DELAY;
    let count = batches.iter().map(|it| it.datagrams().len() as u64).sum();
    for batch in batches {
        to.deliver(arrival, from.address, batch);
    }
    (count, arrival)
}

impl<'a> End<'a> {
    fn new(
        meter: &'a Meter,
        number: u8,
        (sends, receives): Paths,
        server: Option<Arc<ServerConfig>>,
    ) -> Self {
        let config = EndpointConfig::from_seed([number; 32]);
        Self {
            endpoint: Endpoint::new(config, server, [number + 2; 32]),
            handle: None,
            address: SocketAddr::from(([192, 0, 2, number], 4433)),
            buffer: TransmitBuffer::new(SEGMENTS),
            meter,
            sends,
            receives,
        }
    }

    /// Returns the address, from which the other end receives.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the most datagrams of a batch. The default is 64, as on Linux.
    pub fn set_max_segments(&mut self, segments: usize) {
        self.buffer.set_max_segments(segments);
    }

    /// Returns the connection, which sends with the next datagrams.
    pub fn connection(&mut self) -> &mut Connection {
        let handle = self.handle.expect("connected");
        self.endpoint.mark_ready(handle);
        self.endpoint.connection_mut(handle).expect("connected")
    }

    /// Returns the streams of the connection, which sends with the next datagrams.
    pub fn streams(&mut self) -> &mut Streams {
        self.connection().streams()
    }

    /// Takes the events of the connection.
    pub fn take_events(&mut self) {
        let connection = self.connection();
        while let Some(event) = connection.poll_event() {
            assert!(!matches!(event, Event::Lost(_)), "{event:?}");
        }
    }

    fn is_confirmed(&self) -> bool {
        self.handle
            .and_then(|handle| self.endpoint.connection(handle))
            .is_some_and(Connection::is_confirmed)
    }

    /// Returns all datagrams that may be sent now.
    pub fn transmit(&mut self, now: Time) -> Vec<Batch> {
        let (meter, path) = (self.meter, self.sends);
        let (endpoint, buffer) = (&mut self.endpoint, &mut self.buffer);
        if endpoint.next_timeout().is_some_and(|at| at <= now) {
            meter.count(path, || endpoint.handle_timeout(now));
        }
        let mut batches = Vec::new();
        while let Some(handle) = meter.count(path, || endpoint.next_ready()) {
            while let Some(transmit) =
                meter.count(path, || endpoint.poll_transmit(now, handle, buffer))
            {
                batches.push(Batch {
                    bytes: buffer.bytes().to_vec(),
                    segment_size: transmit.segment_size.unwrap_or(transmit.len),
                });
            }
        }
        batches
    }

    /// Processes datagrams, and accepts the client if they are from a new one.
    pub fn deliver(&mut self, now: Time, from: SocketAddr, mut batch: Batch) {
        let meta = ReceiveMeta {
            path: FourTuple {
                peer: from,
                local: Some(self.address.ip()),
            },
            ecn: Ecn::NotEct,
            segment_size: batch.segment_size,
        };
        let (meter, endpoint) = (self.meter, &mut self.endpoint);
        let accepted = meter.count(self.receives, || {
            endpoint.handle_datagrams(now, &mut batch.bytes, &meta);
            let incoming = endpoint.poll_incoming()?;
            Some(endpoint.accept(now, incoming, None))
        });
        if let Some(accepted) = accepted {
            self.handle = Some(accepted.expect("the client is honest"));
        }
    }
}

/// The time from one end to the other.
const DELAY: Duration = Duration::from_micros(500);
/// The most datagrams of a batch, as on Linux with segmentation offload.
const SEGMENTS: usize = 64;
