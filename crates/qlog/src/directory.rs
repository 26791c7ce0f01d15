//! A directory with one trace for each connection.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use courser_base::Side;
use courser_telemetry::{BackgroundWriter, Sink, SinkFactory};
use courser_wire::ConnectionId;

use crate::schema::Dialect;
use crate::sink::{Dropped, Outcome, QlogSink, TraceHeader};

/// Writes the trace of each connection into a file of its own,
/// `<original destination ID>_<client or server>.sqlog`.
///
/// Put it into `TransportConfig::sinks`. A file that cannot be made or written costs the trace,
/// never the connection; [`QlogDirectory::take_error`] tells. Each connection holds a file open
/// for its lifetime, which counts towards the limit of the process. An old file of the same name
/// is overwritten.
///
/// A thread of its own opens and writes the files, so that no packet waits for a disk. When the
/// disk is too slow for the queue, records are dropped, marked in the trace and counted in
/// [`QlogDirectory::dropped`]. Call [`QlogDirectory::flush`] before the process ends.
#[derive(Debug)]
pub struct QlogDirectory {
    path: PathBuf,
    dialect: Dialect,
    title: Option<String>,
    wall_clock_time: Option<String>,
    outcome: Outcome,
    traces: Arc<AtomicU64>,
    /// `None` writes where records are made.
    writer: Option<BackgroundWriter>,
}

impl QlogDirectory {
    /// Traces go to `path`, which is made with its parents if it does not exist.
    ///
    /// # Errors
    /// When `path` cannot be made, or is a file, or the system has no thread left.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        fs::create_dir_all(&path)?;
        Ok(Self {
            path,
            dialect: Dialect::default(),
            title: None,
            wall_clock_time: None,
            outcome: Outcome::default(),
            traces: Arc::default(),
            writer: Some(BackgroundWriter::new("qlog")?),
        })
    }

    /// Writes where records are made, without a thread. No record is dropped, and everything waits
    /// for the disk: for simulators, where time stands still meanwhile.
    #[must_use]
    pub fn synchronous(mut self) -> Self {
        self.writer = None;
        self
    }

    /// Spells the events differently.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Sets the title of all traces.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Says when times count from, in the form of RFC 3339.
    #[must_use]
    pub fn wall_clock_time(mut self, time: impl Into<String>) -> Self {
        self.wall_clock_time = Some(time.into());
        self
    }

    /// Where traces go.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of files created.
    pub fn traces(&self) -> u64 {
        self.traces.load(Ordering::Relaxed)
    }

    /// Takes the first error since the last call, of whichever trace.
    pub fn take_error(&self) -> Option<io::Error> {
        self.outcome.take_error()
    }

    /// Returns how many records of all traces were dropped because the disk was too slow.
    pub fn dropped(&self) -> Dropped {
        self.outcome.dropped()
    }

    /// Waits until what was handed over so far is on its way to the disk, at most for 5 seconds.
    /// Returns false when that was too short. Connections that are open keep up to 32 KiB more.
    ///
    /// Blocks the thread: call it when there is nothing left to do.
    pub fn flush(&self) -> bool {
        let written = |writer: &BackgroundWriter| writer.flush(FLUSH_WITHIN);
        self.writer.as_ref().is_none_or(written)
    }
}

impl SinkFactory for QlogDirectory {
    fn sink(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        let header = TraceHeader {
            title: self.title.clone(),
            wall_clock_time: self.wall_clock_time.clone(),
            dialect: self.dialect,
            ..TraceHeader::new(*original_destination, side)
        };
        let path = self.path.join(header.file_name());
        let traces = self.traces.clone();
        let open = move || {
            let file = File::create(path)?;
            traces.fetch_add(1, Ordering::Relaxed);
            Ok(file)
        };
        let outcome = self.outcome.clone();
        let Some(writer) = &self.writer else {
            return match open() {
                Ok(file) => Some(Box::new(QlogSink::new(file, &header).with_outcome(outcome))),
                Err(error) => {
                    outcome.keep(error);
                    None
                }
            };
        };
        let failed = outcome.clone();
        let output = writer.output(open, move |error| failed.keep(error));
        Some(Box::new(
            QlogSink::new(output, &header).with_outcome(outcome),
        ))
    }
}

/// A disk that stands does not keep a process from ending.
const FLUSH_WITHIN: Duration = Duration::from_secs(5);
