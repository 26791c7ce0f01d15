//! Streams of HTTP/3, and capsules. The result must not depend on how their bytes are split.

use bytes::Bytes;
use courser_base::{Side, Time};
use courser_http3::{
    Capsule, CapsuleReader, Code, Config, Connection, Decoding, Extensions, FrameStream,
    RequestStream, Scope, Section, Step, UniFate, UniStream,
};
use http::Method;

use crate::input::Steps;

const NOW: Time = Time::from_nanos(1);

type Failure = (Code, Scope);

/// Passes arbitrary bytes on unidirectional streams, field sections and datagrams to a connection.
/// It must not panic, and its memory must stay bounded.
pub fn http3_frames(bytes: &[u8]) {
    for side in [Side::Client, Side::Server] {
        let mut connection = Connection::new(side, Config::new(side), 1, NOW);
        connection.set_request_limit(8);
        for (operation, bytes) in Steps::new(bytes) {
            let stream = u64::from(operation >> 3 & 7);
            let result = match operation & 7 {
                0 => connection.handle_uni_reset(NOW, stream),
                1 => connection.on_cancelled(NOW, stream),
                2 => decode(&mut connection, stream, bytes),
                3 => {
                    connection.on_request_opened(4 * stream);
                    connection
                        .handle_datagram(Bytes::copy_from_slice(bytes))
                        .map(drop)
                }
                more => {
                    let chunk = Bytes::copy_from_slice(bytes);
                    let fate = connection.handle_uni(NOW, stream, chunk, more == 4);
                    fate.map(|fate| assert_ne!(fate, UniFate::Stop(Code::NO_ERROR)))
                }
            };
            if let Err(error) = result {
                assert!(error.code.name().is_some());
                if error.scope == Scope::Connection {
                    break;
                }
                connection.forget(stream);
            }
            while connection.poll_event().is_some() {}
            for stream in UniStream::ALL {
                connection.outgoing(stream).clear();
            }
            assert!(connection.memory() <= MAX_MEMORY, "{}", connection.memory());
            assert!(connection.blocked_bytes() <= MAX_MEMORY);
        }
    }
}

/// Enough for two dynamic tables of 4 KiB and an incomplete instruction.
const MAX_MEMORY: usize = 64 * 1024;

/// Decodes a field section as a request, a response and trailers.
fn decode(
    connection: &mut Connection,
    stream: u64,
    section: &[u8],
) -> Result<(), courser_http3::Error> {
    let is_decoded = connection.decode_request(stream, section)?;
    if let Section::Decoded(Ok((request, _))) = is_decoded {
        // The head of an accepted request is usable.
        assert!(!request.method().as_str().is_empty());
    }
    connection.decode_response(stream, section)?;
    connection.decode_trailers(stream, section)?;
    Ok(())
}

/// Reads a message in one piece, byte by byte, and in pieces of three bytes.
pub fn http3_message(bytes: &[u8]) {
    for (side, method) in [
        (Side::Server, Method::GET),
        (Side::Client, Method::GET),
        (Side::Client, Method::HEAD),
        (Side::Client, Method::CONNECT),
    ] {
        let whole = read_message(side, &method, bytes, usize::MAX);
        for size in [1, 3] {
            let cut = read_message(side, &method, bytes, size);
            assert_eq!(cut, whole, "pieces of {size}");
        }
    }
}

/// The parts of a message without its content, the content, and the error.
type Message = (Vec<String>, Vec<u8>, Option<Failure>);

/// Reads a message in pieces of `size` bytes. A response answers a request with `method`.
fn read_message(side: Side, method: &Method, bytes: &[u8], size: usize) -> Message {
    let mut config = Config::new(side);
    (config.limits.size, config.limits.lines) = (200, 128);
    config.extended_connect = true;
    let mut stream = match side {
        Side::Server => RequestStream::request(0, config.limits),
        Side::Client => RequestStream::response(0, config.limits, method),
    };
    // An application that claims a frame type and streams with numbers of one byte.
    let extensions = Extensions::new()
        .frame(0x0e, FrameStream::Request, 1000)
        .and_then(|extensions| extensions.bidirectional_stream(0x10));
    stream.set_extensions(&extensions.unwrap_or_default());
    let mut connection = Connection::new(side, config, 1, NOW);
    let (mut parts, mut content) = (Vec::new(), Vec::new());
    let mut pieces = bytes.chunks(size.min(bytes.len()).max(1));
    loop {
        assert!(stream.memory() <= 16 * 1024, "{}", stream.memory());
        match stream.poll() {
            Step::Read => match pieces.next() {
                Some(piece) => stream.push(Bytes::copy_from_slice(piece)),
                None => stream.on_fin(),
            },
            Step::Decode => {
                if let Decoding::Blocked { .. } = stream.decode(&mut connection) {
                    // The entries never arrive, and the peer resets the stream.
                    parts.push("blocked".to_owned());
                    assert_eq!(stream.on_reset(&mut connection, NOW), Ok(()));
                    assert_eq!(connection.blocked_bytes(), 0);
                }
            }
            Step::Charge => {
                if let Err(failure) = stream.charge(&mut connection, NOW) {
                    assert!(stream.is_over() && stream.stop_code().is_none());
                    // The amount of content before an error depends on how the stream is split.
                    return (parts, Vec::new(), Some((failure.code, failure.scope)));
                }
            }
            Step::Headers => match stream.take_request() {
                Some(head) => parts.push(format!("{head:?}")),
                None => parts.push(format!("{:?}", stream.take_response())),
            },
            Step::TooLarge(reason) => {
                parts.push(reason.to_owned());
                stream.abandon(&mut connection);
            }
            Step::Content(data) => content.extend_from_slice(&data),
            Step::Trailers(trailers) => parts.push(format!("{trailers:?}")),
            Step::Frame { payload, .. } => parts.push(format!("{payload:?}")),
            Step::Claimed { signal, .. } => {
                parts.push(format!("{signal}"));
                return (parts, content, None);
            }
            Step::End => return (parts, content, None),
        }
    }
}

/// Reads capsules in one piece, byte by byte, and in pieces of three bytes.
pub fn capsules(bytes: &[u8]) {
    let whole = read_capsules(bytes, usize::MAX);
    for size in [1, 3] {
        assert_eq!(read_capsules(bytes, size), whole, "pieces of {size}");
    }
    let mut out = Vec::new();
    for capsule in &whole.0 {
        Capsule::encode(&mut out, capsule.kind, &capsule.value);
    }
    assert_eq!(read_capsules(&out, 7), (whole.0, None), "encoded again");
}

fn read_capsules(bytes: &[u8], size: usize) -> (Vec<Capsule>, Option<Failure>) {
    let mut reader = CapsuleReader::default();
    let mut capsules = Vec::new();
    for piece in bytes.chunks(size.min(bytes.len()).max(1)) {
        reader.push(Bytes::copy_from_slice(piece));
        loop {
            match reader.poll(|kind| (kind % 3 == 0).then_some(100)) {
                Ok(None) => break,
                Ok(Some(capsule)) => capsules.push(capsule),
                Err(failure) => return (capsules, Some((failure.code, failure.scope))),
            }
        }
    }
    let error = reader.finish().err();
    (capsules, error.map(|failure| (failure.code, failure.scope)))
}
