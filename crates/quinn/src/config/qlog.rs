//! Traces in the format qlog.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use courser_base::{Side, Time};
use courser_qlog::{QlogSink, TraceHeader};
use courser_quic::ConnectionId;
use courser_quic::telemetry::{BackgroundWriter, Detail, Record, Sink, SinkFactory};

use crate::unsupported::warn;

/// The output of a trace.
#[derive(Default)]
pub struct QlogConfig {
    writer: Option<Box<dyn Write + Send + Sync>>,
    title: Option<String>,
    description: Option<String>,
    start_time: Option<Instant>,
}

impl QlogConfig {
    /// Sets where the trace is written to, by a thread of its own.
    pub fn writer(&mut self, writer: Box<dyn Write + Send + Sync>) -> &mut Self {
        self.writer = Some(writer);
        self
    }

    /// Sets the title of the trace.
    pub fn title(&mut self, title: Option<String>) -> &mut Self {
        self.title = title;
        self
    }

    /// Sets the description of the trace.
    pub fn description(&mut self, description: Option<String>) -> &mut Self {
        self.description = description;
        self
    }

    /// Sets the time from which those of the trace count; earlier ones are 0. Unless it is set, the start of the
    /// runtime's clock.
    pub fn start_time(&mut self, start_time: Instant) -> &mut Self {
        self.start_time = Some(start_time);
        self
    }

    /// Returns the trace; `None` without a writer, or if no thread can be started.
    pub fn into_stream(self) -> Option<QlogStream> {
        let output = self.writer?;
        let thread = BackgroundWriter::new("qlog")
            .inspect_err(|error| warn(&format!("there is no trace: {error}")))
            .ok()?;
        Some(QlogStream(Arc::new(Trace {
            output: Mutex::new(Some(output)),
            title: self.title,
            description: self.description,
            start_time: self.start_time,
            thread,
        })))
    }
}

impl fmt::Debug for QlogConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QlogConfig")
            .field("title", &self.title)
            .field("description", &self.description)
            .field("start_time", &self.start_time)
            .finish_non_exhaustive()
    }
}

/// A trace, for the first connection that begins with its settings: a file in the format has one. Set
/// another one for each connection, or use courser's own directory of traces.
#[derive(Clone, Debug)]
pub struct QlogStream(Arc<Trace>);

struct Trace {
    /// Taken by the connection that is recorded.
    output: Mutex<Option<Box<dyn Write + Send + Sync>>>,
    title: Option<String>,
    description: Option<String>,
    start_time: Option<Instant>,
    thread: BackgroundWriter,
}

impl QlogStream {
    /// Returns a factory for courser.
    pub(super) fn sinks(&self) -> Arc<dyn SinkFactory> {
        self.0.clone()
    }
}

impl SinkFactory for Trace {
    fn sink(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let output = Opened(output.take()?);
        let header = TraceHeader {
            title: self.title.clone(),
            description: self.description.clone(),
            ..TraceHeader::new(*original_destination, side)
        };
        let failed = |error| warn(&format!("the trace ends: {error}"));
        let output = self.thread.output(move || Ok(output), failed);
        let sink = QlogSink::new(output, &header);
        Some(match self.start_time {
            None => Box::new(sink),
            Some(start_time) => Box::new(Shifted {
                sink,
                start: Start::At(start_time),
            }),
        })
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").finish_non_exhaustive()
    }
}

/// A trace whose times count from a time of the program.
struct Shifted<S> {
    sink: S,
    start: Start,
}

/// The time from which those of a trace count.
#[derive(Clone, Copy)]
enum Start {
    /// Given by the program. The first record shows what the clock of courser shows at the same time.
    At(Instant),
    /// On the clock of courser, in nanoseconds: negative before the start of that clock.
    Known(i128),
}

impl<S: Sink> Sink for Shifted<S> {
    fn record(&mut self, now: Time, record: &Record) {
        let time = i128::from(now.as_nanos());
        let start = match self.start {
            Start::Known(start) => start,
            Start::At(start) => {
                let present = Instant::now();
                let since = present.saturating_duration_since(start).as_nanos();
                let until = start.saturating_duration_since(present).as_nanos();
                let nanos = |time: u128| i128::try_from(time).unwrap_or(i128::MAX / 2);
                time - nanos(since) + nanos(until)
            }
        };
        self.start = Start::Known(start);
        let shifted = u64::try_from((time - start).max(0)).unwrap_or(u64::MAX);
        self.sink
            .record(Time::ZERO + Duration::from_nanos(shifted), record);
    }

    fn detail(&self) -> Detail {
        self.sink.detail()
    }
}

/// The writer of the program, flushed after each piece that the thread writes.
struct Opened(Box<dyn Write + Send + Sync>);

impl Write for Opened {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes)?;
        self.0.flush()?;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
