//! The pool of connections.
//!
//! One HTTP/3 or HTTP/2 connection to each origin carries all its requests. HTTP/1.1 needs one connection for
//! each concurrent request, and some are kept idle. A task closes idle connections after a while, and ends when
//! none is left.

mod move_times;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, MutexGuard, Weak};
use std::time::{Duration, Instant};

use courser_base::Mutex;

pub(super) use self::move_times::MoveTimes;
use super::link::{Established, Facts, Link};
use super::origin::Origin;
use super::proxy::Via;
use super::version::HttpVersion;

/// The destination of a connection, its proxy, and the versions of HTTP that it may use.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key {
    pub(super) origin: Origin,
    pub(super) proxy: Option<Arc<Via>>,
    /// The only address of a connection whose user selects it. `None` if the host is resolved.
    pub(super) address: Option<SocketAddr>,
    /// The versions of the client, or those of the request.
    pub(super) version: HttpVersion,
}

/// Limits on the number and idle time of pooled connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) idle_timeout: Duration,
    pub(super) idle_per_origin: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A common value of browsers and other clients, similar to that of most servers.
            idle_timeout: Duration::from_secs(90),
            idle_per_origin: 32,
        }
    }
}

/// The pool; see the [module](self).
pub(super) struct Pool {
    limits: Limits,
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    entries: HashMap<Key, PoolEntry>,
    has_reaper: bool,
}

#[derive(Default)]
struct PoolEntry {
    /// Shared connections, oldest first.
    shared: Vec<Kept>,
    /// Idle HTTP/1.1 connections, most recently used last.
    idle: Vec<Kept>,
    /// Held by the task that opens the first connection, so that concurrent requests open only one.
    dialing: Arc<tokio::sync::Mutex<()>>,
    /// True if the latest connection cannot be shared.
    is_http1: bool,
    /// When requests over TCP may begin a [move](super::moves) to HTTP/3.
    moves: MoveTimes,
}

/// A connection of the pool.
pub(super) struct Taken {
    pub(super) established: Established,
    /// True if the caller must begin a move to HTTP/3.
    pub(super) is_move_due: bool,
}

impl PoolEntry {
    /// Returns true if the caller must begin a move. No move is due beside a QUIC connection, even if its path is
    /// silent, because it may recover.
    fn is_move_due(&mut self, now: Instant) -> bool {
        let has_http3 = || self.shared.iter().any(|kept| kept.link.is_http3());
        self.moves.is_expected() && !has_http3() && self.moves.begin_if_due(now)
    }

    /// Returns the shared connection for new requests: the newest HTTP/3 connection, otherwise the newest HTTP/2
    /// connection. TCP is newer only if QUIC was silent, and a path that has recovered is preferred again.
    fn preferred(&mut self) -> Option<&mut Kept> {
        let answering = self.shared.iter_mut().filter(|kept| !kept.link.is_silent());
        answering.max_by_key(|kept| kept.link.is_http3())
    }
}

struct Kept {
    link: Link,
    facts: Arc<Facts>,
    used: Instant,
}

/// Whether a request opens a connection of its own or shares one.
pub(super) enum Dialing {
    /// Connections to the origin cannot be shared.
    Alone,
    /// The task that acquires this lock opens one connection for all.
    Together(Arc<tokio::sync::Mutex<()>>),
}

impl Pool {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            state: Mutex::default(),
        })
    }

    /// Returns an existing connection that can carry a request.
    pub(super) fn take(&self, key: &Key) -> Option<Taken> {
        let mut state = self.lock();
        let entry = state.entries.get_mut(key)?;
        entry.shared.retain(|kept| kept.link.is_usable());
        let now = Instant::now();
        if let Some(kept) = entry.preferred() {
            kept.used = now;
            let link = kept.link.share()?;
            let facts = kept.facts.clone();
            return Some(Taken {
                is_move_due: !link.is_http3() && entry.is_move_due(now),
                established: Established { link, facts },
            });
        }
        let oldest = now.checked_sub(self.limits.idle_timeout);
        while let Some(kept) = entry.idle.pop() {
            if kept.link.is_usable() && oldest.is_none_or(|oldest| kept.used > oldest) {
                let (link, facts) = (kept.link, kept.facts);
                return Some(Taken {
                    established: Established { link, facts },
                    is_move_due: entry.is_move_due(now),
                });
            }
        }
        None
    }

    /// Changes when requests to a destination may move to HTTP/3.
    pub(super) fn with_moves(&self, key: &Key, change: impl FnOnce(&mut MoveTimes)) {
        let mut state = self.lock();
        change(&mut state.entries.entry(key.clone()).or_default().moves);
    }

    /// Calls `change` with the moves of each other destination in the pool that differs only in its versions of HTTP
    /// or its proxy.
    pub(super) fn with_related_moves(&self, key: &Key, change: impl Fn(&Key, &mut MoveTimes)) {
        for (other, entry) in &mut self.lock().entries {
            if other.origin == key.origin && other != key {
                change(other, &mut entry.moves);
            }
        }
    }

    /// Lets moves begin at once that wait for a time, because that depends on the network.
    pub(super) fn on_network_changed(&self, now: Instant) {
        for entry in self.lock().entries.values_mut() {
            entry.moves.on_network_changed(now);
        }
    }

    /// Removes the HTTP/3 connections that exist only because of an announcement which the server has withdrawn.
    /// Requests in progress on them continue.
    pub(super) fn withdraw(&self, origin: &Origin) {
        let mut state = self.lock();
        let entries = state.entries.iter_mut();
        for (_, entry) in entries.filter(|(key, _)| key.origin == *origin) {
            entry.shared.retain(|kept| !kept.facts.is_announced);
            entry.moves.on_withdrawn();
        }
    }

    /// Returns true if there is a connection to the destination whose path is silent.
    pub(super) fn has_silent(&self, key: &Key) -> bool {
        let state = self.lock();
        let entry = state.entries.get(key);
        entry.is_some_and(|entry| entry.shared.iter().any(|kept| kept.link.is_silent()))
    }

    /// Returns connections of other origins whose servers claim `origin`. Their certificates are not checked
    /// here.
    pub(super) fn claiming(&self, origin: &Origin) -> Vec<Established> {
        let state = self.lock();
        let direct = state.entries.iter().filter(|(key, _)| key.proxy.is_none());
        let kept = direct.flat_map(|(_, entry)| &entry.shared);
        let claiming = kept.filter(|kept| kept.link.is_claimed_for(&kept.facts, origin));
        let established = claiming.filter_map(|kept| {
            Some(Established {
                link: kept.link.share()?,
                facts: kept.facts.clone(),
            })
        });
        established.take(MAX_CLAIMING).collect()
    }

    /// Returns whether a request opens a connection of its own.
    pub(super) fn dialing(&self, key: &Key) -> Dialing {
        let mut state = self.lock();
        let entry = state.entries.entry(key.clone()).or_default();
        if entry.is_http1 {
            Dialing::Alone
        } else {
            Dialing::Together(entry.dialing.clone())
        }
    }

    /// Adds a new connection to the pool if it can be shared. The newest is preferred, so a QUIC connection that
    /// completes after TCP has won replaces it.
    pub(super) fn share(self: &Arc<Self>, key: &Key, established: &Established) {
        let mut state = self.lock();
        let entry = state.entries.entry(key.clone()).or_default();
        entry.is_http1 = !established.link.is_shared();
        if let Some(link) = established.link.share() {
            entry.shared.retain(|kept| kept.link.is_usable());
            if entry.shared.len() >= MAX_SHARED {
                entry.shared.remove(0);
            }
            entry.shared.push(Kept {
                link,
                facts: established.facts.clone(),
                used: Instant::now(),
            });
            self.start_reaper(&mut state);
        }
    }

    /// Returns an idle connection to the pool.
    pub(super) fn put_back(self: &Arc<Self>, key: &Key, established: Established) {
        if !established.link.is_usable() {
            return;
        }
        let mut state = self.lock();
        let idle: usize = state.entries.values().map(|entry| entry.idle.len()).sum();
        let entry = state.entries.entry(key.clone()).or_default();
        if idle >= MAX_IDLE || entry.idle.len() >= self.limits.idle_per_origin {
            return;
        }
        entry.idle.push(Kept {
            link: established.link,
            facts: established.facts,
            used: Instant::now(),
        });
        self.start_reaper(&mut state);
    }

    /// Removes a broken connection, and the idle ones of the same destination, which the server has probably
    /// closed too.
    pub(super) fn remove(&self, key: &Key, facts: &Arc<Facts>) {
        if let Some(entry) = self.lock().entries.get_mut(key) {
            entry.shared.retain(|kept| !Arc::ptr_eq(&kept.facts, facts));
            entry.idle.clear();
        }
    }

    /// Returns true if it has a QUIC connection.
    pub(super) fn has_quic(&self) -> bool {
        let state = self.lock();
        let mut entries = state.entries.values();
        entries.any(|entry| {
            let mut shared = entry.shared.iter();
            shared.any(|kept| kept.link.is_http3())
        })
    }

    /// Drops connections that were idle for too long. Returns false if the pool is empty.
    fn reap(&self, now: Instant) -> bool {
        let mut state = self.lock();
        let is_fresh = |kept: &Kept| {
            kept.link.is_usable() && now.duration_since(kept.used) < self.limits.idle_timeout
        };
        state.entries.retain(|_, entry| {
            entry.shared.retain(is_fresh);
            entry.idle.retain(is_fresh);
            let is_empty = entry.shared.is_empty() && entry.idle.is_empty();
            !is_empty || Arc::strong_count(&entry.dialing) > 1
        });
        state.has_reaper = !state.entries.is_empty();
        state.has_reaper
    }

    fn start_reaper(self: &Arc<Self>, state: &mut PoolState) {
        if !state.has_reaper {
            state.has_reaper = true;
            let every = (self.limits.idle_timeout / 4).max(SHORTEST_PAUSE);
            tokio::spawn(reaper(Arc::downgrade(self), every));
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        // A panic leaves the state consistent, because no change is interrupted by user code.
        self.state.lock()
    }
}

/// Closes idle connections. Shared connections with requests in progress are closed by their handles.
async fn reaper(pool: Weak<Pool>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        if !pool.reap(Instant::now()) {
            return;
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Largest number of shared connections: one of HTTP/3, one of HTTP/2, and temporarily one that is going away.
const MAX_SHARED: usize = 3;
/// Largest number of idle HTTP/1.1 connections to all origins (limit K72), because each holds a file descriptor.
const MAX_IDLE: usize = 256;
/// Largest number of connections whose certificates are checked for another origin.
const MAX_CLAIMING: usize = 4;
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests;
