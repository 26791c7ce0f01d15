//! One network path.

use std::net::IpAddr;

use courser_base::FourTuple;

use super::amplification::Amplification;
use super::validation::Validation;

/// No useful packet fits into a smaller datagram: header, one small frame, tag.
pub const MIN_DATAGRAM: usize = 64;

/// One network path: its addresses and the state of their validation.
///
/// Round-trip time, window and datagram size belong to its route in loss recovery. A path whose
/// peer has only changed its port takes over the route of the path before it.
#[derive(Debug)]
pub struct Path {
    tuple: FourTuple,
    /// Budget before the peer's address is validated.
    pub(super) amplification: Amplification,
    /// Challenges sent and responses owed.
    pub(super) validation: Validation,
    /// The ID of its route in loss recovery.
    pub(super) route: u32,
    /// Sequence number of the ID of the peer that probes of this path carry, while another path
    /// is in use (RFC 9000 §9.5).
    pub(super) peer_id: Option<u64>,
}

impl Path {
    /// Creates a path whose peer has proven nothing.
    pub fn new(tuple: FourTuple, route: u32) -> Self {
        Self {
            tuple,
            amplification: Amplification::default(),
            validation: Validation::default(),
            route,
            peer_id: None,
        }
    }

    /// The addresses.
    #[inline]
    pub fn tuple(&self) -> FourTuple {
        self.tuple
    }

    /// The ID of the route in loss recovery.
    #[inline]
    pub fn route(&self) -> u32 {
        self.route
    }

    /// True once the peer has proven to receive at its address.
    #[inline]
    pub fn is_validated(&self) -> bool {
        self.amplification.is_validated()
    }

    /// The peer has proven to receive at its address.
    pub fn on_validated(&mut self) {
        self.amplification.on_validated();
    }

    /// Bytes that may be sent to the address.
    #[inline]
    pub fn budget(&self) -> u64 {
        self.amplification.budget()
    }

    /// Bytes of the next datagram: towards an unproven address the limit may be shorter than `mtu`.
    #[inline]
    pub fn datagram_limit(&self, mtu: usize) -> usize {
        usize::try_from(self.budget())
            .unwrap_or(usize::MAX)
            .min(mtu)
    }

    /// Counts a datagram that left.
    #[inline]
    pub fn on_datagram_sent(&mut self, len: usize) {
        self.amplification.on_sent(len);
    }

    /// True when a challenge should leave.
    #[inline]
    pub fn wants_challenge(&self) -> bool {
        self.validation.wants_challenge()
    }

    /// True when a challenge or a response should leave.
    #[inline]
    pub fn wants_to_send(&self) -> bool {
        self.validation.wants_challenge() || self.validation.response().is_some()
    }

    /// Returns the UDP payload that fits IP packets of `mtu` bytes to the peer.
    pub fn payload_of(&self, mtu: u32) -> u16 {
        let headers = match self.tuple.peer.ip().to_canonical() {
            IpAddr::V4(_) => IPV4_HEADERS,
            IpAddr::V6(_) => IPV6_HEADERS,
        };
        u16::try_from(mtu.saturating_sub(headers)).unwrap_or(u16::MAX)
    }

    /// The three-times limit, for tests that change it.
    #[cfg(test)]
    pub fn amplification_mut(&mut self) -> &mut Amplification {
        &mut self.amplification
    }
}

/// IPv4 header without options, and UDP's.
const IPV4_HEADERS: u32 = 20 + 8;
/// IPv6 header without extensions, and UDP's.
const IPV6_HEADERS: u32 = 40 + 8;

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn path(address: &str) -> Path {
        let peer: SocketAddr = address.parse().expect("an address");
        Path::new(FourTuple::to(peer), 0)
    }

    #[test]
    fn an_unproven_address_gets_short_datagrams() {
        let mut path = path("192.0.2.1:443");
        path.amplification.on_received(100);
        path.on_datagram_sent(50);
        assert_eq!(path.datagram_limit(1200), 250);
        path.on_validated();
        assert_eq!(path.datagram_limit(1200), 1200);
    }

    #[test]
    fn payloads_leave_room_for_the_headers_of_the_family() {
        assert_eq!(path("192.0.2.1:443").payload_of(1500), 1472);
        assert_eq!(path("[2001:db8::1]:443").payload_of(1500), 1452);
        assert_eq!(path("[::ffff:192.0.2.1]:443").payload_of(1500), 1472);
        assert_eq!(path("192.0.2.1:443").payload_of(20), 0);
    }
}
