//! Draining of a server.

use std::fmt;
use std::pin::Pin;
use std::time::{Duration, Instant};

use crate::events::Event;
use crate::handle::Running;
use crate::phase::{Conductor, Phase};
use crate::tally::Tally;

/// The settings of a server's end.
pub(super) struct Plan {
    pub(super) signal: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    pub(super) ready_delay: Duration,
    pub(super) deadline: Duration,
}

/// The result of draining a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Drained {
    /// Requests that were answered after the server stopped accepting connections.
    pub finished: u64,
    /// Requests that were unanswered at the deadline, and were aborted.
    pub cut: u64,
    /// Connections that were open at the beginning.
    pub connections: u64,
    /// Connections that were still open at the deadline, and were aborted.
    pub connections_cut: u64,
    /// Duration of the drain.
    pub took: Duration,
}

impl fmt::Display for Drained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "drained in {:.1} s: {} requests completed, {} aborted; {} of {} connections aborted",
            self.took.as_secs_f64(),
            self.finished,
            self.cut,
            self.connections_cut,
            self.connections
        )
    }
}

/// Waits for the signal, then drains the server.
pub(super) async fn run(plan: Plan, server: &Running) -> Drained {
    let (site, conductor) = (&server.site, &server.site.conductor);
    let signal = plan
        .signal
        .unwrap_or_else(|| Box::pin(std::future::pending()));
    tokio::select! {
        () = signal => {}
        () = conductor.reached(Phase::NotReady) => {}
    }
    conductor.enter(Phase::NotReady);
    if !plan.ready_delay.is_zero() {
        tokio::select! {
            () = tokio::time::sleep(plan.ready_delay) => {}
            () = conductor.reached(Phase::Draining) => {}
        }
    }
    let began = Instant::now();
    let before = site.tally.answered();
    let connections = site.tally.begin_drain(plan.deadline);
    conductor.enter(Phase::Draining);
    site.events.report(Event::Draining);
    finish(plan.deadline, conductor, &site.tally).await;
    let took = began.elapsed();
    conductor.enter(Phase::Cut);
    // Aborted connections end on their own and notify their peers, if these are reachable.
    let farewell = async {
        conductor.all_gone().await;
        for endpoint in server.listeners.iter().filter_map(|it| it.endpoint()) {
            endpoint.close(crate::quic::no_error(), b"");
            endpoint.wait_idle().await;
        }
    };
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
    let tally = &site.tally;
    let (cut, connections_cut) = tally.cut();
    let ended = tally.answered() + tally.in_flight();
    Drained {
        finished: ended.saturating_sub(before + cut),
        cut,
        connections,
        connections_cut,
        took,
    }
}

/// Waits until all parts have ended, or begins to cut those that are left at the deadline.
async fn finish(deadline: Duration, conductor: &Conductor, tally: &Tally) {
    tokio::select! {
        () = conductor.all_gone() => last_requests(tally).await,
        () = tokio::time::sleep(deadline) => tally.begin_cutting(),
        () = conductor.reached(Phase::Cut) => tally.begin_cutting(),
    }
}

/// Waits for the requests of connections that are gone. The task of an HTTP/2 request may end just
/// after its connection, and its response has arrived all the same. Requests that users hold may take
/// any time.
async fn last_requests(tally: &Tally) {
    let ended = async {
        while tally.in_flight() > 0 {
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    };
    let _ = tokio::time::timeout(LAST_REQUESTS, ended).await;
}

const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// Time for tasks that have nothing left to do.
const LAST_REQUESTS: Duration = Duration::from_millis(200);

/// Three probe timeouts on a slow path, but not longer than an operator is willing to wait.
const FAREWELL: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
