//! Tests of the records of both ends.

use courser_telemetry::{
    FieldSection, Http3Frame, Http3Parameters, Http3Record, Http3StreamType, QpackRecord, Record,
};

use super::*;
use crate::{Decoding, RequestStream, Step};

/// Returns the HTTP/3 records since the last call.
fn http3(connection: &mut Connection) -> Vec<Http3Record> {
    let records = connection.take_records().into_iter();
    let http3 = records.filter_map(|record| match record {
        Record::Http3(record) => Some(record),
        _ => None,
    });
    http3.collect()
}

/// Returns two ends without reserved frames and settings whose streams are open.
fn recorded_pair() -> (Connection, Connection) {
    let ends = SIDES.map(|side| {
        let mut config = Config::new(side);
        config.grease = false;
        let mut connection = Connection::new(side, config, 7, NOW);
        connection.set_recording(true);
        let first = if side.is_client() { 2 } else { 3 };
        for (index, stream) in (0..).zip(UniStream::ALL) {
            connection.on_stream_opened(stream, first + 4 * index);
        }
        connection
    });
    ends.into()
}

fn opened(by_peer: bool, stream: u64, stream_type: Http3StreamType) -> Http3Record {
    Http3Record::StreamTypeSet {
        by_peer,
        stream,
        stream_type,
    }
}

#[test]
fn records_begin_with_settings_and_stream_types() {
    let (mut client, mut server) = recorded_pair();
    let parameters = |limits: FieldLimits| Http3Parameters {
        max_field_section_size: Some(limits.size),
        max_table_capacity: 4096,
        blocked_streams: 16,
        extended_connect: false,
        datagrams: false,
    };
    let settings = |limits: FieldLimits| Http3Frame::Settings {
        settings: vec![(1, 4096), (7, 16), (6, limits.size)],
    };
    assert_eq!(
        http3(&mut client),
        [
            Http3Record::ParametersSet {
                by_peer: false,
                parameters: parameters(FieldLimits::RESPONSE),
            },
            opened(false, 2, Http3StreamType::Control),
            Http3Record::FrameCreated {
                stream: 2,
                frame: settings(FieldLimits::RESPONSE),
            },
            opened(false, 6, Http3StreamType::QpackEncoder),
            opened(false, 10, Http3StreamType::QpackDecoder),
        ]
    );
    http3(&mut server);
    carry(&mut client, &mut server);
    assert_eq!(
        http3(&mut server),
        [
            opened(true, 2, Http3StreamType::Control),
            Http3Record::FrameParsed {
                stream: 2,
                frame: settings(FieldLimits::RESPONSE),
            },
            Http3Record::ParametersSet {
                by_peer: true,
                parameters: parameters(FieldLimits::RESPONSE),
            },
        ]
    );
    // Recording that starts later repeats what is still in effect, without earlier frames.
    server.set_recording(false);
    server.set_recording(true);
    let later = http3(&mut server);
    assert_eq!(later.len(), 6, "{later:?}");
    assert_eq!(
        later[1],
        Http3Record::ParametersSet {
            by_peer: true,
            parameters: parameters(FieldLimits::RESPONSE),
        }
    );
    assert_eq!(later[5], opened(true, 2, Http3StreamType::Control));
}

/// Reads a whole message. Returns the records of its stream and of the connection in order.
fn receive(stream: &mut RequestStream, end: &mut Connection, bytes: &[u8]) -> Vec<Http3Record> {
    stream.set_recording(true);
    stream.push(Bytes::copy_from_slice(bytes));
    stream.on_fin();
    let mut records = Vec::new();
    loop {
        let step = stream.poll();
        records.extend(stream.records().take());
        match step {
            Step::Decode => assert_eq!(stream.decode(end), Decoding::Done),
            Step::End => break,
            Step::Read => panic!("the message is incomplete"),
            _ => {}
        }
        records.extend(end.take_records());
    }
    let http3 = records.into_iter().filter_map(|record| match record {
        Record::Http3(record) => Some(record),
        _ => None,
    });
    http3.collect()
}

/// Returns the names of a section, with the values that are not hidden.
fn lines(section: &FieldSection) -> Vec<(String, Option<String>)> {
    let fields = section.fields.iter().map(|field| {
        let value = field.value.as_deref().map(String::from_utf8_lossy);
        let name = String::from_utf8_lossy(&field.name).into_owned();
        (name, value.map(String::from))
    });
    fields.collect()
}

#[test]
fn both_ends_record_a_request_and_its_credentials_are_hidden() {
    let (mut client, mut server) = recorded_pair();
    carry(&mut client, &mut server);
    carry(&mut server, &mut client);
    let request = Request::post("https://example.org/a?b")
        .header("authorization", "Basic c2VjcmV0")
        .header("x-long", "v".repeat(1000))
        .body(());
    let (parts, ()) = request.expect("a request").into_parts();
    let fields = FieldsToSend::request(&parts).expect("a complete request");
    http3(&mut client);
    http3(&mut server);

    let mut bytes = Vec::new();
    client
        .encode(0, &fields, &mut bytes)
        .expect("within limits");
    let sent = http3(&mut client);
    assert_eq!(sent[0], opened(false, 0, Http3StreamType::Request));
    let Http3Record::FrameCreated {
        stream: 0,
        frame: Http3Frame::Headers { len, section },
    } = &sent[1]
    else {
        panic!("{sent:?}");
    };
    let lines = lines(section);
    let line = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
    assert_eq!(
        lines,
        [
            line(":method", "POST"),
            line(":scheme", "https"),
            line(":authority", "example.org"),
            line(":path", "/a?b"),
            ("authorization".to_owned(), None),
            line("x-long", &"v".repeat(256)),
        ]
    );
    assert_eq!(section.fields[5].value_len, 1000);
    assert!(!format!("{sent:?}").contains("c2VjcmV0"));

    carry(&mut client, &mut server);
    http3(&mut server);
    bytes.extend(frame(frame::DATA, b"content"));
    bytes.extend(frame(frame::reserved(3), b"grease"));
    bytes.extend(frame(frame::DATA, b""));
    server.on_request_opened(0);
    let mut stream = RequestStream::request(0, FieldLimits::REQUEST);
    let received = receive(&mut stream, &mut server, &bytes);
    let parsed = |frame| Http3Record::FrameParsed { stream: 0, frame };
    assert_eq!(
        received,
        [
            opened(true, 0, Http3StreamType::Request),
            parsed(Http3Frame::Headers {
                len: *len,
                section: section.clone(),
            }),
            parsed(Http3Frame::Data { len: 7 }),
            parsed(Http3Frame::Other {
                frame_type: frame::reserved(3),
                len: 6,
            }),
            parsed(Http3Frame::Data { len: 0 }),
        ]
    );
}

#[test]
fn frame_that_began_unrecorded_is_not_recorded_later() {
    let (mut client, mut server) = recorded_pair();
    carry(&mut client, &mut server);
    let (parts, ()) = Request::post("https://example.org/")
        .body(())
        .expect("valid")
        .into_parts();
    let fields = FieldsToSend::request(&parts).expect("complete");
    let mut bytes = Vec::new();
    client
        .encode(0, &fields, &mut bytes)
        .expect("within limits");
    carry(&mut client, &mut server);
    bytes.extend(frame(frame::DATA, b"content"));
    let rest = bytes.split_off(bytes.len() - 3);
    let mut stream = RequestStream::request(0, FieldLimits::REQUEST);
    server.on_request_opened(0);
    stream.push(Bytes::from(bytes));
    loop {
        match stream.poll() {
            Step::Decode => assert_eq!(stream.decode(&mut server), Decoding::Done),
            Step::Read => break,
            _ => {}
        }
    }
    http3(&mut server);
    // Recording starts between two parts of the content.
    let rest = [rest, frame(frame::DATA, b"more")].concat();
    assert_eq!(
        receive(&mut stream, &mut server, &rest),
        [Http3Record::FrameParsed {
            stream: 0,
            frame: Http3Frame::Data { len: 4 },
        }]
    );
}

/// While recording is on, a repeated section is decoded again, and both records are equal.
#[test]
fn repeated_sections_are_recorded_too() {
    let (mut client, mut server) = recorded_pair();
    carry(&mut client, &mut server);
    carry(&mut server, &mut client);
    let (parts, ()) = Request::get("https://example.org/")
        .body(())
        .expect("valid")
        .into_parts();
    let fields = FieldsToSend::request(&parts).expect("complete");
    for stream in [0, 4, 8] {
        let mut bytes = Vec::new();
        client
            .encode(stream, &fields, &mut bytes)
            .expect("within limits");
        carry(&mut client, &mut server);
        http3(&mut server);
        server.on_request_opened(stream);
        let mut receiver = RequestStream::request(stream, FieldLimits::REQUEST);
        let records = receive(&mut receiver, &mut server, &bytes);
        let Some(Http3Record::FrameParsed {
            frame: Http3Frame::Headers { section, .. },
            ..
        }) = records.last()
        else {
            panic!("{records:?}");
        };
        assert_eq!(section.fields.len(), 4);
        carry(&mut server, &mut client);
    }
}

#[test]
fn control_frames_and_priorities_are_recorded() {
    let (mut client, mut server) = recorded_pair();
    carry(&mut client, &mut server);
    carry(&mut server, &mut client);
    server.set_request_limit(10);
    server.on_request_opened(0);
    http3(&mut client);
    http3(&mut server);
    let priority = Priority {
        urgency: 1,
        incremental: true,
    };
    client.update_priority(0, priority);
    client.send_frame(0x4242, b"abc");
    server.announce_going_away();
    server.announce_going_away();
    let frames = [
        Http3Frame::PriorityUpdate {
            stream: 0,
            value: "u=1, i".to_owned(),
        },
        Http3Frame::Other {
            frame_type: 0x4242,
            len: 3,
        },
    ];
    let updated = |by_peer| Http3Record::PriorityUpdated {
        stream: 0,
        new: "u=1, i".to_owned(),
        by_peer,
    };
    let created = |frame: &Http3Frame| Http3Record::FrameCreated {
        stream: 2,
        frame: frame.clone(),
    };
    let parsed = |frame: &Http3Frame| Http3Record::FrameParsed {
        stream: 2,
        frame: frame.clone(),
    };
    assert_eq!(
        http3(&mut client),
        [created(&frames[0]), updated(false), created(&frames[1])]
    );
    carry(&mut client, &mut server);
    let goaway = Http3Frame::GoAway { id: MAX_VARINT - 3 };
    assert_eq!(
        http3(&mut server),
        [
            Http3Record::FrameCreated {
                stream: 3,
                frame: goaway.clone()
            },
            parsed(&frames[0]),
            updated(true),
            parsed(&frames[1]),
        ]
    );
    carry(&mut server, &mut client);
    assert_eq!(
        http3(&mut client),
        [Http3Record::FrameParsed {
            stream: 3,
            frame: goaway
        }]
    );
}

#[test]
fn unknown_streams_and_blocked_sections_are_recorded() {
    let (mut client, mut server) = recorded_pair();
    carry(&mut client, &mut server);
    carry(&mut server, &mut client);
    assert_eq!(
        uni(&mut server, 14, &[0x21], false),
        Ok(UniFate::Stop(Code::STREAM_CREATION_ERROR))
    );
    let records = http3(&mut server);
    assert_eq!(
        records.last(),
        Some(&opened(true, 14, Http3StreamType::Other(0x21)))
    );
    // The section arrives before the inserts that it needs.
    let (parts, ()) = Request::get("https://example.org/")
        .header("x-a", "some value")
        .body(())
        .expect("valid")
        .into_parts();
    let fields = FieldsToSend::request(&parts).expect("complete");
    let mut bytes = Vec::new();
    client
        .encode(0, &fields, &mut bytes)
        .expect("within limits");
    let mut stream = RequestStream::request(0, FieldLimits::REQUEST);
    stream.push(bytes.into());
    assert!(matches!(stream.poll(), Step::Decode));
    assert!(matches!(
        stream.decode(&mut server),
        Decoding::Blocked { .. }
    ));
    carry(&mut client, &mut server);
    let states: Vec<_> = server
        .take_records()
        .into_iter()
        .filter_map(|record| match record {
            Record::Qpack(QpackRecord::StreamStateUpdated { stream, is_blocked }) => {
                Some((stream, is_blocked))
            }
            _ => None,
        })
        .collect();
    assert_eq!(states, [(0, true), (0, false)]);
}

/// A peer that sends many frames at once does not exceed the limit of records.
#[test]
fn records_of_a_flood_are_bounded() {
    let (mut client, mut server) = recorded_pair();
    carry(&mut client, &mut server);
    server.take_records();
    let frames = frame(frame::reserved(1), b"").repeat(5000);
    let _ = uni(&mut server, 2, &frames, false);
    let records = server.take_records();
    assert!((100..=257).contains(&records.len()), "{}", records.len());
}
