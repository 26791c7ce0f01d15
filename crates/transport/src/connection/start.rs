//! Creates connections: a client's with its first flight, a server's for that flight.

use std::collections::VecDeque;
use std::sync::Arc;

use courser_base::foreign::Foreign;
use courser_base::{ScopedIp, Side, Time};
use courser_crypto::{Answer, TicketOrigin, TlsStartError};
use courser_wire::transport_parameters::TransportParameters;
use courser_wire::{ConnectionId, PreferredAddress, Version, Versions};

use super::Connection;
use super::header_bits::HeaderBits;
use super::life::Life;
use super::packets::Packets;
use super::parts::Parts;
use super::stats::Counters;
use super::trace::{Start, Trace};
use super::watchdog::Watchdog;
use crate::acknowledger::{Acknowledger, Promise};
use crate::cid::{ACTIVE_CONNECTION_ID_LIMIT, ConnectionIdRotation, ConnectionIds};
use crate::config::{ClientConfig, ServerConfig, TransportConfig};
use crate::datagram::Datagrams;
use crate::flow::{Draw, WindowBudget};
use crate::handshake::{Beginning, Handshake, HandshakeIds, Negotiation, Restart, server_at};
use crate::path::paths::{Paths, PeerMoves};
use crate::path::spin::Spin;
use crate::path::{Path, Place};
use crate::pings::Pings;
use crate::protection::PacketProtection;
use crate::recovery::LossRecovery;
use crate::recovery::features::Experience;
use crate::rng::Rng;
use crate::stream::{ChunkPool, Streams};

/// The values that the endpoint passes to every new connection.
pub(crate) struct Origin {
    pub(crate) now: Time,
    /// Addresses of the first packet, and its socket.
    pub(crate) place: Place,
    /// The connection ID that we chose for the handshake.
    pub(crate) local_source: ConnectionId,
    pub(crate) pool: ChunkPool,
    pub(crate) budget: WindowBudget,
    pub(crate) experience: Experience,
    pub(crate) rng: Rng,
    pub(crate) max_udp_payload_size: u16,
    pub(crate) grease: bool,
    pub(crate) grease_quic_bit: bool,
    /// The conditions for the rotation of our IDs.
    pub(crate) id_rotation: ConnectionIdRotation,
}

/// The values that a server takes from the client's first Initial.
pub(crate) struct FirstInitial {
    /// Destination ID of the packet, from which Initial keys are derived.
    pub(crate) destination: ConnectionId,
    /// The client's source ID.
    pub(crate) source: ConnectionId,
    /// Destination ID before a Retry, else the same as `destination`.
    pub(crate) original_destination: ConnectionId,
    /// Source ID of the Retry that the client answers.
    pub(crate) retry_source: Option<ConnectionId>,
    /// True if a token has validated the client's address.
    pub(crate) is_validated: bool,
    /// Token for stateless resets of our handshake ID.
    pub(crate) reset_token: [u8; 16],
    /// The address that we prefer, and our ID for it.
    pub(crate) preferred: Option<PreferredAddress>,
    /// The version of the packet.
    pub(crate) version: Version,
}

impl Connection {
    /// Creates the connection of a client, with `destination` as the random ID of its first Initial.
    pub(crate) fn client(
        mut origin: Origin,
        config: &ClientConfig,
        server_name: &str,
        destination: ConnectionId,
    ) -> Result<Self, TlsStartError> {
        let mut parameters = local_parameters(&config.transport, &origin);
        parameters.initial_source_connection_id = Some(origin.local_source);
        let version = Negotiation::of_client(config.versions, config.first_version);
        parameters.version_information = version.information(version.current());
        let grease = grease(&mut origin);
        let bytes = encode(&parameters, grease);
        let is_version_1_only = config.versions == Versions::V1;
        let server = server_at(server_name, origin.place.tuple.peer);
        let tickets = TicketOrigin {
            server: &server,
            version: (!is_version_1_only).then(|| version.current().value()),
        };
        let tls = config
            .tls
            .start_with_tickets_of(tickets, server_name, bytes)?;
        let restart = || {
            Box::new(Restart {
                tls: Foreign::new(Arc::clone(&config.tls)),
                server_name: server_name.to_owned(),
                server: server.clone(),
                parameters: parameters.clone(),
                grease,
            })
        };
        let restart = (!is_version_1_only).then(restart);
        let beginning = Beginning {
            now: origin.now,
            timeout: config.transport.handshake_timeout,
            tls,
            offloads_tls: config.offload_tls,
            version,
            crypto_buffer: config.transport.crypto_buffer,
        };
        let ids = HandshakeIds::of_client(origin.local_source, destination);
        let store = config.tokens.as_ref();
        let store = store.map(|store| (Arc::clone(store), server));
        let handshake = Handshake::client(beginning, ids, store, restart);
        let first = First {
            original: destination,
            destination,
            peer: destination,
            // The client chose the server's address, so it needs no validation.
            is_validated: true,
            parameters: &parameters,
        };
        let now = origin.now;
        let mut connection = assemble(origin, Arc::clone(&config.transport), handshake, &first);
        connection.parts.paths.set_peer_moves(PeerMoves::Nowhere);
        let follows = config.follow_preferred_address;
        connection.parts.paths.set_follows_preferred(follows);
        // Writing the ClientHello reads nothing from the peer and cannot break its rules.
        if let Err(error) = connection.drive_handshake(now) {
            return Err(TlsStartError::Configuration(error.to_string()));
        }
        Ok(connection)
    }

    /// Creates the connection of a server for a client whose first Initial the endpoint passes next.
    pub(crate) fn server(
        mut origin: Origin,
        config: &ServerConfig,
        initial: &FirstInitial,
    ) -> Result<Self, TlsStartError> {
        let mut parameters = local_parameters(&config.transport, &origin);
        parameters.initial_source_connection_id = Some(origin.local_source);
        parameters.original_destination_connection_id = Some(initial.original_destination);
        parameters.retry_source_connection_id = initial.retry_source;
        parameters.disable_active_migration = !config.migration;
        parameters.preferred_address = initial.preferred;
        if !origin.local_source.is_empty() {
            parameters.stateless_reset_token = Some(initial.reset_token);
        }
        let version =
            Negotiation::of_server(config.versions, config.moves_clients, initial.version);
        parameters.version_information = version.information(initial.version);
        let grease = grease(&mut origin);
        let mut tls = match version.depends_on_client() {
            true => {
                let answer = answer(version, parameters.clone(), grease);
                config.tls.start_after_hello(answer)?
            }
            false => {
                let bytes = encode(&parameters, grease);
                config
                    .tls
                    .start_in_version(initial.version.value(), bytes)?
            }
        };
        tls.set_client(origin.place.tuple.peer.ip());
        let beginning = Beginning {
            now: origin.now,
            timeout: config.transport.handshake_timeout,
            tls,
            offloads_tls: config.offload_tls,
            version,
            crypto_buffer: config.transport.crypto_buffer,
        };
        let original = initial.original_destination;
        let (peer, retry) = (initial.source, initial.retry_source);
        let ids = HandshakeIds::of_server(origin.local_source, original, peer, retry);
        let first = First {
            original,
            destination: initial.destination,
            peer,
            is_validated: initial.is_validated,
            parameters: &parameters,
        };
        let handshake = Handshake::server(beginning, ids, config.max_early_data);
        let mut connection = assemble(origin, Arc::clone(&config.transport), handshake, &first);
        let has_preferred = initial.preferred.is_some();
        connection
            .parts
            .paths
            .set_peer_moves(match config.migration {
                true => PeerMoves::Anywhere,
                false => PeerMoves::SameAddress { has_preferred },
            });
        Ok(connection)
    }
}

/// The first packet of a connection, sent or received.
struct First<'a> {
    /// Destination ID of the very first Initial.
    original: ConnectionId,
    /// Destination ID of this packet, from which Initial keys are derived.
    destination: ConnectionId,
    /// Destination ID of packets to the peer.
    peer: ConnectionId,
    /// True if the address of the peer needs no validation.
    is_validated: bool,
    /// Our transport parameters, as they are recorded in the trace.
    parameters: &'a TransportParameters,
}

fn assemble(
    mut origin: Origin,
    config: Arc<TransportConfig>,
    handshake: Handshake,
    first: &First<'_>,
) -> Connection {
    let (now, side) = (origin.now, handshake.side());
    let (experience, rng) = (origin.experience.clone(), &mut origin.rng);
    let mut recovery = LossRecovery::new(now, side, Arc::clone(&config), experience, rng);
    recovery.recall_path(now, ScopedIp::of(origin.place.tuple.peer));
    let mut path = Path::new(origin.place, recovery.path().key());
    if first.is_validated {
        path.on_validated();
    }
    let hash_key = origin.rng.array();
    let mut streams = Streams::new(side, config.streams(), origin.pool, hash_key);
    streams.draw_from(Draw::new(origin.budget, origin.place.tuple.peer));
    let start = Start {
        side,
        original_destination: first.original,
        local_id: origin.local_source,
        peer_id: first.peer,
        path: origin.place.tuple,
        parameters: first.parameters,
        version: handshake.version().current(),
    };
    let trace = Trace::start(now, &start, &config, &recovery);
    let mut paths = Paths::new(path, config.initial_rtt);
    paths.spin = Spin::new(config.spin_bit, &mut origin.rng);
    let packets = Packets {
        recovery,
        protection: PacketProtection::new(side, config.key_update_after),
        pads: config.pad_to_mtu,
    };
    let parts = Parts {
        acknowledger: Acknowledger::new(Promise {
            max_ack_delay: config.max_ack_delay,
            min_ack_delay: config.ack_frequency.then(|| config.min_ack_delay()),
        }),
        handshake,
        paths,
        ids: ConnectionIds::new(origin.local_source, first.peer).rotate(origin.id_rotation, now),
        streams,
        datagrams: Datagrams::new(config.datagrams()),
        pings: Pings::default(),
        bits: HeaderBits::new(origin.grease_quic_bit),
        rng: origin.rng,
        trace,
        multipath: None,
        observed: None,
    };
    let mut connection = Connection {
        life: Life::new(),
        packets,
        parts,
        watchdog: Watchdog::new(now, &config),
        events: VecDeque::new(),
        counters: Counters::default(),
        reported_room: (0, 0),
    };
    connection.reported_room = connection.datagram_room();
    connection.open_initial(&first.destination);
    connection
}

/// Encodes our transport parameters for TLS.
fn encode(parameters: &TransportParameters, grease: Option<u64>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    parameters.encode(&mut bytes, grease);
    bytes
}

/// Draws the seed for reserved values in our transport parameters.
fn grease(origin: &mut Origin) -> Option<u64> {
    origin.grease.then(|| origin.rng.u64())
}

/// Returns the answer of a server that may move the client to another version (RFC 9368 §2.3). It
/// decides as [`Negotiation::on_parameters`] does with the same bytes.
fn answer(version: Negotiation, parameters: TransportParameters, grease: Option<u64>) -> Answer {
    Box::new(move |client| {
        let client = client.and_then(|bytes| TransportParameters::decode(bytes, Side::Client).ok());
        let chosen = version.choose(client.and_then(|it| it.version_information).as_ref());
        let mut parameters = parameters;
        parameters.version_information = version.information(chosen);
        (chosen.value(), encode(&parameters, grease))
    })
}

/// Length of a client's first destination ID, which has to be hard to guess (RFC 9000 §7.2).
pub(crate) const FIRST_DESTINATION_LEN: usize = 8;

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
        active_connection_id_limit: ACTIVE_CONNECTION_ID_LIMIT,
        min_ack_delay: config.ack_frequency.then_some(min_ack_delay),
        reset_stream_at: config.reset_stream_at,
        max_datagram_frame_size: config.datagrams().max_frame_size(),
        grease_quic_bit: origin.grease_quic_bit,
        initial_max_path_id: config.initial_max_path_id(),
        max_candidates: config.candidate_limit(),
        address_discovery: config.address_observations.to_parameter(),
        ..TransportParameters::default()
    }
}
