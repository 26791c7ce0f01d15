//! Converts traces to the current names, as a sequence or as one JSON file.

mod reference;

use std::io::{BufRead, Write};

use courser_qlog::{EXTENSION, SERIALIZATION};
use serde_json::{Map, Value, json};

use crate::Error;
use crate::qlog::{RawEvent, Reader};

/// The form of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// JSON text sequences (RFC 7464), with the extension `sqlog`.
    Sequence,
    /// One JSON object, with the extension `qlog`.
    Plain,
}

impl Form {
    /// Returns the form of files with this extension.
    pub(crate) fn of_extension(extension: &str) -> Option<Self> {
        match extension {
            EXTENSION => Some(Self::Sequence),
            "qlog" => Some(Self::Plain),
            _ => None,
        }
    }
}

/// Writes a trace event by event.
pub(crate) struct Writer<W> {
    output: W,
    form: Form,
    written: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the header of the file. `trace` is the header of the trace in it.
    pub(crate) fn new(
        mut output: W,
        form: Form,
        title: Option<&str>,
        trace: &Value,
    ) -> Result<Self, Error> {
        let mut file = Map::new();
        let schema = match form {
            Form::Sequence => "urn:ietf:params:qlog:file:sequential",
            Form::Plain => "urn:ietf:params:qlog:file:contained",
        };
        let serialization = match form {
            Form::Sequence => SERIALIZATION,
            Form::Plain => "application/qlog+json",
        };
        file.insert("file_schema".to_owned(), schema.into());
        file.insert("serialization_format".to_owned(), serialization.into());
        if let Some(title) = title {
            file.insert("title".to_owned(), title.into());
        }
        let written = match form {
            Form::Sequence => {
                file.insert("trace".to_owned(), trace.clone());
                writeln!(output, "\u{1e}{}", Value::Object(file))
            }
            Form::Plain => {
                let (file, trace) = (Value::Object(file).to_string(), trace.to_string());
                let (file, trace) = (without_end(&file), without_end(&trace));
                write!(output, "{file},\"traces\":[{trace},\"events\":[")
            }
        };
        written.map_err(cannot_write)?;
        Ok(Self {
            output,
            form,
            written: 0,
        })
    }

    pub(crate) fn event(&mut self, event: &Value) -> Result<(), Error> {
        let separator = if self.written == 0 { "" } else { "," };
        self.written += 1;
        let written = match self.form {
            Form::Sequence => writeln!(self.output, "\u{1e}{event}"),
            Form::Plain => write!(self.output, "{separator}\n{event}"),
        };
        written.map_err(cannot_write)
    }

    /// Writes the end of the file. Returns the number of events.
    pub(crate) fn finish(mut self) -> Result<u64, Error> {
        if self.form == Form::Plain {
            self.output.write_all(b"\n]}]}\n").map_err(cannot_write)?;
        }
        self.output.flush().map_err(cannot_write)?;
        Ok(self.written)
    }
}

fn without_end(object: &str) -> &str {
    object.strip_suffix('}').unwrap_or(object)
}

fn cannot_write(error: std::io::Error) -> Error {
    Error::new(format!("cannot write: {error}"))
}

/// The number of events written, and of lines that could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Converted {
    pub(crate) events: u64,
    pub(crate) unreadable: u64,
}

/// Copies a trace with the current names.
pub(crate) fn convert<R: BufRead, W: Write>(
    reader: &mut Reader<R>,
    output: W,
    form: Form,
) -> Result<Converted, Error> {
    let mut unreadable = 0;
    // The other times count from that of the first event.
    let mut next = std::iter::from_fn(|| reader.next_raw());
    let first = next.find_map(|line| match line {
        Ok(event) => Some(event),
        Err(_) => {
            unreadable += 1;
            None
        }
    });
    let about = reader.about().clone();
    let mut header = header(about.vantage_point.as_deref(), about.group_id.as_deref());
    let origin = reference::copy_common_fields(
        reader.common_fields(),
        reader.first_time().unwrap_or(0.0),
        &mut header["common_fields"],
    );
    let mut writer = Writer::new(output, form, about.title.as_deref(), &header)?;
    let later = |mut event: RawEvent| {
        event.time += origin;
        renamed(event)
    };
    if let Some(event) = first {
        writer.event(&later(event))?;
    }
    while let Some(line) = reader.next_raw() {
        match line {
            Ok(event) => writer.event(&later(event))?,
            Err(_) => unreadable += 1,
        }
    }
    let events = writer.finish()?;
    Ok(Converted { events, unreadable })
}

/// Returns the header of a trace.
pub(crate) fn header(vantage_point: Option<&str>, group_id: Option<&str>) -> Value {
    let mut common = json!({
        "time_format": "relative_to_epoch",
        "reference_time": {"clock_type": "monotonic", "epoch": "unknown"},
    });
    if let Some(group) = group_id {
        common["group_id"] = group.into();
    }
    json!({
        "common_fields": common,
        "vantage_point": {"type": vantage_point.unwrap_or("unknown")},
        "event_schemas": [
            "urn:ietf:params:qlog:events:quic-13",
            "urn:ietf:params:qlog:events:http3-13",
            courser_qlog::QPACK_EVENTS,
            courser_qlog::OWN_EVENTS,
        ],
    })
}

/// Returns an event with its current name and fields, and its time in milliseconds.
pub(crate) fn renamed(event: RawEvent) -> Value {
    let name = current_name(&event.name);
    let mut data = event.data;
    if event.per_second > 1e3 {
        scale(&mut data, event.per_second / 1e3);
    }
    rename(&mut data, &name);
    // Rounded to nanoseconds, because the division leaves long fractions.
    let time = (event.time * 1e9).round() / 1e6;
    let mut event = event.other;
    event.insert("time".to_owned(), json!(time));
    event.insert("name".to_owned(), name.into());
    event.insert("data".to_owned(), data);
    Value::Object(event)
}

/// Returns the name of an event in quic-events-13 or h3-events-13. Unknown names are unchanged.
fn current_name(name: &str) -> String {
    let (category, bare) = name.split_once(':').unwrap_or(("", name));
    let quic = matches!(
        category,
        "transport" | "recovery" | "connectivity" | "security" | "quic"
    );
    let bare = match (category, bare) {
        ("recovery", "metrics_updated" | "metric_update" | "metrics_update") => {
            "recovery_metrics_updated"
        }
        ("recovery", "parameters_set") => "recovery_parameters_set",
        ("recovery" | "quic", "loss_timer_updated") => "timer_updated",
        ("transport" | "quic", "data_moved") => "stream_data_moved",
        ("security" | "quic", "key_retired") => "key_discarded",
        (_, other) => other,
    };
    match category {
        _ if quic => format!("quic:{bare}"),
        "http" | "h3" => format!("http3:{bare}"),
        _ => name.to_owned(),
    }
}

/// Moves fields to their current places.
fn rename(data: &mut Value, name: &str) {
    let Some(fields) = data.as_object_mut() else {
        return;
    };
    let mut moved = |old: &str, new: &str| {
        if let Some(value) = fields.remove(old) {
            fields.entry(new).or_insert(value);
        }
    };
    match name {
        "quic:recovery_metrics_updated" => moved("cwnd", "congestion_window"),
        "quic:parameters_set" => moved("owner", "initiator"),
        "quic:connection_closed" => moved("owner", "initiator"),
        "quic:packet_sent"
        | "quic:packet_received"
        | "quic:packet_lost"
        | "quic:packet_dropped" => {
            packet(fields);
        }
        _ => {}
    }
    if name == "quic:recovery_metrics_updated"
        && fields.get("ssthresh").and_then(Value::as_u64) == Some(u64::MAX)
    {
        fields.remove("ssthresh");
    }
}

/// Moves the fields of a packet: its type into the header, sizes into `raw`.
fn packet(fields: &mut Map<String, Value>) {
    // aioquic calls the type of lost packets `type`.
    for (old, key) in [
        ("packet_type", "packet_type"),
        ("type", "packet_type"),
        ("packet_number", "packet_number"),
    ] {
        if let Some(value) = fields.remove(old) {
            let header = fields.entry("header").or_insert_with(|| json!({}));
            if let Some(header) = header.as_object_mut() {
                header.entry(key).or_insert(value);
            }
        }
    }
    let size = fields
        .get_mut("header")
        .and_then(Value::as_object_mut)
        .and_then(|header| header.remove("packet_size"));
    if let Some(size) = size {
        let raw = fields.entry("raw").or_insert_with(|| json!({}));
        if let Some(raw) = raw.as_object_mut() {
            raw.entry("length").or_insert(size);
        }
    }
    let frames = fields.get_mut("frames").and_then(Value::as_array_mut);
    for frame in frames
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        let kind = frame.get("frame_type").and_then(Value::as_str);
        if matches!(kind, Some("stream" | "crypto" | "datagram"))
            && let Some(length) = frame.remove("length")
        {
            let raw = frame.entry("raw").or_insert_with(|| json!({}));
            match raw.as_object_mut() {
                Some(raw) => raw.entry("length").or_insert(length),
                None => frame.entry("length").or_insert(length),
            };
        }
    }
}

/// Divides the times in the data of an event by `divisor`.
fn scale(data: &mut Value, divisor: f64) {
    match data {
        Value::Object(fields) => {
            for (key, value) in fields {
                let is_time = TIMES.contains(&key.as_str());
                // Some writers put numbers into strings.
                let number = match &*value {
                    Value::String(text) => text.parse().ok(),
                    other => other.as_f64(),
                };
                match number.filter(|it: &f64| is_time && it.is_finite()) {
                    Some(time) => *value = json!(time / divisor),
                    None => scale(value, divisor),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| scale(value, divisor)),
        _ => {}
    }
}

/// Fields with times in the unit of the trace, which become milliseconds.
const TIMES: &[&str] = &[
    "min_rtt",
    "smoothed_rtt",
    "latest_rtt",
    "rtt_variance",
    "ack_delay",
    "initial_rtt",
    "delta",
];

#[cfg(test)]
mod tests {
    use crate::qlog::{Event, Summary};

    use super::*;

    const OLD: &str = r#"{"qlog_version":"draft-01","traces":[{
        "vantage_point":{"type":"server"},"configuration":{"time_units":"us"},
        "event_fields":["relative_time","category","event","data"],
        "common_fields":{"group_id":"abcd"},
        "events":[
            [1000,"transport","packet_sent",{"packet_type":"1RTT","header":{"packet_number":"3","packet_size":1200},
                "frames":[{"frame_type":"stream","stream_id":"0","offset":"0","length":"900"},
                          {"frame_type":"ack","ack_delay":5000,"acked_ranges":[["1","2"]]}]}],
            [2500,"recovery","metrics_updated",{"cwnd":14720,"min_rtt":20000}],
            [4000,"http","frame_created",{"stream_id":0}]
        ]}]}"#;

    fn converted(text: &str, form: Form) -> String {
        let mut output = Vec::new();
        let mut reader = Reader::new(text.as_bytes()).expect("a trace");
        let converted = convert(&mut reader, &mut output, form).expect("memory");
        assert_eq!((converted.events, converted.unreadable), (3, 0));
        String::from_utf8(output).expect("text")
    }

    #[test]
    fn names_fields_and_units_become_the_current_ones() {
        let text = converted(OLD, Form::Sequence);
        let records = text.split('\u{1e}').skip(1);
        let records: Vec<Value> = records
            .map(|record| serde_json::from_str(record).expect("JSON"))
            .collect();
        let [head, sent, metrics, http] = &records[..] else {
            panic!("four records in\n{text}");
        };
        assert_eq!(head["file_schema"], "urn:ietf:params:qlog:file:sequential");
        assert_eq!(head["trace"]["common_fields"]["group_id"], "abcd");
        assert_eq!(head["trace"]["vantage_point"]["type"], "server");
        let frames = json!([
            {"frame_type": "stream", "stream_id": "0", "offset": "0", "raw": {"length": "900"}},
            {"frame_type": "ack", "ack_delay": 5.0, "acked_ranges": [["1", "2"]]},
        ]);
        // The order of keys depends on the features of `serde_json` that a build enables.
        assert_eq!(
            *sent,
            json!({"time": 0.0, "name": "quic:packet_sent", "data": {
                "header": {"packet_number": "3", "packet_type": "1RTT"},
                "raw": {"length": 1200},
                "frames": frames,
            }})
        );
        assert_eq!(
            *metrics,
            json!({"time": 1.5, "name": "quic:recovery_metrics_updated",
                "data": {"congestion_window": 14720, "min_rtt": 20.0}})
        );
        assert_eq!(http["name"], "http3:frame_created");
    }

    #[test]
    fn times_in_strings_and_lengths_beside_raw_are_kept() {
        let old = OLD
            .replace("\"ack_delay\":5000", "\"ack_delay\":\"5000\"")
            .replace(
                "\"length\":\"900\"",
                "\"length\":\"900\",\"raw\":{\"data\":\"00\"}",
            );
        let text = converted(&old, Form::Sequence);
        assert!(text.contains("\"ack_delay\":5.0"), "{text}");
        let sent = text.split('\u{1e}').nth(2).expect("an event");
        let sent: Value = serde_json::from_str(sent).expect("JSON");
        let raw = &sent["data"]["frames"][0]["raw"];
        assert_eq!(*raw, json!({"data": "00", "length": "900"}));
    }

    #[test]
    fn other_fields_of_events_are_kept() {
        let event = r#"{"time":1,"name":"quic:a","data":{},"group_id":"b","tuple":{"id":1}}"#;
        let trace = format!("{{\"traces\":[{{\"events\":[{event},{event},{event}]}}]}}");
        let text = converted(&trace, Form::Sequence);
        let record = text.split('\u{1e}').nth(2).expect("an event");
        let record: Value = serde_json::from_str(record).expect("JSON");
        assert_eq!(
            record,
            json!({"time": 0.0, "name": "quic:a", "data": {}, "group_id": "b", "tuple": {"id": 1}})
        );
    }

    #[test]
    fn unknown_columns_are_kept() {
        let old = OLD
            .replace(
                "\"event\",\"data\"]",
                "\"event\",\"data\",\"CWND_trace\",\"tuple\"]",
            )
            .replace("\"stream_id\":0}]", "\"stream_id\":0},{\"a\":[1]},\"p1\"]");
        let text = converted(&old, Form::Sequence);
        let record = text.split('\u{1e}').nth(4).expect("an event");
        let record: Value = serde_json::from_str(record).expect("JSON");
        assert_eq!(
            record,
            json!({"time": 3.0, "name": "http3:frame_created", "data": {"stream_id": 0},
                "cwnd_trace": {"a": [1]}, "tuple": "p1"})
        );
    }

    #[test]
    fn reference_times_of_all_drafts_are_kept() {
        let head = |text: &str| -> (Value, Value) {
            let text = converted(text, Form::Sequence);
            let mut records = text.split('\u{1e}').skip(1);
            let mut next = || serde_json::from_str::<Value>(records.next()?).ok();
            let head = next().expect("a header")["trace"]["common_fields"].clone();
            (head, next().expect("an event")["time"].clone())
        };
        // Up to main-schema-03: milliseconds since 1970, from which relative times count.
        let old = OLD.replace(
            "\"group_id\"",
            "\"reference_time\":1577836800000,\"protocol_type\":\"QUIC\",\"group_id\"",
        );
        let (common, time) = head(&old);
        assert_eq!(
            common["reference_time"],
            json!({"clock_type": "system", "epoch": "unknown", "wall_clock_time": "2020-01-01T00:00:00.000Z"})
        );
        assert_eq!(
            (&common["protocol_type"], time),
            (&json!("QUIC"), json!(1.0))
        );
        // Since main-schema-11: an object.
        let reference = json!({"clock_type": "system", "epoch": "1970-01-01T00:00:00.000Z"});
        let new = format!(
            "{{\"traces\":[{{\"common_fields\":{{\"time_format\":\"relative_to_epoch\",\
             \"reference_time\":{reference}}},\"events\":[{event},{event},{event}]}}]}}",
            event = r#"{"time":1577836800123.5,"name":"quic:a","data":{}}"#
        );
        let (common, time) = head(&new);
        assert_eq!(common["reference_time"], reference);
        assert_eq!(time, json!(1_577_836_800_123.5));
    }

    #[test]
    fn both_formats_have_the_same_events() {
        let events = |text: &str| -> Vec<Event> {
            let reader = Reader::new(text.as_bytes()).expect("a trace");
            reader
                .map(|event| Event {
                    line: 0,
                    ..event.expect("an event")
                })
                .collect()
        };
        let sequence = converted(OLD, Form::Sequence);
        let plain = converted(OLD, Form::Plain);
        let again = converted(&plain, Form::Sequence);
        assert_eq!(sequence, again);
        assert_eq!(events(OLD), events(&sequence));
        assert_eq!(events(&plain), events(&sequence));
        let summary = |text: &str| Summary::of(&mut Reader::new(text.as_bytes()).expect("a trace"));
        assert_eq!(summary(OLD).sent, summary(&plain).sent);
    }
}
