//! Writes the trace of one connection.

use std::fmt;
use std::io::{self, Write};

use courser_base::{Side, Time};
use courser_telemetry::{Record, Sink};
use courser_wire::ConnectionId;

use crate::encode::{Encoder, RECORD_SEPARATOR};
use crate::json::object;
use crate::outcome::{Dropped, Outcome};
use crate::schema::{self, Dialect};

/// The contents of the first record of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceHeader {
    /// The Destination Connection ID of the client's first packet. It groups the traces of both
    /// ends.
    pub original_destination: ConnectionId,
    /// The side of the connection that writes the trace.
    pub side: Side,
    /// The title of the file, for tools to show.
    pub title: Option<String>,
    /// What the file is about, for readers.
    pub description: Option<String>,
    /// The name of the host or process.
    pub name: Option<String>,
    /// The date from which times count, in the form of RFC 3339, if it is known. A simulated world
    /// has no date.
    pub wall_clock_time: Option<String>,
    /// The spelling of the events.
    pub dialect: Dialect,
}

impl TraceHeader {
    /// Creates a header without optional fields.
    pub fn new(original_destination: ConnectionId, side: Side) -> Self {
        Self {
            original_destination,
            side,
            title: None,
            description: None,
            name: None,
            wall_clock_time: None,
            dialect: Dialect::default(),
        }
    }

    /// Returns the file name `<original destination ID>_<client or server>.sqlog`, which
    /// quic-events §1.1 recommends.
    pub fn file_name(&self) -> String {
        let id = hex(&self.original_destination);
        format!("{id}_{}.{}", schema::side(self.side), schema::EXTENSION)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(RECORD_SEPARATOR);
        object(out, |file| {
            file.constant("file_schema", schema::FILE_SCHEMA);
            file.constant("serialization_format", schema::SERIALIZATION);
            if let Some(title) = &self.title {
                file.text("title", title);
            }
            if let Some(description) = &self.description {
                file.text("description", description);
            }
            file.object("trace", |trace| {
                trace.object("common_fields", |common| {
                    common.hex("group_id", &self.original_destination);
                    common.constant("time_format", "relative_to_epoch");
                    common.object("reference_time", |time| {
                        // Main-schema §7.1: a monotonic clock has no known epoch.
                        time.constant("clock_type", "monotonic")
                            .constant("epoch", "unknown");
                        if let Some(wall) = &self.wall_clock_time {
                            time.text("wall_clock_time", wall);
                        }
                    });
                });
                trace.object("vantage_point", |point| {
                    if let Some(name) = &self.name {
                        point.text("name", name);
                    }
                    point.constant("type", schema::side(self.side));
                });
                let schemas = [
                    self.dialect.event_schema(),
                    self.dialect.http3_schema(),
                    schema::QPACK_EVENTS,
                    schema::SESSION_EVENTS,
                    schema::OWN_EVENTS,
                ];
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
/// Times are milliseconds of the [`Time`] passed with each record, so that all traces of one
/// driver share a time axis. The sink buffers up to 32 KiB before it writes. Once the connection
/// is closed, it writes each record at once. The first error ends the trace and is kept in its
/// [`Outcome`]. The connection continues without a trace.
///
/// The sink writes on the calling thread, so `W` must not block: use memory, or an
/// [`Output`](courser_telemetry::Output) of a
/// [`BackgroundWriter`](courser_telemetry::BackgroundWriter). A `W` that cannot take a buffer now
/// returns [`io::ErrorKind::WouldBlock`]. The records in that buffer are dropped and counted in the
/// [`Outcome`], and the event `courser:records_dropped` marks the gap in the trace.
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
    /// The number of bytes in the buffer before the first record: the header of the trace, or the
    /// mark of a gap.
    prefix: usize,
    /// The number of records in the buffer.
    records: u64,
    /// The header of the trace, until it is written.
    head: Vec<u8>,
    /// Records dropped since the last buffer was written.
    gap: Dropped,
    encoder: Encoder,
    outcome: Outcome,
    last: Time,
    has_failed: bool,
    is_over: bool,
    /// The size at which the buffer is written.
    flush_at: usize,
}

impl<W: Write> QlogSink<W> {
    /// Begins a trace, without writing anything yet.
    pub fn new(writer: W, header: &TraceHeader) -> Self {
        let mut head = Vec::new();
        header.write(&mut head);
        let mut buffer = Vec::with_capacity(CAPACITY);
        buffer.extend_from_slice(&head);
        Self {
            writer,
            prefix: buffer.len(),
            buffer,
            records: 0,
            head,
            gap: Dropped::default(),
            encoder: Encoder::new(header.dialect),
            outcome: Outcome::default(),
            last: Time::ZERO,
            has_failed: false,
            is_over: false,
            flush_at: FLUSH_AT,
        }
    }

    /// Writes each record at once, for a reader that follows the trace. `W` should be cheap to write to.
    #[must_use]
    pub fn unbuffered(mut self) -> Self {
        self.flush_at = 0;
        self
    }

    /// Reports errors and drops to `outcome`, which several traces may share.
    #[must_use]
    pub fn with_outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }

    /// Returns the errors and drops of the trace.
    pub fn outcome(&self) -> Outcome {
        self.outcome.clone()
    }

    /// Writes the buffer. An error ends the trace; a full queue drops the buffer.
    fn flush(&mut self) {
        if self.has_failed || self.buffer.is_empty() {
            return;
        }
        let written = self.writer.write_all(&self.buffer);
        match written.and_then(|()| self.writer.flush()) {
            Ok(()) => {
                self.head = Vec::new();
                self.gap = Dropped::default();
                self.buffer.clear();
                self.prefix = 0;
                self.records = 0;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.drop_buffer(),
            Err(error) => {
                self.has_failed = true;
                self.buffer = Vec::new();
                self.outcome.set_error(error);
            }
        }
    }

    /// Drops the buffer. The next one begins with the mark of a gap, after the header if that was
    /// not written yet.
    fn drop_buffer(&mut self) {
        if self.records > 0 {
            let dropped = Dropped {
                buffers: 1,
                records: self.records,
                bytes: (self.buffer.len() - self.prefix) as u64,
            };
            self.outcome.on_dropped(dropped);
            self.gap.buffers += dropped.buffers;
            self.gap.records += dropped.records;
            self.gap.bytes += dropped.bytes;
        }
        self.buffer.clear();
        self.buffer.extend_from_slice(&self.head);
        if self.gap.records > 0 {
            self.encoder.gap(&mut self.buffer, self.last, self.gap);
        }
        self.prefix = self.buffer.len();
        self.records = 0;
    }
}

impl<W: Write + Send> Sink for QlogSink<W> {
    fn record(&mut self, now: Time, record: &Record) {
        if self.has_failed {
            return;
        }
        self.encoder.encode(&mut self.buffer, now, record);
        self.records += 1;
        self.last = now;
        // Few records follow a close, and the process may end right after them.
        self.is_over |= matches!(record, Record::ConnectionClosed(_));
        if self.is_over || self.buffer.len() >= self.flush_at {
            self.flush();
        }
    }
}

impl<W: Write> Drop for QlogSink<W> {
    fn drop(&mut self) {
        self.flush();
        if self.gap.records > 0 {
            // The mark alone fits into most queues that have no room for a whole buffer.
            self.flush();
        }
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

/// The size at which a buffer is written; about two hundred packets.
const FLUSH_AT: usize = 32 * 1024;
/// The capacity of the buffer. A record beyond `FLUSH_AT` rarely makes it grow.
const CAPACITY: usize = FLUSH_AT + 4096;

#[cfg(test)]
mod tests;
