use super::*;
use crate::Scope;
use crate::frame;

fn frame(value: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::encode_header(&mut out, value, payload.len());
    out.extend_from_slice(payload);
    out
}

const HEADERS: u64 = frame::HEADERS;
const DATA: u64 = frame::DATA;

/// Reads frames to the end of the stream. Heads make a request or a response with `length`.
struct Reading {
    side: Side,
    length: Option<u64>,
    method: Method,
    status: StatusCode,
}

impl Reading {
    fn server() -> Self {
        Self {
            side: Side::Server,
            length: None,
            method: Method::GET,
            status: StatusCode::OK,
        }
    }

    fn client() -> Self {
        Self {
            side: Side::Client,
            ..Self::server()
        }
    }

    fn read(&self, frames: &[(u64, &[u8])]) -> Result<Vec<Part>, (Code, Scope)> {
        let bytes: Vec<u8> = frames
            .iter()
            .flat_map(|(value, payload)| frame(*value, payload))
            .collect();
        self.run(&bytes).map_err(|error| (error.code, error.scope))
    }

    fn run(&self, bytes: &[u8]) -> Result<Vec<Part>, Error> {
        let mut reader = MessageReader::new(self.side, FieldLimits::REQUEST);
        reader.push(Bytes::copy_from_slice(bytes));
        let mut parts = Vec::new();
        while let Some(part) = reader.poll()? {
            if let Part::Head(section) = &part {
                match self.side {
                    Side::Server => reader.on_request(&self.method, false, self.length),
                    Side::Client if section[..] == b"interim"[..] => {
                        reader.on_response(StatusCode::EARLY_HINTS, &self.method, None)?;
                    }
                    Side::Client => reader.on_response(self.status, &self.method, self.length)?,
                }
            }
            parts.push(part);
        }
        reader.finish()?;
        Ok(parts)
    }
}

const UNEXPECTED: (Code, Scope) = (Code::FRAME_UNEXPECTED, Scope::Connection);
const MALFORMED: (Code, Scope) = (Code::MESSAGE_ERROR, Scope::Stream);

#[test]
fn reads_a_whole_message() {
    let frames: [(u64, &[u8]); 4] = [
        (HEADERS, b"head"),
        (DATA, b"one"),
        (DATA, b"two"),
        (HEADERS, b"trailers"),
    ];
    let parts = Reading::server().read(&frames).expect("a message");
    let expected = [
        Part::Head(Bytes::from_static(b"head")),
        Part::Data(Bytes::from_static(b"one")),
        Part::Data(Bytes::from_static(b"two")),
        Part::Trailers(Bytes::from_static(b"trailers")),
    ];
    assert_eq!(parts, expected);
}

/// §4.1.
#[test]
fn refuses_frames_out_of_order() {
    for reading in [Reading::server(), Reading::client()] {
        assert_eq!(
            reading.read(&[(DATA, b"x"), (HEADERS, b"head")]),
            Err(UNEXPECTED)
        );
        assert_eq!(reading.read(&[(DATA, b"")]), Err(UNEXPECTED));
        let after: [(u64, &[u8]); 3] = [(HEADERS, b"a"), (HEADERS, b"b"), (DATA, b"x")];
        assert_eq!(reading.read(&after), Err(UNEXPECTED));
        let after: [(u64, &[u8]); 3] = [(HEADERS, b"a"), (HEADERS, b"b"), (HEADERS, b"c")];
        assert_eq!(reading.read(&after), Err(UNEXPECTED));
    }
}

/// §4.1, §7.2.8, §9.
#[test]
fn frames_that_are_unknown_change_nothing() {
    let grease = frame::reserved(9);
    let frames: [(u64, &[u8]); 7] = [
        (grease, b"g"),
        (HEADERS, b"a"),
        (grease, b"g"),
        (DATA, b"x"),
        (0x4242, b""),
        (HEADERS, b"b"),
        (grease, b"g"),
    ];
    let parts = Reading::server().read(&frames).expect("a message");
    let nothing = parts.iter().filter(|part| **part == Part::Nothing).count();
    // Four, of which two are ordinary.
    assert_eq!((nothing, parts.len()), (2, 5));
}

/// A81, K85.
#[test]
fn tiny_frames_are_counted_beyond_the_ordinary_ones() {
    let mut frames: Vec<(u64, &[u8])> = vec![(HEADERS, b"a")];
    frames.extend([(DATA, &b"1234567"[..]); 300]);
    let parts = Reading::server().read(&frames).expect("a message");
    let nothing = parts.iter().filter(|part| **part == Part::Nothing).count();
    assert_eq!((nothing, parts.len()), (300 - 256, 301 + 44));
    let content = parts.iter().filter(|part| matches!(part, Part::Data(_)));
    assert_eq!(content.count(), 300);

    // A response may come word by word.
    let parts = Reading::client().read(&frames).expect("a message");
    assert!(!parts.contains(&Part::Nothing));

    // Other content pays for them: eight bytes for each.
    frames.push((DATA, &[0; 80]));
    frames.extend([(DATA, &b"1"[..]); 11]);
    let parts = Reading::server().read(&frames).expect("a message");
    let nothing = parts.iter().filter(|part| **part == Part::Nothing).count();
    assert_eq!(nothing, 44 + 1);
}

/// §7.2: CANCEL_PUSH, SETTINGS, GOAWAY, MAX_PUSH_ID, ORIGIN, PRIORITY_UPDATE, and types of HTTP/2.
#[test]
fn refuses_frames_of_other_streams() {
    let types = [
        0x03, 0x04, 0x07, 0x0d, 0x0c, 0xf0700, 0xf0701, 0x02, 0x06, 0x08, 0x09,
    ];
    for reading in [Reading::server(), Reading::client()] {
        for value in types {
            assert_eq!(
                reading.read(&[(HEADERS, b"a"), (value, b"\0")]),
                Err(UNEXPECTED),
                "{value:#x}"
            );
            assert_eq!(
                reading.read(&[(value, b"\0")]),
                Err(UNEXPECTED),
                "{value:#x}"
            );
        }
    }
}

/// §7.2.5.
#[test]
fn refuses_promises() {
    let promise: [(u64, &[u8]); 2] = [(HEADERS, b"a"), (frame::PUSH_PROMISE, b"\0x")];
    assert_eq!(Reading::server().read(&promise), Err(UNEXPECTED));
    let id_error = (Code::ID_ERROR, Scope::Connection);
    assert_eq!(Reading::client().read(&promise), Err(id_error));
}

/// §4.1.
#[test]
fn refuses_a_stream_that_ends_too_early() {
    let incomplete = (Code::REQUEST_INCOMPLETE, Scope::Stream);
    assert_eq!(Reading::server().read(&[]), Err(incomplete));
    assert_eq!(
        Reading::server().read(&[(frame::reserved(1), b"g")]),
        Err(incomplete)
    );
    assert_eq!(Reading::client().read(&[]), Err(MALFORMED));
    assert_eq!(
        Reading::client().read(&[(HEADERS, b"interim")]),
        Err(MALFORMED)
    );
    // §7.1.
    let cut = frame(HEADERS, b"head");
    let error = Reading::server().run(&cut[..4]).expect_err("cut off");
    assert_eq!(
        (error.code, error.scope),
        (Code::FRAME_ERROR, Scope::Connection)
    );
}

/// §4.1.2.
#[test]
fn holds_content_against_its_length() {
    for mut reading in [Reading::server(), Reading::client()] {
        reading.length = Some(3);
        assert!(
            reading
                .read(&[(HEADERS, b"a"), (DATA, b"on"), (DATA, b"e")])
                .is_ok()
        );
        assert_eq!(
            reading.read(&[(HEADERS, b"a"), (DATA, b"ones")]),
            Err(MALFORMED)
        );
        assert_eq!(
            reading.read(&[(HEADERS, b"a"), (DATA, b"on")]),
            Err(MALFORMED)
        );
        assert_eq!(reading.read(&[(HEADERS, b"a")]), Err(MALFORMED));
        reading.length = Some(0);
        assert!(reading.read(&[(HEADERS, b"a")]).is_ok());
    }
}

/// RFC 9110 §8.6.
#[test]
fn some_responses_have_a_length_and_no_content() {
    let mut head = Reading::client();
    head.length = Some(1000);
    head.method = Method::HEAD;
    assert!(head.read(&[(HEADERS, b"a")]).is_ok());
    assert_eq!(head.read(&[(HEADERS, b"a"), (DATA, b"x")]), Err(MALFORMED));
    let mut cached = Reading::client();
    cached.length = Some(1000);
    cached.status = StatusCode::NOT_MODIFIED;
    assert!(cached.read(&[(HEADERS, b"a")]).is_ok());
}

/// §4.4.
#[test]
fn after_connect_there_is_data_only() {
    let mut server = Reading::server();
    server.method = Method::CONNECT;
    let mut client = Reading::client();
    client.method = Method::CONNECT;
    for reading in [&server, &client] {
        assert!(
            reading
                .read(&[(HEADERS, b"a"), (DATA, b"x"), (frame::reserved(1), b"g")])
                .is_ok()
        );
        assert_eq!(
            reading.read(&[(HEADERS, b"a"), (HEADERS, b"b")]),
            Err(UNEXPECTED)
        );
    }
    client.status = StatusCode::BAD_GATEWAY;
    assert!(
        client
            .read(&[(HEADERS, b"a"), (DATA, b"x"), (HEADERS, b"b")])
            .is_ok()
    );
}

/// A90.
#[test]
fn takes_eight_interim_responses() {
    let interim: [(u64, &[u8]); 9] = [(HEADERS, b"interim"); 9];
    let last: (u64, &[u8]) = (HEADERS, b"final");
    assert!(
        Reading::client()
            .read(&[&interim[..8], &[last]].concat())
            .is_ok()
    );
    let too_many = (Code::EXCESSIVE_LOAD, Scope::Stream);
    assert_eq!(
        Reading::client().read(&[&interim[..], &[last]].concat()),
        Err(too_many)
    );
}

/// §7.1: before it arrives.
#[test]
fn refuses_a_section_that_is_too_long() {
    let mut bytes = Vec::new();
    frame::encode_header(&mut bytes, HEADERS, 1 << 20);
    let error = Reading::server().run(&bytes).expect_err("too long");
    assert_eq!(error.code, Code::EXCESSIVE_LOAD);
}
