//! Events that are not decoded, and the conversion of old ones, which are arrays.

use serde_json::{Map, Value};

/// An event whose data is not decoded.
#[derive(Clone, PartialEq, Debug)]
pub struct RawEvent {
    /// The line where the event begins, counted from 1. In a plain file, the number of the event.
    pub line: u64,
    /// Seconds since the first event of the trace.
    pub time: f64,
    /// The number of time units of `data` in a second: 1000, or 1 000 000 in old traces that declare
    /// microseconds.
    pub per_second: f64,
    /// The name, with its category if the trace has one: `quic:packet_sent`.
    pub name: String,
    /// The data, as JSON.
    pub data: Value,
    /// Fields other than the time, the name and the data, as JSON.
    pub other: Map<String, Value>,
}

/// The columns of events that are arrays, as in qlog 0.2 and older.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Columns(Vec<String>);

impl Columns {
    pub(crate) fn new(trace: Option<&Value>) -> Self {
        let fields = trace.and_then(|trace| trace.get("event_fields")?.as_array());
        let fields = fields.into_iter().flatten();
        let name = |field: &Value| field.as_str().unwrap_or_default().to_ascii_lowercase();
        Self(fields.take(MAX_COLUMNS).map(name).collect())
    }

    /// Converts an event that is an array to an object. Returns others unchanged.
    pub(crate) fn object(&self, event: Value) -> Value {
        let Value::Array(values) = event else {
            return event;
        };
        let mut object = Map::new();
        let mut category = String::new();
        let mut bare = String::new();
        let default = ["relative_time", "category", "event", "data"];
        for (index, value) in values.into_iter().take(MAX_COLUMNS).enumerate() {
            let named = self.0.get(index).map(String::as_str);
            let column = if self.0.is_empty() {
                default.get(index).copied()
            } else {
                named
            };
            match column {
                Some("time" | "relative_time" | "reference_time") => {
                    object.insert("time".to_owned(), value);
                }
                Some("delta_time") => {
                    object.insert("time".to_owned(), value);
                    object.insert("time_format".to_owned(), Value::from("delta"));
                }
                Some("category") => category = text(value),
                Some("event" | "event_type" | "name") => bare = text(value),
                Some("data") => {
                    object.insert("data".to_owned(), value);
                }
                Some(other) if !other.is_empty() => {
                    object.insert(other.to_owned(), value);
                }
                _ => {}
            }
        }
        if !bare.is_empty() {
            let category = category.to_ascii_lowercase();
            let name = format!("{category}:{}", bare.to_ascii_lowercase());
            object.insert("name".to_owned(), Value::String(name));
        }
        Value::Object(object)
    }
}

fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        _ => String::new(),
    }
}

/// The largest number of columns that are read. The drafts define eight.
const MAX_COLUMNS: usize = 32;
