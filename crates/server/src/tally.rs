//! Counters of a running server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use courser_base::Mutex;
use courser_quic::{Connection, ConnectionStats, EarlyData};

use crate::limits::buffers::TUNNEL;
use crate::limits::holders::{Holder, Holders};
use crate::limits::refusals::{Counts, Refusal};
use crate::limits::shares::Share;
use crate::own_response::{OwnListener, OwnResponses};
use crate::peer::{Peer, Protocol};
use crate::requests::Handlers;

/// Counters shared by all parts of a server.
#[derive(Debug, Default)]
pub(super) struct Tally {
    protocols: [ProtocolTally; 3],
    pub(super) tcp_received: AtomicU64,
    pub(super) tcp_sent: AtomicU64,
    pub(super) tcp_handshakes_failed: AtomicU64,
    pub(super) quic_handshakes_failed: AtomicU64,
    pub(super) refusals: Counts,
    pub(super) holders: Arc<Holders>,
    pub(super) requests_refused: AtomicU64,
    pub(super) early_requests: AtomicU64,
    pub(super) requests_too_early: AtomicU64,
    pub(super) early_data_without_token: AtomicU64,
    pub(super) requests_misdirected: AtomicU64,
    /// Responses to requests that the service did not get.
    pub(super) own: OwnResponses,
    pub(super) handlers: Handlers,
    next_id: AtomicU64,
    /// Numbers of requests and connections that were open when the remaining ones were aborted.
    cut: OnceLock<(u64, u64)>,
    pub(super) drain: OnceLock<DrainBegin>,
    /// Totals of closed QUIC connections.
    past: Mutex<QuicTotals>,
    open: Mutex<HashMap<u64, Arc<Record>>>,
}

/// Totals of all QUIC connections, including open ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct QuicTotals {
    /// Number of completed handshakes.
    pub handshakes: u64,
    /// Total duration of the completed handshakes.
    pub handshake_time: Duration,
    /// Number of QUIC packets sent.
    pub packets_sent: u64,
    /// Number of QUIC packets received and decrypted.
    pub packets_received: u64,
    /// Number of QUIC packets declared lost.
    pub packets_lost: u64,
    /// Number of QUIC packets declared lost that arrived late.
    pub packets_spuriously_lost: u64,
    /// Number of probe timeouts (RFC 9002 §6.2).
    pub ptos: u64,
    /// Number of reductions of the congestion window because of loss or ECN.
    pub congestion_events: u64,
    /// Number of connections whose early data was accepted.
    pub early_data_accepted: u64,
    /// Number of connections whose early data was rejected because their ticket was unknown, too old or used
    /// before, or because a limit is lower than when it was issued.
    pub early_data_refused: u64,
}

impl QuicTotals {
    fn add(&mut self, stats: &ConnectionStats) {
        if let Some(time) = stats.handshake_time {
            self.handshakes += 1;
            self.handshake_time += time;
        }
        self.packets_sent += stats.packets_sent;
        self.packets_received += stats.packets_received;
        self.packets_lost += stats.packets_lost;
        self.packets_spuriously_lost += stats.packets_spuriously_lost;
        self.ptos += stats.ptos;
        self.congestion_events += stats.congestion_events;
        match stats.early_data {
            EarlyData::Accepted => self.early_data_accepted += 1,
            _ => self.early_data_refused += u64::from(stats.early_packets_dropped > 0),
        }
    }
}

/// The start of a drain.
#[derive(Debug)]
pub(super) struct DrainBegin {
    pub(super) at: Instant,
    pub(super) deadline: Duration,
    pub(super) connections: u64,
}

/// Counters of one protocol.
#[derive(Debug, Default)]
pub(super) struct ProtocolTally {
    pub(super) connections: AtomicU64,
    pub(super) connections_open: AtomicU64,
    requests: AtomicU64,
    requests_ended: AtomicU64,
}

impl ProtocolTally {
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    pub(super) fn in_flight(&self) -> u64 {
        difference(&self.requests, &self.requests_ended)
    }
}

/// Returns the number of requests in progress, as a difference that costs requests no counter of its own.
fn difference(requests: &AtomicU64, ended: &AtomicU64) -> u64 {
    // `ended` is loaded first, so that a request that starts and ends meanwhile does not count as ended only.
    let ended = ended.load(Relaxed);
    requests.load(Relaxed).saturating_sub(ended)
}

impl Tally {
    pub(super) fn new(memory: u64, listener: OwnListener, handlers: Handlers) -> Self {
        Self {
            holders: Holders::of_budget(memory),
            own: OwnResponses::new(listener, handlers.counts.clone()),
            handlers,
            ..Self::default()
        }
    }

    pub(super) const fn of(&self, protocol: Protocol) -> &ProtocolTally {
        &self.protocols[protocol as usize]
    }

    pub(super) fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    /// Counts a refused connection.
    pub(super) fn on_refused(&self, refusal: Refusal) {
        self.refusals.add(refusal);
    }

    /// Records the open requests and connections, which are all aborted from now on.
    ///
    /// They are counted here instead of when they end, because a reader could not tell when the last one has
    /// ended.
    pub(super) fn begin_cutting(&self) {
        self.cut
            .get_or_init(|| (self.in_flight(), self.connections_open()));
    }

    /// Records that the server drains until `deadline`. Returns the number of open connections.
    pub(super) fn begin_drain(&self, deadline: Duration) -> u64 {
        let begin = self.drain.get_or_init(|| DrainBegin {
            at: Instant::now(),
            deadline,
            connections: self.connections_open(),
        });
        begin.connections
    }

    /// Returns the numbers of requests and connections that were aborted, including those that user code still
    /// holds.
    pub(super) fn cut(&self) -> (u64, u64) {
        let left = || (self.in_flight(), self.connections_open());
        self.cut.get().copied().unwrap_or_else(left)
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.protocols.iter().map(ProtocolTally::in_flight).sum()
    }

    /// Returns the number of requests that have ended.
    pub(super) fn answered(&self) -> u64 {
        let ended = |protocol: &ProtocolTally| protocol.requests_ended.load(Relaxed);
        self.protocols.iter().map(ended).sum()
    }

    pub(super) fn connections_open(&self) -> u64 {
        let open = |protocol: &ProtocolTally| protocol.connections_open.load(Relaxed);
        self.protocols.iter().map(open).sum()
    }

    /// Returns the totals of all QUIC connections so far.
    pub(super) fn quic_totals(&self) -> QuicTotals {
        let mut totals = *self.past.lock();
        for record in self.open() {
            if let Some(stats) = record.quic_stats() {
                totals.add(&stats);
            }
        }
        totals
    }

    /// Returns all open connections.
    pub(super) fn open(&self) -> Vec<Arc<Record>> {
        self.lock().values().cloned().collect()
    }

    /// Returns the open connection with this number.
    pub(super) fn find(&self, id: u64) -> Option<Arc<Record>> {
        self.lock().get(&id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Record>>> {
        self.open.lock()
    }
}

/// The counters of one connection, and its client.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) peer: Peer,
    pub(super) since: Instant,
    /// The counters of the server, which include those of the connection.
    tally: Arc<Tally>,
    requests: AtomicU64,
    /// Bytes received and sent, over TCP.
    pub(super) traffic: Arc<Traffic>,
    /// The memory of the connection and its requests.
    holder: Arc<Holder>,
    /// The QUIC connection, for its statistics. Removed when the connection ends, because it would keep it open.
    quic: Mutex<Option<Connection>>,
}

/// Byte counters of one TCP connection.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) received: AtomicU64,
    pub(super) sent: AtomicU64,
    /// `received` when the last request began.
    taken: AtomicU64,
}

impl Traffic {
    /// Records that all received bytes belong to requests that the service has.
    fn on_request(&self) {
        self.taken.store(self.received.load(Relaxed), Relaxed);
    }

    /// Counts received bytes. Returns the number of bytes received since the last request began.
    pub(super) fn on_received(&self, bytes: u64) -> u64 {
        let received = self.received.fetch_add(bytes, Relaxed) + bytes;
        received.saturating_sub(self.taken.load(Relaxed))
    }
}

impl Record {
    pub(super) fn quic_stats(&self) -> Option<ConnectionStats> {
        let quic = self.quic.lock();
        quic.as_ref().map(Connection::stats)
    }

    /// Returns what the requests of all connections share.
    pub(super) fn handlers(&self) -> &Handlers {
        &self.tally.handlers
    }

    /// Returns the memory of the connection and its requests.
    pub(super) const fn holder(&self) -> &Arc<Holder> {
        &self.holder
    }

    /// Completes when the connection must be closed because of memory.
    pub(super) async fn shed(&self) {
        self.holder.closing().await;
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    pub(super) fn in_flight(&self) -> u64 {
        // As in `difference`.
        let ended = self.ended();
        self.requests().saturating_sub(ended)
    }

    /// Returns the number of requests that have ended, answered or not.
    pub(super) fn ended(&self) -> u64 {
        self.holder.ended()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.in_flight() == 0
    }
}

/// A connection that counts as open until this is dropped.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) tally: Arc<Tally>,
    pub(super) record: Arc<Record>,
    share: Option<Share>,
}

impl Open {
    pub(super) fn new(
        tally: &Arc<Tally>,
        peer: Peer,
        traffic: Arc<Traffic>,
        holder: Arc<Holder>,
        quic: Option<Connection>,
    ) -> Self {
        let of_protocol = tally.of(peer.protocol());
        of_protocol.connections.fetch_add(1, Relaxed);
        of_protocol.connections_open.fetch_add(1, Relaxed);
        let record = Arc::new(Record {
            peer,
            since: Instant::now(),
            tally: tally.clone(),
            requests: AtomicU64::new(0),
            traffic,
            holder,
            quic: Mutex::new(quic),
        });
        tally
            .lock()
            .insert(record.peer.connection_id(), record.clone());
        Self {
            tally: tally.clone(),
            record,
            share: None,
        }
    }

    /// Adds the share of its address. It is returned first, so that a client that observes the end of the
    /// connection can open another one.
    pub(super) fn with_share(mut self, share: Share) -> Self {
        self.share = Some(share);
        self
    }

    /// Starts a request that counts as in flight and holds memory until the result is dropped.
    pub(super) fn begin_request(&self, cost: u64) -> InFlight {
        let of_protocol = self.tally.of(self.record.peer.protocol());
        of_protocol.requests.fetch_add(1, Relaxed);
        self.record.requests.fetch_add(1, Relaxed);
        self.record.traffic.on_request();
        InFlight {
            record: self.record.clone(),
            memory: self.take_memory(cost),
        }
    }

    /// Returns `None` if the memory limit does not allow the request.
    fn take_memory(&self, cost: u64) -> Option<u64> {
        let is_taken = self.record.holder.begin_request(cost);
        if !is_taken {
            self.tally.requests_refused.fetch_add(1, Relaxed);
        }
        is_taken.then_some(cost)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        drop(self.share.take());
        let id = self.record.peer.connection_id();
        self.tally.lock().remove(&id);
        let of_protocol = self.tally.of(self.record.peer.protocol());
        of_protocol.connections_open.fetch_sub(1, Relaxed);
        let quic = self.record.quic.lock().take();
        if let Some(quic) = quic {
            let mut past = self.tally.past.lock();
            past.add(&quic.stats());
        }
    }
}

/// A request whose response is not sent completely.
#[derive(Debug)]
pub(super) struct InFlight {
    record: Arc<Record>,
    /// Bytes that it holds; `None` if it was refused.
    memory: Option<u64>,
}

impl InFlight {
    /// Counts the memory of the tunnel that the connection becomes with this response.
    pub(super) fn on_upgrade(&self) {
        let holder = &self.record.holder;
        if !holder.grow(TUNNEL) {
            holder.close();
        }
    }

    /// Returns true if the request is refused because of memory.
    pub(super) const fn is_refused(&self) -> bool {
        self.memory.is_none()
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let (record, tally) = (&self.record, &self.record.tally);
        let of_protocol = tally.of(record.peer.protocol());
        of_protocol.requests_ended.fetch_add(1, Relaxed);
        record.holder.end_request(self.memory);
    }
}
