//! How connections begin: a client's first flight, a server's answer to it.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use courser_base::{FourTuple, Side, Time};
use courser_crypto::{TlsStartError, initial};
use courser_wire::ConnectionId;
use courser_wire::transport_parameters::TransportParameters;
use courser_wire::version::VERSION_1;

use super::dispatch::MAX_TOKEN;
use super::handshake::{Handshake, LOCAL_CID_LIMIT};
use super::idle::Idle;
use super::state::State;
use super::stats::ConnectionStats;
use super::suspicion::Suspicion;
use super::timeouts::CreditRequests;
use super::tls::Tls;
use super::{Cids, Connection};
use crate::acknowledger::Acknowledger;
use crate::cid::issued::IssuedIds;
use crate::cid::peer::PeerIds;
use crate::config::{ClientConfig, ServerConfig, TransportConfig};
use crate::datagram::Datagrams;
use crate::flow::WindowBudget;
use crate::handshake::CryptoStreams;
use crate::path::Path;
use crate::path::paths::Paths;
use crate::protection::PacketProtection;
use crate::recovery::LossRecovery;
use crate::rng::Rng;
use crate::space::SpaceId;
use crate::stream::{ChunkPool, Streams};

/// What the endpoint gives every new connection.
pub(crate) struct Origin {
    pub(crate) now: Time,
    /// Addresses of the first packet.
    pub(crate) tuple: FourTuple,
    /// Our source ID.
    pub(crate) local_source: ConnectionId,
    pub(crate) pool: ChunkPool,
    pub(crate) budget: WindowBudget,
    pub(crate) rng: Rng,
    pub(crate) max_udp_payload_size: u16,
    pub(crate) grease: bool,
}

/// What a server knows from the client's first Initial.
pub(crate) struct FirstInitial {
    /// Destination ID of the packet: Initial keys come from it.
    pub(crate) destination: ConnectionId,
    /// The client's source ID.
    pub(crate) source: ConnectionId,
    /// Destination ID before a Retry, else the same as `destination`.
    pub(crate) original_destination: ConnectionId,
    /// Source ID of the Retry that the client answers.
    pub(crate) retry_source: Option<ConnectionId>,
    /// A token has proven the client's address.
    pub(crate) is_validated: bool,
    /// Token for stateless resets of our handshake ID.
    pub(crate) reset_token: [u8; 16],
}

impl Connection {
    /// A client that is about to send its first Initial to `destination`, a random ID.
    pub(crate) fn client(
        origin: Origin,
        config: &ClientConfig,
        server_name: &str,
        destination: ConnectionId,
    ) -> Result<Self, TlsStartError> {
        let mut parameters = local_parameters(&config.transport, &origin);
        parameters.initial_source_connection_id = Some(origin.local_source);
        let transport = Arc::clone(&config.transport);
        let (mut connection, bytes) =
            Self::new(origin, Side::Client, transport, destination, &parameters);
        connection.handshake.tls = Tls::Here(config.tls.start(server_name, bytes)?);
        connection.handshake.offloads_tls = config.offload_tls;
        let tokens = config
            .tokens
            .as_ref()
            .map(|store| (Arc::clone(store), server_name.to_owned()));
        if let Some((store, name)) = &tokens {
            let token = store.take(name).filter(|token| token.len() <= MAX_TOKEN);
            connection.handshake.token = token.unwrap_or_default();
        }
        connection.handshake.token_store = tokens;
        // The server's address is where we want to go: nothing to prove.
        connection.paths.active_mut().amplification.on_validated();
        let now = connection.handshake.started;
        connection.record_start(now, &destination, &parameters);
        connection.set_initial_keys(destination);
        // Writing the ClientHello reads nothing from the peer and cannot break its rules.
        if let Err(error) = connection.write_handshake(now) {
            return Err(TlsStartError::Configuration(error.to_string()));
        }
        Ok(connection)
    }

    /// A server for a client whose first Initial the endpoint hands over next.
    pub(crate) fn server(
        origin: Origin,
        config: &ServerConfig,
        first: &FirstInitial,
    ) -> Result<Self, TlsStartError> {
        let mut parameters = local_parameters(&config.transport, &origin);
        parameters.initial_source_connection_id = Some(origin.local_source);
        parameters.original_destination_connection_id = Some(first.original_destination);
        parameters.retry_source_connection_id = first.retry_source;
        parameters.disable_active_migration = !config.migration;
        if !origin.local_source.is_empty() {
            parameters.stateless_reset_token = Some(first.reset_token);
        }
        let transport = Arc::clone(&config.transport);
        let (mut connection, bytes) =
            Self::new(origin, Side::Server, transport, first.source, &parameters);
        connection.handshake.tls = Tls::Here(config.tls.start(bytes)?);
        connection.handshake.offloads_tls = config.offload_tls;
        connection.handshake.original_destination = first.original_destination;
        connection.handshake.peer_source = Some(first.source);
        connection.handshake.retry_source = first.retry_source;
        if first.is_validated {
            connection.paths.active_mut().amplification.on_validated();
        }
        let now = connection.handshake.started;
        connection.record_start(now, &first.original_destination, &parameters);
        connection.set_initial_keys(first.destination);
        Ok(connection)
    }

    fn new(
        mut origin: Origin,
        side: Side,
        config: Arc<TransportConfig>,
        peer_id: ConnectionId,
        parameters: &TransportParameters,
    ) -> (Self, Vec<u8>) {
        let mut bytes = Vec::with_capacity(256);
        let grease = origin.grease.then(|| origin.rng.u64());
        parameters.encode(&mut bytes, grease);
        let now = origin.now;
        let recovery = LossRecovery::new(now, side, &config, &mut origin.rng);
        let path = Path::new(origin.tuple, recovery.route().id());
        let hash_key = origin.rng.array();
        let mut streams = Streams::new(side, config.streams(), origin.pool, hash_key);
        streams.draw_from(origin.budget);
        let connection = Self {
            side,
            state: State::Handshaking,
            handshake: new_handshake(now, side, peer_id, origin.local_source),
            protection: PacketProtection::default(),
            acknowledger: Acknowledger::new(),
            paths: Paths::new(path),
            cids: Cids {
                issued: IssuedIds::new(origin.local_source),
                peer: PeerIds::new(peer_id),
                in_use: 0,
                retired: Vec::new(),
            },
            streams,
            datagrams: Datagrams::new(config.datagrams()),
            recovery,
            credit_requests: CreditRequests::default(),
            idle: Idle::new(now, config.max_idle_timeout, config.keep_alive_interval),
            suspicion: Suspicion::new(now),
            events: VecDeque::new(),
            close_error: None,
            stats: ConnectionStats::default(),
            rng: origin.rng,
            tap: courser_telemetry::Tap::default(),
            recorded: None,
            config,
        };
        (connection, bytes)
    }

    /// Derives the Initial keys (RFC 9001 §5.2) and opens the space if need be.
    pub(crate) fn set_initial_keys(&mut self, destination: ConnectionId) {
        let keys = initial::initial_keys(VERSION_1, &destination, self.side);
        self.open_space(SpaceId::Initial, keys);
    }
}

fn new_handshake(
    now: Time,
    side: Side,
    peer_id: ConnectionId,
    local_source: ConnectionId,
) -> Handshake {
    Handshake {
        tls: Tls::Gone,
        offloads_tls: false,
        crypto: CryptoStreams::new(side),
        reading: SpaceId::Initial,
        writing: SpaceId::Initial,
        started: now,
        peer_parameters: None,
        original_destination: peer_id,
        local_source,
        peer_source: None,
        retry_source: None,
        token: Bytes::new(),
        data: None,
        peer_certificates: None,
        exporter: None,
        send_done: false,
        done_sent: None,
        was_sped_up: false,
        wants_tokens: false,
        tokens: Vec::new(),
        send_tokens: false,
        token_store: None,
    }
}

fn local_parameters(config: &TransportConfig, origin: &Origin) -> TransportParameters {
    let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(0);
    let min_ack_delay = u64::try_from(config.min_ack_delay().as_micros()).unwrap_or(0);
    TransportParameters {
        max_idle_timeout: config.max_idle_timeout.map_or(0, millis),
        max_udp_payload_size: u64::from(origin.max_udp_payload_size),
        initial_max_data: config.receive_window,
        initial_max_stream_data_bidi_local: config.stream_receive_window,
        initial_max_stream_data_bidi_remote: config.stream_receive_window,
        initial_max_stream_data_uni: config.stream_receive_window,
        initial_max_streams_bidi: config.max_bidi_streams,
        initial_max_streams_uni: config.max_uni_streams,
        max_ack_delay: millis(config.max_ack_delay),
        active_connection_id_limit: LOCAL_CID_LIMIT,
        min_ack_delay: config.ack_frequency.then_some(min_ack_delay),
        max_datagram_frame_size: config.datagrams().max_frame_size(),
        ..TransportParameters::default()
    }
}
