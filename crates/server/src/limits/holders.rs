//! The memory of open connections and of their requests, by connection (limits K115, K370).

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, MutexGuard, Weak};
use std::time::Instant;

use courser_base::{Mutex, ScopedIp, Source};
use tokio::sync::Notify;

use super::refusals::Refusal;
use super::request_memory::{CONSECUTIVE_REFUSALS, MemoryDecision, RequestMemory, burden};

/// All open connections of a server, with the memory that each holds.
///
/// When memory runs short, the server closes a connection of the network whose connections hold the most memory:
/// the one that holds the most for the least progress, and of equal ones the one without progress for the longest
/// time. New connections of that network are refused meanwhile, while others may use the reserve.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    memory: RequestMemory,
    open: Mutex<Table>,
    /// Number of open connections.
    count: AtomicU64,
    /// Bytes that connections hold apart from their requests.
    connections: AtomicU64,
    closed: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    holders: HashMap<u64, Weak<Holder>>,
    /// The network that held the most memory when connections were last examined.
    heaviest: Option<Source>,
}

/// The memory that one connection and its requests hold. It is returned to the budget when this is dropped.
#[derive(Debug)]
pub(crate) struct Holder {
    all: Arc<Holders>,
    key: u64,
    network: Source,
    since: Instant,
    /// Bytes of the connection itself.
    connection: AtomicU64,
    /// Bytes of its requests in progress.
    requests: AtomicU64,
    /// Number of requests that have ended.
    ended: AtomicU64,
    /// Number of requests refused because of memory since another one ended.
    refused: AtomicU64,
    /// `ended` when connections were last examined.
    ended_before: AtomicU64,
    /// Milliseconds from `since` to the last examination that found progress.
    progress: AtomicU64,
    is_closing: AtomicBool,
    closing: Notify,
}

impl Holders {
    pub(crate) fn of_budget(budget: u64) -> Arc<Self> {
        Arc::new(Self {
            memory: RequestMemory::of_budget(budget),
            ..Self::default()
        })
    }

    /// Returns the counter of all held bytes.
    pub(crate) const fn memory(&self) -> &RequestMemory {
        &self.memory
    }

    /// Returns the number of connections that fit into the memory, if each holds this many bytes.
    pub(crate) fn max_connections(&self, bytes: u64) -> usize {
        usize::try_from(self.memory.shared() / bytes).map_or(usize::MAX, |it| it.max(1))
    }

    /// Returns the bytes that connections hold apart from their requests.
    pub(crate) fn of_connections(&self) -> u64 {
        self.connections.load(Relaxed)
    }

    /// Returns the number of connections that were closed because of memory.
    pub(crate) fn closed(&self) -> u64 {
        self.closed.load(Relaxed)
    }

    /// Adds a QUIC connection, whose own memory the endpoint counts.
    pub(crate) fn open_over_quic(self: &Arc<Self>, address: impl Into<ScopedIp>) -> Arc<Holder> {
        self.add(Source::network(address), 0)
    }

    /// Adds a connection that holds this many bytes apart from its requests.
    ///
    /// # Errors
    /// Returns [`Refusal::Memory`] if memory is short.
    pub(crate) fn open(
        self: &Arc<Self>,
        address: impl Into<ScopedIp>,
        bytes: u64,
    ) -> Result<Arc<Holder>, Refusal> {
        let network = Source::network(address);
        match self.take_for_connection(network, bytes) {
            true => Ok(self.add(network, bytes)),
            false => Err(Refusal::Memory),
        }
    }

    fn add(self: &Arc<Self>, network: Source, bytes: u64) -> Arc<Holder> {
        self.count.fetch_add(1, Relaxed);
        self.connections.fetch_add(bytes, Relaxed);
        let mut table = self.lock();
        let key = table.next;
        table.next += 1;
        let holder = Arc::new(Holder {
            all: self.clone(),
            key,
            network,
            since: Instant::now(),
            connection: AtomicU64::new(bytes),
            requests: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            ended_before: AtomicU64::new(0),
            progress: AtomicU64::new(0),
            is_closing: AtomicBool::new(false),
            closing: Notify::new(),
        });
        table.holders.insert(key, Arc::downgrade(&holder));
        holder
    }

    /// Takes bytes for a connection itself. The last quarter of the memory is reserved for requests and for
    /// networks other than the one that holds the most.
    fn take_for_connection(&self, network: Source, bytes: u64) -> bool {
        if self.memory.take_shared(bytes) {
            return true;
        }
        self.close_worst();
        self.lock().heaviest != Some(network) && self.memory.take_reserved(bytes)
    }

    /// Closes the connection that holds the most memory for the least progress, of the network that holds the
    /// most. Examines all connections, so it must run rarely.
    #[cold]
    fn close_worst(&self) {
        if !self.memory.may_shed() {
            return;
        }
        let now = Instant::now();
        let holders: Vec<Arc<Holder>> = {
            let table = self.lock();
            table.holders.values().filter_map(Weak::upgrade).collect()
        };
        let mut networks: HashMap<Source, u64> = HashMap::new();
        let burdens = holders.iter().map(|it| (it.take_burden(now), it));
        let burdens: Vec<_> = burdens.filter(|(it, _)| it.bytes > 0).collect();
        for (burden, holder) in &burdens {
            *networks.entry(holder.network).or_default() += burden.bytes;
        }
        let heaviest = networks.into_iter().max_by_key(|(_, bytes)| *bytes);
        let heaviest = heaviest.map(|(network, _)| network);
        self.lock().heaviest = heaviest;
        let theirs = burdens
            .iter()
            .filter(|(_, it)| Some(it.network) == heaviest);
        let rank = |(burden, it): &&(Burden, &Arc<Holder>)| {
            let size = burden.bytes / COMPARABLE;
            (size, burden.idle_millis, Reverse(it.key))
        };
        if let Some((_, worst)) = theirs.max_by_key(rank) {
            worst.close();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.open.lock()
    }
}

/// The memory of a connection in relation to its progress.
#[derive(Clone, Copy, Debug)]
struct Burden {
    /// Bytes held, reduced by recently completed requests.
    bytes: u64,
    /// Time without a completed request.
    idle_millis: u64,
}

impl Holder {
    /// Takes more memory for the connection itself, for example for a buffer that grows. Returns false if the
    /// connection must be closed, because memory is short and it would hold more than its share.
    #[cold]
    pub(crate) fn grow(&self, bytes: u64) -> bool {
        let all = &self.all;
        let is_taken = all.take_for_connection(self.network, bytes);
        if is_taken {
            self.connection.fetch_add(bytes, Relaxed);
            all.connections.fetch_add(bytes, Relaxed);
        }
        is_taken
    }

    /// Counts memory that the connection holds already. If memory is short, a connection is closed, not
    /// necessarily this one.
    pub(crate) fn hold(&self, bytes: u64) {
        let all = &self.all;
        self.connection.fetch_add(bytes, Relaxed);
        all.connections.fetch_add(bytes, Relaxed);
        if !all.memory.hold(bytes) {
            all.close_worst();
        }
    }

    /// Returns memory that the connection took with [`grow`](Self::grow) or [`hold`](Self::hold).
    pub(crate) fn shrink(&self, bytes: u64) {
        self.connection.fetch_sub(bytes, Relaxed);
        self.all.connections.fetch_sub(bytes, Relaxed);
        self.all.memory.release(bytes);
    }

    /// Takes memory for a request. Returns false if the request must be refused. Otherwise the caller must call
    /// [`end_request`](Self::end_request) with the same number.
    pub(crate) fn begin_request(&self, cost: u64) -> bool {
        let all = &self.all;
        let held = self.requests.load(Relaxed);
        let connections = || all.count.load(Relaxed);
        match all.memory.take(cost, held, connections) {
            MemoryDecision::Admit => {}
            MemoryDecision::AdmitAndShed => all.close_worst(),
            MemoryDecision::Refuse => {
                if self.refused.fetch_add(1, Relaxed) + 1 >= CONSECUTIVE_REFUSALS {
                    self.close();
                }
                all.close_worst();
                return false;
            }
        }
        self.requests.fetch_add(cost, Relaxed);
        true
    }

    /// Ends a request, and returns its memory unless it was refused.
    pub(crate) fn end_request(&self, memory: Option<u64>) {
        if let Some(bytes) = memory {
            self.all.memory.release(bytes);
            self.requests.fetch_sub(bytes, Relaxed);
            self.refused.store(0, Relaxed);
        }
        self.ended.fetch_add(1, Relaxed);
    }

    /// Returns the number of requests that have ended, answered or not.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Relaxed)
    }

    /// Completes when the connection must be closed because of memory.
    pub(crate) async fn closing(&self) {
        let closing = self.closing.notified();
        if !self.is_closing.load(Relaxed) {
            closing.await;
        }
    }

    /// Closes the connection because of memory.
    pub(crate) fn close(&self) {
        if !self.is_closing.swap(true, Relaxed) {
            self.all.closed.fetch_add(1, Relaxed);
            self.closing.notify_waiters();
        }
    }

    /// Returns its burden since the last call; see [`burden`].
    fn take_burden(&self, now: Instant) -> Burden {
        if self.is_closing.load(Relaxed) {
            return Burden {
                bytes: 0,
                idle_millis: 0,
            };
        }
        let ended = self.ended();
        let before = self.ended_before.swap(ended, Relaxed);
        let age = now.saturating_duration_since(self.since).as_millis();
        let age = u64::try_from(age).unwrap_or(u64::MAX);
        if ended != before {
            self.progress.store(age, Relaxed);
        }
        let held = self.connection.load(Relaxed) + self.requests.load(Relaxed);
        Burden {
            bytes: burden(held, ended.saturating_sub(before)),
            idle_millis: age.saturating_sub(self.progress.load(Relaxed)),
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.all.lock().holders.remove(&self.key);
        self.all.count.fetch_sub(1, Relaxed);
        let bytes = self.connection.load(Relaxed);
        self.all.connections.fetch_sub(bytes, Relaxed);
        self.all.memory.release(bytes);
    }
}

/// Difference in bytes below which two connections hold equally much.
const COMPARABLE: u64 = 4096;

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::time::Duration;

    use super::*;

    const COST: u64 = 1000;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// Opens connections of an address until one is refused.
    fn fill(all: &Arc<Holders>, from: &str) -> Vec<Arc<Holder>> {
        std::iter::from_fn(|| all.open(address(from), COST).ok()).collect()
    }

    fn closing(holders: &[Arc<Holder>]) -> Vec<usize> {
        let closing = holders.iter().enumerate();
        let closing = closing.filter(|(_, it)| it.is_closing.load(Relaxed));
        closing.map(|(index, _)| index).collect()
    }

    #[test]
    fn connections_leave_a_quarter_to_requests_and_other_networks() {
        let all = Holders::of_budget(2 * 100 * COST);
        let first = fill(&all, "192.0.2.1");
        assert_eq!((first.len(), all.of_connections()), (75, 75 * COST));
        assert_eq!(closing(&first), [0], "the oldest without progress");
        let refused = all.open(address("192.0.2.9"), COST);
        assert_eq!(refused.expect_err("of the same network"), Refusal::Memory);
        let _other = all.open(address("198.51.100.1"), COST).expect("reserve");
        drop(first);
        assert_eq!(all.of_connections(), COST);
        assert_eq!(all.memory.used().load(Relaxed), COST);
    }

    #[test]
    fn growth_is_refused_to_the_network_that_holds_the_most() {
        let all = Holders::of_budget(2 * 100 * COST);
        let other = all.open(address("198.51.100.1"), COST).expect("room");
        let mut first = fill(&all, "192.0.2.1");
        assert!(!first[1].grow(COST));
        assert!(other.grow(COST), "from the reserve");
        first.truncate(40);
        assert!(first[1].grow(COST));
        first[1].shrink(COST);
        drop((first, other));
        assert_eq!(all.memory.used().load(Relaxed), 0);
    }

    #[test]
    fn held_memory_is_counted_and_closes_a_connection_if_memory_is_short() {
        let all = Holders::of_budget(2 * 100 * COST);
        let open = || all.open(address("192.0.2.1"), COST).expect("room");
        let holders = [open(), open()];
        holders[1].hold(50 * COST);
        assert_eq!(closing(&holders), [0; 0]);
        holders[1].hold(50 * COST);
        assert_eq!(closing(&holders), [1]);
        assert_eq!(all.of_connections(), 102 * COST);
        holders[1].shrink(100 * COST);
        assert_eq!(all.of_connections(), 2 * COST);
    }

    #[test]
    fn connection_that_holds_the_most_is_closed_before_older_ones() {
        let all = Holders::of_budget(2 * 1_000_000);
        let open = || all.open(address("192.0.2.1"), COST).expect("room");
        let holders: Vec<_> = (0..10).map(|_| open()).collect();
        assert!(holders[7].grow(60_000));
        all.close_worst();
        assert_eq!(closing(&holders), [7]);
    }

    #[test]
    fn connection_with_progress_outlives_silent_ones() {
        let all = Holders::of_budget(2 * 1_000_000);
        let open = || all.open(address("192.0.2.1"), COST).expect("room");
        let holders: Vec<_> = (0..3).map(|_| open()).collect();
        assert!(holders[0].begin_request(10));
        holders[0].end_request(Some(10));
        std::thread::sleep(Duration::from_millis(2));
        all.close_worst();
        assert_ne!(closing(&holders), [0]);
        assert_eq!(closing(&holders).len(), 1);
    }

    #[tokio::test]
    async fn all_parts_of_a_connection_are_notified() {
        let all = Holders::of_budget(2 * 1_000_000);
        let holder = all.open(address("192.0.2.1"), COST).expect("room");
        let closing = async { tokio::join!(holder.closing(), holder.closing()) };
        let close = async { holder.close() };
        tokio::join!(closing, close);
        holder.closing().await;
        assert_eq!(all.closed(), 1);
    }
}
