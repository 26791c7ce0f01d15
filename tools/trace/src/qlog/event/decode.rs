//! Reads events from JSON.

use serde_json::{Map, Value};

use super::{Event, RawEvent, fields};

/// Converts the times of a trace to seconds since its first event.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// The number of time units in a second: a thousand, or a million.
    per_second: f64,
    is_delta: bool,
    now: f64,
    first: Option<f64>,
}

impl Clock {
    pub(crate) fn new(trace: Option<&Value>) -> Self {
        let of = |group: &str, key: &str| {
            let value = trace.and_then(|trace| trace.get(group)?.get(key));
            value.and_then(Value::as_str)
        };
        let format = of("common_fields", "time_format");
        // Up to main-schema-02 a trace could be configured to use microseconds.
        let is_micros = of("configuration", "time_units") == Some("us");
        Self {
            per_second: if is_micros { 1e6 } else { 1e3 },
            is_delta: format.is_some_and(is_delta),
            now: 0.0,
            first: None,
        }
    }

    /// Returns true if both clocks interpret times in the same way.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        self.per_second == other.per_second && self.is_delta == other.is_delta
    }

    /// Returns the time of the first event in seconds, as it was written.
    pub(crate) fn first(&self) -> Option<f64> {
        Some(self.first? / self.per_second)
    }

    fn read(&mut self, event: &Value) -> Result<f64, String> {
        let time = event.get("time").or_else(|| event.get("relative_time"));
        let time = match time {
            Some(Value::Number(number)) => number.as_f64(),
            // Some writers put times into strings, so that no digit is lost.
            Some(Value::String(text)) => text.parse().ok(),
            _ => return Err("an event without a time".to_owned()),
        };
        let Some(time) = time.filter(|time| time.is_finite()) else {
            return Err("the time is not a number".to_owned());
        };
        let own = event.get("time_format").and_then(Value::as_str);
        if own.map_or(self.is_delta, is_delta) {
            self.now += time;
        } else {
            self.now = time;
        }
        self.now = self.now.clamp(-MAX_TIME, MAX_TIME);
        let first = *self.first.get_or_insert(self.now);
        Ok((self.now - first).max(0.0) / self.per_second)
    }
}

/// The largest time, in the unit of the trace. Larger ones are reduced to it, so that sums are finite.
const MAX_TIME: f64 = 1e18;

/// Returns true if times count from the previous event. The format was named `delta` up to
/// main-schema-08.
fn is_delta(format: &str) -> bool {
    matches!(format, "relative_to_previous_event" | "delta")
}

impl RawEvent {
    /// Reads the frame of an event. The error names the missing or malformed part.
    pub(crate) fn from_json(line: u64, event: Value, clock: &mut Clock) -> Result<Self, String> {
        if !event.is_object() {
            return Err("not an event: an object was expected".to_owned());
        }
        let time = clock.read(&event)?;
        let Some(name) = event.get("name").and_then(Value::as_str) else {
            return Err("an event without a name".to_owned());
        };
        let name = name.to_owned();
        let mut other = match event {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let data = other.remove("data").unwrap_or_default();
        for known in ["time", "relative_time", "time_format", "name"] {
            other.remove(known);
        }
        Ok(Self {
            line,
            time,
            per_second: clock.per_second,
            name,
            data,
            other,
        })
    }
}

impl From<&RawEvent> for Event {
    fn from(event: &RawEvent) -> Self {
        Self {
            line: event.line,
            time: event.time,
            kind: fields::kind(&event.name, &event.data, event.per_second),
        }
    }
}
