//! IDs and names of the transport parameters. RFC 9000 §18.2.

pub(super) const ORIGINAL_DESTINATION_CONNECTION_ID: u64 = 0x00;
pub(super) const MAX_IDLE_TIMEOUT: u64 = 0x01;
pub(super) const STATELESS_RESET_TOKEN: u64 = 0x02;
pub(super) const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
pub(super) const INITIAL_MAX_DATA: u64 = 0x04;
pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: u64 = 0x05;
pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_REMOTE: u64 = 0x06;
pub(super) const INITIAL_MAX_STREAM_DATA_UNI: u64 = 0x07;
pub(super) const INITIAL_MAX_STREAMS_BIDI: u64 = 0x08;
pub(super) const INITIAL_MAX_STREAMS_UNI: u64 = 0x09;
pub(super) const ACK_DELAY_EXPONENT: u64 = 0x0a;
pub(super) const MAX_ACK_DELAY: u64 = 0x0b;
pub(super) const DISABLE_ACTIVE_MIGRATION: u64 = 0x0c;
pub(super) const PREFERRED_ADDRESS: u64 = 0x0d;
pub(super) const ACTIVE_CONNECTION_ID_LIMIT: u64 = 0x0e;
pub(super) const INITIAL_SOURCE_CONNECTION_ID: u64 = 0x0f;
pub(super) const RETRY_SOURCE_CONNECTION_ID: u64 = 0x10;

/// The versions of the sender. RFC 9368 §3.
pub(super) const VERSION_INFORMATION: u64 = 0x11;

/// The parameter of the DATAGRAM extension. RFC 9221 §3.
pub(super) const MAX_DATAGRAM_FRAME_SIZE: u64 = 0x20;

/// The parameter of the RESET_STREAM_AT extension. draft-ietf-quic-reliable-stream-reset-10 §3.
pub(super) const RESET_STREAM_AT: u64 = 0x1d;
/// The same parameter in drafts before it was registered, whose implementations are still in use. It is
/// accepted, and not sent: the frame has the same format in all drafts.
pub(super) const RESET_STREAM_AT_OF_DRAFTS: u64 = 0x17_f758_6d2c_b571;

/// The parameter of the extension for several paths. RFC 10069 §2.1.
pub(super) const INITIAL_MAX_PATH_ID: u64 = 0x3e;

/// The parameter of senders that accept packets without the QUIC bit. RFC 9287 §3.
pub(super) const GREASE_QUIC_BIT: u64 = 0x2ab2;

/// The parameter of the ACK frequency extension. draft-ietf-quic-ack-frequency-12 §3.
pub(super) const MIN_ACK_DELAY: u64 = 0xff04_de1b;

/// The parameter of address discovery. draft-ietf-quic-address-discovery-00 §3.
pub(super) const ADDRESS_DISCOVERY: u64 = 0x9f81_a176;

/// The parameter of the traversal of NATs, in the variant of the field.
pub(super) const MAX_CANDIDATES: u64 = 0x3d7f_9112_0401;

/// A placeholder for an ID that cannot be decoded. No varint has this value.
pub(super) const UNREADABLE: u64 = u64::MAX;

/// Returns the name of a parameter in RFC 9000 §18.2 or in the document of its extension.
pub(super) fn name(parameter: u64) -> Option<&'static str> {
    match parameter {
        UNREADABLE => return Some("a transport parameter"),
        MAX_DATAGRAM_FRAME_SIZE => return Some("max_datagram_frame_size"),
        RESET_STREAM_AT | RESET_STREAM_AT_OF_DRAFTS => return Some("reset_stream_at"),
        INITIAL_MAX_PATH_ID => return Some("initial_max_path_id"),
        GREASE_QUIC_BIT => return Some("grease_quic_bit"),
        ADDRESS_DISCOVERY => return Some("address_discovery"),
        MAX_CANDIDATES => return Some("max_remote_nat_traversal_addresses"),
        MIN_ACK_DELAY => return Some("min_ack_delay"),
        _ => {}
    }
    usize::try_from(parameter)
        .ok()
        .and_then(|index| NAMES.get(index))
        .copied()
}

/// The names of the parameters in the order of their IDs, from 0.
const NAMES: [&str; 18] = [
    "original_destination_connection_id",
    "max_idle_timeout",
    "stateless_reset_token",
    "max_udp_payload_size",
    "initial_max_data",
    "initial_max_stream_data_bidi_local",
    "initial_max_stream_data_bidi_remote",
    "initial_max_stream_data_uni",
    "initial_max_streams_bidi",
    "initial_max_streams_uni",
    "ack_delay_exponent",
    "max_ack_delay",
    "disable_active_migration",
    "preferred_address",
    "active_connection_id_limit",
    "initial_source_connection_id",
    "retry_source_connection_id",
    "version_information",
];
