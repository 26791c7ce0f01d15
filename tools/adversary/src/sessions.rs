//! Hand-written WebTransport and MASQUE, on top of [`http`].

use courser_wire::{Datagram, Direction, Frame, StreamId, TransportParameters};

use crate::connection::Connection;
use crate::encode::{encode, put_varint};
use crate::hooks::Hooks;
use crate::http;

/// The path of the sessions of victims.
pub const SESSION: &str = "/.well-known/courser/echo";

/// The settings of a client of the newest dialect: extended CONNECT, datagrams, WebTransport, and limits of sessions.
pub const SETTINGS: &[(u64, u64)] = &[
    (0x08, 1),
    (0x33, 1),
    (0x2c7c_f000, 1),
    (0x2b61, 1 << 40),
    (0x2b64, 1 << 40),
    (0x2b65, 1 << 40),
];

/// The settings of a browser, which speaks draft 02.
pub const SETTINGS_OF_BROWSERS: &[(u64, u64)] = &[(0x33, 1), (0x2b60_3742, 1), (0xff_d277, 1)];

/// WT_BUFFERED_STREAM_REJECTED.
pub const STREAM_REJECTED: u64 = 0x3994_bd84;
/// WT_SESSION_GONE.
pub const SESSION_GONE: u64 = 0x170d_7b68;
/// WT_FLOW_CONTROL_ERROR.
pub const FLOW_CONTROL_ERROR: u64 = 0x045d_4487;
/// H3_DATAGRAM_ERROR (RFC 9297 §5.2).
pub const DATAGRAM_ERROR: u64 = 0x33;
/// H3_EXCESSIVE_LOAD (RFC 9114 §8.1).
pub const EXCESSIVE_LOAD: u64 = 0x107;
/// H3_REQUEST_REJECTED (RFC 9114 §8.1).
pub const REQUEST_REJECTED: u64 = 0x10b;
/// H3_MESSAGE_ERROR (RFC 9114 §8.1).
pub const MESSAGE_ERROR: u64 = 0x10e;

/// WT_CLOSE_SESSION.
pub const CLOSE_SESSION: u64 = 0x2843;
/// WT_MAX_DATA.
pub const MAX_DATA: u64 = 0x190b_4d3d;
/// WT_MAX_STREAMS for bidirectional streams.
pub const MAX_STREAMS_BIDI: u64 = 0x190b_4d3f;

/// The hooks of a peer with datagrams and RESET_STREAM_AT.
#[derive(Clone, Copy, Debug, Default)]
pub struct Newest;

impl Hooks for Newest {
    fn edit_parameters(&mut self, parameters: &mut TransportParameters) {
        with_datagrams(parameters);
        parameters.reset_stream_at = true;
    }
}

/// Accepts datagrams of any size.
pub fn with_datagrams(parameters: &mut TransportParameters) {
    parameters.max_datagram_frame_size = 65_535;
}

/// Encodes a SETTINGS frame.
pub fn settings(settings: &[(u64, u64)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (id, value) in settings {
        put_varint(&mut payload, *id);
        put_varint(&mut payload, *value);
    }
    http::frame(http::SETTINGS, &payload)
}

/// Opens the control stream with these settings, and the encoder stream. Returns the next offset of the former.
pub fn preface(connection: &mut Connection, list: &[(u64, u64)]) -> u64 {
    let mut control = vec![0x00];
    control.extend(settings(list));
    let (first, second) = match connection.side().is_client() {
        true => (
            http::uni_stream(http::CONTROL),
            http::uni_stream(http::ENCODER),
        ),
        false => (server_stream(0), server_stream(1)),
    };
    connection.push_bytes(http::stream(first, 0, &control, false));
    connection.push_bytes(http::stream(second, 0, &[0x02], false));
    control.len() as u64
}

/// Returns the ID of a server's unidirectional stream.
pub fn server_stream(index: u64) -> StreamId {
    StreamId::new(courser_base::Side::Server, Direction::Unidirectional, index)
}

/// Encodes an extended CONNECT with further fields as a HEADERS frame.
pub fn connect(protocol: &str, path: &str, fields: &[(&str, &[u8])]) -> Vec<u8> {
    let mut section = http::connect_section(path);
    http::put_field(&mut section, ":protocol", protocol.as_bytes());
    for (name, value) in fields {
        http::put_field(&mut section, name, value);
    }
    http::frame(http::HEADERS, &section)
}

/// Encodes the request of a session in the newest dialect.
pub fn request() -> Vec<u8> {
    connect("webtransport-h3", SESSION, &[])
}

/// Encodes the request of a UDP tunnel with the values of the template as they stand in the path.
pub fn udp_request(host: &str, port: &str) -> Vec<u8> {
    let path = format!("/.well-known/masque/udp/{host}/{port}/");
    connect("connect-udp", &path, &[("capsule-protocol", b"?1")])
}

/// Encodes the request of an IP tunnel for all hosts and protocols.
pub fn ip_request() -> Vec<u8> {
    let path = "/.well-known/masque/ip/*/*/";
    connect("connect-ip", path, &[("capsule-protocol", b"?1")])
}

/// Encodes the header of a stream of a session.
pub fn stream_header(direction: Direction, session: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_varint(
        &mut bytes,
        match direction {
            Direction::Bidirectional => 0x41,
            Direction::Unidirectional => 0x54,
        },
    );
    put_varint(&mut bytes, session);
    bytes
}

/// Encodes a stream of a session that is complete.
pub fn whole_stream(id: StreamId, session: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = stream_header(id.direction(), session);
    bytes.extend_from_slice(content);
    http::stream(id, 0, &bytes, true)
}

/// Encodes a capsule inside a DATA frame.
pub fn capsule(kind: u64, value: &[u8]) -> Vec<u8> {
    http::frame(http::DATA, &bare_capsule(kind, value.len() as u64, value))
}

/// Encodes a capsule whose length may be false.
pub fn bare_capsule(kind: u64, len: u64, value: &[u8]) -> Vec<u8> {
    let mut bytes = http::header(kind, len);
    bytes.extend_from_slice(value);
    bytes
}

/// Encodes a DATAGRAM frame of a request.
pub fn datagram(request: StreamId, payload: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    put_varint(&mut data, request.value() / 4);
    data.extend_from_slice(payload);
    encode(&Frame::Datagram(Datagram {
        data: &data,
        has_length: true,
    }))
}

/// Builds a packet of IPv4 with a correct checksum of its header.
///
/// # Panics
/// Panics if the payload does not fit into a packet.
pub fn ipv4(
    source: [u8; 4],
    destination: [u8; 4],
    ttl: u8,
    protocol: u8,
    payload: &[u8],
) -> Vec<u8> {
    let len = u16::try_from(20 + payload.len())
        .expect("short")
        .to_be_bytes();
    let mut packet = vec![0x45, 0, len[0], len[1], 0, 1, 0, 0, ttl, protocol, 0, 0];
    packet.extend(source);
    packet.extend(destination);
    let words = packet
        .chunks(2)
        .map(|it| u32::from(it[0]) << 8 | u32::from(it[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let sum = !u16::try_from(folded & 0xffff).expect("sixteen bits");
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend_from_slice(payload);
    packet
}
