//! Threads, each with a runtime and its share of the connections.

use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use courser_measure::CpuClock;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::alarm::Alarm;
use super::connect::Connector;
use super::connection;
use super::schedule::Schedule;
use super::slot::lock;
use super::tally::{Agreed, Tally};
use crate::error::Failure;
use crate::load::plan::Plan;

/// What the connections of one thread share.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) plan: Arc<Plan>,
    pub(super) schedule: Arc<Schedule>,
    pub(super) connector: Connector,
    pub(super) alarm: Alarm,
    pub(super) log: Option<Arc<Log>>,
    tally: Mutex<Tally>,
    sent: AtomicU64,
    ever_connected: Arc<AtomicBool>,
}

/// What a run has come to.
#[derive(Debug)]
pub(in crate::load) struct Finished {
    pub(in crate::load) tally: Tally,
    /// Requests sent, those included whose answers did not come.
    pub(in crate::load) sent: u64,
    /// From the start, or from the end of the warm-up.
    pub(in crate::load) elapsed: Duration,
    /// Of this process, while it was measured.
    pub(in crate::load) cpu_seconds: f64,
}

/// The log file, shared by all threads.
#[derive(Debug)]
pub(super) struct Log(Mutex<BufWriter<std::fs::File>>);

impl Log {
    fn create(plan: &Plan) -> Result<Option<Arc<Self>>, Failure> {
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

    pub(super) fn write(&self, line: &str) {
        // A full disk shows when it is flushed.
        let _ = lock(&self.0).write_all(line.as_bytes());
    }

    fn finish(&self) -> Result<(), Failure> {
        lock(&self.0)
            .flush()
            .map_err(|error| Failure::new(format!("cannot write the log: {error}")))
    }
}

impl Worker {
    pub(super) fn tally(&self) -> MutexGuard<'_, Tally> {
        lock(&self.tally)
    }

    pub(super) fn on_sent(&self, at: Instant) {
        if at >= self.schedule.measured_from() {
            self.sent.fetch_add(1, Relaxed);
        }
    }

    /// It was sent and not processed, and will be sent again.
    pub(super) fn on_unsent(&self, at: Instant) {
        if at >= self.schedule.measured_from() {
            self.sent.fetch_sub(1, Relaxed);
        }
    }

    pub(super) fn on_connected(&self, agreed: &Agreed) {
        self.ever_connected.store(true, Relaxed);
        self.tally().agreed.get_or_insert_with(|| agreed.clone());
    }

    /// True when somebody has reached the server.
    pub(super) fn was_ever_connected(&self) -> bool {
        self.ever_connected.load(Relaxed)
    }

    fn run(self: &Arc<Self>, thread: u64, stop: &watch::Receiver<bool>) -> Result<(), Failure> {
        crate::runtime()?.block_on(async {
            let waker = self.clone();
            let alarm = tokio::spawn(async move { waker.alarm.run().await });
            let mut connections = JoinSet::new();
            let step = usize::try_from(self.plan.threads).unwrap_or(usize::MAX);
            for number in (thread..self.plan.connections).step_by(step) {
                connections.spawn(connection::run(self.clone(), number, stop.clone()));
            }
            while let Some(joined) = connections.join_next().await {
                joined.map_err(|error| {
                    Failure::new(format!("a connection's task failed: {error}"))
                })?;
            }
            alarm.abort();
            Ok(())
        })
    }
}

/// Runs all threads to their end. `watch` is told now and then how many requests are answered.
pub(in crate::load) fn run(
    plan: &Arc<Plan>,
    stop: &watch::Receiver<bool>,
    watch: impl Fn(&Schedule, u64),
) -> Result<Finished, Failure> {
    let log = Log::create(plan)?;
    let ever_connected = Arc::new(AtomicBool::new(false));
    let schedule = Arc::new(Schedule::new(plan, Instant::now()));
    let worker = || -> Result<Arc<Worker>, Failure> {
        Ok(Arc::new(Worker {
            plan: plan.clone(),
            schedule: schedule.clone(),
            connector: Connector::new(plan.clone()),
            alarm: Alarm::default(),
            log: log.clone(),
            tally: Mutex::new(Tally::new(schedule.measured_from())?),
            sent: AtomicU64::new(0),
            ever_connected: ever_connected.clone(),
        }))
    };
    let workers = (0..plan.threads)
        .map(|_| worker())
        .collect::<Result<Vec<_>, _>>()?;
    let mut cpu = CpuMeter::default();
    let results = thread::scope(|scope| {
        let handles: Vec<_> = (0..)
            .zip(&workers)
            .map(|(number, worker)| scope.spawn(move || worker.run(number, stop)))
            .collect();
        while !handles.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::park_timeout(BETWEEN_LOOKS);
            cpu.look(&schedule);
            watch(
                &schedule,
                workers.iter().map(|worker| worker.tally().done).sum(),
            );
        }
        handles.into_iter().try_for_each(|handle| {
            let panicked = |_| Err(Failure::new("a thread panicked"));
            handle.join().unwrap_or_else(panicked)
        })
    });
    results?;
    let cpu_seconds = cpu.seconds();
    if let Some(log) = &log {
        log.finish()?;
    }
    collect(&workers, &schedule, cpu_seconds)
}

fn collect(
    workers: &[Arc<Worker>],
    schedule: &Schedule,
    cpu_seconds: f64,
) -> Result<Finished, Failure> {
    let mut all = Tally::new(schedule.measured_from())?;
    for worker in workers {
        let empty = Tally::new(schedule.measured_from())?;
        all.add(std::mem::replace(&mut *worker.tally(), empty));
    }
    let end = end_of(schedule, all.last, Instant::now());
    Ok(Finished {
        tally: all,
        sent: workers.iter().map(|worker| worker.sent.load(Relaxed)).sum(),
        elapsed: end.saturating_duration_since(schedule.measured_from()),
        cpu_seconds,
    })
}

/// When the run was over. With a duration that is its end, unless it was broken off: that nothing
/// more was due in the last moment does not make it shorter.
fn end_of(schedule: &Schedule, last: Option<Instant>, now: Instant) -> Instant {
    match schedule.ends() {
        // Requests that were waited for may end later.
        Some(ends) if now + schedule.slack() >= ends => ends.max(last.unwrap_or(ends)),
        Some(_) => now,
        None => last.unwrap_or(now),
    }
}

/// CPU time of the process since the measurement began.
#[derive(Debug, Default)]
struct CpuMeter {
    at_begin: Option<f64>,
}

impl CpuMeter {
    /// Right to the time between two looks.
    fn look(&mut self, schedule: &Schedule) {
        let is_warm = schedule.measured_from() > schedule.began();
        if is_warm && self.at_begin.is_none() && Instant::now() >= schedule.measured_from() {
            self.at_begin = Some(CpuClock::Process.seconds());
        }
    }

    /// Without a warm-up, since the process began.
    fn seconds(&self) -> f64 {
        CpuClock::Process.seconds() - self.at_begin.unwrap_or(0.0)
    }
}

const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
