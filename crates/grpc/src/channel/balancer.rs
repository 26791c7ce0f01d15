//! Which server receives the next call, and which ones are to be connected to.
//!
//! ```text
//!            due                   connected
//!   Idle ----------> Connecting --------------> Ready
//!    ^                   |  ^                     |
//!    |            failed |  | pause over          | lost
//!    |                   v  |                     |
//!    |                  Pausing                   |
//!    +--------------------------------------------+
//! ```
//!
//! A connection that is lost in its first second is a failed one.
//!
//! It has no clock and opens no connection: [`pick`](Balancer::pick) returns the servers to connect to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tonic::Status;

use super::backend::{Backend, Server};
use super::backoff::pause;

/// The servers of a channel; see the [module](self).
#[derive(Default)]
pub(super) struct Balancer {
    entries: Vec<Entry>,
    /// Index of the entry whose turn it is.
    next: usize,
    /// The earliest time at which an entry is to be connected. `None` if there is nothing to do.
    due: Option<Instant>,
    lookup: Lookup,
}

struct Entry {
    server: Arc<Server>,
    phase: Phase,
    /// Attempts that failed in a row.
    failures: u32,
}

enum Phase {
    Idle,
    Connecting,
    Ready { since: Instant },
    Pausing { until: Instant, error: Status },
}

/// The state of name resolution.
#[derive(Default)]
struct Lookup {
    is_running: bool,
    /// The time of the last result.
    ended: Option<Instant>,
    /// Requested because an address has failed since the last lookup.
    is_wanted: bool,
    failures: u32,
    /// The error of the last one while there are no addresses, and the time of the next attempt.
    failed: Option<(Instant, Status)>,
}

/// The answer for a call.
pub(super) enum Pick {
    /// The call is sent to this server.
    Ready(Arc<Server>),
    /// A connection or a lookup is in progress.
    Wait,
    /// No server can be reached until the time.
    Unavailable(Instant, Status),
}

/// What the caller of [`Balancer::pick`] has to start.
#[derive(Default)]
pub(super) struct Work {
    pub(super) connects: Vec<Arc<Server>>,
    pub(super) resolves: bool,
}

impl Balancer {
    /// Returns the server for a call, and the work that is due. The addresses are older than they should be after
    /// `refresh`.
    pub(super) fn pick(&mut self, now: Instant, refresh: Duration) -> (Pick, Work) {
        let mut work = Work::default();
        if self.due.is_some_and(|due| due <= now) {
            self.begin_due(now, &mut work.connects);
        }
        work.resolves = self.begin_lookup(now, refresh);
        (self.choose(), work)
    }

    fn choose(&mut self) -> Pick {
        let count = self.entries.len();
        let mut is_connecting = self.lookup.is_running && count == 0;
        let mut soonest: Option<(Instant, &Status)> = None;
        for step in 0..count {
            let index = (self.next + step) % count;
            match &self.entries[index].phase {
                Phase::Ready { .. } => {
                    self.next = (index + 1) % count;
                    return Pick::Ready(self.entries[index].server.clone());
                }
                Phase::Idle | Phase::Connecting => is_connecting = true,
                Phase::Pausing { until, error } => {
                    if soonest.is_none_or(|(time, _)| *until < time) {
                        soonest = Some((*until, error));
                    }
                }
            }
        }
        if is_connecting {
            return Pick::Wait;
        }
        let failed = self
            .lookup
            .failed
            .as_ref()
            .map(|(until, error)| (*until, error));
        match soonest.or(failed) {
            Some((until, error)) => Pick::Unavailable(until, error.clone()),
            None => Pick::Wait,
        }
    }

    /// Moves all entries that are due to `Connecting`.
    fn begin_due(&mut self, now: Instant, connects: &mut Vec<Arc<Server>>) {
        self.due = None;
        for entry in &mut self.entries {
            match &entry.phase {
                Phase::Pausing { until, .. } if *until > now => {
                    self.due = Some(self.due.map_or(*until, |due| due.min(*until)));
                }
                Phase::Idle | Phase::Pausing { .. } => {
                    entry.phase = Phase::Connecting;
                    connects.push(entry.server.clone());
                }
                Phase::Connecting | Phase::Ready { .. } => {}
            }
        }
    }

    /// Returns true if the name is to be resolved now.
    fn begin_lookup(&mut self, now: Instant, refresh: Duration) -> bool {
        let lookup = &mut self.lookup;
        let since = lookup
            .ended
            .map(|ended| now.saturating_duration_since(ended));
        let is_due = match (&lookup.failed, since) {
            _ if lookup.is_running => false,
            (_, None) => true,
            (Some((until, _)), _) => *until <= now,
            (None, Some(since)) => {
                since >= refresh || lookup.is_wanted && since >= SHORTEST_REFRESH
            }
        };
        lookup.is_running |= is_due;
        is_due
    }

    /// Replaces the servers. Those that remain keep their state, and those of the `unresolved` targets remain.
    pub(super) fn on_resolved(&mut self, now: Instant, servers: Vec<Server>, unresolved: &[usize]) {
        self.lookup = Lookup {
            ended: Some(now),
            ..Lookup::default()
        };
        let mut before = std::mem::take(&mut self.entries);
        self.entries = servers
            .into_iter()
            .map(|server| {
                let known = before.iter().position(|entry| {
                    let known = &entry.server;
                    (known.target, known.address) == (server.target, server.address)
                });
                match known {
                    Some(index) => before.swap_remove(index),
                    None => Entry {
                        server: Arc::new(server),
                        phase: Phase::Idle,
                        failures: 0,
                    },
                }
            })
            .collect();
        before.retain(|entry| unresolved.contains(&entry.server.target));
        self.entries.append(&mut before);
        self.next = 0;
        self.due = Some(now);
    }

    /// Keeps the servers that are known. `random` is a number from 0 to 1.
    pub(super) fn on_lookup_failed(&mut self, now: Instant, error: Status, random: f64) {
        let failures = self.lookup.failures.saturating_add(1);
        let until = now + pause(failures, random);
        self.lookup = Lookup {
            ended: Some(now),
            failures,
            failed: Some((until, error)),
            ..Lookup::default()
        };
    }

    pub(super) fn on_connected(&mut self, now: Instant, server: &Arc<Server>) {
        if let Some(entry) = self.entry_of(server) {
            entry.phase = Phase::Ready { since: now };
        }
    }

    /// Tries the server again after a pause. `random` is a number from 0 to 1.
    pub(super) fn on_connect_failed(
        &mut self,
        now: Instant,
        server: &Arc<Server>,
        error: Status,
        random: f64,
    ) {
        let Some(entry) = self.entry_of(server) else {
            return;
        };
        entry.failures = entry.failures.saturating_add(1);
        let until = now + pause(entry.failures, random);
        entry.phase = Phase::Pausing { until, error };
        self.due = Some(self.due.map_or(until, |due| due.min(until)));
        self.lookup.is_wanted = true;
    }

    /// Connects to the server again at once, because its connection has ended. A connection that ended as soon as it
    /// was established counts as a failed attempt: otherwise a server that accepts and closes would be connected to
    /// without a pause. `random` is a number from 0 to 1.
    pub(super) fn on_lost(&mut self, now: Instant, server: &Arc<Server>, random: f64) {
        let Some(entry) = self.entry_of(server) else {
            return;
        };
        let Phase::Ready { since } = entry.phase else {
            return;
        };
        if now.saturating_duration_since(since) < SHORTEST_LIFE {
            let text = format!("the server at {} closes new connections", server.address);
            return self.on_connect_failed(now, server, Status::unavailable(text), random);
        }
        entry.phase = Phase::Idle;
        entry.failures = 0;
        self.due = Some(now);
    }

    pub(super) fn backends(&self) -> Vec<Backend> {
        let backend = |entry: &Entry| Backend {
            address: entry.server.address,
            is_ready: matches!(entry.phase, Phase::Ready { .. }),
            failures: entry.failures,
        };
        self.entries.iter().map(backend).collect()
    }

    fn entry_of(&mut self, server: &Arc<Server>) -> Option<&mut Entry> {
        self.entries
            .iter_mut()
            .find(|entry| Arc::ptr_eq(&entry.server, server))
    }
}

/// The shortest time between two lookups because of failed addresses (limit K542).
const SHORTEST_REFRESH: Duration = Duration::from_secs(1);
/// The life of a connection that ends the series of failures before it (limit K544).
const SHORTEST_LIFE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
