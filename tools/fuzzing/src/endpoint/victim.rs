//! The endpoint under attack, and its driver.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use courser_base::{Ecn, FourTuple, Time};
#[cfg(test)]
use courser_transport::EarlyData;
use courser_transport::{
    ClientConfig, Endpoint, EndpointConfig, PacketTooBig, ReceiveMeta, RetryPolicy, ServerConfig,
    TransmitBuffer, TransportConfig,
};

use super::application::Application;
use super::peer::Peer;
use crate::input::Input;
use crate::tls::Ends;

/// Datagrams with their destinations.
pub(super) type Sent = Vec<(SocketAddr, Vec<u8>)>;

/// A client or server under attack.
pub(super) struct Victim {
    endpoint: Endpoint,
    buffer: TransmitBuffer,
    application: Application,
    is_client: bool,
    admission: u8,
    /// The ECN mark of received datagrams, and whether they arrive as two segments.
    arrival: u8,
}

impl Victim {
    pub(super) fn new(setup: u8, ends: &Ends) -> Self {
        let is_client = Self::is_client_in(setup);
        let mut config = EndpointConfig::from_seed([9; 32]);
        config.memory_budget = BUDGET;
        config.unix_seconds_at_epoch = 1_700_000_000;
        config.connection_id_len = if is_client && setup & 2 != 0 { 0 } else { 8 };
        let server = (!is_client).then(|| {
            let mut server = ServerConfig::new(Arc::clone(&ends.server));
            server.transport = transport();
            server.retry = match setup >> 2 & 3 {
                0 => RetryPolicy::Always,
                1 => RetryPolicy::Never,
                _ => RetryPolicy::Auto,
            };
            server.migration = setup & 2 == 0;
            Arc::new(server)
        });
        Self {
            endpoint: Endpoint::new(config, server, [8; 32]),
            buffer: TransmitBuffer::new(16),
            application: Application::default(),
            is_client,
            admission: 0,
            arrival: setup >> 4,
        }
    }

    /// Returns true if the victim is a client with this setup.
    pub(super) const fn is_client_in(setup: u8) -> bool {
        setup & 1 == 1
    }

    pub(super) const fn is_client(&self) -> bool {
        self.is_client
    }

    pub(super) fn connect(&mut self, now: Time, server: SocketAddr, ends: &Ends) {
        let mut config = ClientConfig::new(Arc::clone(&ends.client));
        config.transport = transport();
        let handle = self.endpoint.connect(now, &config, server, "localhost");
        self.application
            .on_connection(handle.expect("a valid configuration"));
    }

    /// Sets how new clients are treated: accepted, refused, ignored, sent a Retry, or left waiting.
    pub(super) fn choose_admission(&mut self, choice: u8) {
        self.admission = choice;
    }

    pub(super) fn receive(&mut self, now: Time, from: SocketAddr, mut datagram: Vec<u8>) {
        let len = datagram.len().max(1);
        let meta = ReceiveMeta {
            path: FourTuple::to(from),
            ecn: [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][usize::from(self.arrival & 3)],
            // A receive buffer may be split anywhere.
            segment_size: if self.arrival & 12 == 12 {
                len.div_ceil(2)
            } else {
                len
            },
        };
        self.endpoint.handle_datagrams(now, &mut datagram, &meta);
    }

    /// Receives an ICMP Packet Too Big for packets to a peer, with arbitrary quoted bytes.
    pub(super) fn packet_too_big(&mut self, now: Time, index: usize, input: &mut Input<'_>) {
        let message = PacketTooBig {
            peer: Peer::address_of(index),
            mtu: u32::from(input.short()),
            quote: input.bytes(),
        };
        self.endpoint.on_packet_too_big(now, &message);
    }

    pub(super) fn operate(&mut self, now: Time, input: &mut Input<'_>) {
        self.application.operate(&mut self.endpoint, now, input);
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.endpoint.next_timeout()
    }

    /// Drives the endpoint until it has nothing more to do at `now`. Returns the datagrams it sends.
    ///
    /// # Panics
    /// Panics if it never becomes idle.
    pub(super) fn run(&mut self, now: Time) -> Sent {
        let mut sent = Vec::new();
        for _ in 0..MAX_TURNS {
            if self.endpoint.next_timeout().is_some_and(|at| at <= now) {
                self.endpoint.handle_timeout(now);
            }
            self.admit(now);
            self.transmit(now, &mut sent);
            if self.endpoint.next_timeout().is_none_or(|at| at > now) {
                assert!(sent.len() <= MAX_SENT, "{} datagrams for one", sent.len());
                return sent;
            }
        }
        panic!("a timeout stays due after it was handled");
    }

    fn admit(&mut self, now: Time) {
        // With 7, clients wait until a later choice.
        while self.admission & 7 != 7
            && let Some(incoming) = self.endpoint.poll_incoming()
        {
            match self.admission & 7 {
                1 => self.endpoint.refuse(now, incoming),
                2 => drop(self.endpoint.retry(now, incoming).map_err(|incoming| {
                    self.endpoint.ignore(incoming);
                })),
                3 => self.endpoint.ignore(incoming),
                _ => {
                    if let Ok(handle) = self.endpoint.accept(now, incoming, None) {
                        self.application.on_connection(handle);
                    }
                }
            }
        }
    }

    fn transmit(&mut self, now: Time, sent: &mut Sent) {
        while let Some(handle) = self.endpoint.next_ready() {
            self.application.read_events(&mut self.endpoint, handle);
            while let Some(transmit) = self.endpoint.poll_transmit(now, handle, &mut self.buffer) {
                let size = transmit.segment_size.unwrap_or(transmit.len).max(1);
                let bytes = self.buffer.bytes();
                assert_eq!(bytes.len(), transmit.len);
                let datagrams = bytes.chunks(size).map(<[u8]>::to_vec);
                sent.extend(datagrams.map(|datagram| (transmit.destination, datagram)));
            }
        }
        while let Some(transmit) = self.endpoint.poll_stateless_transmit(&mut self.buffer) {
            sent.push((transmit.destination, self.buffer.bytes().to_vec()));
        }
    }

    /// Checks the conditions that hold at any time.
    pub(super) fn check(&self) {
        let stats = self.endpoint.stats();
        if stats.faults > 0 {
            panic!(
                "a connection panicked: {:?}",
                self.application.faults(&self.endpoint)
            );
        }
        // Above the budget, one connection is closed every ten milliseconds at most. Until then,
        // connections may hold as much as their windows allow.
        let windows = WINDOW * stats.connections as u64;
        assert!(
            stats.memory_used <= BUDGET + windows,
            "{} bytes of {BUDGET}",
            stats.memory_used,
        );
    }

    /// Checks that no state is left after all timeouts.
    pub(super) fn check_empty(&self) {
        let stats = self.endpoint.stats();
        assert_eq!(stats.connections, 0, "connections did not end: {stats:?}");
        assert_eq!(stats.memory_used, 0, "leaked memory: {stats:?}");
        assert_eq!((stats.half_open, stats.waiting), (0, 0), "{stats:?}");
    }

    /// Returns the state of early data of each connection, and true if the application's first stream
    /// began in early data.
    #[cfg(test)]
    pub(super) fn early_data(&mut self) -> Vec<(EarlyData, bool)> {
        self.application.early_data(&mut self.endpoint)
    }
}

/// Settings with small limits, so that a short input can reach them.
fn transport() -> Arc<TransportConfig> {
    static CONFIG: OnceLock<Arc<TransportConfig>> = OnceLock::new();
    let make = || {
        Arc::new(TransportConfig {
            max_idle_timeout: Some(Duration::from_secs(10)),
            max_bidi_streams: 8,
            max_uni_streams: 8,
            stream_receive_window: 16 * 1024,
            stream_receive_window_max: WINDOW,
            receive_window: 32 * 1024,
            receive_window_max: WINDOW,
            send_buffer_max: WINDOW,
            unsent_limit: 64 * 1024,
            datagram_receive_queue: 8,
            // Larger datagrams would take more time without more coverage.
            mtu_max: 1500,
            max_gaps_per_stream: 8,
            max_gaps: 16,
            ..TransportConfig::default()
        })
    };
    Arc::clone(CONFIG.get_or_init(make))
}

/// The memory budget of all connections in bytes, which is the smallest valid one.
const BUDGET: u64 = 1 << 20;

/// The limit in bytes of each window and send buffer of a connection.
const WINDOW: u64 = 128 * 1024;

/// The largest number of turns of the driver without progress of time.
const MAX_TURNS: usize = 1000;

/// The largest number of datagrams sent without progress of time. Covers full send buffers.
const MAX_SENT: usize = 2000;
