//! HTTP/3: any bytes on the streams of a QUIC connection.

use std::net::SocketAddr;
use std::time::Duration;

use courser_quic::rustls::pki_types::CertificateDer;
use courser_quic::{
    ClientConfig, ConnectionError, Endpoint, ReadError, RecvStream, SendStream, VarInt,
};

use crate::PATIENCE;
use crate::hpack::{decode_qpack, encode_qpack, is_permitted};
use crate::message::{Content, Ending, Field, Request};
use crate::seen::{End, Seen};

/// A control stream with empty SETTINGS (RFC 9114 §6.2.1): no dynamic table.
const CONTROL: &[u8] = &[0x00, 0x04, 0x00];
const DATA: u64 = 0;
/// The type of HEADERS (RFC 9114 §7.2.2).
pub const HEADERS: u64 = 1;
const REQUEST_CANCELLED: u32 = 0x10c;

/// Returns a frame.
pub fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = integer(kind);
    bytes.extend(integer(u64::try_from(payload.len()).expect("a length")));
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns an integer of variable length (RFC 9000 §16).
fn integer(value: u64) -> Vec<u8> {
    match value {
        0..=0x3f => vec![u8::try_from(value).expect("six bits")],
        0x40..=0x3fff => {
            let value = u16::try_from(value).expect("14 bits") | 0x4000;
            value.to_be_bytes().to_vec()
        }
        _ => {
            let value = u32::try_from(value).expect("30 bits") | 0x8000_0000;
            value.to_be_bytes().to_vec()
        }
    }
}

/// Returns HEADERS with these fields.
pub fn headers(fields: &[Field]) -> Vec<u8> {
    frame(HEADERS, &encode_qpack(fields))
}

/// Returns the bytes of a request.
pub fn request(request: &Request) -> Vec<u8> {
    let mut bytes = headers(&request.section());
    for piece in request.content.pieces() {
        bytes.extend(frame(DATA, piece));
    }
    if request.content == Content::Unknown(Vec::new()) {
        bytes.extend(frame(DATA, &[]));
    }
    if !request.trailers.is_empty() && request.ending == Ending::Complete {
        bytes.extend(headers(&request.trailers));
    }
    bytes
}

/// A connection of HTTP/3.
#[derive(Debug)]
pub struct Connection {
    _endpoint: Endpoint,
    connection: courser_quic::Connection,
    /// Must stay open (RFC 9114 §6.2.1).
    _control: SendStream,
}

/// A request whose response was not read yet.
#[derive(Debug)]
pub struct Pending {
    /// The direction of the client.
    pub send: SendStream,
    receive: RecvStream,
}

impl Connection {
    /// Connects to a server that has this certificate for localhost.
    ///
    /// # Panics
    /// Panics if there is no such server.
    pub async fn connect(address: SocketAddr, certificate: CertificateDer<'static>) -> Self {
        let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).expect("a socket");
        let config = ClientConfig::with_roots([certificate]).expect("a certificate");
        let config = config.alpn(["h3"]);
        let connecting = endpoint.connect_with(config, address, "localhost");
        let connection = connecting.expect("possible").await.expect("a server");
        let mut control = connection.open_uni().await.expect("allowed");
        control.write_all(CONTROL).await.expect("open");
        Self {
            _endpoint: endpoint,
            connection,
            _control: control,
        }
    }

    /// Returns true if the connection is over.
    pub fn is_over(&self) -> bool {
        self.connection.close_reason().is_some()
    }

    /// Sends a request and returns its response.
    pub async fn exchange(&mut self, request: &Request) -> Seen {
        self.raw(&self::request(request), request.ending).await
    }

    /// Sends any bytes as a request and returns the response.
    pub async fn raw(&mut self, bytes: &[u8], ending: Ending) -> Seen {
        match self.begin(bytes, ending).await {
            Ok(pending) => pending.answer().await,
            Err(error) => Seen::nothing(end_of(&error)),
        }
    }

    /// Sends the bytes of a request, and does not wait for the response.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn begin(
        &mut self,
        bytes: &[u8],
        ending: Ending,
    ) -> Result<Pending, ConnectionError> {
        let mut pending = self.open().await?;
        // The server may stop the stream at any time.
        let _ = pending.send.write_all(bytes).await;
        match ending {
            Ending::Reset => {
                pending.send.flush();
                // A reset overtakes bytes that were written and not sent.
                tokio::time::sleep(Duration::from_millis(20)).await;
                let _ = pending.send.reset(VarInt::from_u32(REQUEST_CANCELLED));
            }
            Ending::Complete | Ending::Cut => {
                let _ = pending.send.finish();
            }
        }
        Ok(pending)
    }

    /// Opens a stream for a request.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn open(&mut self) -> Result<Pending, ConnectionError> {
        let (send, receive) = self.connection.open_bi().await?;
        Ok(Pending { send, receive })
    }
}

impl Pending {
    /// Waits for the end of the stream and returns the response.
    pub async fn answer(mut self) -> Seen {
        let mut bytes = Vec::new();
        let end = loop {
            let reading = self.receive.read_chunk(1 << 16);
            match tokio::time::timeout(PATIENCE, reading).await {
                Ok(Ok(Some(chunk))) => bytes.extend_from_slice(&chunk),
                Ok(Ok(None)) => break End::Complete,
                Ok(Err(ReadError::Reset(code))) => break End::Reset(code.into()),
                Ok(Err(ReadError::ConnectionLost(error))) => break end_of(&error),
                Ok(Err(_)) => break End::Cut,
                Err(_) => break End::Silent,
            }
        };
        parse(&bytes, end)
    }
}

fn end_of(error: &ConnectionError) -> End {
    match error {
        ConnectionError::ApplicationClosed { code, .. } => End::Closed(code.0),
        _ => End::Cut,
    }
}

fn parse(bytes: &[u8], end: End) -> Seen {
    let mut sections = Vec::new();
    let mut content = Vec::new();
    let mut rest = bytes;
    let mut end = end;
    while !rest.is_empty() {
        let Some((kind, payload)) = take_frame(&mut rest) else {
            if end == End::Complete {
                end = End::Malformed;
            }
            break;
        };
        match kind {
            DATA => content.extend_from_slice(payload),
            HEADERS => {
                match decode_qpack(payload).filter(|section| is_permitted(&section.fields)) {
                    Some(section) => sections.push(section),
                    None => end = End::Malformed,
                }
            }
            _ => {}
        }
    }
    if sections.is_empty() && end == End::Complete {
        end = End::Cut;
    }
    crate::h2::response_of(&sections, &content, end)
}

fn take_frame<'a>(rest: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
    let kind = take_integer(rest)?;
    let length = usize::try_from(take_integer(rest)?).ok()?;
    let payload = rest.get(..length)?;
    *rest = &rest[length..];
    Some((kind, payload))
}

fn take_integer(rest: &mut &[u8]) -> Option<u64> {
    let first = *rest.first()?;
    let length = 1_usize << (first >> 6);
    let bytes = rest.get(..length)?;
    *rest = &rest[length..];
    let value = bytes
        .iter()
        .fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    let bits = u32::try_from(length * 8 - 2).expect("at most 62");
    Some(value & ((1 << bits) - 1))
}
