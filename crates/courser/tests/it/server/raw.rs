//! Requests written byte by byte, for rules that HTTP libraries keep.

use courser::server::Protocol;
use courser::{ClientConfig, Connection, Endpoint, h3};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::client::tls;
use super::http2::{ACK, END_STREAM_AND_HEADERS, HEADERS, RST_STREAM, SETTINGS, frame};
use super::{Running, within};

/// A request of HTTP/2 or HTTP/3: its pseudo-header fields and other fields in order.
pub(super) type Fields<'a> = &'a [(&'a str, &'a str)];

/// The fields of a valid request for `/`.
pub(super) const VALID: Fields<'static> = &[
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "localhost"),
    (":path", "/"),
];

/// The end of one exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// The status, and the content or, over HTTP/1.1, the whole response.
    Status(u16, String),
    /// The code of RST_STREAM, or of RESET_STREAM over QUIC.
    Reset(u64),
    /// The connection ended.
    Closed,
}

impl Outcome {
    /// Returns the status of the response.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Status(status, _) => Some(*status),
            _ => None,
        }
    }
}

/// Sends bytes on a new connection of HTTP/1.1 and returns all that the server sends until it closes.
pub(super) async fn over_http1(running: &Running, bytes: &[u8]) -> String {
    let (address, certificate) = (running.handle.local_addr(), running.identity.certificate());
    let stream = tls(address, certificate, &[b"http/1.1"]).await;
    let mut stream = stream.expect("a server");
    within(stream.write_all(bytes)).await.expect("open");
    within(stream.flush()).await.expect("open");
    let mut response = Vec::new();
    // The server may close without a response.
    let _ = within(stream.read_to_end(&mut response)).await;
    String::from_utf8_lossy(&response).into_owned()
}

/// Returns the status of a response of HTTP/1.1.
pub(super) fn status_of(response: &str) -> Option<u16> {
    response.split(' ').nth(1)?.parse().ok()
}

/// A connection of HTTP/2.
pub(super) struct Http2 {
    pub(super) stream: TlsStream<TcpStream>,
    next: u32,
}

impl Http2 {
    pub(super) async fn connect(running: &Running) -> Self {
        let (address, certificate) = (running.handle.local_addr(), running.identity.certificate());
        let stream = tls(address, certificate, &[b"h2"]).await;
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend(frame(SETTINGS, 0, 0, &[]));
        bytes.extend(frame(SETTINGS, ACK, 0, &[]));
        let mut this = Self {
            stream: stream.expect("a server"),
            next: 1,
        };
        this.write(&bytes).await;
        this
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) {
        within(self.stream.write_all(bytes)).await.expect("open");
        within(self.stream.flush()).await.expect("open");
    }

    /// Sends the HEADERS frame of a request and returns its stream ID.
    pub(super) async fn begin(&mut self, fields: Fields<'_>, flags: u8) -> u32 {
        self.begin_with(&hpack(fields), flags).await
    }

    /// Sends a field block in a HEADERS frame, and CONTINUATION frames if it is longer than a frame may be. Returns
    /// the stream ID.
    pub(super) async fn begin_with(&mut self, block: &[u8], flags: u8) -> u32 {
        let (stream, bytes) = self.split(block, flags);
        self.write(&bytes).await;
        stream
    }

    /// Returns the stream ID and the frames of a request, for requests that are sent together.
    pub(super) fn encode(&mut self, fields: Fields<'_>, flags: u8) -> (u32, Vec<u8>) {
        self.split(&hpack(fields), flags)
    }

    fn split(&mut self, block: &[u8], flags: u8) -> (u32, Vec<u8>) {
        let stream = self.next;
        self.next += 2;
        let mut parts = block.chunks(MAX_FRAME);
        let mut part = parts.next().unwrap_or_default();
        let (mut kind, mut flags) = (HEADERS, flags & !END_HEADERS);
        let mut bytes = Vec::new();
        for next in parts {
            bytes.extend(frame(kind, flags, stream, part));
            (kind, flags, part) = (CONTINUATION, 0, next);
        }
        bytes.extend(frame(kind, flags | END_HEADERS, stream, part));
        (stream, bytes)
    }

    /// Sends a request without content and waits for its end.
    pub(super) async fn exchange(&mut self, fields: Fields<'_>) -> Outcome {
        let stream = self.begin(fields, END_STREAM_AND_HEADERS).await;
        self.outcome(stream).await
    }

    /// Reads the next frame: its type, flags, stream ID and payload.
    pub(super) async fn read_frame(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        within(self.stream.read_exact(&mut head)).await.ok()?;
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let stream = u32::from_be_bytes(head[5..].try_into().expect("four bytes"));
        let mut payload = vec![0; len as usize];
        within(self.stream.read_exact(&mut payload)).await.ok()?;
        Some((head[3], head[4], stream, payload))
    }

    /// Reads to the end of the response on this stream.
    pub(super) async fn outcome(&mut self, stream: u32) -> Outcome {
        let (mut status, mut content) = (0, Vec::new());
        while let Some((kind, flags, id, payload)) = self.read_frame().await {
            match kind {
                GOAWAY if payload[4..8] != [0; 4] => break,
                RST_STREAM if id == stream && status == 0 => {
                    let code = u32::from_be_bytes(payload[..].try_into().expect("four bytes"));
                    return Outcome::Reset(code.into());
                }
                HEADERS if id == stream && status == 0 => {
                    status = hpack_status(&payload);
                }
                DATA if id == stream => content.extend(payload),
                _ => continue,
            }
            if id == stream && flags & END_STREAM != 0 {
                return Outcome::Status(status, String::from_utf8_lossy(&content).into_owned());
            }
        }
        Outcome::Closed
    }
}

pub(super) const DATA: u8 = 0;
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
/// Largest frame that a server accepts by default (RFC 9113 §4.2).
const MAX_FRAME: usize = 16_384;

/// Encodes fields as literals without indexing and without Huffman coding (RFC 7541 §6.2.2).
pub(super) fn hpack(fields: Fields<'_>) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            integer(&mut block, 0, 7, text.len());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// Encodes an integer with a prefix of this many bits (RFC 7541 §5.1).
fn integer(out: &mut Vec<u8>, first: u8, bits: u32, value: usize) {
    let most = (1 << bits) - 1;
    if value < most {
        return out.push(first | value as u8);
    }
    out.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 128 {
        out.push(rest as u8 | 128);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Returns the status of a response, which is its first field.
pub(super) fn hpack_status(block: &[u8]) -> u16 {
    match block {
        // The server may change the size of its table first (RFC 7541 §6.3).
        [first, rest @ ..] if first & 0xe0 == 0x20 => hpack_status(rest),
        [first, ..] if first & 0x80 != 0 => match first & 0x7f {
            index @ 8..=14 => [200, 204, 206, 304, 400, 404, 500][usize::from(index) - 8],
            index => panic!("index {index} is not a status"),
        },
        // A literal whose name is entry 8 of the static table.
        [_, len, text @ ..] => number(*len, text),
        _ => panic!("no status in {block:x?}"),
    }
}

/// Decodes a string of digits, which may be coded by Huffman.
fn number(len: u8, text: &[u8]) -> u16 {
    let text = &text[..usize::from(len & 0x7f)];
    if len & 0x80 == 0 {
        let text = std::str::from_utf8(text).expect("digits");
        return text.parse().expect("digits");
    }
    let bits: Vec<u16> = text
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| u16::from(byte >> bit & 1)))
        .collect();
    let value = |bits: &[u16]| bits.iter().fold(0, |value, bit| value << 1 | bit);
    let (mut at, mut number) = (0, 0);
    for _ in 0..3 {
        // 0, 1 and 2 have five bits, and the other digits six.
        let (digit, len) = match value(&bits[at..at + 5]) {
            digit @ 0..=2 => (digit, 5),
            _ => (value(&bits[at..at + 6]) - 0x19 + 3, 6),
        };
        (number, at) = (number * 10 + digit, at + len);
    }
    number
}

/// A connection of HTTP/3 whose control stream has empty SETTINGS, so that the server uses no dynamic table.
pub(super) struct Http3 {
    pub(super) quic: Connection,
    _endpoint: Endpoint,
}

impl Http3 {
    pub(super) async fn connect(running: &Running) -> Self {
        let endpoint = Endpoint::client("[::]:0".parse().expect("valid")).expect("a socket");
        let certificate = running.identity.certificate();
        let config = ClientConfig::with_roots([certificate]).expect("valid");
        let address = running.handle.local_addr();
        let connecting = endpoint.connect_with(config.alpn([h3::ALPN]), address, "localhost");
        let quic = within(connecting.expect("valid")).await.expect("a server");
        let mut control = within(quic.open_uni()).await.expect("allowed");
        within(control.write_all(&[0, 4, 0])).await.expect("open");
        // The stream stays open with the connection.
        std::mem::forget(control);
        Self {
            quic,
            _endpoint: endpoint,
        }
    }

    /// Sends a request without content and waits for its end.
    pub(super) async fn exchange(&mut self, fields: Fields<'_>) -> Outcome {
        let (mut send, mut receive) = within(self.quic.open_bi()).await.expect("allowed");
        let mut section = vec![0, 0];
        for (name, value) in fields {
            integer(&mut section, 0x20, 3, name.len());
            section.extend_from_slice(name.as_bytes());
            integer(&mut section, 0, 7, value.len());
            section.extend_from_slice(value.as_bytes());
        }
        let len = u32::try_from(section.len()).expect("short") | 0x8000_0000;
        let frame = [&[1], &len.to_be_bytes()[..], &section].concat();
        // The server may stop the stream.
        let _ = within(send.write_all(&frame)).await;
        let _ = send.finish();
        match within(receive.read_to_end(1 << 20)).await {
            Ok(response) => read_response(&response),
            Err(error) => match error.to_string().contains("reset") {
                true => Outcome::Reset(0),
                false => Outcome::Closed,
            },
        }
    }
}

/// Splits a response into its status and content.
fn read_response(mut response: &[u8]) -> Outcome {
    let (mut status, mut content) = (0, Vec::new());
    while !response.is_empty() {
        let kind = varint(&mut response);
        let len = varint(&mut response) as usize;
        let (payload, rest) = response.split_at(len);
        response = rest;
        match kind {
            1 if status == 0 || status == 103 => status = qpack_status(payload),
            0 => content.extend_from_slice(payload),
            _ => {}
        }
    }
    Outcome::Status(status, String::from_utf8_lossy(&content).into_owned())
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let len = 1 << (bytes[0] >> 6);
    let (number, rest) = bytes.split_at(len);
    *bytes = rest;
    let first = u64::from(number[0] & 0x3f);
    number[1..]
        .iter()
        .fold(first, |value, &byte| value << 8 | u64::from(byte))
}

/// Returns the status of a response, which is its first field (RFC 9204 appendix A).
fn qpack_status(section: &[u8]) -> u16 {
    match &section[2..] {
        // Indices from 63 on take two bytes.
        [0xff, more, ..] => [100, 204, 206, 302, 400, 403, 421, 425, 500][usize::from(*more)],
        [first, ..] if first & 0xc0 == 0xc0 => {
            [103, 200, 304, 404, 503][usize::from(first & 0x3f) - 24]
        }
        // A literal with the name of an entry of the static table.
        [0x5f | 0x7f, _, len, text @ ..] => number(*len, text),
        section => panic!("no status in {section:x?}"),
    }
}

/// Sends a request with these fields on a new connection, and returns its status.
pub(super) async fn status(running: &Running, protocol: Protocol, fields: Fields<'_>) -> Outcome {
    match protocol {
        Protocol::Http1 => panic!("HTTP/1.1 has no pseudo-header fields"),
        Protocol::Http2 => Http2::connect(running).await.exchange(fields).await,
        Protocol::Http3 => Http3::connect(running).await.exchange(fields).await,
    }
}

/// Returns `VALID` with a field replaced, removed (`None`) or added.
pub(super) fn with<'a>(name: &'a str, value: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
    let others = VALID.iter().filter(|field| field.0 != name).copied();
    let field = value.map(|value| (name, value));
    match name.starts_with(':') {
        true => field.into_iter().chain(others).collect(),
        false => others.chain(field).collect(),
    }
}
