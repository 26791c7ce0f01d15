//! Limits on the rate at which a source opens TCP connections (limit K102).

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use courser_base::{ScopedIp, Time};
use courser_transport::CreationLimiter;

use super::Limits;
use super::refusals::Refusal;

/// Counts new connections of a listener by source.
#[derive(Debug)]
pub(crate) struct Rate {
    limiter: CreationLimiter,
    always: Option<u32>,
    loaded: Option<u32>,
    is_loaded: Arc<AtomicBool>,
    began: Instant,
}

/// A connection whose task has not run yet. Its delay indicates whether the CPU is overloaded.
#[derive(Debug)]
pub(crate) struct Queued {
    since: Instant,
    is_loaded: Arc<AtomicBool>,
}

impl Rate {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            limiter: CreationLimiter::new(random_key()),
            always: limits.connection_rate,
            loaded: limits.loaded_connection_rate,
            is_loaded: Arc::default(),
            began: Instant::now(),
        }
    }

    /// Admits or refuses a new connection from this address, and counts it.
    pub(crate) fn admit(&mut self, address: impl Into<ScopedIp>) -> Result<(), Refusal> {
        let loaded = self.loaded.filter(|_| self.is_loaded.load(Relaxed));
        let Some(rate) = self.always.into_iter().chain(loaded).min() else {
            return Ok(());
        };
        let nanos = self.began.elapsed().as_nanos();
        let now = Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        // The TCP handshake has validated the address.
        match self.limiter.allow(address, true, rate, now) {
            true => Ok(()),
            false => Err(Refusal::Rate),
        }
    }

    /// Starts to measure the delay of a connection that is passed to a task.
    pub(crate) fn on_queued(&self) -> Queued {
        Queued {
            since: Instant::now(),
            is_loaded: self.is_loaded.clone(),
        }
    }
}

impl Queued {
    /// Records the delay when the task runs.
    pub(crate) fn on_started(self) {
        let is_loaded = self.since.elapsed() >= LOADED_DELAY;
        self.is_loaded.store(is_loaded, Relaxed);
    }
}

/// Returns a random key, as the maps of the standard library use.
fn random_key() -> [u8; 16] {
    let random = RandomState::new();
    let halves = [0u8, 1].map(|half| u128::from(random.hash_one(half)));
    (halves[0] << 64 | halves[1]).to_le_bytes()
}

/// Delay of a new connection's task that indicates overload, as over QUIC (limit K11).
const LOADED_DELAY: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// Returns the number of admitted connections in a burst.
    fn burst(rate: &mut Rate) -> usize {
        let admitted = |_: &i32| rate.admit(Ipv4Addr::new(192, 0, 2, 1)).is_ok();
        (0..1000).filter(admitted).count()
    }

    #[test]
    fn all_are_admitted_without_a_rate() {
        assert_eq!(burst(&mut Rate::new(&Limits::default())), 1000);
    }

    #[test]
    fn rate_admits_a_burst_of_one_second() {
        let mut rate = Rate::new(&Limits {
            connection_rate: Some(1),
            ..Limits::default()
        });
        assert_eq!(burst(&mut rate), 1);
        assert_eq!(rate.admit(Ipv4Addr::new(192, 0, 2, 2)), Ok(()));
    }

    #[test]
    fn rate_under_load_applies_while_tasks_wait_for_the_cpu() {
        let mut rate = Rate::new(&Limits {
            loaded_connection_rate: Some(1),
            ..Limits::default()
        });
        assert_eq!(burst(&mut rate), 1000);
        let mut queued = rate.on_queued();
        queued.since -= LOADED_DELAY;
        queued.on_started();
        assert_eq!(burst(&mut rate), 1);
        rate.on_queued().on_started();
        assert_eq!(burst(&mut rate), 1000);
    }
}
