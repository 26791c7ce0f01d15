//! Reads the events of a plain JSON file one by one.

use std::io::BufRead;

use serde_json::{Map, Value};

use super::error::{NOT_QLOG, ReadError};
use super::records::MAX_RECORD;
use super::scanner::{Position, Scanner};

/// The beginning of a file: an object with the key `trace` or `traces`.
#[derive(Debug)]
pub(super) enum Head<R> {
    /// The header of a sequence of records, with its key `trace`. The records follow.
    Sequence(Value, Scanner<R>),
    /// A plain file, up to the first event.
    Plain(Box<Plain<R>>),
}

/// A plain file: an object with one or several traces.
#[derive(Debug)]
pub(super) struct Plain<R> {
    scanner: Scanner<R>,
    /// The fields of the file that describe it, as far as they were read.
    file: Map<String, Value>,
    /// The fields of the trace that describe it, as far as they were read.
    trace: Map<String, Value>,
    /// The positions in the array of events, in the trace, in the array of traces, and in the file.
    events: Position,
    in_trace: Position,
    in_traces: Position,
    in_file: Position,
    /// The number of events read.
    read: u64,
    /// The number of traces after the first one with events.
    other_traces: usize,
    is_over: bool,
}

/// Reads up to the first event.
pub(super) fn head<R: BufRead>(mut scanner: Scanner<R>) -> Result<Head<R>, ReadError> {
    scanner.expect(b'{')?;
    let mut in_file = Position::First;
    let mut file = Map::new();
    loop {
        let Some(key) = scanner.key(&mut in_file)? else {
            return match file.contains_key("trace") {
                true => Ok(Head::Sequence(Value::Object(file), scanner)),
                false => Err(ReadError::new(1, NOT_QLOG)),
            };
        };
        if key == "traces" && scanner.peek()? == Some(b'[') {
            scanner.expect(b'[')?;
            let mut plain = Box::new(Plain {
                scanner,
                file,
                trace: Map::new(),
                events: Position::First,
                in_trace: Position::First,
                in_traces: Position::First,
                in_file,
                read: 0,
                other_traces: 0,
                is_over: false,
            });
            plain.open()?;
            return Ok(Head::Plain(plain));
        }
        read_value(&mut scanner, key, FILE_KEYS, &mut file)?;
    }
}

/// Reads a value, and adds it to `kept` if `keys` contains its key.
fn read_value<R: BufRead>(
    scanner: &mut Scanner<R>,
    key: String,
    keys: &[&str],
    kept: &mut Map<String, Value>,
) -> Result<(), ReadError> {
    if !keys.contains(&key.as_str()) {
        scanner.value(None, 0)?;
        return Ok(());
    }
    let mut text = Vec::new();
    let line = scanner.line();
    if scanner.value(Some(&mut text), MAX_FIELD)? > MAX_FIELD {
        let message = format!("the header field {key} is longer than {MAX_FIELD} bytes");
        return Err(ReadError::new(line, message));
    }
    let value = serde_json::from_slice(&text).map_err(|error| {
        let cause = error.to_string();
        let cause = cause.split(" at line ").next().unwrap_or_default();
        ReadError::new(
            line,
            format!("the header of the trace is not JSON: {cause}"),
        )
    })?;
    kept.insert(key, value);
    Ok(())
}

impl<R: BufRead> Plain<R> {
    /// Returns the file with its first trace, as far as they were read.
    pub(super) fn about(&self) -> (Value, Value) {
        (
            Value::Object(self.file.clone()),
            Value::Object(self.trace.clone()),
        )
    }

    /// Returns the number of events read.
    pub(super) fn events(&self) -> u64 {
        self.read
    }

    /// Returns the number of other traces, as far as the file was read.
    pub(super) fn other_traces(&self) -> usize {
        self.other_traces
    }

    /// Enters the array of events of the first trace that has one.
    fn open(&mut self) -> Result<(), ReadError> {
        while self.scanner.item(&mut self.in_traces)? {
            if self.scanner.peek()? != Some(b'{') {
                self.scanner.value(None, 0)?;
                self.other_traces += 1;
                continue;
            }
            self.scanner.expect(b'{')?;
            self.trace.clear();
            self.in_trace = Position::First;
            while let Some(key) = self.scanner.key(&mut self.in_trace)? {
                if key == "events" && self.scanner.peek()? == Some(b'[') {
                    return self.scanner.expect(b'[');
                }
                read_value(&mut self.scanner, key, TRACE_KEYS, &mut self.trace)?;
            }
            self.other_traces += 1;
        }
        Err(ReadError::new(
            self.scanner.line(),
            "the file has no trace with events",
        ))
    }

    /// Returns the number and the text of the next event.
    pub(super) fn next(&mut self) -> Option<Result<(u64, Vec<u8>), ReadError>> {
        if self.is_over {
            return None;
        }
        match self.step() {
            Ok(Some(text)) => Some(Ok((self.read, text))),
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }

    fn step(&mut self) -> Result<Option<Vec<u8>>, ReadError> {
        let more = self.scanner.item(&mut self.events);
        if !more.inspect_err(|_| self.is_over = true)? {
            self.is_over = true;
            return self.close().map(|()| None);
        }
        self.read += 1;
        let mut text = Vec::new();
        let len = self.scanner.value(Some(&mut text), MAX_RECORD);
        let len = len.inspect_err(|_| self.is_over = true)?;
        if len > MAX_RECORD {
            let message =
                format!("an event of {len} bytes is longer than the limit of {MAX_RECORD}");
            return Err(ReadError::new(self.read, message));
        }
        Ok(Some(text))
    }

    /// Reads the fields and traces that follow the events.
    fn close(&mut self) -> Result<(), ReadError> {
        while let Some(key) = self.scanner.key(&mut self.in_trace)? {
            read_value(&mut self.scanner, key, TRACE_KEYS, &mut self.trace)?;
        }
        while self.scanner.item(&mut self.in_traces)? {
            self.scanner.value(None, 0)?;
            self.other_traces += 1;
        }
        while let Some(key) = self.scanner.key(&mut self.in_file)? {
            read_value(&mut self.scanner, key, FILE_KEYS, &mut self.file)?;
        }
        Ok(())
    }
}

/// The fields of a file that describe it.
const FILE_KEYS: &[&str] = &["qlog_version", "file_schema", "title", "trace"];
/// The fields of a trace that describe it.
const TRACE_KEYS: &[&str] = &[
    "title",
    "vantage_point",
    "common_fields",
    "configuration",
    "event_fields",
    "event_schemas",
];
/// The longest field of a header in bytes. K76.
const MAX_FIELD: usize = 256 << 10;
