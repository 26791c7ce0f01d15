//! Counters of an endpoint.

/// Counters since the endpoint began, and how it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointStats {
    /// Connections, draining ones included.
    pub connections: usize,
    /// Handshakes that are under way.
    pub half_open: usize,
    /// Clients that wait to be accepted.
    pub waiting: usize,
    /// Connections that the application accepted.
    pub accepted: u64,
    /// Connections that we started.
    pub connected: u64,
    /// Clients that the application refused.
    pub refused: u64,
    /// Clients that got no answer: the waiting room was full, or the application ignored them.
    pub ignored: u64,
    /// Clients that got no answer because the waiting room was full; included in `ignored`.
    pub ignored_for_room: u64,
    /// Clients refused because their address or network held its share of handshakes in progress.
    /// Clients without a token get no answer where Retry is off.
    pub refused_for_share: u64,
    /// Clients refused because their address or network opened connections too fast.
    pub refused_for_rate: u64,
    /// Clients refused while [`Endpoint::set_busy`](crate::Endpoint::set_busy) was on.
    pub refused_while_busy: u64,
    /// Datagrams of blocked addresses.
    pub datagrams_blocked: u64,
    /// Datagrams dropped because their network sent more than all others together while the endpoint
    /// could not keep up.
    pub datagrams_over_share: u64,
    /// Connections closed because their peer's address was blocked.
    pub closed_for_block: u64,
    /// Retry packets sent.
    pub retries_sent: u64,
    /// Version Negotiation packets sent.
    pub version_negotiations_sent: u64,
    /// Stateless resets sent.
    pub resets_sent: u64,
    /// Words of routers that a datagram was too large, and that were believed.
    pub packets_too_big: u64,
    /// Such words that were not: they quote nothing of ours, or claim what cannot be.
    pub packets_too_big_ignored: u64,
    /// Bytes that the connections hold for their peers.
    pub memory_used: u64,
    /// Bytes that they may hold, [`EndpointConfig::memory_budget`](crate::EndpointConfig).
    pub memory_budget: u64,
    /// Connections closed because that was not enough.
    pub closed_for_memory: u64,
    /// Clients refused because little of it was left.
    pub refused_for_memory: u64,
    /// Stateless replies not sent because their rate was reached.
    pub replies_over_rate: u64,
    /// Stateless replies not sent because too many waited to be sent.
    pub replies_over_room: u64,
    /// Connections ended by a panic in their work, for example in a sink or a certificate resolver.
    pub faults: u64,
    /// Pauses of receiving, because the socket had only errors.
    pub receive_pauses: u64,
    /// Datagrams that belonged to nobody and got no answer.
    pub datagrams_dropped: u64,
}
