//! What distinguishes the nonces of the packets of one key. RFC 9001 §5.3, RFC 10069 §2.4.

use courser_wire::PathId;

/// The number of a packet and its path ID, which together are used at most once per key.
/// RFC 10069 §2.4.
///
/// Converted from a packet number, it belongs to path 0: so do all packets of a connection with one path,
/// and all those before the end of the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketNonce(u128);

impl PacketNonce {
    /// Creates the nonce of a packet on a path.
    #[inline]
    pub const fn new(path: PathId, packet_number: u64) -> Self {
        Self((path.value() as u128) << 64 | packet_number as u128)
    }

    /// Returns the 96 bits that are combined with the IV.
    #[inline]
    pub(crate) const fn value(self) -> u128 {
        self.0
    }
}

impl From<u64> for PacketNonce {
    #[inline]
    fn from(packet_number: u64) -> Self {
        Self::new(PathId::ZERO, packet_number)
    }
}
