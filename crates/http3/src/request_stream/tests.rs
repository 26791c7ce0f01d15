//! Tests of whole messages without a transport.

use courser_base::Side;
use courser_qpack::{Encoder, EncoderLimits, FieldLine};

use super::*;
use crate::connection::Config;
use crate::connection::tests::NOW;
use crate::frame;

mod blocked;
mod claimed;
mod order;
mod random;
mod responses;
mod sections;
mod states;

const UNEXPECTED: (Code, Scope) = (Code::FRAME_UNEXPECTED, Scope::Connection);
const MALFORMED: (Code, Scope) = (Code::MESSAGE_ERROR, Scope::Stream);
const INCOMPLETE: (Code, Scope) = (Code::REQUEST_INCOMPLETE, Scope::Stream);
const EXCESSIVE: (Code, Scope) = (Code::EXCESSIVE_LOAD, Scope::Stream);

const ID: u64 = 0;

/// An observation of the caller of a request stream.
#[derive(Clone, PartialEq, Debug)]
enum Seen {
    Request(Method, Option<u64>),
    Response(StatusCode, Option<u64>),
    TooLarge,
    Content(Vec<u8>),
    /// A frame that was counted against the budget of the connection.
    Counted,
    Trailers(usize),
    End,
}

/// The frames of the peer, and how they are read.
#[derive(Clone, Debug)]
struct Reading {
    side: Side,
    method: Method,
    limits: FieldLimits,
    bytes: Vec<u8>,
    has_fin: bool,
}

impl Reading {
    fn server(frames: &[Vec<u8>]) -> Self {
        Self {
            side: Side::Server,
            method: Method::GET,
            limits: FieldLimits::REQUEST,
            bytes: frames.concat(),
            has_fin: true,
        }
    }

    fn client(frames: &[Vec<u8>]) -> Self {
        Self {
            side: Side::Client,
            ..Self::server(frames)
        }
    }

    /// Sets the method of the request to which the responses belong.
    fn to(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    fn stream(&self) -> RequestStream {
        match self.side {
            Side::Server => RequestStream::request(ID, self.limits),
            Side::Client => RequestStream::response(ID, self.limits, &self.method),
        }
    }

    fn connection(&self) -> Connection {
        let mut config = Config::new(self.side);
        config.limits = self.limits;
        config.extended_connect = true;
        Connection::new(self.side, config, 1, NOW)
    }

    /// Reads up to the end or the first error. Checks that the result does not depend on the chunks.
    fn read(&self) -> Result<Vec<Seen>, (Code, Scope)> {
        let whole = self.read_cut(usize::MAX);
        for size in [1, 2, 5] {
            assert_eq!(self.read_cut(size), whole, "chunks of {size}");
        }
        whole
    }

    fn read_cut(&self, size: usize) -> Result<Vec<Seen>, (Code, Scope)> {
        let (mut stream, mut connection) = (self.stream(), self.connection());
        let chunks = self.bytes.chunks(size.min(self.bytes.len()).max(1));
        let mut chunks = chunks.map(Bytes::copy_from_slice).peekable();
        let mut seen = Vec::new();
        loop {
            match next(&mut stream, &mut connection) {
                Ok(Some(Seen::Content(more))) => match seen.last_mut() {
                    Some(Seen::Content(content)) => content.extend(more),
                    _ => seen.push(Seen::Content(more)),
                },
                Ok(Some(Seen::End)) => return Ok(seen),
                Ok(Some(Seen::TooLarge)) => {
                    seen.push(Seen::TooLarge);
                    return Ok(seen);
                }
                Ok(Some(other)) => seen.push(other),
                Ok(None) => match chunks.next() {
                    Some(chunk) => {
                        stream.push(chunk);
                        // FIN arrives with the last chunk, as from a transport.
                        if self.has_fin && chunks.peek().is_none() {
                            stream.on_fin();
                        }
                    }
                    None if self.has_fin => stream.on_fin(),
                    None => return Ok(seen),
                },
                Err(error) => {
                    assert!(stream.is_over() && stream.stop_code().is_none());
                    return Err((error.code, error.scope));
                }
            }
        }
    }
}

/// Returns the next observable step, or `None` if more bytes are needed or the stream is blocked.
fn next(stream: &mut RequestStream, connection: &mut Connection) -> Result<Option<Seen>, Error> {
    loop {
        return Ok(Some(match stream.poll() {
            Step::Read => return Ok(None),
            Step::Decode => match stream.decode(connection) {
                Decoding::Done => continue,
                Decoding::Blocked { .. } => return Ok(None),
            },
            Step::Charge => {
                stream.charge(connection, NOW)?;
                Seen::Counted
            }
            Step::Headers => head_of(stream),
            Step::TooLarge(_) => Seen::TooLarge,
            Step::Content(data) => {
                assert!(!data.is_empty());
                Seen::Content(data.to_vec())
            }
            Step::Trailers(trailers) => Seen::Trailers(trailers.len()),
            Step::End => Seen::End,
            step @ (Step::Frame { .. } | Step::Claimed { .. }) => {
                panic!("nothing is claimed: {step:?}")
            }
        }));
    }
}

fn head_of(stream: &mut RequestStream) -> Seen {
    if let Some((request, length)) = stream.take_request() {
        return Seen::Request(request.method().clone(), length);
    }
    let (response, length) = stream.take_response().expect("a header section");
    Seen::Response(response.status(), length)
}

fn frame(value: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::encode_header(&mut out, value, payload.len());
    out.extend_from_slice(payload);
    out
}

fn data(content: &[u8]) -> Vec<u8> {
    frame(frame::DATA, content)
}

/// Returns a HEADERS frame with these field lines, encoded without the dynamic table.
fn headers(lines: &[(&str, &str)]) -> Vec<u8> {
    let limits = EncoderLimits {
        max_table_capacity: 0,
        max_blocked_streams: 0,
    };
    let lines = lines
        .iter()
        .map(|(name, value)| FieldLine::new(name.as_bytes(), value.as_bytes()));
    let mut section = Vec::new();
    Encoder::new(limits, 0).encode(ID, || lines.clone(), &mut section);
    frame(frame::HEADERS, &section)
}

/// Returns the HEADERS frame of a request, with more field lines after its pseudo-header fields.
fn request_with(method: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let begin = match method {
        "CONNECT" => vec![(":method", method), (":authority", "example.org:443")],
        _ => vec![
            (":method", method),
            (":scheme", "https"),
            (":authority", "example.org"),
            (":path", "/"),
        ],
    };
    headers(&[&begin, more].concat())
}

fn get() -> Vec<u8> {
    request_with("GET", &[])
}

fn response_with(status: &str, more: &[(&str, &str)]) -> Vec<u8> {
    headers(&[&[(":status", status)], more].concat())
}

fn ok() -> Vec<u8> {
    response_with("200", &[])
}

fn trailers() -> Vec<u8> {
    headers(&[("grpc-status", "0")])
}

fn failed(error: Error) -> (Code, Scope) {
    (error.code, error.scope)
}
