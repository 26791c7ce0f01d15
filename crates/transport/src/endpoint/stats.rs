//! Counters of an endpoint.

use std::ops::AddAssign;

use crate::connection::Fallbacks;

/// Counters since the endpoint was created, and its present state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointStats {
    /// Connections, draining ones included.
    pub connections: usize,
    /// Handshakes in progress, those of waiting clients included.
    pub half_open: usize,
    /// Clients that wait to be accepted.
    pub waiting: usize,
    /// Connections that the application accepted.
    pub accepted: u64,
    /// Connections that we started.
    pub connected: u64,
    /// Clients that the application refused.
    pub refused: u64,
    /// Clients that got no answer, because the limit on waiting clients was reached or the application
    /// ignored them.
    pub ignored: u64,
    /// Clients that got no answer because the limit on waiting clients was reached; included in
    /// `ignored`.
    pub ignored_for_room: u64,
    /// Clients refused because their address or network had reached its share of handshakes in progress.
    /// Clients without a token get no answer if Retry is off.
    pub refused_for_share: u64,
    /// Clients refused because their address or network opened connections too fast.
    pub refused_for_rate: u64,
    /// Clients refused while [`Endpoint::set_busy`](crate::Endpoint::set_busy) was on.
    pub refused_while_busy: u64,
    /// Datagrams of blocked addresses.
    pub datagrams_blocked: u64,
    /// Datagrams dropped because their network sent more than all others together while the
    /// endpoint could not keep up, and because they did not belong to a connection.
    pub datagrams_over_share: u64,
    /// Connections closed because their peer's address was blocked.
    pub closed_for_block: u64,
    /// Retry packets sent, each to a client that must validate its address.
    pub retries_sent: u64,
    /// Version Negotiation packets sent.
    pub version_negotiations_sent: u64,
    /// Stateless resets sent for packets without a connection.
    pub resets_sent: u64,
    /// Credible ICMP Packet Too Big messages.
    pub packets_too_big: u64,
    /// ICMP Packet Too Big messages that were ignored: they quoted no packet of ours, or were
    /// implausible.
    pub packets_too_big_ignored: u64,
    /// Bytes that the connections hold for their peers.
    pub memory_used: u64,
    /// Maximum of `memory_used`, [`EndpointConfig::memory_budget`](crate::EndpointConfig).
    pub memory_budget: u64,
    /// Connections closed because the memory budget was exceeded.
    pub closed_for_memory: u64,
    /// Clients refused because the memory budget was nearly used up.
    pub refused_for_memory: u64,
    /// Stateless replies not sent because of their rate limit.
    pub replies_over_rate: u64,
    /// Stateless replies not sent because too many were waiting to be sent.
    pub replies_over_room: u64,
    /// Connections ended by a panic in their work, for example in a sink or a certificate resolver.
    pub faults: u64,
    /// Pauses of receiving because the socket returned only errors.
    pub receive_pauses: u64,
    /// Connection IDs that could not be generated, because all were taken or the generator is faulty.
    pub connection_ids_failed: u64,
    /// Datagrams with an ID that the generator of connection IDs cannot have generated. Those that are not
    /// stateless resets are included in `datagrams_dropped`.
    pub datagrams_foreign: u64,
    /// Datagrams that belonged to no connection and got no answer.
    pub datagrams_dropped: u64,
    /// Datagrams that arrived at a shard without their connection, and were forwarded. An endpoint with
    /// one shard has none.
    pub strays_sent: u64,
    /// Datagrams that another shard has forwarded.
    pub strays_received: u64,
    /// Forwarded datagrams that were dropped because the queue of their shard was full (limit K220);
    /// included in `strays_sent`.
    pub strays_dropped: u64,
    /// Optional features that connections disabled on a path, because packets with them were lost while
    /// others arrived.
    pub fallbacks: Fallbacks,
    /// Received datagrams that the operating system dropped because the receive buffer of a socket was
    /// full; `None` where it does not report them. The owner of the sockets fills this in: an endpoint
    /// without I/O reports `None`.
    pub receive_overflow: Option<u64>,
}

/// Adds the counters of another shard of the same endpoint. The memory budget is common to all shards.
impl AddAssign for EndpointStats {
    #[expect(clippy::too_many_lines, reason = "two lines for each field")]
    fn add_assign(&mut self, other: Self) {
        // Each field by name, so that a new one is not forgotten.
        let Self {
            connections,
            half_open,
            waiting,
            accepted,
            connected,
            refused,
            ignored,
            ignored_for_room,
            refused_for_share,
            refused_for_rate,
            refused_while_busy,
            datagrams_blocked,
            datagrams_over_share,
            closed_for_block,
            retries_sent,
            version_negotiations_sent,
            resets_sent,
            packets_too_big,
            packets_too_big_ignored,
            memory_used,
            memory_budget,
            closed_for_memory,
            refused_for_memory,
            replies_over_rate,
            replies_over_room,
            faults,
            receive_pauses,
            connection_ids_failed,
            datagrams_foreign,
            datagrams_dropped,
            strays_sent,
            strays_received,
            strays_dropped,
            fallbacks,
            receive_overflow,
        } = other;
        self.connections += connections;
        self.half_open += half_open;
        self.waiting += waiting;
        self.accepted += accepted;
        self.connected += connected;
        self.refused += refused;
        self.ignored += ignored;
        self.ignored_for_room += ignored_for_room;
        self.refused_for_share += refused_for_share;
        self.refused_for_rate += refused_for_rate;
        self.refused_while_busy += refused_while_busy;
        self.datagrams_blocked += datagrams_blocked;
        self.datagrams_over_share += datagrams_over_share;
        self.closed_for_block += closed_for_block;
        self.retries_sent += retries_sent;
        self.version_negotiations_sent += version_negotiations_sent;
        self.resets_sent += resets_sent;
        self.packets_too_big += packets_too_big;
        self.packets_too_big_ignored += packets_too_big_ignored;
        self.memory_used += memory_used;
        self.closed_for_memory += closed_for_memory;
        self.refused_for_memory += refused_for_memory;
        self.replies_over_rate += replies_over_rate;
        self.replies_over_room += replies_over_room;
        self.faults += faults;
        self.receive_pauses += receive_pauses;
        self.connection_ids_failed += connection_ids_failed;
        self.datagrams_foreign += datagrams_foreign;
        self.datagrams_dropped += datagrams_dropped;
        self.strays_sent += strays_sent;
        self.strays_received += strays_received;
        self.strays_dropped += strays_dropped;
        self.fallbacks += fallbacks;
        self.memory_budget = self.memory_budget.max(memory_budget);
        self.receive_overflow = sum(self.receive_overflow, receive_overflow);
    }
}

/// Adds two counters, if both are known.
fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one? + other?)
}
