//! Counters of IP tunnels and proxies.

/// The counters of one end of an IP tunnel, in packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct IpTunnelStats {
    /// Received packets that were passed on.
    pub received: u64,
    /// Sent packets, with ICMP messages of this end. Those in QUIC DATAGRAM frames may be lost.
    pub sent: u64,
    /// Bytes of the received packets.
    pub bytes_received: u64,
    /// Bytes of packets that may pass, without ICMP messages of this end.
    pub bytes_sent: u64,
    /// Packets that may pass and were not sent, because there was no room in the queue.
    pub dropped_sending: u64,
    /// Received packets that were dropped because too many waited.
    pub dropped_receiving: u64,
    /// Received datagrams of contexts that nobody has registered.
    pub dropped_contexts: u64,
    /// Packets of both directions with invalid headers.
    pub malformed: u64,
    /// Packets of both directions whose source was not assigned, and ICMP errors about packets of others.
    pub wrong_source: u64,
    /// Packets of both directions outside of the routes, or to prohibited destinations.
    pub wrong_destination: u64,
    /// Packets whose hop limit was used up.
    pub hop_limit: u64,
    /// Packets that were longer than the path carries.
    pub too_big: u64,
    /// Packets with link-local addresses, or to groups, and redirects.
    pub link_local: u64,
    /// ICMP messages that this end has made.
    pub icmp: u64,
}

/// The counters of an IP proxy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct IpProxyStats {
    /// Tunnels that are open.
    pub open: u64,
    /// Tunnels that were opened.
    pub opened: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Addresses and prefixes that are assigned.
    pub assigned: u64,
    /// Packets of clients that the network has accepted.
    pub to_network: u64,
    /// Packets of the network to clients.
    pub from_network: u64,
    /// Packets of clients that were dropped: to prohibited destinations, or for lack of room in the network. Packets of the
    /// network with the source of a client, which is spoofed.
    pub dropped: u64,
    /// Packets of the network to addresses that no client has.
    pub unroutable: u64,
}
