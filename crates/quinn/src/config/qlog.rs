//! Traces in the format qlog.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use courser_base::Side;
use courser_qlog::{QlogSink, TraceHeader};
use courser_quic::ConnectionId;
use courser_quic::telemetry::{BackgroundWriter, Sink, SinkFactory};

use crate::unsupported::{note, warn};

/// The output of a trace.
#[derive(Default)]
pub struct QlogConfig {
    writer: Option<Box<dyn Write + Send + Sync>>,
    title: Option<String>,
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

    /// Has no effect: courser's traces have no description.
    pub fn description(&mut self, _description: Option<String>) -> &mut Self {
        note("QlogConfig::description");
        self
    }

    /// Has no effect: times count from the start of the endpoint.
    pub fn start_time(&mut self, _start_time: Instant) -> &mut Self {
        note("QlogConfig::start_time");
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
            thread,
        })))
    }
}

impl fmt::Debug for QlogConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QlogConfig")
            .field("title", &self.title)
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
            ..TraceHeader::new(*original_destination, side)
        };
        let failed = |error| warn(&format!("the trace ends: {error}"));
        let output = self.thread.output(move || Ok(output), failed);
        Some(Box::new(QlogSink::new(output, &header)))
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").finish_non_exhaustive()
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
