//! State that the connections of one thread share.

use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use courser_base::Mutex;
use courser_measure::Failure;

use crate::alarm::Alarm;
use crate::connect::Connector;
use crate::counts::{Agreed, RunCounts};
use crate::plan::Plan;
use crate::schedule::Schedule;

/// State that the connections of one thread share.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) plan: Arc<Plan>,
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) connector: Connector,
    pub(crate) alarm: Alarm,
    pub(crate) log: Option<Arc<Log>>,
    counts: Mutex<RunCounts>,
    sent: AtomicU64,
    ever_connected: Arc<AtomicBool>,
}

/// The log file, shared by all threads.
#[derive(Debug)]
pub(crate) struct Log(Mutex<BufWriter<std::fs::File>>);

impl Log {
    pub(crate) fn create(plan: &Plan) -> Result<Option<Arc<Self>>, Failure> {
        let Some(path) = &plan.log_file else {
            return Ok(None);
        };
        let file = std::fs::File::create(path).map_err(|error| {
            Failure::new(format!(
                "cannot write the log to {}: {error}",
                path.display()
            ))
        })?;
        Ok(Some(Arc::new(Self(Mutex::new(BufWriter::new(file))))))
    }

    pub(crate) fn write(&self, line: &str) {
        // A full disk is reported when the log is flushed.
        let _ = self.0.lock().write_all(line.as_bytes());
    }

    pub(crate) fn finish(&self) -> Result<(), Failure> {
        self.0
            .lock()
            .flush()
            .map_err(|error| Failure::new(format!("cannot write the log: {error}")))
    }
}

impl Worker {
    pub(crate) fn new(
        connector: Connector,
        schedule: &Arc<Schedule>,
        log: Option<&Arc<Log>>,
        ever_connected: &Arc<AtomicBool>,
    ) -> Self {
        Self {
            plan: connector.plan().clone(),
            schedule: schedule.clone(),
            connector,
            alarm: Alarm::default(),
            log: log.cloned(),
            counts: Mutex::new(RunCounts::new(schedule.measured_from())),
            sent: AtomicU64::new(0),
            ever_connected: ever_connected.clone(),
        }
    }

    pub(crate) fn counts(&self) -> MutexGuard<'_, RunCounts> {
        self.counts.lock()
    }

    pub(crate) fn on_sent(&self, at: Instant) {
        if at >= self.schedule.measured_from() {
            self.sent.fetch_add(1, Relaxed);
        }
    }

    /// Subtracts a request that was sent but not processed, because it will be sent again.
    pub(crate) fn on_unsent(&self, at: Instant) {
        if at >= self.schedule.measured_from() {
            self.sent.fetch_sub(1, Relaxed);
        }
    }

    pub(crate) fn on_connected(&self, agreed: &Agreed) {
        self.ever_connected.store(true, Relaxed);
        self.counts().agreed.get_or_insert_with(|| agreed.clone());
    }

    /// Returns the number of requests sent, including those without a response.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    /// Returns true if any connection has reached the server.
    pub(crate) fn was_ever_connected(&self) -> bool {
        self.ever_connected.load(Relaxed)
    }
}
