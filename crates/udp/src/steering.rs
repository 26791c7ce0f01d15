//! The rule that distributes datagrams among the sockets of a group.

/// The rule by which datagrams of QUIC find their socket in a group: byte `offset` of the Destination
/// Connection ID, modulo the number of sockets, is the number of the socket.
///
/// The rule holds for packets with a short header, for Handshake and Retry packets of the versions 1
/// and 2, and for Version Negotiation, if their IDs have `id_len` bytes. Clients choose the IDs of Initial
/// and 0-RTT packets, so the system distributes these by a hash of their addresses, and all others too.
/// Datagrams that it has merged (GRO) follow the first of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Steering {
    /// Length of our connection IDs in bytes, 1 to 20.
    pub id_len: u8,
    /// Offset of the byte, less than `id_len`.
    pub offset: u8,
}
