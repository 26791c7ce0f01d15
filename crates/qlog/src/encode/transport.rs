//! Encodes events of packets, keys and parameters: quic-events §5 and §6.

use courser_telemetry::{
    KeyDiscarded, KeyInstalled, KeyUpdated, PacketBuffered, PacketDropped, PacketReceived,
    PacketSent, ProtocolChosen, TransportParametersSet, VersionChosen,
};
use courser_wire::ConnectionId;
use courser_wire::packet::PacketKind;

use super::events::Events;
use super::frames::write_frames;
use crate::json::{Object, plain};
use crate::schema::{self, Dialect};

pub(super) fn packet_sent(events: &mut Events<'_>, packet: &PacketSent, dialect: Dialect) {
    events.event("quic:packet_sent", |data| {
        let ids = Ids {
            source: packet.source.as_ref(),
            destination: &packet.destination,
            version: packet.version,
        };
        header(data, packet.kind, Some(packet.packet_number), Some(ids));
        raw(data, packet.len, Some(packet.payload_len));
        if packet.is_mtu_probe {
            data.boolean("is_mtu_probe_packet", true);
        }
        write_frames(data, &packet.frames, dialect);
    });
}

pub(super) fn packet_received(events: &mut Events<'_>, packet: &PacketReceived, dialect: Dialect) {
    events.event("quic:packet_received", |data| {
        let ids = Ids {
            source: packet.source.as_ref(),
            destination: &packet.destination,
            version: packet.version,
        };
        header(data, packet.kind, Some(packet.packet_number), Some(ids));
        raw(data, packet.len, Some(packet.payload_len));
        write_frames(data, &packet.frames, dialect);
    });
}

pub(super) fn packet_dropped(events: &mut Events<'_>, packet: &PacketDropped, dialect: Dialect) {
    events.event("quic:packet_dropped", |data| {
        header(data, packet.kind, None, None);
        raw(data, packet.len, None);
        data.constant("trigger", dialect.drop_trigger(packet.reason));
    });
}

pub(super) fn packet_buffered(events: &mut Events<'_>, packet: &PacketBuffered) {
    events.event("quic:packet_buffered", |data| {
        header(data, packet.kind, None, None);
        raw(data, packet.len, None);
        data.constant("trigger", "keys_unavailable");
    });
}

/// The connection IDs of a long header.
struct Ids<'a> {
    source: Option<&'a ConnectionId>,
    destination: &'a ConnectionId,
    version: u32,
}

/// Writes the known fields of a header. The connection IDs of 1-RTT packets are left out, because
/// they follow from `connection_id_updated` (quic-events §8.8).
pub(super) fn packet_header(data: &mut Object<'_>, kind: PacketKind, number: u64) {
    header(data, kind, Some(number), None);
}

fn header(data: &mut Object<'_>, kind: PacketKind, number: Option<u64>, ids: Option<Ids<'_>>) {
    data.object("header", |header| {
        header.constant("packet_type", schema::packet_type(kind));
        if let Some(number) = number {
            header.uint("packet_number", number);
        }
        let Some(Ids {
            source: Some(source),
            destination,
            version,
        }) = ids
        else {
            return;
        };
        header.hex("version", &version.to_be_bytes());
        header.size("scil", source.len()).hex("scid", source);
        header
            .size("dcil", destination.len())
            .hex("dcid", destination);
    });
}

fn raw(data: &mut Object<'_>, len: usize, payload_len: Option<usize>) {
    data.object("raw", |raw| {
        raw.size("length", len);
        if let Some(payload_len) = payload_len {
            raw.size("payload_length", payload_len);
        }
    });
}

pub(super) fn version_information(events: &mut Events<'_>, version: &VersionChosen) {
    events.event("quic:version_information", |data| {
        data.hex("chosen_version", &version.version.to_be_bytes());
    });
}

pub(super) fn alpn_information(events: &mut Events<'_>, chosen: &ProtocolChosen) {
    events.event("quic:alpn_information", |data| {
        data.object("chosen_alpn", |alpn| {
            match std::str::from_utf8(&chosen.protocol) {
                Ok(name) => alpn.text("string_value", name),
                Err(_) => alpn.hex("byte_value", &chosen.protocol),
            };
        });
    });
}

/// Writes transport parameters, without stateless reset tokens: a reader of the trace could use one
/// to end the connection (main-schema §14). The preferred address is left out as well, because it
/// cannot be written without its token.
pub(super) fn parameters_set(events: &mut Events<'_>, set: &TransportParametersSet) {
    events.event("quic:parameters_set", |data| {
        let it = &set.parameters;
        data.constant("initiator", schema::initiator(set.by_peer));
        for (name, id) in [
            (
                "original_destination_connection_id",
                it.original_destination_connection_id,
            ),
            (
                "initial_source_connection_id",
                it.initial_source_connection_id,
            ),
            ("retry_source_connection_id", it.retry_source_connection_id),
        ] {
            if let Some(id) = id {
                data.hex(name, &id);
            }
        }
        data.boolean("disable_active_migration", it.disable_active_migration)
            .uint("max_idle_timeout", it.max_idle_timeout)
            .uint("max_udp_payload_size", it.max_udp_payload_size)
            .uint("ack_delay_exponent", it.ack_delay_exponent)
            .uint("max_ack_delay", it.max_ack_delay)
            .uint("active_connection_id_limit", it.active_connection_id_limit)
            .uint("initial_max_data", it.initial_max_data)
            .uint(
                "initial_max_stream_data_bidi_local",
                it.initial_max_stream_data_bidi_local,
            )
            .uint(
                "initial_max_stream_data_bidi_remote",
                it.initial_max_stream_data_bidi_remote,
            )
            .uint(
                "initial_max_stream_data_uni",
                it.initial_max_stream_data_uni,
            )
            .uint("initial_max_streams_bidi", it.initial_max_streams_bidi)
            .uint("initial_max_streams_uni", it.initial_max_streams_uni)
            .uint("max_datagram_frame_size", it.max_datagram_frame_size);
        // The field is optional in the draft, but the `qlog` crate requires it.
        data.array("unknown_parameters", [0u8; 0], plain);
    });
}

pub(super) fn key_installed(events: &mut Events<'_>, key: &KeyInstalled) {
    for key_type in schema::key_types(key.kind) {
        events.event("quic:key_updated", |data| {
            data.constant("key_type", key_type)
                .constant("trigger", "tls");
        });
    }
}

/// Writes one event for each direction, because both keys change together (RFC 9001 §6.1).
pub(super) fn key_updated(events: &mut Events<'_>, key: &KeyUpdated, key_phase: u64) {
    let trigger = if key.by_peer {
        "remote_update"
    } else {
        "local_update"
    };
    for key_type in schema::key_types(PacketKind::OneRtt) {
        events.event("quic:key_updated", |data| {
            data.constant("key_type", key_type)
                .uint("key_phase", key_phase)
                .constant("trigger", trigger);
        });
    }
}

pub(super) fn key_discarded(events: &mut Events<'_>, key: &KeyDiscarded, dialect: Dialect) {
    for key_type in schema::key_types(key.kind) {
        events.event(dialect.key_discarded(), |data| {
            data.constant("key_type", key_type)
                .constant("trigger", "tls");
        });
    }
}
