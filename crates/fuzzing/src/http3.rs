//! Streams of HTTP/3, and capsules. The result must not depend on how their bytes are split.

use bytes::Bytes;
use courser_base::{Side, Time};
use courser_http3::{
    Capsule, CapsuleReader, Code, Config, Connection, FieldLimits, MessageReader, Part, Scope,
    Section, UniFate, UniStream,
};
use http::{Method, StatusCode};

use crate::Steps;

const NOW: Time = Time::from_nanos(1);

type Failure = (Code, Scope);

/// Passes arbitrary bytes on unidirectional streams, field sections and datagrams to a connection.
/// It must not panic, and its memory must stay bounded.
pub fn http3_frames(bytes: &[u8]) {
    for side in [Side::Client, Side::Server] {
        let mut connection = Connection::new(side, Config::new(side), 1, NOW);
        connection.set_request_limit(8);
        for (what, bytes) in Steps::new(bytes) {
            let stream = u64::from(what >> 3 & 7);
            let result = match what & 7 {
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

/// Reads the frames of a message in one piece, byte by byte, and in pieces of three bytes.
pub fn http3_message(bytes: &[u8]) {
    for side in [Side::Client, Side::Server] {
        let whole = read_message(side, bytes, usize::MAX);
        for size in [1, 3] {
            assert_eq!(read_message(side, bytes, size), whole, "pieces of {size}");
        }
    }
}

/// Reads a message in pieces of `size` bytes. Returns its field sections, its content and the error.
fn read_message(side: Side, bytes: &[u8], size: usize) -> (Vec<Vec<u8>>, Vec<u8>, Option<Failure>) {
    let limits = FieldLimits {
        size: 200,
        ..FieldLimits::REQUEST
    };
    let mut reader = MessageReader::new(side, limits);
    let (mut sections, mut content) = (Vec::new(), Vec::new());
    let mut error = None;
    'pieces: for piece in bytes.chunks(size.min(bytes.len()).max(1)) {
        reader.push(Bytes::copy_from_slice(piece));
        loop {
            match reader.poll() {
                Ok(None) => break,
                Ok(Some(Part::Head(section))) => {
                    if let Err(failure) = on_head(&mut reader, side, &section) {
                        error = Some((failure.code, failure.scope));
                        break 'pieces;
                    }
                    sections.push(section.to_vec());
                }
                Ok(Some(Part::Trailers(section))) => sections.push(section.to_vec()),
                Ok(Some(Part::Data(data))) => content.extend_from_slice(&data),
                Ok(Some(Part::Nothing)) => {}
                Err(failure) => {
                    error = Some((failure.code, failure.scope));
                    break 'pieces;
                }
            }
        }
        assert!(reader.memory() <= 8 * 1024, "{}", reader.memory());
    }
    if error.is_none() {
        error = reader
            .finish()
            .err()
            .map(|failure| (failure.code, failure.scope));
    }
    // The amount of content before an error depends on how the stream is split.
    if error.is_some() {
        content.clear();
    }
    (sections, content, error)
}

/// Completes the head of a message. The first bytes of the section determine its meaning.
fn on_head(
    reader: &mut MessageReader,
    side: Side,
    section: &[u8],
) -> Result<(), courser_http3::Error> {
    let method = match section.first() {
        Some(0) => Method::CONNECT,
        Some(1) => Method::HEAD,
        _ => Method::GET,
    };
    let length = section.get(1).map(|&length| u64::from(length));
    if side.is_server() {
        reader.on_request(&method, section.len() == 3, length);
        return Ok(());
    }
    let status = match section.get(2) {
        Some(0) => StatusCode::EARLY_HINTS,
        Some(1) => StatusCode::NOT_MODIFIED,
        _ => StatusCode::OK,
    };
    reader.on_response(status, &method, length)
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
