//! Counters of tunnels and proxies.

/// The counters of one end of a tunnel, in datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TunnelStats {
    /// Received UDP payloads.
    pub received: u64,
    /// Sent UDP payloads. Those in QUIC DATAGRAM frames may be lost.
    pub sent: u64,
    /// Payloads that were not sent: too large for the path, or no room in the queue. Over HTTP/3 the queue belongs to the
    /// connection and drops the oldest, which have been counted as sent.
    pub dropped_sending: u64,
    /// Received datagrams that were dropped because too many waited.
    pub dropped_receiving: u64,
    /// Received datagrams of contexts that nobody has registered.
    pub dropped_contexts: u64,
}

/// The counters of a proxy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ProxyStats {
    /// Tunnels that are open.
    pub open: u64,
    /// Tunnels that were opened.
    pub opened: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// UDP packets to targets.
    pub to_targets: u64,
    /// UDP packets from targets.
    pub from_targets: u64,
    /// Packets to targets that were dropped: too large, no room in the socket, or above what a target that has never
    /// answered gets.
    pub dropped: u64,
    /// Bytes of UDP payloads to targets.
    pub bytes_to_targets: u64,
    /// Bytes of UDP payloads from targets.
    pub bytes_from_targets: u64,
}
