//! Reasons for refusing clients, and their counts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use courser_quic::EndpointStats;

/// The reason why a listener refuses a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The largest number of connections is open.
    Full,
    /// Clients with unvalidated addresses hold their part of the connections.
    Unvalidated,
    /// The address or network holds its share.
    Share,
    /// The address holds the largest number of connections per address.
    Address,
    /// The address or network opens connections too fast.
    Rate,
    /// The address is blocked.
    Blocked,
    /// The server was switched to busy.
    Busy,
    /// The memory for TCP connections is exhausted.
    Memory,
}

/// Counts the refusals of all listeners by reason.
#[derive(Debug, Default)]
pub(crate) struct Counts([AtomicU64; 8]);

impl Counts {
    pub(crate) fn add(&self, refusal: Refusal) {
        self.0[refusal as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn of(&self, refusal: Refusal) -> u64 {
        self.0[refusal as usize].load(Relaxed)
    }
}

/// Numbers of refused clients over QUIC and TCP, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Refusals {
    /// All of [`Limits::max_connections`](crate::Limits::max_connections) were open.
    pub full: u64,
    /// The address or network held its share of the connections.
    pub share: u64,
    /// The address held [`Limits::max_connections_per_address`](crate::Limits) connections.
    pub address: u64,
    /// The address or network opened connections faster than [`Limits::connection_rate`](crate::Limits) or
    /// [`Limits::loaded_connection_rate`](crate::Limits).
    pub rate: u64,
    /// The address or network held its share of QUIC handshakes in progress.
    pub handshake_share: u64,
    /// The address was blocked. Counts datagrams over QUIC, connections over TCP.
    pub blocked: u64,
    /// The server was [busy](crate::ServerHandle::set_busy).
    pub busy: u64,
    /// The memory budget for connections was nearly exhausted.
    pub memory: u64,
    /// The queue of QUIC clients that wait to be accepted was full.
    pub waiting_room: u64,
    /// The network sent more datagrams than all others while the server was overloaded. Counts datagrams.
    pub backlog: u64,
}

impl Refusals {
    /// Returns all counts with the names of their reasons, as in the metrics.
    pub const fn by_reason(&self) -> [(&'static str, u64); 10] {
        [
            ("full", self.full),
            ("share", self.share),
            ("address", self.address),
            ("rate", self.rate),
            ("handshake_share", self.handshake_share),
            ("blocked", self.blocked),
            ("busy", self.busy),
            ("memory", self.memory),
            ("waiting_room", self.waiting_room),
            ("backlog", self.backlog),
        ]
    }

    pub(crate) fn of_listeners(counts: &Counts) -> Self {
        Self {
            full: counts.of(Refusal::Full),
            share: counts.of(Refusal::Share) + counts.of(Refusal::Unvalidated),
            address: counts.of(Refusal::Address),
            rate: counts.of(Refusal::Rate),
            blocked: counts.of(Refusal::Blocked),
            busy: counts.of(Refusal::Busy),
            memory: counts.of(Refusal::Memory),
            ..Self::default()
        }
    }

    /// Adds the counts of a QUIC endpoint.
    pub(crate) const fn add_endpoint(&mut self, stats: &EndpointStats) {
        self.rate += stats.refused_for_rate;
        self.handshake_share += stats.refused_for_share;
        self.blocked += stats.datagrams_blocked;
        self.busy += stats.refused_while_busy;
        self.memory += stats.refused_for_memory;
        self.waiting_room += stats.ignored_for_room;
        self.backlog += stats.datagrams_over_share;
    }
}
