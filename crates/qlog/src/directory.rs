//! A directory with one trace for each connection.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use courser_base::Side;
use courser_telemetry::{BackgroundWriter, Sink, SinkFactory};
use courser_wire::ConnectionId;

use crate::outcome::{Dropped, Outcome};
use crate::schema::Dialect;
use crate::sink::{QlogSink, TraceHeader};

/// Writes the trace of each connection into a file of its own,
/// `<original destination ID>_<client or server>.sqlog`.
///
/// Set it as `TransportConfig::sinks`. If a file cannot be created or written, its trace ends but
/// the connection continues. [`QlogDirectory::take_error`] returns the error. Each connection keeps
/// one file open for its lifetime, which counts towards the limit of the process. An existing file
/// of the same name is overwritten.
///
/// A background thread opens and writes the files, so that no packet waits for a disk. If the disk
/// is too slow, records are dropped, marked in the trace and counted in
/// [`QlogDirectory::dropped`]. Call [`QlogDirectory::flush`] before the process ends.
#[derive(Debug)]
pub struct QlogDirectory {
    path: PathBuf,
    dialect: Dialect,
    title: Option<String>,
    wall_clock_time: Option<String>,
    outcome: Outcome,
    traces: Arc<AtomicU64>,
    /// `None` writes on the thread that makes the records.
    writer: Option<BackgroundWriter>,
}

impl QlogDirectory {
    /// Writes traces to `path`, which is created with its parents if it does not exist.
    ///
    /// # Errors
    /// Fails if `path` cannot be created or is a file, or if no thread can be started.
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

    /// Writes on the thread that makes the records, without a background thread.
    ///
    /// No record is dropped, but each write waits for the disk. This suits simulators, where time
    /// stands still meanwhile.
    #[must_use]
    pub fn synchronous(mut self) -> Self {
        self.writer = None;
        self
    }

    /// Sets the spelling of the events.
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

    /// Sets the date from which times count, in the form of RFC 3339.
    #[must_use]
    pub fn wall_clock_time(mut self, time: impl Into<String>) -> Self {
        self.wall_clock_time = Some(time.into());
        self
    }

    /// Returns the directory of the traces.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of files created.
    pub fn traces(&self) -> u64 {
        self.traces.load(Ordering::Relaxed)
    }

    /// Takes the first error of any trace since the last call.
    pub fn take_error(&self) -> Option<io::Error> {
        self.outcome.take_error()
    }

    /// Returns the number of records of all traces dropped because the disk was too slow.
    pub fn dropped(&self) -> Dropped {
        self.outcome.dropped()
    }

    /// Waits until all queued records are written, for at most 5 seconds.
    ///
    /// Returns false if 5 seconds were too short. Each open connection still buffers up to 32 KiB.
    /// The call blocks its thread, so make it after all other work.
    pub fn flush(&self) -> bool {
        let written = |writer: &BackgroundWriter| writer.flush(FLUSH_WITHIN);
        self.writer.as_ref().is_none_or(written)
    }
}

/// Lets only the owner read a new trace, because it has the addresses of clients and the fields of requests.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
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
            let file =
                private(File::options().write(true).create(true).truncate(true)).open(path)?;
            traces.fetch_add(1, Ordering::Relaxed);
            Ok(file)
        };
        let outcome = self.outcome.clone();
        let Some(writer) = &self.writer else {
            return match open() {
                Ok(file) => Some(Box::new(QlogSink::new(file, &header).with_outcome(outcome))),
                Err(error) => {
                    outcome.set_error(error);
                    None
                }
            };
        };
        let failed = outcome.clone();
        let output = writer.output(open, move |error| failed.set_error(error));
        Some(Box::new(
            QlogSink::new(output, &header).with_outcome(outcome),
        ))
    }
}

/// The longest wait in `flush`, so that a stalled disk does not keep a process from exiting.
const FLUSH_WITHIN: Duration = Duration::from_secs(5);
