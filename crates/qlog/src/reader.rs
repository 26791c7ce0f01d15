//! Reads traces of any stack, event by event.

mod error;
mod records;

use std::io::{BufRead, Read};

use serde_json::Value;

use self::records::{Delimiter, Records};
use crate::event::{Clock, Event};

pub use self::error::ReadError;
pub use self::records::{MAX_PLAIN, MAX_RECORD};

/// Reads a qlog trace, of the current drafts or of older ones.
///
/// The input is JSON-SEQ (`.sqlog`), one JSON object per line, or one JSON file (`.qlog`) of at
/// most [`MAX_PLAIN`] bytes. Event names and fields are those of main-schema-02 (version 0.3) up
/// to main-schema-14.
///
/// JSON-SEQ takes memory for one record at a time, however long the file is. Records longer than
/// [`MAX_RECORD`] are reported and skipped, as are lines that are not JSON or not events.
///
/// ```
/// use courser_qlog::{EventKind, Reader};
///
/// let trace = concat!(
///     "\u{1e}{\"qlog_version\":\"0.3\",\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n",
///     "\u{1e}{\"time\":1,\"name\":\"recovery:metrics_updated\",\"data\":{\"latest_rtt\":20}}\n",
/// );
/// let mut reader = Reader::new(trace.as_bytes())?;
/// assert_eq!(reader.about().vantage_point.as_deref(), Some("client"));
/// let event = reader.next().expect("one event")?;
/// assert!(matches!(event.kind, EventKind::Metrics(metrics) if metrics.latest_rtt == Some(0.02)));
/// # Ok::<(), courser_qlog::ReadError>(())
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    about: About,
    clock: Clock,
    source: Source<R>,
}

#[derive(Debug)]
enum Source<R> {
    Records(Records<R>),
    /// The events of a plain file, and the number of those read.
    Loaded(std::vec::IntoIter<Value>, u64),
    /// The input failed: no more events follow.
    Broken,
}

/// The header of a trace.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct About {
    /// The format of the file: `JSON-SEQ`, `NDJSON` or `JSON`.
    pub format: &'static str,
    /// The version or event schema that the file declares.
    pub schema: Option<String>,
    /// The title of the trace, or of the file.
    pub title: Option<String>,
    /// The vantage point: `client`, `server`, `network`, or another name.
    pub vantage_point: Option<String>,
    /// The ID that groups the traces of both ends: the original destination connection ID.
    pub group_id: Option<String>,
    /// The number of further traces in the file. They are not read.
    pub other_traces: usize,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header of a trace.
    ///
    /// # Errors
    /// Fails if the input cannot be read, is compressed, or is not a qlog trace.
    pub fn new(mut input: R) -> Result<Self, ReadError> {
        let start = input.fill_buf().map_err(|error| ReadError::io(1, &error))?;
        refuse_compressed(start)?;
        let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
        let delimiter = match first {
            None => return Err(ReadError::new(1, "the file is empty")),
            Some(&records::RECORD_SEPARATOR) => Delimiter::RecordSeparator,
            Some(b'{') => Delimiter::LineFeed,
            Some(_) => return Err(ReadError::new(1, NOT_QLOG)),
        };
        let mut records = Records::new(input, delimiter);
        let Some(head) = records.next() else {
            return Err(ReadError::new(1, NOT_QLOG));
        };
        let head = head?;
        match serde_json::from_slice::<Value>(&head.bytes) {
            Ok(value) if value.get("traces").is_some() => Self::plain(value),
            Ok(value) if value.get("trace").is_some() => Ok(Self::streaming(&value, records)),
            Ok(_) => Err(ReadError::new(head.line, NOT_QLOG)),
            Err(error) if error.is_eof() && delimiter == Delimiter::LineFeed => {
                Self::load(head.bytes, records)
            }
            Err(error) => {
                let message = format!("the header of the trace is not JSON: {error}");
                Err(ReadError::new(head.line, message))
            }
        }
    }

    fn streaming(head: &Value, records: Records<R>) -> Self {
        let mut about = about(head, head.get("trace"));
        about.format = records.format();
        Self {
            about,
            clock: Clock::new(head.get("trace")),
            source: Source::Records(records.expect_events()),
        }
    }

    /// Loads a file that holds one object over many lines.
    fn load(mut bytes: Vec<u8>, records: Records<R>) -> Result<Self, ReadError> {
        bytes.push(b'\n');
        let room = MAX_PLAIN + 1 - MAX_PLAIN.min(bytes.len() as u64);
        let mut rest = records.into_inner().take(room);
        rest.read_to_end(&mut bytes)
            .map_err(|error| ReadError::io(2, &error))?;
        if bytes.len() as u64 > MAX_PLAIN {
            let message = format!(
                "a plain JSON trace of more than {} MiB: convert it to JSON-SEQ, which is read \
                 without loading it whole",
                MAX_PLAIN >> 20
            );
            return Err(ReadError::new(1, message));
        }
        let value = serde_json::from_slice(&bytes).map_err(|error| {
            let line = u64::try_from(error.line()).unwrap_or(0);
            let hint = if error.is_eof() {
                " (was the writer interrupted?)"
            } else {
                ""
            };
            ReadError::new(line, format!("not JSON: {error}{hint}"))
        })?;
        Self::plain(value)
    }

    fn plain(mut file: Value) -> Result<Self, ReadError> {
        let Some(Value::Array(mut traces)) = file.get_mut("traces").map(Value::take) else {
            return Err(ReadError::new(1, NOT_QLOG));
        };
        let at = traces
            .iter()
            .position(|trace| trace.get("events").is_some_and(Value::is_array));
        let Some(at) = at else {
            return Err(ReadError::new(1, "the file has no trace with events"));
        };
        let mut trace = traces.swap_remove(at);
        let events = match trace.get_mut("events").map(Value::take) {
            Some(Value::Array(events)) => events,
            _ => Vec::new(),
        };
        if events.first().is_some_and(Value::is_array) {
            let message =
                "events are arrays: a trace of qlog 0.2 or older, while 0.3 and newer can be read";
            return Err(ReadError::new(1, message));
        }
        let mut about = about(&file, Some(&trace));
        about.format = "JSON";
        about.other_traces = traces.len();
        Ok(Self {
            about,
            clock: Clock::new(Some(&trace)),
            source: Source::Loaded(events.into_iter(), 0),
        })
    }

    /// Returns the header of the trace.
    pub fn about(&self) -> &About {
        &self.about
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (line, value) = match &mut self.source {
            Source::Broken => return None,
            Source::Loaded(events, read) => {
                *read += 1;
                (*read, events.next()?)
            }
            Source::Records(records) => {
                let record = match records.next()? {
                    Ok(record) => record,
                    Err(error) => {
                        if records.is_broken() {
                            self.source = Source::Broken;
                        }
                        return Some(Err(error));
                    }
                };
                match serde_json::from_slice(&record.bytes) {
                    Ok(value) => (record.line, value),
                    Err(error) => {
                        // The line in its text counts from the start of the record.
                        let text = error.to_string();
                        let cause = text.split(" at line ").next().unwrap_or_default();
                        let message = format!("not JSON: {cause}");
                        return Some(Err(ReadError::new(record.line, message)));
                    }
                }
            }
        };
        let event = Event::from_json(&value, &mut self.clock);
        Some(event.map_err(|message| ReadError::new(line, message)))
    }
}

fn about(file: &Value, trace: Option<&Value>) -> About {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let of = |key: &str| trace.and_then(|trace| trace.get(key));
    let common = of("common_fields");
    let group = common.and_then(|common| common.get("group_id").or_else(|| common.get("ODCID")));
    let schema = of("event_schemas").and_then(|schemas| schemas.get(0));
    About {
        format: "",
        schema: text(schema).or_else(|| text(file.get("qlog_version"))),
        title: text(of("title")).or_else(|| text(file.get("title"))),
        vantage_point: text(of("vantage_point").and_then(|point| point.get("type"))),
        group_id: text(group),
        other_traces: 0,
    }
}

fn refuse_compressed(start: &[u8]) -> Result<(), ReadError> {
    let program = match start {
        [0x1f, 0x8b, ..] => "gunzip",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "unzstd",
        _ => return Ok(()),
    };
    let message = format!("the file is compressed: run {program} on it first");
    Err(ReadError::new(1, message))
}

const NOT_QLOG: &str = "not a qlog trace: neither JSON-SEQ nor JSON with a trace in it";

#[cfg(test)]
mod tests;
