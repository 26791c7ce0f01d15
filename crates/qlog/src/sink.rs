//! One connection's trace on its way into a file.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use courser_base::{Side, Time};
use courser_telemetry::{Record, Sink};
use courser_wire::ConnectionId;

use crate::encode::{Encoder, RECORD_SEPARATOR};
use crate::json::object;
use crate::schema::{self, Dialect};

/// What the first record of a trace says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceHeader {
    /// Destination ID of the client's first packet; groups the traces of both ends.
    pub original_destination: ConnectionId,
    /// Our end of the connection.
    pub side: Side,
    /// What the file is called in tools.
    pub title: Option<String>,
    /// Name of the host or process.
    pub name: Option<String>,
    /// When times count from, RFC 3339, where that is known. A simulated world has no date.
    pub wall_clock_time: Option<String>,
    /// Whose spelling is used.
    pub dialect: Dialect,
}

impl TraceHeader {
    /// A header with nothing but what it needs.
    pub fn new(original_destination: ConnectionId, side: Side) -> Self {
        Self {
            original_destination,
            side,
            title: None,
            name: None,
            wall_clock_time: None,
            dialect: Dialect::default(),
        }
    }

    /// The name of the file: `<original destination ID>_<client or server>.sqlog`, as
    /// quic-events §1.1 recommends.
    pub fn file_name(&self) -> String {
        let id = hex(&self.original_destination);
        format!("{id}_{}.{}", schema::side(self.side), schema::EXTENSION)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(RECORD_SEPARATOR);
        object(out, |file| {
            file.word("file_schema", schema::FILE_SCHEMA);
            file.word("serialization_format", schema::SERIALIZATION);
            if let Some(title) = &self.title {
                file.text("title", title);
            }
            file.object("trace", |trace| {
                trace.object("common_fields", |common| {
                    common.hex("group_id", &self.original_destination);
                    common.word("time_format", "relative_to_epoch");
                    common.object("reference_time", |time| {
                        // Main-schema §7.1: a monotonic clock has no known epoch.
                        time.word("clock_type", "monotonic")
                            .word("epoch", "unknown");
                        if let Some(wall) = &self.wall_clock_time {
                            time.text("wall_clock_time", wall);
                        }
                    });
                });
                trace.object("vantage_point", |point| {
                    if let Some(name) = &self.name {
                        point.text("name", name);
                    }
                    point.word("type", schema::side(self.side));
                });
                let schemas = [self.dialect.event_schema(), schema::OWN_EVENTS];
                trace.array("event_schemas", schemas, |out, schema| {
                    out.push(b'"');
                    out.extend_from_slice(schema.as_bytes());
                    out.push(b'"');
                });
            });
        });
        out.push(b'\n');
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes the records of one connection as a qlog trace (JSON-SEQ).
///
/// Times are milliseconds of the [`Time`] that records come with, so that traces of one driver
/// lie on one axis. Up to 32 KiB are collected before they are written; the rest follows when
/// the connection closes and when the sink is dropped. The first error stops the trace for good
/// and is kept in its [`Outcome`]: the connection goes on without it.
///
/// ```
/// use courser_base::Side;
/// use courser_qlog::{QlogSink, TraceHeader};
///
/// let header = TraceHeader::new(courser_wire::ConnectionId::EMPTY, Side::Client);
/// let mut file = Vec::new();
/// drop(QlogSink::new(&mut file, &header));
/// assert!(file.starts_with(b"\x1e{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\""));
/// ```
pub struct QlogSink<W: Write> {
    writer: W,
    buffer: Vec<u8>,
    encoder: Encoder,
    outcome: Outcome,
    has_failed: bool,
}

/// What became of a trace; clones tell of the same one.
#[derive(Clone, Debug, Default)]
pub struct Outcome(Arc<Mutex<Option<io::Error>>>);

impl Outcome {
    /// Takes the error that stopped the trace, if one did.
    pub fn take_error(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn keep(&self, error: io::Error) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(error);
    }
}

impl<W: Write> QlogSink<W> {
    /// Begins a trace. Nothing is written yet.
    pub fn new(writer: W, header: &TraceHeader) -> Self {
        let mut buffer = Vec::with_capacity(CAPACITY);
        header.write(&mut buffer);
        Self {
            writer,
            buffer,
            encoder: Encoder::new(header.dialect),
            outcome: Outcome::default(),
            has_failed: false,
        }
    }

    /// Lets `outcome` tell what becomes of the trace; several traces may share one.
    #[must_use]
    pub fn with_outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }

    /// What becomes of the trace.
    pub fn outcome(&self) -> Outcome {
        self.outcome.clone()
    }

    /// Hands over everything collected.
    fn flush(&mut self) {
        if self.has_failed {
            return;
        }
        let written = self.writer.write_all(&self.buffer);
        self.buffer.clear();
        if let Err(error) = written.and_then(|()| self.writer.flush()) {
            self.has_failed = true;
            self.buffer = Vec::new();
            self.outcome.keep(error);
        }
    }
}

impl<W: Write + Send> Sink for QlogSink<W> {
    fn record(&mut self, now: Time, record: &Record) {
        if self.has_failed {
            return;
        }
        self.encoder.encode(&mut self.buffer, now, record);
        let is_over = matches!(record, Record::ConnectionClosed(_));
        if is_over || self.buffer.len() >= FLUSH_AT {
            self.flush();
        }
    }
}

impl<W: Write> Drop for QlogSink<W> {
    fn drop(&mut self) {
        self.flush();
    }
}

impl<W: Write> fmt::Debug for QlogSink<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QlogSink")
            .field("encoder", &self.encoder)
            .field("has_failed", &self.has_failed)
            .finish_non_exhaustive()
    }
}

/// Some two hundred packets.
const FLUSH_AT: usize = 32 * 1024;
/// One record more than that hardly ever needs the buffer to grow.
const CAPACITY: usize = FLUSH_AT + 4096;

#[cfg(test)]
mod tests;
