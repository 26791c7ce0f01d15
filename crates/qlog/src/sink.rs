//! One connection's trace on its way into a file.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
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
/// lie on one axis. Up to 32 KiB are collected before they are written; once the connection is
/// closed each record is written at once. The first error stops the trace for good
/// and is kept in its [`Outcome`]: the connection goes on without it.
///
/// The sink writes where it is called, so `W` must not wait: memory, or an
/// [`Output`](courser_telemetry::Output) of a
/// [`BackgroundWriter`](courser_telemetry::BackgroundWriter). A `W` that cannot take a buffer now
/// returns [`io::ErrorKind::WouldBlock`]. The records in it are dropped and counted in the
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
    /// Bytes of the buffer that are no records: the head of the trace, the mark of a gap.
    prefix: usize,
    /// Records in the buffer.
    records: u64,
    /// The head of the trace, until it is written.
    head: Vec<u8>,
    /// Records dropped since the last buffer that was written.
    gap: Dropped,
    encoder: Encoder,
    outcome: Outcome,
    last: Time,
    has_failed: bool,
    is_over: bool,
}

/// What became of a trace; clones tell of the same one.
#[derive(Clone, Debug, Default)]
pub struct Outcome(Arc<Fate>);

#[derive(Debug, Default)]
struct Fate {
    error: Mutex<Option<io::Error>>,
    buffers: AtomicU64,
    records: AtomicU64,
    bytes: AtomicU64,
}

/// Records that were dropped because their writer had no room: its queue was full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dropped {
    /// Buffers, each of about 32 KiB.
    pub buffers: u64,
    /// Records in them.
    pub records: u64,
    /// Bytes of these records as text.
    pub bytes: u64,
}

impl Outcome {
    /// Takes the error that stopped the trace, if one did.
    pub fn take_error(&self) -> Option<io::Error> {
        let mut kept = self.0.error.lock().unwrap_or_else(PoisonError::into_inner);
        kept.take()
    }

    /// Returns what was dropped so far.
    pub fn dropped(&self) -> Dropped {
        Dropped {
            buffers: self.0.buffers.load(Ordering::Relaxed),
            records: self.0.records.load(Ordering::Relaxed),
            bytes: self.0.bytes.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn keep(&self, error: io::Error) {
        let mut kept = self.0.error.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(error);
    }

    fn on_dropped(&self, dropped: Dropped) {
        self.0.buffers.fetch_add(dropped.buffers, Ordering::Relaxed);
        self.0.records.fetch_add(dropped.records, Ordering::Relaxed);
        self.0.bytes.fetch_add(dropped.bytes, Ordering::Relaxed);
    }
}

impl<W: Write> QlogSink<W> {
    /// Begins a trace. Nothing is written yet.
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
                self.outcome.keep(error);
            }
        }
    }

    /// Drops what is collected. The next buffer begins with a mark, and repeats the head if it was
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
        // What follows is the goodbye: little, and the process may end right behind it.
        self.is_over |= matches!(record, Record::ConnectionClosed(_));
        if self.is_over || self.buffer.len() >= FLUSH_AT {
            self.flush();
        }
    }
}

impl<W: Write> Drop for QlogSink<W> {
    fn drop(&mut self) {
        self.flush();
        if self.gap.records > 0 {
            // The mark alone is small enough for most queues that have no room for a buffer.
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

/// Some two hundred packets.
const FLUSH_AT: usize = 32 * 1024;
/// One record more than that hardly ever needs the buffer to grow.
const CAPACITY: usize = FLUSH_AT + 4096;

#[cfg(test)]
mod tests;
