//! Traces and key logs of a process.

use std::path::Path;
use std::sync::Arc;

use courser::QueuedKeyLog;
use courser::telemetry::SinkFactory;
use courser_base::Mutex;
use courser_qlog::QlogDirectory;

use crate::failure::Failure;

/// The traces and the key log of a process.
///
/// Background threads write them, so that packets do not wait for a disk. If the disk is too slow, records
/// are dropped, which [`gaps`](Self::gaps) reports.
#[derive(Debug, Default)]
pub struct Records(Mutex<Vec<Arc<QlogDirectory>>>);

impl Records {
    /// Creates records without a directory for traces.
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Creates a directory for traces.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be created.
    pub fn traces(&self, path: &Path, title: Option<&str>) -> Result<Arc<QlogDirectory>, Failure> {
        let mut directory = QlogDirectory::create(path).map_err(|error| {
            let path = path.display();
            Failure::new(format!("cannot write traces to {path}: {error}"))
        })?;
        if let Some(title) = title {
            directory = directory.title(title);
        }
        let directory = Arc::new(directory);
        self.0.lock().push(directory.clone());
        Ok(directory)
    }

    /// Creates a directory for traces if `path` is given, and returns it as a factory of sinks.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be created.
    pub fn sinks(
        &self,
        path: Option<&Path>,
        title: &str,
    ) -> Result<Option<Arc<dyn SinkFactory>>, Failure> {
        let Some(path) = path else {
            return Ok(None);
        };
        let traces = self.traces(path, Some(title))?;
        Ok(Some(traces as Arc<dyn SinkFactory>))
    }

    /// Returns a warning if records or lines of the key log were dropped.
    pub fn gaps(&self) -> Option<String> {
        let directories = self.0.lock().clone();
        let traces = directories.iter().find_map(|directory| gaps_of(directory));
        traces.or_else(gaps_of_keys)
    }

    /// Writes all queued records, which takes some seconds at most. Returns a warning for each trace directory
    /// or key log that is incomplete. Call this after the end of all connections.
    pub fn finish(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for directory in self.0.lock().drain(..) {
            let path = directory.path().display();
            if !directory.flush() {
                missing.push(format!(
                    "traces in {path} are incomplete: the disk is too slow"
                ));
            }
            if let Some(error) = directory.take_error() {
                missing.push(format!("traces in {path} are incomplete: {error}"));
            }
            missing.extend(gaps_of(&directory));
        }
        let keys = QueuedKeyLog::environment();
        if !keys.flush() {
            missing.push("the key log is incomplete: the disk is too slow".to_owned());
        }
        if let Some(error) = keys.take_error() {
            missing.push(format!("the key log is incomplete: {error}"));
        }
        missing.extend(gaps_of_keys());
        missing
    }
}

fn gaps_of(directory: &QlogDirectory) -> Option<String> {
    let dropped = directory.dropped();
    let text = format!(
        "traces in {} have gaps: {} records were dropped because the disk is too slow",
        directory.path().display(),
        dropped.records
    );
    (dropped.records > 0).then_some(text)
}

fn gaps_of_keys() -> Option<String> {
    let dropped = QueuedKeyLog::environment().dropped();
    let text = format!("the key log lacks {dropped} lines: the disk is too slow");
    (dropped > 0).then_some(text)
}
