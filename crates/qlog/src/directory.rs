//! A directory with one trace for each connection.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use courser_base::Side;
use courser_telemetry::{Sink, SinkFactory};
use courser_wire::ConnectionId;

use crate::schema::Dialect;
use crate::sink::{Outcome, QlogSink, TraceHeader};

/// Writes the trace of each connection into a file of its own,
/// `<original destination ID>_<client or server>.sqlog`.
///
/// Put it into `TransportConfig::sinks`. A file that cannot be made or written costs the trace,
/// never the connection; [`QlogDirectory::take_error`] tells. Each connection holds a file open
/// for its lifetime, which counts towards the limit of the process. An old file of the same name
/// is overwritten.
#[derive(Debug)]
pub struct QlogDirectory {
    path: PathBuf,
    dialect: Dialect,
    title: Option<String>,
    wall_clock_time: Option<String>,
    outcome: Outcome,
    traces: AtomicU64,
}

impl QlogDirectory {
    /// Traces go to `path`, which is made with its parents if it does not exist.
    ///
    /// # Errors
    /// When `path` cannot be made, or is a file.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        fs::create_dir_all(&path)?;
        Ok(Self {
            path,
            dialect: Dialect::default(),
            title: None,
            wall_clock_time: None,
            outcome: Outcome::default(),
            traces: AtomicU64::new(0),
        })
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

    /// How many traces were begun.
    pub fn traces(&self) -> u64 {
        self.traces.load(Ordering::Relaxed)
    }

    /// Takes the first error since the last call, of whichever trace.
    pub fn take_error(&self) -> Option<io::Error> {
        self.outcome.take_error()
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
        match File::create(self.path.join(header.file_name())) {
            Ok(file) => {
                self.traces.fetch_add(1, Ordering::Relaxed);
                let sink = QlogSink::new(file, &header).with_outcome(self.outcome.clone());
                Some(Box::new(sink))
            }
            Err(error) => {
                self.outcome.keep(error);
                None
            }
        }
    }
}
