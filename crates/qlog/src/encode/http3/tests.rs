use courser_base::Time;
use courser_telemetry::{QpackInstruction, QpackRecord, QpackState, Record};

use super::*;
use crate::encode::Encoder;

/// Returns the event that a record becomes, without the time.
fn event(record: Record) -> String {
    let mut out = Vec::new();
    Encoder::default().encode(&mut out, Time::ZERO, &record);
    let text = String::from_utf8(out).expect("the output is UTF-8");
    let text = text
        .strip_prefix("\u{1e}{\"time\":0,\"name\":")
        .expect("the output is one event");
    text.trim_end()
        .strip_suffix('}')
        .expect("the event ends with its object")
        .to_owned()
}

fn http3(record: Http3Record) -> String {
    event(Record::Http3(record))
}

#[test]
fn events_have_the_names_and_fields_of_the_draft() {
    let parameters = Http3Parameters {
        max_field_section_size: Some(65536),
        max_table_capacity: 4096,
        blocked_streams: 16,
        extended_connect: true,
        datagrams: false,
    };
    let expected = [
        (
            Http3Record::ParametersSet {
                by_peer: false,
                parameters,
            },
            r#""http3:parameters_set","data":{"initiator":"local","max_field_section_size":65536,"max_table_capacity":4096,"blocked_streams_count":16,"extended_connect":1,"h3_datagram":0,"waits_for_settings":false}"#,
        ),
        (
            Http3Record::ParametersRestored {
                parameters: Http3Parameters::default(),
            },
            r#""http3:parameters_restored","data":{"max_table_capacity":0,"blocked_streams_count":0,"extended_connect":0,"h3_datagram":0}"#,
        ),
        (
            Http3Record::StreamTypeSet {
                by_peer: true,
                stream: 3,
                stream_type: Http3StreamType::QpackEncoder,
            },
            r#""http3:stream_type_set","data":{"initiator":"remote","stream_id":3,"stream_type":"qpack_encode"}"#,
        ),
        (
            Http3Record::StreamTypeSet {
                by_peer: true,
                stream: 15,
                stream_type: Http3StreamType::Other(0x54),
            },
            r#""http3:stream_type_set","data":{"initiator":"remote","stream_id":15,"stream_type":"unknown","stream_type_bytes":84}"#,
        ),
    ];
    for (record, text) in expected {
        assert_eq!(http3(record), text);
    }
}

#[test]
fn frames_and_datagrams_have_the_names_and_fields_of_the_draft() {
    let expected = [
        (
            Http3Record::PriorityUpdated {
                stream: 4,
                new: "u=1, i".to_owned(),
                by_peer: true,
            },
            r#""http3:priority_updated","data":{"stream_id":4,"new":"u=1, i","trigger":"client_signal_received","reason":"client_signal_only"}"#,
        ),
        (
            Http3Record::FrameCreated {
                stream: 4,
                frame: Http3Frame::Data { len: 100 },
            },
            r#""http3:frame_created","data":{"stream_id":4,"frame":{"frame_type":"data","raw":{"length":103,"payload_length":100}}}"#,
        ),
        (
            Http3Record::FrameParsed {
                stream: 2,
                frame: Http3Frame::Settings {
                    settings: vec![(1, 0), (0x21, 5), (0x2b60, 1)],
                },
            },
            r#""http3:frame_parsed","data":{"stream_id":2,"frame":{"frame_type":"settings","settings":[{"name":"settings_qpack_max_table_capacity","value":0},{"name":"reserved","name_bytes":33,"value":5},{"name":"unknown","name_bytes":11104,"value":1}]}}"#,
        ),
        (
            Http3Record::DatagramParsed {
                stream: 400,
                len: 30,
            },
            r#""http3:datagram_parsed","data":{"quarter_stream_id":100,"raw":{"length":32,"payload_length":30}}"#,
        ),
    ];
    for (record, text) in expected {
        assert_eq!(http3(record), text);
    }
}

#[test]
fn field_lines_are_text_bytes_or_redacted() {
    let mut section = FieldSection::default();
    section.push(b":path", b"/\"a\"", false);
    section.push(b"cookie", b"secret", false);
    section.push(b"x-\n", b"caf\xe9", false);
    section.push(b"x-long", &[b'v'; 300], false);
    let frame = Http3Frame::Headers { len: 50, section };
    let text = http3(Http3Record::FrameParsed { stream: 0, frame });
    let long = "v".repeat(256);
    let expected = format!(
        "\"http3:frame_parsed\",\"data\":{{\"stream_id\":0,\"frame\":{{\"frame_type\":\"headers\",\"headers\":[\
         {{\"name\":\":path\",\"value\":\"/\\\"a\\\"\"}},\
         {{\"name\":\"cookie\",\"value\":\"[redacted]\"}},\
         {{\"name_bytes\":\"782d0a\",\"value_bytes\":\"636166e9\"}},\
         {{\"name\":\"x-long\",\"value\":\"{long}\",\"value_length\":300}}],\
         \"raw\":{{\"payload_length\":50}}}}}}"
    );
    assert_eq!(text, expected);
}

/// The largest section that a peer can send becomes an event of bounded size (limit K250).
#[test]
fn event_of_a_huge_section_is_bounded() {
    for (name, value) in [
        (&b"a"[..], &b""[..]),
        (&[0; 5000], &[b'"'; 5000]),
        (b"x", &[0xff; 9000]),
    ] {
        let mut section = FieldSection::default();
        for _ in 0..100_000 {
            section.push(name, value, false);
        }
        let frame = Http3Frame::Headers {
            len: 1 << 30,
            section,
        };
        let text = http3(Http3Record::FrameParsed { stream: 0, frame });
        assert!(text.len() < 16 * 1024, "{}", text.len());
        assert!(text.contains("\"headers_omitted\":"), "{text}");
    }
}

#[test]
fn qpack_events_have_the_names_of_the_fourth_draft() {
    let field = Field::new(b"x-a", b"1", false);
    let state = QpackState {
        capacity: 4096,
        size: 36,
        insert_count: 1,
        known_received_count: 0,
    };
    let insert = QpackInstruction::InsertWithNameReference {
        is_static: true,
        index: 5,
        is_huffman: false,
        value_len: 3,
    };
    let expected = [
        (
            QpackRecord::StateUpdated {
                of_peer: true,
                state,
            },
            r#""qpack:state_updated","data":{"owner":"remote","dynamic_table_capacity":4096,"dynamic_table_size":36,"known_received_count":0,"current_insert_count":1}"#,
        ),
        (
            QpackRecord::StreamStateUpdated {
                stream: 8,
                is_blocked: true,
            },
            r#""qpack:stream_state_updated","data":{"stream_id":8,"state":"blocked"}"#,
        ),
        (
            QpackRecord::EntryInserted {
                of_peer: false,
                index: 3,
                field,
            },
            r#""qpack:dynamic_table_updated","data":{"owner":"local","update_type":"inserted","entries":[{"index":3,"name":"x-a","value":"1"}]}"#,
        ),
        (
            QpackRecord::EntriesEvicted {
                of_peer: true,
                first: 1,
                count: 2,
            },
            r#""qpack:dynamic_table_updated","data":{"owner":"remote","update_type":"evicted","entries":[{"index":1},{"index":2}]}"#,
        ),
        (
            QpackRecord::InstructionCreated(insert),
            r#""qpack:instruction_created","data":{"instruction":{"instruction_type":"insert_with_name_reference","table_type":"static","name_index":5,"huffman_encoded_value":false,"value_length":3}}"#,
        ),
        (
            QpackRecord::InstructionParsed(QpackInstruction::SectionAcknowledgment { stream: 4 }),
            r#""qpack:instruction_parsed","data":{"instruction":{"instruction_type":"section_acknowledgement","stream_id":4}}"#,
        ),
    ];
    for (record, text) in expected {
        assert_eq!(event(Record::Qpack(record)), text);
    }
    let flood = QpackRecord::EntriesEvicted {
        of_peer: true,
        first: 0,
        count: 1 << 40,
    };
    let text = event(Record::Qpack(flood));
    assert!(
        text.len() < 4096 && text.contains("\"entries_omitted\":1099511627648"),
        "{text}"
    );
}

#[test]
fn sessions_have_events_of_their_own() {
    let change = |change| http3(Http3Record::SessionUpdated { session: 4, change });
    let opened = change(SessionChange::Opened {
        dialect: "draft-14",
        protocol: Some("chat".to_owned()),
    });
    assert_eq!(
        opened,
        r#""webtransport:session_opened","data":{"session_id":4,"dialect":"draft-14","protocol":"chat"}"#
    );
    let refused = change(SessionChange::Refused {
        reason: "origin `x` is not allowed".to_owned(),
    });
    assert_eq!(
        refused,
        r#""webtransport:session_refused","data":{"session_id":4,"reason":"origin `x` is not allowed"}"#
    );
    let draining = change(SessionChange::Draining { by_peer: true });
    assert_eq!(
        draining,
        r#""webtransport:session_draining","data":{"initiator":"remote","session_id":4}"#
    );
    let closed = change(SessionChange::Closed {
        by_peer: Some(false),
        code: Some(7),
        reason: "bye".to_owned(),
        streams: 3,
        datagrams_dropped: 0,
    });
    assert_eq!(
        closed,
        r#""webtransport:session_closed","data":{"initiator":"local","session_id":4,"application_code":7,"reason":"bye","streams":3,"datagrams_dropped":0}"#
    );
}
