//! Reads traces of courser and other stacks, event by event.

mod error;
mod plain;
mod records;
mod scanner;

use std::io::BufRead;

use serde_json::{Map, Value};

use self::error::NOT_QLOG;
use self::plain::{Head, Plain};
use self::records::{Delimiter, Records};
use self::scanner::Scanner;
use super::event::{Clock, Columns, Event, RawEvent};

pub use self::error::ReadError;
pub use self::records::MAX_RECORD;

/// Reads a qlog trace, of the current drafts or of older ones.
///
/// The input is JSON-SEQ (`.sqlog`), one JSON object per line, or one JSON file (`.qlog`). Event
/// names and fields are those of qlog 0.1, whose events are arrays, up to main-schema-14.
///
/// Reading takes memory for one event at a time, however long the file is. Events longer than
/// [`MAX_RECORD`] are reported and skipped, as are lines that are not JSON or not events. A file
/// that ends too early is read up to there; its end is reported.
///
/// ```
/// use courser_trace::qlog::{EventKind, Reader};
///
/// let trace = concat!(
///     "\u{1e}{\"qlog_version\":\"0.3\",\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n",
///     "\u{1e}{\"time\":1,\"name\":\"recovery:metrics_updated\",\"data\":{\"latest_rtt\":20}}\n",
/// );
/// let mut reader = Reader::new(trace.as_bytes())?;
/// assert_eq!(reader.about().vantage_point.as_deref(), Some("client"));
/// let event = reader.next().expect("one event")?;
/// assert!(matches!(event.kind, EventKind::Metrics(metrics) if metrics.latest_rtt == Some(0.02)));
/// # Ok::<(), courser_trace::qlog::ReadError>(())
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    about: About,
    common: Map<String, Value>,
    clock: Clock,
    columns: Columns,
    source: Source<R>,
}

#[derive(Debug)]
enum Source<R> {
    Records(Records<R>),
    Plain(Box<Plain<R>>),
    /// The input has ended or failed. No more events follow.
    Ended,
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
        let mut scanner = Scanner::new(input);
        let delimiter = match scanner.peek()? {
            None => return Err(ReadError::new(1, "the file is empty")),
            Some(records::RECORD_SEPARATOR) => {
                scanner.expect(records::RECORD_SEPARATOR)?;
                Delimiter::RecordSeparator
            }
            Some(b'{') => Delimiter::LineFeed,
            Some(_) => return Err(ReadError::new(1, NOT_QLOG)),
        };
        if scanner.peek()? != Some(b'{') {
            return Err(ReadError::new(1, NOT_QLOG));
        }
        Ok(match plain::head(scanner)? {
            Head::Sequence(file, scanner) => {
                let line = scanner.line();
                let records = Records::new(scanner.into_inner(), delimiter, line);
                let trace = file.get("trace");
                let mut about = about(&file, trace);
                about.format = records.format();
                Self {
                    about,
                    common: common_fields(trace),
                    clock: Clock::new(trace),
                    columns: Columns::new(trace),
                    source: Source::Records(records),
                }
            }
            Head::Plain(plain) => {
                let (_, trace) = plain.about();
                let mut reader = Self {
                    about: About::default(),
                    common: Map::new(),
                    clock: Clock::new(Some(&trace)),
                    columns: Columns::new(Some(&trace)),
                    source: Source::Plain(plain),
                };
                reader.describe();
                reader
            }
        })
    }

    /// Returns the header of the trace. Parts of a plain file that follow its events are known
    /// after the last event only.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Returns the fields that all events have in common, as JSON. In a plain file they may follow the
    /// events, as the header does that [`about`](Self::about) returns.
    pub fn common_fields(&self) -> &Map<String, Value> {
        &self.common
    }

    /// Returns the time of the first event in seconds, counted from the reference time of the trace. `None`
    /// before that event was read.
    pub fn first_time(&self) -> Option<f64> {
        self.clock.first()
    }

    /// Updates the header from the fields of a plain file that were read so far.
    fn describe(&mut self) {
        if let Source::Plain(plain) = &self.source {
            let (file, trace) = plain.about();
            self.about = about(&file, Some(&trace));
            self.common = common_fields(Some(&trace));
            self.about.format = "JSON";
            self.about.other_traces = plain.other_traces();
        }
    }

    /// Returns an error if the fields that describe the events of a plain file follow the events.
    fn late_header(&self) -> Option<ReadError> {
        let Source::Plain(plain) = &self.source else {
            return None;
        };
        let (_, trace) = plain.about();
        let is_late = !Clock::new(Some(&trace)).agrees(&self.clock)
            || Columns::new(Some(&trace)) != self.columns;
        is_late.then(|| {
            let message = "the fields that define the unit of times or the columns of events follow \
                           the events, which were read without them";
            ReadError::new(plain.events(), message)
        })
    }

    /// Returns the next event, whose data is not decoded.
    pub fn next_raw(&mut self) -> Option<Result<RawEvent, ReadError>> {
        let next = match &mut self.source {
            Source::Ended => return None,
            Source::Plain(plain) => plain.next(),
            Source::Records(records) => {
                let next = records.next();
                if records.is_broken() {
                    self.source = Source::Ended;
                }
                next.map(|next| next.map(|record| (record.line, record.bytes)))
            }
        };
        if next.is_none() {
            self.describe();
            let late = self.late_header();
            self.source = Source::Ended;
            if let Some(error) = late {
                return Some(Err(error));
            }
        }
        let (line, text) = match next? {
            Ok(found) => found,
            Err(error) => return Some(Err(error)),
        };
        let value = match serde_json::from_slice(&text) {
            // Only plain files have events that are arrays: sequences of records were specified later.
            Ok(value) if matches!(self.source, Source::Records(_)) => value,
            Ok(value) => self.columns.object(value),
            Err(error) => {
                // The line in its text counts from the start of the record.
                let text = error.to_string();
                let cause = text.split(" at line ").next().unwrap_or_default();
                let message = format!("not JSON: {cause}");
                return Some(Err(ReadError::new(line, message)));
            }
        };
        let event = RawEvent::from_json(line, value, &mut self.clock);
        Some(event.map_err(|message| ReadError::new(line, message)))
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let event = self.next_raw()?;
        Some(event.map(|event| Event::from(&event)))
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

fn common_fields(trace: Option<&Value>) -> Map<String, Value> {
    let fields = trace.and_then(|trace| trace.get("common_fields")?.as_object());
    fields.cloned().unwrap_or_default()
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

#[cfg(test)]
mod tests;
