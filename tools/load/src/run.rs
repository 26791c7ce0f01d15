//! Runs a load on threads, each with its own runtime and its share of the connections.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use courser_measure::{CpuClock, Failure, MovesTotal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::connect::Connector;
use crate::connection;
use crate::counts::{Finished, RunCounts};
use crate::plan::Plan;
use crate::schedule::Schedule;
use crate::summary::Summary;
use crate::worker::{Log, Worker};

/// The progress of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// The completed share of the run, from 0 to 1.
    pub share: f64,
    /// The number of responses so far.
    pub responses: u64,
}

/// Loads a server according to a plan, and returns the figures.
///
/// The run ends early if `stop` becomes true, and the figures then cover the time until that. `progress` is
/// called on the calling thread about 20 times per second.
///
/// # Errors
/// Returns an error if no connection can be opened at all, the log file cannot be written, or a thread cannot
/// be started.
pub fn run(
    plan: &Arc<Plan>,
    stop: &watch::Receiver<bool>,
    progress: impl Fn(Progress),
) -> Result<Summary, Failure> {
    let log = Log::create(plan)?;
    let ever_connected = Arc::new(AtomicBool::new(false));
    let schedule = Arc::new(Schedule::new(plan, Instant::now()));
    let moves = plan
        .rebind_every
        .map(|_| MovesTotal::new(schedule.measured_from()));
    let worker = || {
        let connector = Connector::new(plan.clone(), moves.clone());
        Arc::new(Worker::new(
            connector,
            &schedule,
            log.as_ref(),
            &ever_connected,
        ))
    };
    let workers: Vec<_> = (0..plan.threads).map(|_| worker()).collect();
    let mut cpu = CpuMeter::default();
    let results = thread::scope(|scope| {
        let handles: Vec<_> = (0..)
            .zip(&workers)
            .map(|(number, worker)| scope.spawn(move || run_thread(worker, number, stop)))
            .collect();
        while !handles.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::park_timeout(PROGRESS_INTERVAL);
            cpu.update(&schedule);
            let responses = workers.iter().map(|worker| worker.counts().done).sum();
            progress(Progress {
                share: schedule.share(Instant::now(), responses),
                responses,
            });
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
    let mut finished = collect(&workers, &schedule, cpu_seconds);
    finished.is_interrupted = *stop.borrow();
    finished.moves = moves.map(|moves| moves.report());
    match finished.counts.failure.take() {
        Some(failure) if finished.counts.connections.is_empty() => Err(failure),
        _ => Ok(Summary::new(plan, finished)),
    }
}

fn collect(workers: &[Arc<Worker>], schedule: &Schedule, cpu_seconds: f64) -> Finished {
    let mut all = RunCounts::new(schedule.measured_from());
    for worker in workers {
        let empty = RunCounts::new(schedule.measured_from());
        all.add(std::mem::replace(&mut *worker.counts(), empty));
    }
    let end = end_of(schedule, all.last, Instant::now());
    Finished {
        counts: all,
        sent: workers.iter().map(|worker| worker.sent()).sum(),
        elapsed: end.saturating_duration_since(schedule.measured_from()),
        cpu_seconds,
        is_interrupted: false,
        moves: None,
    }
}

/// Returns the end of the run. A run with a duration lasts until its end unless it was stopped, even if no
/// request was due in its last moment.
fn end_of(schedule: &Schedule, last: Option<Instant>, now: Instant) -> Instant {
    match schedule.ends() {
        // Requests in flight may complete later.
        Some(ends) if now + schedule.slack() >= ends => ends.max(last.unwrap_or(ends)),
        Some(_) => now,
        None => last.unwrap_or(now),
    }
}

/// Runs the connections of one thread until they end.
fn run_thread(
    worker: &Arc<Worker>,
    thread: u64,
    stop: &watch::Receiver<bool>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start a runtime: {error}")))?;
    runtime.block_on(async {
        let waker = worker.clone();
        let alarm = tokio::spawn(async move { waker.alarm.run().await });
        let mut connections = JoinSet::new();
        let step = usize::try_from(worker.plan.threads).unwrap_or(usize::MAX);
        for number in (thread..worker.plan.connections).step_by(step) {
            connections.spawn(connection::run(worker.clone(), number, stop.clone()));
        }
        while let Some(joined) = connections.join_next().await {
            joined.map_err(|error| Failure::new(format!("a connection's task failed: {error}")))?;
        }
        alarm.abort();
        Ok(())
    })
}

/// CPU time of the process since the measurement began.
#[derive(Debug, Default)]
struct CpuMeter {
    at_begin: Option<f64>,
}

impl CpuMeter {
    /// Records the CPU time at the start of the measurement, with the precision of the interval between calls.
    fn update(&mut self, schedule: &Schedule) {
        let is_warm = schedule.measured_from() > schedule.began();
        if is_warm && self.at_begin.is_none() && Instant::now() >= schedule.measured_from() {
            self.at_begin = Some(CpuClock::Process.seconds());
        }
    }

    /// Returns the CPU time since the start of the measurement, or since the start of the process without a
    /// warm-up.
    fn seconds(&self) -> f64 {
        CpuClock::Process.seconds() - self.at_begin.unwrap_or(0.0)
    }
}

const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);
