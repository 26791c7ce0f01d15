//! Limits on the memory of connections and of requests in progress, a part of the memory budget (limit K115).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use courser_base::Mutex;
use http::Request;

/// Counts the memory of TCP connections, and of requests in progress over all protocols and listeners of a server.
///
/// Each request counts with a fixed estimate of its task, its stream and the future of the service, and with the
/// size of its header section. A connection may hold as much as is left of three quarters of the limit. The last
/// quarter is reserved for connections that hold little, so that a few clients with many requests do not exclude
/// all others. If that is not enough, the server closes the connection whose requests hold the most memory for
/// the least progress.
#[derive(Debug)]
pub(crate) struct RequestMemory {
    limit: u64,
    /// Shared with QUIC endpoints, whose budgets include it.
    used: Arc<AtomicU64>,
    shed: Mutex<Option<Instant>>,
}

/// The decision about the memory of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemoryDecision {
    Admit,
    /// The request is admitted, and another connection must be closed.
    AdmitAndShed,
    /// The request is refused, and the connection that holds the most must be closed.
    Refuse,
}

impl RequestMemory {
    /// Creates the counter for the part of a memory budget that connections over TCP and requests may use.
    pub(crate) fn of_budget(budget: u64) -> Self {
        Self {
            limit: budget / REQUESTS_PART,
            used: Arc::default(),
            shed: Mutex::default(),
        }
    }

    /// Returns the number of bytes that connections over TCP and requests may hold.
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the part of the limit that few connections may fill.
    pub(crate) const fn shared(&self) -> u64 {
        self.limit / 4 * 3
    }

    /// Returns the counter of held bytes.
    pub(crate) const fn used(&self) -> &Arc<AtomicU64> {
        &self.used
    }

    /// Takes `cost` bytes for a connection that holds `held` bytes. `connections` returns the number of open
    /// connections. The caller returns admitted bytes with [`release`](Self::release).
    pub(crate) fn take(
        &self,
        cost: u64,
        held: u64,
        connections: impl Fn() -> u64,
    ) -> MemoryDecision {
        let before = self.used.fetch_add(cost, Relaxed);
        let used = before.saturating_add(cost);
        let shared = self.shared();
        if held.saturating_add(cost) <= shared.saturating_sub(before) {
            return MemoryDecision::Admit;
        }
        let least = self.limit / 4 / connections().max(1);
        if used <= self.limit && held.saturating_add(cost) <= least.max(cost) {
            return match used > self.limit / 8 * 7 {
                true => MemoryDecision::AdmitAndShed,
                false => MemoryDecision::Admit,
            };
        }
        self.release(cost);
        MemoryDecision::Refuse
    }

    /// Takes bytes for a connection itself, from the three quarters of the memory that connections may fill.
    pub(crate) fn take_shared(&self, bytes: u64) -> bool {
        self.take_below(self.shared(), bytes)
    }

    /// Takes bytes for a connection itself, from the first half of the reserve.
    pub(crate) fn take_reserved(&self, bytes: u64) -> bool {
        self.take_below(self.limit / 8 * 7, bytes)
    }

    /// Counts bytes that are held already. Returns false if memory is short.
    pub(crate) fn hold(&self, bytes: u64) -> bool {
        let before = self.used.fetch_add(bytes, Relaxed);
        before.saturating_add(bytes) <= self.shared()
    }

    fn take_below(&self, limit: u64, bytes: u64) -> bool {
        let before = self.used.fetch_add(bytes, Relaxed);
        let fits = before.saturating_add(bytes) <= limit;
        if !fits {
            self.release(bytes);
        }
        fits
    }

    /// Returns bytes that were taken.
    pub(crate) fn release(&self, cost: u64) {
        self.used.fetch_sub(cost, Relaxed);
    }

    /// Returns true if a connection may be closed now. At most once per [`SHED_INTERVAL`], because the search is
    /// slow.
    pub(crate) fn may_shed(&self) -> bool {
        let mut shed = self.shed.lock();
        let now = Instant::now();
        let is_time = shed.is_none_or(|last| now.duration_since(last) >= SHED_INTERVAL);
        if is_time {
            *shed = Some(now);
        }
        is_time
    }
}

/// Creates a counter without a limit.
impl Default for RequestMemory {
    fn default() -> Self {
        Self::of_budget(u64::MAX)
    }
}

/// Returns the estimated memory of a request in progress.
pub(crate) fn cost<B>(request: &Request<B>) -> u64 {
    let fields = request.headers().iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + FIELD);
    let target = request.uri().path_and_query();
    let target = target.map_or(0, |target| target.as_str().len());
    REQUEST + (fields.sum::<usize>() + target) as u64
}

/// Returns the memory held by a connection, reduced by recently completed requests.
pub(crate) fn burden(held: u64, ended: u64) -> u64 {
    let moved = u128::from(ended) * u128::from(REQUEST);
    let held_wide = u128::from(held);
    let burden = held_wide * held_wide / (held_wide + moved).max(1);
    u64::try_from(burden).unwrap_or(held)
}

/// Divisor of the memory budget that yields the limit of connections over TCP and requests (limit K115).
const REQUESTS_PART: u64 = 2;

/// Memory of a request with an empty header section: `courser serve` needs 8 KiB for each request of a large
/// file over HTTP/2 and HTTP/3, measured with 250 requests of each client.
const REQUEST: u64 = 8 * 1024;

/// Memory of a field line in addition to its name and value.
const FIELD: usize = 112;

/// Least time between two connections that are closed because of memory.
const SHED_INTERVAL: Duration = Duration::from_millis(20);

/// Number of consecutive refused requests after which a connection is closed: a client that reads no responses
/// would keep all of them in memory.
pub(crate) const CONSECUTIVE_REFUSALS: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    const COST: u64 = 10;

    /// Takes memory for a client until it is refused. Returns the bytes that it holds.
    fn fill(memory: &RequestMemory, connections: u64) -> u64 {
        let mut held = 0;
        while memory.take(COST, held, || connections) != MemoryDecision::Refuse {
            held += COST;
        }
        held
    }

    #[test]
    fn connection_may_hold_as_much_as_is_left() {
        let memory = RequestMemory::of_budget(2 * 8000);
        assert_eq!(fill(&memory, 10), 3000);
        assert_eq!(fill(&memory, 10), 1500);
        assert_eq!(memory.used().load(Relaxed), 4500);
    }

    #[test]
    fn last_quarter_is_reserved_for_connections_that_hold_little() {
        let memory = RequestMemory::of_budget(2 * 8000);
        let filled: u64 = (0..20).map(|_| fill(&memory, 20)).sum();
        assert!(filled <= 8000, "{filled}");
        assert_eq!(fill(&memory, 20), 100);
    }

    #[test]
    fn all_together_never_hold_more_than_the_limit() {
        let memory = RequestMemory::of_budget(2 * 8000);
        for _ in 0..10_000 {
            fill(&memory, 10_000);
        }
        assert_eq!(memory.used().load(Relaxed), 8000);
    }

    #[test]
    fn connection_is_closed_before_memory_is_exhausted() {
        let memory = RequestMemory::of_budget(2 * 8000);
        let mut verdicts = (0..800).map(|_| memory.take(COST, 0, || 1));
        assert!(
            verdicts
                .by_ref()
                .take(700)
                .all(|it| it == MemoryDecision::Admit)
        );
        assert!(verdicts.all(|it| it == MemoryDecision::AdmitAndShed));
        assert_eq!(memory.take(COST, 0, || 1), MemoryDecision::Refuse);
        memory.release(2000);
        assert_eq!(memory.take(COST, 0, || 1), MemoryDecision::Admit);
    }

    #[test]
    fn header_sections_count() {
        let request = |value: &str| {
            Request::get("/a")
                .header("x", value)
                .body(())
                .expect("a request")
        };
        let (short, long) = (cost(&request("1")), cost(&request(&"1".repeat(5001))));
        assert_eq!(long - short, 5000);
        assert!(short > REQUEST && short < REQUEST + 256, "{short}");
    }

    #[test]
    fn connections_that_end_requests_are_a_smaller_burden() {
        assert_eq!(burden(10 * REQUEST, 0), 10 * REQUEST);
        assert_eq!(burden(10 * REQUEST, 10), 5 * REQUEST);
        assert_eq!(burden(0, 0), 0);
    }
}
