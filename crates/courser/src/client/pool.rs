//! Connections that are kept.
//!
//! One of HTTP/3 or HTTP/2 to each origin carries all its requests; of HTTP/1.1 there are as many
//! as there are requests at a time, and some are kept for later. Idle ones are closed after a while
//! by a task that lives as long as there is something to close.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::link::{Established, Facts, Link};
use super::origin::Origin;

/// What a connection leads to, and through which proxy.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key {
    pub(super) origin: Origin,
    pub(super) proxy: Option<http::Uri>,
}

/// How many connections are kept, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) idle_timeout: Duration,
    pub(super) idle_per_origin: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // As browsers and other clients have it; servers close most a bit earlier or later.
            idle_timeout: Duration::from_secs(90),
            idle_per_origin: 32,
        }
    }
}

/// See the module.
pub(super) struct Pool {
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    places: HashMap<Key, Place>,
    has_reaper: bool,
}

#[derive(Default)]
struct Place {
    /// The best last.
    shared: Vec<Kept>,
    /// The most recent last.
    idle: Vec<Kept>,
    /// Held by whoever makes the first connection, so that a hundred requests make one.
    dialing: Arc<tokio::sync::Mutex<()>>,
    /// The last connection was one that cannot be shared.
    is_http1: bool,
}

struct Kept {
    link: Link,
    facts: Arc<Facts>,
    used: Instant,
}

/// Whether to wait for somebody else's connection.
pub(super) enum Dialing {
    /// Connections there cannot be shared.
    Alone,
    /// Whoever gets this lock makes one for all.
    Together(Arc<tokio::sync::Mutex<()>>),
}

impl Pool {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            state: Mutex::default(),
        })
    }

    /// A connection that exists.
    pub(super) fn take(&self, key: &Key) -> Option<Established> {
        let mut state = self.lock();
        let place = state.places.get_mut(key)?;
        place.shared.retain(|kept| kept.link.is_usable());
        if let Some(kept) = place.shared.last_mut() {
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

    /// How to go about making one.
    pub(super) fn dialing(&self, key: &Key) -> Dialing {
        let mut state = self.lock();
        let place = state.places.entry(key.clone()).or_default();
        if place.is_http1 {
            Dialing::Alone
        } else {
            Dialing::Together(place.dialing.clone())
        }
    }

    /// Keeps a new connection, if others can use it too. The newest is the best: QUIC that comes
    /// after TCP has won replaces it.
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

    /// Takes a connection back that nobody uses any more.
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

    /// Forgets a connection that turned out to be broken, and idle ones with it: the server has
    /// probably closed them for the same reason.
    pub(super) fn remove(&self, key: &Key, facts: &Arc<Facts>) {
        if let Some(place) = self.lock().places.get_mut(key) {
            place.shared.retain(|kept| !Arc::ptr_eq(&kept.facts, facts));
            place.idle.clear();
        }
    }

    /// Drops what is idle for too long; false when nothing is left.
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

    fn start_reaper(self: &Arc<Self>, state: &mut State) {
        if !state.has_reaper {
            state.has_reaper = true;
            let every = (self.limits.idle_timeout / 4).max(SHORTEST_PAUSE);
            tokio::spawn(reaper(Arc::downgrade(self), every));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // All changes are whole ones.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A shared connection whose last request is still answered is closed by the last handle, not here.
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

/// One of HTTP/2 and one of HTTP/3, for a while one more that goes away.
const MAX_SHARED: usize = 3;
/// Of HTTP/1.1, over all origins: each is a file descriptor.
const MAX_IDLE: usize = 256;
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests;
