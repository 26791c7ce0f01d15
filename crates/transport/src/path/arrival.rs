//! The arrival of a datagram on one of the paths of the connection, or elsewhere. RFC 9000 §9.

use courser_wire::packet::PacketKind;

use super::network_path::Place;
use super::paths::{Paths, PeerMoves};

/// The relation of a received datagram to the paths of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// It arrived on the path in use, as nearly all do.
    OnPath,
    /// It arrived on another path, or at a client from an address to which it sends.
    Known,
    /// It arrived from an address to which the peer may move.
    MayMove,
    /// It arrived from another port during the handshake: the NAT of the client may have rebound. Initial
    /// packets can be forged, so only a Handshake packet shows it.
    Rebound,
    /// It arrived from an address to which the peer may not move, and may be a probe for a direct path.
    Probe,
    /// It arrived from an address to which the peer may not move.
    Elsewhere,
}

/// The moves of the peer that the progress of the connection allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AllowedMoves {
    /// To another port, as a NAT does when it rebinds during the handshake.
    Rebinding,
    /// To an address that [`PeerMoves`] allows.
    All,
    /// None, between the completion of the handshake and its confirmation, and after the end.
    None,
}

impl Arrival {
    /// Returns true if the datagram arrived on a path of the connection.
    pub(crate) fn is_known(self) -> bool {
        matches!(self, Self::OnPath | Self::Known)
    }

    /// Returns true if a packet of this kind is accepted. Others are dropped without an answer
    /// (RFC 9000 §9, §18.2).
    #[inline]
    pub(crate) fn accepts(self, kind: PacketKind) -> bool {
        match self {
            Self::OnPath | Self::Known | Self::MayMove => true,
            Self::Rebound => kind == PacketKind::Handshake,
            Self::Probe => kind == PacketKind::OneRtt,
            Self::Elsewhere => false,
        }
    }
}

impl Paths {
    /// Counts a datagram towards the limit of its address, and decides which of its packets are accepted.
    #[inline(always)]
    pub(crate) fn on_datagram(
        &mut self,
        place: &Place,
        len: usize,
        allowed: AllowedMoves,
    ) -> Arrival {
        if self.is_here(place) {
            self.active_mut().amplification.on_received(len);
            return Arrival::OnPath;
        }
        self.on_datagram_elsewhere(place, len, allowed)
    }

    /// A server follows its client to new addresses once the handshake is confirmed, if it allows that, and
    /// before that to another port. A client accepts datagrams at any local address, because they may have been
    /// sent to one that it has left, but only from addresses to which it sends.
    fn on_datagram_elsewhere(
        &mut self,
        place: &Place,
        len: usize,
        allowed: AllowedMoves,
    ) -> Arrival {
        if let Some(index) = self.find(*place) {
            self.table[index].amplification.on_received(len);
            return Arrival::Known;
        }
        let is_client = self.peer_moves == PeerMoves::Nowhere;
        let mut paths = self.table.iter();
        if is_client && paths.any(|path| path.tuple().peer == place.tuple.peer) {
            return Arrival::Known;
        }
        match allowed {
            AllowedMoves::All if self.may_move_to(place.tuple) => Arrival::MayMove,
            AllowedMoves::Rebinding if self.may_have_rebound(*place) => Arrival::Rebound,
            _ => Arrival::Elsewhere,
        }
    }

    /// Returns the arrival of the packets behind one that was processed. A path that it added is known.
    #[inline]
    pub(crate) fn arrival_after(&self, arrival: Arrival, place: &Place) -> Arrival {
        match arrival {
            Arrival::Rebound if self.find(*place).is_some() => Arrival::Known,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use courser_base::{FourTuple, Time};

    use super::*;
    use crate::path::Path;

    const HANDSHAKE_PEER: &str = "192.0.2.1:50000";
    const ALL_KINDS: [PacketKind; 4] = [
        PacketKind::Initial,
        PacketKind::ZeroRtt,
        PacketKind::Handshake,
        PacketKind::OneRtt,
    ];

    fn tuple(peer: &str) -> FourTuple {
        FourTuple::to(peer.parse().expect("an address"))
    }

    /// Creates paths to the peer of the handshake, which is in use, and to 192.0.2.1:50001.
    fn paths(peer_moves: PeerMoves) -> Paths {
        let mut paths = Paths::new(
            Path::new(tuple(HANDSHAKE_PEER), 0),
            Duration::from_millis(100),
        );
        let second = paths.add(Time::ZERO, tuple("192.0.2.1:50001"), Duration::ZERO, || 1);
        assert!(second.is_some());
        paths.set_peer_moves(peer_moves);
        paths
    }

    #[test]
    fn addresses_are_compared_with_the_paths_and_the_allowed_moves() {
        use AllowedMoves::{All, None, Rebinding};
        use Arrival::{Elsewhere, Known, MayMove, OnPath, Rebound};
        let same_address = PeerMoves::SameAddress {
            has_preferred: false,
        };
        let (here, known) = (HANDSHAKE_PEER, "192.0.2.1:50001");
        let (other_port, other_host) = ("192.0.2.1:60000", "198.51.100.1:50000");
        for (peer_moves, allowed, peer, expected) in [
            (PeerMoves::Anywhere, None, here, OnPath),
            (PeerMoves::Anywhere, None, known, Known),
            (PeerMoves::Anywhere, None, other_port, Elsewhere),
            (PeerMoves::Anywhere, Rebinding, other_port, Rebound),
            (PeerMoves::Anywhere, Rebinding, other_host, Elsewhere),
            (PeerMoves::Anywhere, All, other_port, MayMove),
            (PeerMoves::Anywhere, All, other_host, MayMove),
            (same_address, Rebinding, other_port, Rebound),
            (same_address, All, other_port, MayMove),
            (same_address, All, other_host, Elsewhere),
            (PeerMoves::Nowhere, All, here, OnPath),
            (PeerMoves::Nowhere, All, known, Known),
            (PeerMoves::Nowhere, All, other_port, Elsewhere),
            (PeerMoves::Nowhere, Rebinding, other_port, Elsewhere),
        ] {
            let arrival = paths(peer_moves).on_datagram(&tuple(peer).into(), 1200, allowed);
            assert_eq!(arrival, expected, "{peer_moves:?}, {allowed:?}, {peer}");
        }
    }

    #[test]
    fn packets_are_accepted_by_their_kind() {
        for (arrival, is_accepted) in [
            (Arrival::OnPath, [true; 4]),
            (Arrival::Known, [true; 4]),
            (Arrival::MayMove, [true; 4]),
            (Arrival::Rebound, [false, false, true, false]),
            (Arrival::Probe, [false, false, false, true]),
            (Arrival::Elsewhere, [false; 4]),
        ] {
            assert_eq!(
                ALL_KINDS.map(|kind| arrival.accepts(kind)),
                is_accepted,
                "{arrival:?}"
            );
        }
    }

    /// The server may send to a local address that its client has left.
    #[test]
    fn client_accepts_datagrams_at_a_local_address_that_it_has_left() {
        let mut paths = paths(PeerMoves::Nowhere);
        let elsewhere = Place {
            tuple: tuple(HANDSHAKE_PEER),
            socket: crate::build::transmit::SocketId(1),
        };
        let arrival = paths.on_datagram(&elsewhere, 1200, AllowedMoves::None);
        assert_eq!(arrival, Arrival::Known);
    }

    #[test]
    fn packets_behind_one_that_added_a_path_arrive_on_a_known_path() {
        let mut paths = paths(PeerMoves::Anywhere);
        let place = tuple("192.0.2.1:60000").into();
        let arrival = Arrival::Rebound;
        assert_eq!(paths.arrival_after(arrival, &place), Arrival::Rebound);
        let later = Time::ZERO + Duration::from_secs(1);
        assert!(paths.add(later, place, Duration::ZERO, || 2).is_some());
        assert_eq!(paths.arrival_after(arrival, &place), Arrival::Known);
        assert_eq!(
            paths.arrival_after(Arrival::Elsewhere, &place),
            Arrival::Elsewhere
        );
    }
}
