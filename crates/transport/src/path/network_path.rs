//! One network path.

use std::net::IpAddr;

use courser_base::{Ecn, FourTuple, Time, is_same_host};

use super::amplification::Amplification;
use super::validation::Validation;
use crate::build::transmit::{SocketId, Transmit};

/// The smallest useful datagram in bytes: header, one small frame, tag.
pub const MIN_DATAGRAM: usize = 64;

/// Index of a path in the table of paths.
pub type PathIndex = usize;

/// The addresses of a path, and the socket that is bound to the local one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The addresses of both ends; the local one may be unknown.
    pub tuple: FourTuple,
    /// The socket that receives from and sends to the peer.
    pub socket: SocketId,
}

impl Place {
    /// Returns true if a datagram that arrived at `self` belongs to a path at `other`. An unknown local
    /// address matches any.
    ///
    /// Compares in place, because copying the addresses costs more than comparing them.
    #[inline]
    pub fn matches(&self, other: &Self) -> bool {
        let (this, that) = (&self.tuple, &other.tuple);
        this.peer == that.peer
            && self.socket == other.socket
            && may_be_same(&this.local, &that.local)
    }

    /// Returns true if the local addresses are not known to differ.
    pub fn is_same_local(&self, other: &Self) -> bool {
        may_be_same(&self.tuple.local, &other.tuple.local)
    }

    /// Returns true if at most the ports differ, so that the network path is most likely the same
    /// (RFC 9000 §9.4).
    pub fn is_same_host(&self, other: &Self) -> bool {
        let (this, that) = (self.tuple, other.tuple);
        is_same_host(this.peer, that.peer) && may_be_same(&this.local, &that.local)
    }
}

/// Creates a place on the first socket, for endpoints with one socket.
impl From<FourTuple> for Place {
    fn from(tuple: FourTuple) -> Self {
        let socket = SocketId::default();
        Self { tuple, socket }
    }
}

/// Returns true if two local addresses are not known to differ.
#[inline]
fn may_be_same(one: &Option<IpAddr>, other: &Option<IpAddr>) -> bool {
    one == other || one.is_none() || other.is_none()
}

/// One network path: its addresses and the state of their validation.
///
/// Round-trip time, window and datagram size belong to its state in loss recovery. A path whose
/// peer has only changed its port takes over the state of the previous path.
#[derive(Debug)]
pub struct Path {
    place: Place,
    /// The limit on sent bytes before the peer's address is validated.
    pub(super) amplification: Amplification,
    /// Challenges in flight and responses to be sent.
    pub(super) validation: Validation,
    /// Its key in loss recovery.
    pub(super) key: u32,
    /// Sequence number of the peer's ID for probes of this path, while another path is in use
    /// (RFC 9000 §9.5).
    pub(super) peer_id: Option<u64>,
    /// True on a path of our own choice that continues with the recovery state of the previous path.
    pub(super) keeps_recovery: bool,
    /// The time at which a path that our end has left is closed.
    pub(super) expires_at: Option<Time>,
}

impl Path {
    /// Creates a path that is not validated.
    pub fn new(place: impl Into<Place>, key: u32) -> Self {
        Self {
            place: place.into(),
            amplification: Amplification::default(),
            validation: Validation::default(),
            key,
            peer_id: None,
            keeps_recovery: false,
            expires_at: None,
        }
    }

    /// Returns the addresses of both ends.
    #[inline]
    pub fn tuple(&self) -> FourTuple {
        self.place.tuple
    }

    /// Returns the addresses and the socket.
    #[inline]
    pub fn place(&self) -> Place {
        self.place
    }

    /// Returns true if a datagram from and to `place` arrived on this path.
    #[inline]
    pub fn is_at(&self, place: &Place) -> bool {
        place.matches(&self.place)
    }

    /// Describes a batch of `len` bytes on this path, in datagrams of `segment_size` if there are several.
    #[inline]
    pub(crate) fn transmit(&self, ecn: Ecn, segment_size: Option<usize>, len: usize) -> Transmit {
        let Place { tuple, socket } = self.place;
        Transmit::new(tuple, socket, ecn, segment_size, len)
    }

    /// Returns the key in loss recovery.
    #[inline]
    pub fn key(&self) -> u32 {
        self.key
    }

    /// Returns true once the peer's address is validated.
    #[inline]
    pub fn is_validated(&self) -> bool {
        self.amplification.is_validated()
    }

    /// Begins to validate a path whose link may be down, with a challenge after each `interval`.
    pub(crate) fn begin_patient_validation(
        &mut self,
        now: Time,
        interval: std::time::Duration,
        period: std::time::Duration,
    ) {
        self.validation.start_patiently(now, interval, period);
    }

    /// Lifts the limit on bytes to an address that is validated on another path.
    pub(crate) fn exempt(&mut self) {
        self.amplification.exempt();
    }

    /// Records that the peer's address is validated.
    pub fn on_validated(&mut self) {
        self.amplification.on_validated();
    }

    /// Returns the number of bytes that may be sent to the address.
    #[inline]
    pub fn budget(&self) -> u64 {
        self.amplification.budget()
    }

    /// Returns the maximum size of the next datagram, which for an unvalidated address may be below `mtu`.
    #[inline]
    pub fn datagram_limit(&self, mtu: usize) -> usize {
        usize::try_from(self.budget())
            .unwrap_or(usize::MAX)
            .min(mtu)
    }

    /// Counts a datagram that was sent.
    #[inline]
    pub fn on_datagram_sent(&mut self, len: usize) {
        self.amplification.on_sent(len);
    }

    /// Returns true if a challenge is due.
    #[inline]
    pub fn is_challenge_due(&self) -> bool {
        self.validation.is_challenge_due()
    }

    /// Returns true if a challenge or a response is due.
    #[inline]
    pub fn has_frames_to_send(&self) -> bool {
        self.validation.is_challenge_due() || self.validation.response().is_some()
    }

    /// Returns the UDP payload that fits IP packets of `mtu` bytes to the peer.
    pub fn payload_of(&self, mtu: u32) -> u16 {
        let headers = match self.place.tuple.peer.ip().to_canonical() {
            IpAddr::V4(_) => IPV4_HEADERS,
            IpAddr::V6(_) => IPV6_HEADERS,
        };
        u16::try_from(mtu.saturating_sub(headers)).unwrap_or(u16::MAX)
    }

    /// Returns the amplification limit, for tests that change it.
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
    fn datagrams_to_an_unvalidated_address_stay_within_the_limit() {
        let mut path = path("192.0.2.1:443");
        path.amplification.on_received(100);
        path.on_datagram_sent(50);
        assert_eq!(path.datagram_limit(1200), 250);
        path.on_validated();
        assert_eq!(path.datagram_limit(1200), 1200);
    }

    #[test]
    fn place_is_identified_by_peer_socket_and_known_local_address() {
        let at = |peer: &str, local: Option<&str>, socket| Place {
            tuple: FourTuple {
                peer: peer.parse().expect("an address"),
                local: local.map(|local| local.parse().expect("an address")),
            },
            socket: SocketId(socket),
        };
        let place = at("192.0.2.1:443", Some("10.0.0.1"), 0);
        assert!(place.matches(&at("192.0.2.1:443", None, 0)));
        assert!(!place.matches(&at("192.0.2.1:443", None, 1)));
        assert!(!place.matches(&at("192.0.2.1:444", Some("10.0.0.1"), 0)));
        assert!(!place.matches(&at("192.0.2.1:443", Some("10.0.0.2"), 0)));
        assert!(place.is_same_host(&at("192.0.2.1:444", None, 1)));
        assert!(!place.is_same_host(&at("192.0.2.1:443", Some("10.0.0.2"), 0)));
        assert!(!place.is_same_host(&at("192.0.2.2:443", None, 0)));
        let on_link = at("[fe80::1%2]:443", None, 0);
        assert!(on_link.is_same_host(&at("[fe80::1%2]:444", None, 0)));
        assert!(!on_link.is_same_host(&at("[fe80::1%3]:443", None, 0)));
    }

    #[test]
    fn payload_size_excludes_the_headers_of_the_address_family() {
        assert_eq!(path("192.0.2.1:443").payload_of(1500), 1472);
        assert_eq!(path("[2001:db8::1]:443").payload_of(1500), 1452);
        assert_eq!(path("[::ffff:192.0.2.1]:443").payload_of(1500), 1472);
        assert_eq!(path("192.0.2.1:443").payload_of(20), 0);
    }
}
