use std::io::{self, Read};

use super::*;
use crate::qlog::EventKind;

fn read(text: &str) -> Vec<Result<Event, ReadError>> {
    Reader::new(text.as_bytes()).expect("a header").collect()
}

fn refusal(bytes: &[u8]) -> String {
    Reader::new(bytes)
        .expect_err("not a qlog trace")
        .to_string()
}

const HEAD: &str = "\u{1e}{\"trace\":{}}\n";

#[test]
fn malformed_lines_are_reported_and_the_others_are_read() {
    let lines = read(&format!(
        "{HEAD}\u{1e}{{\"time\":1,\"name\":\"quic:x\"}}\n\
         \u{1e}{{\"time\":2,\"na\n\
         \u{1e}{{\"time\":\n3,\n\"name\":\"y:z\",\"data\":{{}}}}\n\
         \u{1e}[]\n\
         \u{1e}{{\"name\":\"quic:x\"}}\n"
    ));
    let shown: Vec<_> = lines
        .iter()
        .map(|line| match line {
            Ok(event) => format!("{}", event.time),
            Err(error) => error.to_string(),
        })
        .collect();
    assert_eq!(shown.len(), 5, "{shown:?}");
    assert_eq!((&*shown[0], &*shown[2]), ("0", "0.002"));
    assert!(shown[1].starts_with("line 3: not JSON: "), "{}", shown[1]);
    assert_eq!(shown[3], "line 7: not an event: an object was expected");
    assert_eq!(shown[4], "line 8: an event without a time");
}

#[test]
fn last_record_may_lack_its_line_feed() {
    assert_eq!(
        read(&format!("{HEAD}\u{1e}{{\"time\":1,\"name\":\"a\"}}")).len(),
        1
    );
}

#[test]
fn json_without_separators_is_read_line_by_line() {
    let text =
        "{\"qlog_version\":\"0.3\",\"trace\":{\"title\":\"t\"}}\n{\"time\":5,\"name\":\"a:b\"}\n\n";
    let reader = Reader::new(text.as_bytes()).expect("a header");
    assert_eq!(reader.about().format, "NDJSON");
    assert_eq!(reader.about().title.as_deref(), Some("t"));
    assert_eq!(reader.about().schema.as_deref(), Some("0.3"));
    assert_eq!(reader.count(), 1);
}

#[test]
fn plain_file_is_read_from_one_line_or_many() {
    let file = serde_json::json!({
        "qlog_version": "0.4",
        "traces": [
            {"error_description": "not found"},
            {
                "vantage_point": {"type": "server"},
                "common_fields": {"ODCID": "abcd", "time_format": "relative"},
                "events": [
                    {"time": 10.5, "name": "transport:packet_sent", "data": {
                        "header": {"packet_type": "1RTT", "packet_number": 3},
                        "raw": {"length": 1200}
                    }},
                    {"time": 11.5, "name": 7},
                ],
            },
        ],
    });
    for text in [file.to_string(), format!("{file:#}")] {
        let mut reader = Reader::new(text.as_bytes()).expect("a trace");
        assert_eq!(reader.about().format, "JSON");
        assert_eq!(reader.about().group_id.as_deref(), Some("abcd"));
        assert_eq!(reader.about().other_traces, 1);
        let first = reader.next().expect("an event").expect("well-formed");
        assert!(matches!(
            first.kind,
            EventKind::PacketSent(packet) if packet.number == Some(3) && packet.len == 1200
        ));
        let second = reader.next().expect("an event").expect_err("no name");
        assert_eq!(second.to_string(), "line 2: an event without a name");
        assert!(reader.next().is_none());
    }
}

#[test]
fn unreadable_files_are_refused_with_a_remedy() {
    assert_eq!(refusal(b""), "line 1: the file is empty");
    assert!(refusal(b"hello").contains("not a qlog trace"));
    assert!(refusal(b"{\"a\":1}\n").contains("not a qlog trace"));
    assert!(refusal(&[0x1f, 0x8b, 8]).contains("run gunzip"));
    assert!(refusal(&[0x28, 0xb5, 0x2f, 0xfd]).contains("run unzstd"));
    assert!(refusal(b"{\"traces\":[\n{\"title\":\"a\n").contains("interrupted"));
    assert!(refusal(b"{\"traces\":[]}").contains("no trace with events"));
}

#[test]
fn events_that_are_arrays_are_read_by_their_columns() {
    let text = r#"{"qlog_version":"draft-01","traces":[{
        "vantage_point":{"type":"server"},
        "configuration":{"time_units":"us"},
        "event_fields":["relative_time","path_id","CATEGORY","EVENT_TYPE","DATA"],
        "events":[
            [5000,0,"transport","packet_sent",
                {"packet_type":"1RTT","header":{"packet_number":"3","packet_size":1200},"frames":[]}],
            [7500,0,"RECOVERY","METRICS_UPDATE",{}],
            [8000,0,"recovery","metrics_updated",{"cwnd":14720,"min_rtt":20000}],
        ]}],}"#;
    let events: Vec<_> = read(text)
        .into_iter()
        .map(|event| event.expect("well-formed"))
        .collect();
    assert!(matches!(
        &events[0].kind,
        EventKind::PacketSent(packet) if packet.number == Some(3) && packet.len == 1200
    ));
    assert_eq!((events[1].line, events[1].time), (2, 0.0025));
    assert!(matches!(
        &events[2].kind,
        EventKind::Metrics(metrics)
            if metrics.congestion_window == Some(14_720) && metrics.min_rtt == Some(0.02)
    ));
}

#[test]
fn plain_file_that_ends_too_early_is_read_up_to_there() {
    let whole = r#"{"traces":[{"events":[{"time":1,"name":"a"},{"time":2,"name":"b"}]}]}"#;
    let cut = &whole[..whole.len() - 12];
    let mut reader = Reader::new(cut.as_bytes()).expect("a header");
    assert!(reader.next().expect("an event").is_ok());
    let error = reader.next().expect("the end").expect_err("cut off");
    assert!(error.to_string().contains("interrupted"), "{error}");
    assert!(reader.next().is_none());
}

#[test]
fn header_of_a_plain_file_may_follow_its_events() {
    let text = r#"{"traces":[{"events":[{"time":1,"name":"a"}],
        "vantage_point":{"type":"client"}},{"events":[]}],"qlog_version":"0.3"}"#;
    let mut reader = Reader::new(text.as_bytes()).expect("a header");
    assert_eq!(reader.about().vantage_point, None);
    assert_eq!(reader.by_ref().count(), 1);
    let about = reader.about();
    assert_eq!(about.vantage_point.as_deref(), Some("client"));
    assert_eq!(about.schema.as_deref(), Some("0.3"));
    assert_eq!((about.format, about.other_traces), ("JSON", 1));
}

/// A very long record of spaces.
struct Endless(u64);

impl Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = out.len().min(usize::try_from(self.0).unwrap_or(usize::MAX));
        out[..len].fill(b' ');
        self.0 -= len as u64;
        Ok(len)
    }
}

#[test]
fn endless_record_is_skipped_without_being_kept() {
    let event = "\u{1e}{\"time\":1,\"name\":\"a\"}\n";
    let long = Endless(MAX_RECORD as u64 + 10);
    let input = HEAD
        .as_bytes()
        .chain(&b"\x1e"[..])
        .chain(long)
        .chain(event.as_bytes());
    let mut reader = Reader::new(io::BufReader::new(input)).expect("a header");
    let error = reader.next().expect("a line").expect_err("too long");
    assert!(error.to_string().contains("is longer than"), "{error}");
    assert!(reader.next().expect("an event").is_ok());
}

/// An input that fails after its text.
struct Broken(&'static [u8]);

impl Read for Broken {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.0.read(out)? {
            0 => Err(io::Error::other("unplugged")),
            len => Ok(len),
        }
    }
}

#[test]
fn failed_input_ends_with_its_error() {
    let mut reader =
        Reader::new(io::BufReader::new(Broken(b"\x1e{\"trace\":{}}\n\x1e"))).expect("a header");
    let error = reader.next().expect("a line").expect_err("broken");
    assert!(error.to_string().contains("unplugged"), "{error}");
    assert!(reader.next().is_none());
}

#[test]
fn header_after_its_events_is_reported_if_it_changes_their_times() {
    let errors = |late: &str| {
        let text =
            format!("{{\"traces\":[{{\"events\":[{{\"time\":1,\"name\":\"quic:a\"}}],{late}}}]}}");
        let reader = Reader::new(text.as_bytes()).expect("a trace");
        let errors = reader.filter_map(Result::err).map(|it| it.to_string());
        errors.collect::<Vec<_>>()
    };
    assert_eq!(errors("\"title\":\"a\""), [""; 0]);
    for late in [
        "\"configuration\":{\"time_units\":\"us\"}",
        "\"common_fields\":{\"time_format\":\"delta\"}",
        "\"event_fields\":[\"name\",\"time\"]",
    ] {
        let errors = errors(late);
        assert!(
            errors.len() == 1 && errors[0].contains("follow the events"),
            "{late}: {errors:?}"
        );
    }
}
