//! Draining of a server.

use std::fmt;
#[cfg(unix)]
use std::io;
use std::pin::Pin;
use std::time::{Duration, Instant};

use crate::events::Event;
#[cfg(unix)]
use crate::give_away::{give_away, leave};
use crate::handle::Running;
use crate::phase::{Phase, Phases};
use crate::tally::Tally;

/// The settings of a drain.
pub(super) struct Plan {
    pub(super) signal: Option<Signal>,
    pub(super) ready_delay: Duration,
    pub(super) deadline: Duration,
}

type Signal = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Default for Plan {
    fn default() -> Self {
        Self {
            signal: None,
            ready_delay: Duration::ZERO,
            deadline: DEADLINE,
        }
    }
}

const DEADLINE: Duration = Duration::from_secs(30);

/// The result of draining a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Drained {
    /// Requests that were completed after the server stopped accepting connections.
    pub finished: u64,
    /// Requests that were not completed at the deadline and were aborted.
    pub cut: u64,
    /// Connections that were open at the start of the drain.
    pub connections: u64,
    /// Connections that were still open at the deadline and were aborted.
    pub connections_cut: u64,
    /// Time from the start of the drain to its end.
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
    let (site, phases) = (&server.site, &server.site.phases);
    let signal = plan
        .signal
        .unwrap_or_else(|| Box::pin(std::future::pending()));
    tokio::select! {
        () = signal => {}
        () = phases.reached(Phase::NotReady) => {}
    }
    phases.enter(Phase::NotReady);
    if !plan.ready_delay.is_zero() && phases.phase() != Phase::Retired {
        tokio::select! {
            () = tokio::time::sleep(plan.ready_delay) => {}
            () = phases.reached(Phase::Draining) => {}
        }
    }
    if phases.phase() < Phase::Retired && leaves_sockets(server).await {
        phases.enter(Phase::Retired);
    }
    if phases.phase() == Phase::Retired {
        tokio::select! {
            () = tokio::time::sleep(FIRST_REQUESTS) => {}
            () = phases.reached(Phase::Draining) => {}
        }
    }
    let began = Instant::now();
    let before = site.tally.answered();
    let connections = site.tally.begin_drain(plan.deadline);
    phases.enter(Phase::Draining);
    site.events.report(Event::Draining);
    leave_addresses(server).await;
    finish(plan.deadline, phases, &site.tally).await;
    #[cfg(feature = "webtransport")]
    close_sessions(server).await;
    let took = began.elapsed();
    phases.enter(Phase::Cut);
    // Aborted connections end on their own, and notify their peers if these are reachable.
    let closing = async {
        phases.all_ended().await;
        for endpoint in server.listeners.iter().filter_map(|it| it.endpoint()) {
            endpoint.close(crate::quic::no_error(), b"");
            endpoint.wait_idle().await;
        }
        server.end().await;
    };
    if tokio::time::timeout(CLOSE_TIMEOUT, closing).await.is_err() {
        // The sockets are closed when the last clients count as gone.
        drop(server.end());
    }
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

/// Leaves the sockets that stay open after the end of this process to the next one, so that clients wait for it
/// instead of being refused. Returns false if there are none.
#[cfg(unix)]
async fn leaves_sockets(server: &Running) -> bool {
    let mut staying = server.all_listeners();
    staying.retain(|it| it.stay_open);
    if staying.is_empty() {
        return false;
    }
    match give_away(&staying).await {
        Ok(_) => true,
        Err(error) => {
            server.site.events.report(Event::ClientsRefused(error));
            false
        }
    }
}

/// Leaves the UDP addresses, so that another process can bind them now and not only when the slowest client has ended.
/// TCP addresses are free from the start of the drain.
#[cfg(unix)]
async fn leave_addresses(server: &Running) {
    let mut leaving = server.all_listeners();
    leaving.retain(|it| !it.stay_open);
    match leave(&leaving).await {
        Err(error) if error.kind() != io::ErrorKind::Unsupported => {
            server.site.events.report(Event::ClientsRefused(error));
        }
        // Elsewhere than on Linux, an address is free when its last connection has ended.
        _ => {}
    }
}

#[cfg(not(unix))]
async fn leave_addresses(_: &Running) {}

#[cfg(not(unix))]
async fn leaves_sockets(_: &Running) -> bool {
    false
}

/// Waits until all parts have ended. Aborts the remaining ones at the deadline.
async fn finish(deadline: Duration, phases: &Phases, tally: &Tally) {
    tokio::select! {
        () = phases.all_ended() => last_requests(tally).await,
        () = tokio::time::sleep(deadline) => tally.begin_cutting(),
        () = phases.reached(Phase::Cut) => tally.begin_cutting(),
    }
}

/// Closes the sessions that are left, so that their clients get a reason (draft-ietf-webtrans-http3-16 §4.7).
#[cfg(feature = "webtransport")]
async fn close_sessions(server: &Running) {
    let Some(sessions) = server.sessions.as_ref().filter(|it| it.stats().open > 0) else {
        return;
    };
    sessions.close_all(0, "the server ends");
    // The reasons leave with the tasks of the sessions.
    tokio::time::sleep(LAST_REASONS).await;
}

/// Waits briefly for requests of closed connections. The task of an HTTP/2 request may end just after its
/// connection, although its response was sent. Requests that the user's code holds may take any time.
async fn last_requests(tally: &Tally) {
    let ended = async {
        while tally.in_flight() > 0 {
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    };
    let _ = tokio::time::timeout(LAST_REQUESTS, ended).await;
}

const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// Time in which clients that were accepted last can send a request before a server drains whose sockets another
/// process has or will have. Otherwise their connections would end before the first request.
const FIRST_REQUESTS: Duration = Duration::from_secs(1);

/// Time for the reasons of sessions before their connections are closed (limit K673).
#[cfg(feature = "webtransport")]
const LAST_REASONS: Duration = Duration::from_millis(100);

/// Time limit for request tasks whose connection has ended.
const LAST_REQUESTS: Duration = Duration::from_millis(200);

/// Time limit for notifying clients: three probe timeouts on a slow path.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
