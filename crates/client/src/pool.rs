//! The pool of connections.
//!
//! One connection of HTTP/3 or HTTP/2 to each origin carries all its requests. HTTP/1.1 needs as
//! many connections as there are concurrent requests, and some are kept for later. A task closes
//! idle ones after a while; it lives as long as there is a connection to close.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, Weak};
use std::time::{Duration, Instant};

use courser_base::Mutex;

use super::link::{Established, Facts, Link};
use super::origin::Origin;

/// The destination of a connection, and the proxy in between.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key {
    pub(super) origin: Origin,
    pub(super) proxy: Option<http::Uri>,
}

/// Limits on the number of kept connections and on their idle time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) idle_timeout: Duration,
    pub(super) idle_per_origin: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A common value of browsers and other clients; most servers use a similar one.
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
    places: HashMap<Key, PoolEntry>,
    has_reaper: bool,
}

#[derive(Default)]
struct PoolEntry {
    /// Shared connections, the preferred one last.
    shared: Vec<Kept>,
    /// Idle connections, the most recent one last.
    idle: Vec<Kept>,
    /// Held by the task that makes the first connection, so that a hundred requests make only one.
    dialing: Arc<tokio::sync::Mutex<()>>,
    /// True if the last connection was one that cannot be shared.
    is_http1: bool,
}

impl PoolEntry {
    /// Returns the shared connection that requests should use: the newest of HTTP/3, or else of HTTP/2. TCP
    /// is newer only where QUIC was silent, and a path that answers again is as good as before.
    fn preferred(&mut self) -> Option<&mut Kept> {
        let answering = self.shared.iter_mut().filter(|kept| !kept.link.is_silent());
        answering.max_by_key(|kept| matches!(kept.link, Link::Http3(_)))
    }
}

struct Kept {
    link: Link,
    facts: Arc<Facts>,
    used: Instant,
}

/// The way to make a connection: alone or together with other requests.
pub(super) enum Dialing {
    /// Connections to the origin cannot be shared.
    Alone,
    /// The owner of this lock makes one connection for all.
    Together(Arc<tokio::sync::Mutex<()>>),
}

impl Pool {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            state: Mutex::default(),
        })
    }

    /// Returns an existing connection.
    pub(super) fn take(&self, key: &Key) -> Option<Established> {
        let mut state = self.lock();
        let place = state.places.get_mut(key)?;
        place.shared.retain(|kept| kept.link.is_usable());
        if let Some(kept) = place.preferred() {
            kept.used = Instant::now();
            let link = kept.link.share()?;
            let facts = kept.facts.clone();
            return Some(Established { link, facts });
        }
        let oldest = Instant::now().checked_sub(self.limits.idle_timeout);
        while let Some(kept) = place.idle.pop() {
            if kept.link.is_usable() && oldest.is_none_or(|oldest| kept.used > oldest) {
                let (link, facts) = (kept.link, kept.facts);
                return Some(Established { link, facts });
            }
        }
        None
    }

    /// Returns true if there is a connection whose path is silent.
    pub(super) fn has_silent(&self, key: &Key) -> bool {
        let state = self.lock();
        let place = state.places.get(key);
        place.is_some_and(|place| place.shared.iter().any(|kept| kept.link.is_silent()))
    }

    /// Returns connections of other origins that may carry requests to `origin`, as far as their
    /// servers claim.
    pub(super) fn claiming(&self, origin: &Origin) -> Vec<Established> {
        let state = self.lock();
        let direct = state.places.iter().filter(|(key, _)| key.proxy.is_none());
        let kept = direct.flat_map(|(_, place)| &place.shared);
        let claiming = kept.filter(|kept| kept.link.is_claimed_for(&kept.facts, origin));
        let established = claiming.filter_map(|kept| {
            Some(Established {
                link: kept.link.share()?,
                facts: kept.facts.clone(),
            })
        });
        established.take(MAX_CLAIMING).collect()
    }

    /// Returns how to make a connection.
    pub(super) fn dialing(&self, key: &Key) -> Dialing {
        let mut state = self.lock();
        let place = state.places.entry(key.clone()).or_default();
        if place.is_http1 {
            Dialing::Alone
        } else {
            Dialing::Together(place.dialing.clone())
        }
    }

    /// Keeps a new connection if others can use it too. The newest is preferred: a QUIC connection
    /// that is made after TCP has won replaces it.
    pub(super) fn share(self: &Arc<Self>, key: &Key, established: &Established) {
        let mut state = self.lock();
        let place = state.places.entry(key.clone()).or_default();
        place.is_http1 = !established.link.is_shared();
        if let Some(link) = established.link.share() {
            place.shared.retain(|kept| kept.link.is_usable());
            if place.shared.len() >= MAX_SHARED {
                place.shared.remove(0);
            }
            place.shared.push(Kept {
                link,
                facts: established.facts.clone(),
                used: Instant::now(),
            });
            self.start_reaper(&mut state);
        }
    }

    /// Takes a connection back that is no longer in use.
    pub(super) fn put_back(self: &Arc<Self>, key: &Key, established: Established) {
        if !established.link.is_usable() {
            return;
        }
        let mut state = self.lock();
        let idle: usize = state.places.values().map(|place| place.idle.len()).sum();
        let place = state.places.entry(key.clone()).or_default();
        if idle >= MAX_IDLE || place.idle.len() >= self.limits.idle_per_origin {
            return;
        }
        place.idle.push(Kept {
            link: established.link,
            facts: established.facts,
            used: Instant::now(),
        });
        self.start_reaper(&mut state);
    }

    /// Removes a broken connection and idle ones, which the server has probably closed too.
    pub(super) fn remove(&self, key: &Key, facts: &Arc<Facts>) {
        if let Some(place) = self.lock().places.get_mut(key) {
            place.shared.retain(|kept| !Arc::ptr_eq(&kept.facts, facts));
            place.idle.clear();
        }
    }

    /// Drops connections that are idle for too long. Returns false if none is left.
    fn reap(&self, now: Instant) -> bool {
        let mut state = self.lock();
        let is_fresh = |kept: &Kept| {
            kept.link.is_usable() && now.duration_since(kept.used) < self.limits.idle_timeout
        };
        state.places.retain(|_, place| {
            place.shared.retain(is_fresh);
            place.idle.retain(is_fresh);
            let is_empty = place.shared.is_empty() && place.idle.is_empty();
            !is_empty || Arc::strong_count(&place.dialing) > 1
        });
        state.has_reaper = !state.places.is_empty();
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
        // A panic leaves the state consistent, because all changes are complete.
        self.state.lock()
    }
}

/// Closes idle connections. Shared ones with requests in progress are closed by their handles.
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

/// A connection of HTTP/2, a connection of HTTP/3, and temporarily one more that is going away.
const MAX_SHARED: usize = 3;
/// Maximum of idle HTTP/1.1 connections over all origins: each needs a file descriptor.
const MAX_IDLE: usize = 256;
/// Maximum of connections whose certificates are checked for another origin.
const MAX_CLAIMING: usize = 4;
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests;
