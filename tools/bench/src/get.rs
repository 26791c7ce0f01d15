//! HTTP/3 requests, one after the other.

use bytes::Bytes;
use courser_base::{Side, Time};
use courser_http3::{
    Config, Connection, Decoding, FieldLimits, FieldsToSend, MessageWriter, RequestStream, Step,
    UniStream,
};
use courser_transport::{ReadError, Streams};
use courser_wire::{Direction, StreamId};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};

use crate::meter::Meter;
use crate::pair::Pair;
use crate::path::Path;

/// Runs the requests, and returns their number.
pub(crate) fn run(meter: &Meter) -> u64 {
    let client = (Path::GetClient, Path::GetClient);
    let mut pair = Pair::connected(meter, client, (Path::GetServer, Path::GetServer));
    let mut client = Http::new(Side::Client, pair.now);
    let mut server = Http::new(Side::Server, pair.now);
    let (request, headers) = (request(), response_headers());
    for round in 0..WARM_UP + ROUNDS {
        if round == WARM_UP {
            meter.start();
        }
        let stream = meter.count(Path::GetClient, || {
            client.request(pair.client.streams(), &request)
        });
        pair.client_to_server();
        let now = pair.now;
        meter.count(Path::GetServer, || {
            pair.server.take_events();
            server.answer(now, pair.server.streams(), &headers);
        });
        pair.server_to_client();
        let now = pair.now;
        meter.count(Path::GetClient, || {
            pair.client.take_events();
            client.read_response(now, pair.client.streams(), stream);
        });
    }
    u64::from(ROUNDS)
}

/// HTTP/3 of one end.
struct Http {
    connection: Connection,
    /// Our unidirectional streams, in the order of [`UniStream::ALL`].
    ours: [Option<StreamId>; 3],
    /// The unidirectional streams of the peer.
    theirs: Vec<StreamId>,
}

impl Http {
    fn new(side: Side, now: Time) -> Self {
        Self {
            connection: Connection::new(side, Config::new(side), 1, now),
            ours: [None; 3],
            theirs: Vec::new(),
        }
    }

    fn request(&mut self, streams: &mut Streams, request: &http::request::Parts) -> StreamId {
        let stream = streams.open(Direction::Bidirectional);
        let stream = stream.expect("earlier requests are over");
        let fields = FieldsToSend::request(request).expect("the request is whole");
        let headers = self.encode(stream, &fields);
        self.send(streams, stream, MessageWriter::new(headers, Some(0)));
        stream
    }

    /// Reads the request that has arrived, and responds.
    fn answer(&mut self, now: Time, streams: &mut Streams, headers: &HeaderMap) {
        self.read_shared(now, streams);
        let stream = streams.accept(Direction::Bidirectional);
        let stream = stream.expect("the request has arrived");
        self.connection.on_request_opened(stream.value());
        let mut message = RequestStream::request(stream.value(), FieldLimits::REQUEST);
        let content = self.read(streams, stream, &mut message);
        let (request, _) = message.take_request().expect("it was decoded");
        assert_eq!((request.method(), content), (&Method::GET, 0));

        let mut fields = FieldsToSend::response(&StatusCode::OK, headers);
        fields.set_content_length(CONTENT.len() as u64);
        let headers = self.encode(stream, &fields);
        let mut message = MessageWriter::new(headers, Some(CONTENT.len() as u64));
        message.push_content(Bytes::from_static(&CONTENT));
        self.send(streams, stream, message);
    }

    /// Reads the response that has arrived.
    fn read_response(&mut self, now: Time, streams: &mut Streams, stream: StreamId) {
        self.read_shared(now, streams);
        let limits = FieldLimits::RESPONSE;
        let mut message = RequestStream::response(stream.value(), limits, &Method::GET);
        let content = self.read(streams, stream, &mut message);
        let (response, _) = message.take_response().expect("it was decoded");
        assert_eq!(
            (response.status(), content),
            (StatusCode::OK, CONTENT.len())
        );
        // The acknowledgment of the section.
        self.send_shared(streams);
    }

    fn encode(&mut self, stream: StreamId, fields: &FieldsToSend<'_>) -> Vec<u8> {
        let mut headers = Vec::new();
        let encoded = self.connection.encode(stream.value(), fields, &mut headers);
        encoded.expect("the fields are small");
        headers
    }

    /// Sends a message, and before it what it refers to.
    fn send(&mut self, streams: &mut Streams, stream: StreamId, mut message: MessageWriter) {
        self.send_shared(streams);
        for chunk in message.chunks() {
            write_all(streams, stream, chunk);
        }
        streams.finish(stream).expect("the stream is open");
    }

    /// Sends the pending data of our unidirectional streams.
    fn send_shared(&mut self, streams: &mut Streams) {
        for (role, ours) in UniStream::ALL.into_iter().zip(&mut self.ours) {
            let waiting = self.connection.outgoing(role);
            if !waiting.is_empty() {
                let stream = ours.or_else(|| streams.open(Direction::Unidirectional));
                *ours = stream;
                write_all(streams, stream.expect("three are allowed"), waiting);
                waiting.clear();
            }
        }
    }

    /// Reads the unidirectional streams of the peer.
    fn read_shared(&mut self, now: Time, streams: &mut Streams) {
        while let Some(stream) = streams.accept(Direction::Unidirectional) {
            self.theirs.push(stream);
        }
        for stream in &self.theirs {
            loop {
                match streams.read_chunk_and_end(*stream) {
                    Ok((chunk, fin)) => {
                        let chunk = chunk.unwrap_or_default();
                        let fate = self.connection.handle_uni(now, stream.value(), chunk, fin);
                        fate.expect("the peer is honest");
                    }
                    Err(ReadError::Blocked) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        while self.connection.poll_event().is_some() {}
    }

    /// Reads a message that has arrived in full. Returns the length of its content.
    fn read(
        &mut self,
        streams: &mut Streams,
        stream: StreamId,
        message: &mut RequestStream,
    ) -> usize {
        let mut content = 0;
        loop {
            match message.poll() {
                Step::Read => {
                    let read = streams.read_chunk_and_end(stream);
                    let (chunk, is_end) = read.expect("all has arrived");
                    if let Some(chunk) = chunk {
                        message.push(chunk);
                    }
                    if is_end {
                        message.on_fin();
                    }
                }
                Step::Decode => {
                    let decoding = message.decode(&mut self.connection);
                    assert_eq!(decoding, Decoding::Done, "the insertions came first");
                }
                Step::Headers => {}
                Step::Content(data) => content += data.len(),
                Step::End => return content,
                step => panic!("unexpected: {step:?}"),
            }
        }
    }
}

fn write_all(streams: &mut Streams, stream: StreamId, bytes: &[u8]) {
    let written = streams.write(stream, bytes);
    assert_eq!(written.ok(), Some(bytes.len()));
}

/// Returns a request like those of browsers.
fn request() -> http::request::Parts {
    let request = Request::get("https://example.org/images/picture.png")
        .header("accept", "image/avif,image/webp,*/*;q=0.8")
        .header("accept-encoding", "gzip, deflate, br")
        .header("accept-language", "en-GB,en;q=0.7")
        .header("cookie", "session=0123456789abcdef")
        .header("referer", "https://example.org/")
        .header("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0)")
        .body(());
    request.expect("the request is whole").into_parts().0
}

fn response_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("content-type", "image/png"),
        ("cache-control", "max-age=3600"),
        ("etag", "\"0123456789abcdef\""),
        ("date", "Thu, 01 Jan 2026 00:00:00 GMT"),
        ("server", "courser"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
}

static CONTENT: [u8; 1000] = [7; 1000];
const WARM_UP: u32 = 200;
const ROUNDS: u32 = 500;
