//! Direct paths between two ends behind NATs: the probes of a connection, and the paths that follow.
//! draft-seemann-quic-nat-traversal-02, in the variant of the field.

use std::net::{IpAddr, SocketAddr};

use courser_base::{Ecn, FourTuple, Time};
use courser_wire::packet::MIN_INITIAL_DATAGRAM;
use courser_wire::{AddAddress, ConnectionId, PathId, ReachOut, RemoveAddress};

use super::Connection;
use super::effects::FrameProgress;
use super::fill::{Content, Order};
use super::parts::Parts;
use super::received_datagram::ReceivedDatagram;
use crate::build::transmit::{Transmit, TransmitBuffer};
use crate::error::TransportError;
use crate::multipath::{PathPreference, Phase};
use crate::nat::{CandidateError, CandidateStats, EndpointPermits, FoundState, ProbeId, Traversal};
use crate::path::{NewPath, Place};
use crate::space::SpaceId;
use crate::space::sent::SentFrame;

/// Offers addresses for direct paths, and starts rounds of probes. Borrowed by [`Connection::candidates`].
#[derive(Debug)]
pub struct Candidates<'a> {
    connection: &'a mut Connection,
}

/// An address of the server that has answered probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectAddress {
    /// The address.
    pub address: SocketAddr,
    /// The path to it, once it is opened.
    pub path: Option<PathId>,
    /// True once the path is preferred to the one over the relay.
    pub is_preferred: bool,
}

impl Candidates<'_> {
    /// Offers an address of this end: one of its interfaces, one that a trusted peer has
    /// [observed](Connection::observed_addresses), or one that a router was asked to map. A server announces it at once, a
    /// client in its rounds. Nothing is offered unless it is named here. Returns false if it was offered before.
    ///
    /// The addresses also decide which ones of the peer may be probed: those of the same family that are global; private
    /// ones only in a [network](Self::add_network) of ours, loopback only if a loopback address is offered; never
    /// multicast, broadcast, link-local or unspecified ones, our own, nor ports below 1024 apart from 443.
    ///
    /// # Errors
    ///
    /// [`CandidateError`] if the ends have not agreed on candidates, or the peer accepts no more.
    pub fn offer(&mut self, now: Time, address: SocketAddr) -> Result<bool, CandidateError> {
        self.traversal()?.offer(now, address)
    }

    /// Withdraws an address. Returns false if it was not offered.
    pub fn withdraw(&mut self, address: SocketAddr) -> bool {
        let traversal = self.connection.parts.traversal_mut();
        traversal.is_some_and(|traversal| traversal.withdraw(address))
    }

    /// Names a network of this machine, in which private addresses of the peer may be probed. Unless networks of a family
    /// are named, the /24 or /64 around each private address that is offered counts. At most 16 are kept.
    pub fn add_network(&mut self, network: IpAddr, prefix: u8) {
        if let Some(traversal) = self.connection.parts.traversal_mut() {
            traversal.add_network(network, prefix);
        }
    }

    /// Starts a round of a client, at the earliest five seconds after the last one. Rounds start by themselves when
    /// candidates change, and after 5, 10, 20 s, up to 5 minutes without success.
    ///
    /// # Errors
    ///
    /// [`CandidateError`] at a server, and if there is nothing to probe.
    pub fn start_round(&mut self, now: Time) -> Result<(), CandidateError> {
        self.traversal()?.request_round(now)
    }

    /// Returns the addresses that this end offers.
    pub fn offered(&self) -> Vec<SocketAddr> {
        let traversal = self.connection.parts.traversal().into_iter();
        traversal.flat_map(|it| it.offered()).collect()
    }

    /// Returns the addresses that the server has announced to this client.
    pub fn announced(&self) -> Vec<SocketAddr> {
        let traversal = self.connection.parts.traversal().into_iter();
        traversal.flat_map(|it| it.announced()).collect()
    }

    /// Returns the addresses of the server that have answered probes of this client.
    pub fn direct(&self) -> Vec<DirectAddress> {
        let traversal = self.connection.parts.traversal().into_iter();
        let found = traversal.flat_map(|it| it.found());
        found
            .map(|found| DirectAddress {
                address: found.address,
                path: match found.state {
                    FoundState::Waiting => None,
                    FoundState::Opened(path) | FoundState::Preferred(path) => Some(path),
                },
                is_preferred: matches!(found.state, FoundState::Preferred(_)),
            })
            .collect()
    }

    /// Returns the counters of probes.
    pub fn stats(&self) -> CandidateStats {
        let traversal = self.connection.parts.traversal();
        traversal.map_or_else(CandidateStats::default, |it| it.stats())
    }

    fn traversal(&mut self) -> Result<&mut Traversal, CandidateError> {
        let traversal = self.connection.parts.traversal_mut();
        traversal.ok_or(CandidateError::NotNegotiated)
    }
}

impl Connection {
    /// Returns an interface to offer candidates for direct paths.
    pub fn candidates(&mut self) -> Candidates<'_> {
        Candidates { connection: self }
    }

    /// Begins to look for direct paths if both ends have offered that, and several paths.
    pub(super) fn begin_candidates(&mut self) {
        let own = self.packets.recovery.config().candidate_limit();
        let parameters = self.parts.handshake.peer_parameters();
        let peer = parameters.and_then(|it| it.max_candidates);
        let side = self.side();
        let multipath = self.parts.multipath.as_mut();
        if let (Some(own), Some(peer), Some(multipath)) = (own, peer, multipath) {
            let traversal = Traversal::new(side, own.get(), peer.get());
            multipath.traversal = Some(Box::new(traversal));
        }
    }

    /// Sends the next probe that is due, if the endpoint permits it now.
    #[inline]
    pub(crate) fn transmit_due_probe(
        &mut self,
        now: Time,
        permits: &mut EndpointPermits,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        match self.parts.traversal() {
            None => None,
            Some(_) => self.transmit_probe(now, permits, buffer),
        }
    }

    #[cold]
    fn transmit_probe(
        &mut self,
        now: Time,
        permits: &mut EndpointPermits,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        if !self.life.is_confirmed() {
            return None;
        }
        let received = self.counters.udp_received.bytes;
        let traversal = self.parts.traversal_mut()?;
        let target = traversal.next_probe(now, received)?;
        if !permits.take(now, target) {
            traversal.postpone(now, target);
            return None;
        }
        let data = self.parts.rng.array();
        let place = Place {
            tuple: FourTuple::to(target),
            socket: self.parts.paths.active().place().socket,
        };
        let traversal = self.parts.traversal_mut()?;
        traversal.begin_probe(now, target, data);
        buffer.start();
        let transmit = self.transmit_off_path(now, place, buffer)?;
        self.counters.udp_sent.on_batch(&transmit);
        Some(transmit)
    }

    /// Sends the response to a challenge from an address that is no path.
    pub(super) fn transmit_response(
        &mut self,
        now: Time,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        let place = self.parts.traversal_mut()?.begin_response()?;
        self.transmit_off_path(now, place, buffer)
    }

    /// Sends a datagram with the prepared frame to an address that is no path. It counts neither in the window nor for
    /// round-trip times, and its loss has no consequence.
    fn transmit_off_path(
        &mut self,
        now: Time,
        place: Place,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        if !self.packets.protection.has_keys(SpaceId::Application) {
            return None;
        }
        if self.packets.protection.is_underived() {
            self.packets.protection.derive();
        }
        self.parts.choose_off_path_id(place.tuple.peer);
        let order = Order::one_rtt(now, Content::OffPath);
        let room = buffer.spare(PROBE_ROOM);
        self.parts.bits.set_clearing(false);
        let built = self.packets.build_short(order, room, &mut self.parts)?;
        let rng = &mut self.parts.rng;
        self.packets.recovery.on_off_path_sent(now, &built, rng);
        buffer.advance(built.len);
        let Place { tuple, socket } = place;
        Some(Transmit::new(tuple, socket, Ecn::NotEct, None, built.len))
    }

    /// Returns the time of the next timer of the search for direct paths.
    #[inline]
    pub(super) fn next_probe_timeout(&self) -> Option<Time> {
        self.parts.traversal()?.next_timeout()
    }

    /// Runs the timers of the search for direct paths.
    pub(super) fn run_probe_timers(&mut self, now: Time) {
        let Some(traversal) = self.parts.traversal_mut() else {
            return;
        };
        if !traversal.on_timeout(now) {
            return;
        }
        // The peer issues others, which no observer has seen on another path.
        for ProbeId { path, sequence, .. } in std::mem::take(traversal.probe_ids()) {
            let returns_to = self.parts.path_at_hand();
            if self.parts.go_to(path, &mut self.packets.recovery) {
                self.parts.ids.give_up(sequence);
                self.parts.go_to(returns_to, &mut self.packets.recovery);
            }
        }
    }

    /// Opens paths to the addresses that have answered, and prefers them once they are known to be no slower.
    #[inline]
    pub(super) fn follow_probes(&mut self, now: Time) {
        let traversal = self.parts.traversal();
        if traversal.is_some_and(|traversal| !traversal.found().is_empty()) {
            self.follow_found(now);
        }
    }

    #[cold]
    fn follow_found(&mut self, now: Time) {
        let found = self.parts.traversal();
        let found = found.map_or_else(Vec::new, |traversal| traversal.found().to_vec());
        for (at, found) in found.into_iter().enumerate() {
            let next = match found.state {
                FoundState::Waiting => self.open_direct(now, found.address),
                FoundState::Opened(path) => self.prefer_direct(path),
                FoundState::Preferred(_) => None,
            };
            let traversal = self.parts.traversal_mut();
            let entry = traversal.and_then(|traversal| traversal.found_mut().get_mut(at));
            if let (Some(next), Some(entry)) = (next, entry) {
                entry.state = next;
            }
        }
    }

    /// Opens a path as backup, if the limits and the peer's connection IDs permit one now.
    fn open_direct(&mut self, now: Time, address: SocketAddr) -> Option<FoundState> {
        let path = NewPath {
            local: None,
            socket: self.parts.paths.active().place().socket,
            is_same_address: false,
            is_at_once: false,
        };
        let opened = self.open_path_to(now, &path, address, |path, paths, pto| {
            paths.begin_validation_of(now, path, pto);
        });
        let path = opened.ok()?;
        self.several_paths()
            .set_status(path, PathPreference::Backup);
        Some(FoundState::Opened(path))
    }

    /// Prefers a direct path that carries full datagrams and whose round trip is no longer than that of the path at rest.
    fn prefer_direct(&mut self, path: PathId) -> Option<FoundState> {
        let multipath = self.parts.multipath.as_ref()?;
        let is_open = multipath
            .control(path)
            .is_some_and(|control| control.phase == Phase::Open);
        let relayed = multipath.home();
        let paths = self.several_paths().list();
        let rtt_of = |id| {
            let info = paths.iter().find(|info| info.id == id);
            info.filter(|info| !info.stats.latest_rtt.is_zero())
                .map(|info| info.stats.rtt)
        };
        // The first sample contains the delay of an acknowledgement, which the peer may use for each.
        let (pto, without_delay) = (
            self.packets.recovery.pto(),
            self.packets.recovery.pto_without_delay(),
        );
        let tolerance = pto.saturating_sub(without_delay);
        if !is_open || path == relayed || rtt_of(path)? > rtt_of(relayed)? + tolerance {
            return None;
        }
        self.several_paths()
            .set_status(path, PathPreference::Available);
        self.several_paths()
            .set_status(relayed, PathPreference::Backup);
        Some(FoundState::Preferred(path))
    }

    /// Looks for a direct path again after one was given up.
    pub(super) fn on_direct_path_closed(&mut self, now: Time, path: PathId) {
        if let Some(traversal) = self.parts.traversal_mut() {
            traversal.on_path_closed(now, path);
        }
    }

    /// Returns true if a datagram from an address to which the peer may not move may be a probe of the peer, or the response to
    /// one of ours.
    pub(super) fn may_be_probe(&self, datagram: &ReceivedDatagram) -> bool {
        let traversal = self.parts.traversal();
        self.life.is_confirmed()
            && traversal.is_some_and(|it| it.expects_probes(datagram.now))
            && self.parts.is_probe_from_elsewhere(datagram)
    }
}

impl Parts {
    /// Processes ADD_ADDRESS.
    pub(super) fn on_add_address_frame(
        &mut self,
        now: Time,
        frame: AddAddress,
    ) -> Result<FrameProgress, TransportError> {
        self.agreed_traversal()?.on_add_address(now, frame)?;
        Ok(FrameProgress::Nothing)
    }

    /// Processes REACH_OUT.
    pub(super) fn on_reach_out_frame(
        &mut self,
        now: Time,
        frame: ReachOut,
    ) -> Result<FrameProgress, TransportError> {
        self.agreed_traversal()?.on_reach_out(now, frame)?;
        Ok(FrameProgress::Nothing)
    }

    /// Processes REMOVE_ADDRESS.
    pub(super) fn on_remove_address_frame(
        &mut self,
        frame: RemoveAddress,
    ) -> Result<FrameProgress, TransportError> {
        self.agreed_traversal()?.on_remove_address(frame)?;
        Ok(FrameProgress::Nothing)
    }

    /// Returns the search for direct paths, if both ends have agreed on it.
    #[inline]
    pub(super) fn traversal(&self) -> Option<&Traversal> {
        self.multipath.as_ref()?.traversal.as_deref()
    }

    #[inline]
    pub(super) fn traversal_mut(&mut self) -> Option<&mut Traversal> {
        self.multipath.as_mut()?.traversal.as_deref_mut()
    }

    fn agreed_traversal(&mut self) -> Result<&mut Traversal, TransportError> {
        self.traversal_mut().ok_or_else(|| {
            let reason = "frame of NAT traversal, which was not negotiated";
            TransportError::protocol_violation(reason)
        })
    }

    /// Processes a challenge from an address that is no path. Returns false if it is to be processed as that of a path.
    pub(super) fn on_probe(&mut self, datagram: &ReceivedDatagram, data: [u8; 8]) -> bool {
        if !self.is_probe_from_elsewhere(datagram) {
            return false;
        }
        if let Some(traversal) = self.traversal_mut() {
            traversal.on_challenge(datagram.now, datagram.place, data);
        }
        true
    }

    /// Returns true if a datagram came from an address that is no path, while direct paths are looked for. Probes are small;
    /// some peers pad their responses, which come from addresses that were asked. Full datagrams from elsewhere are those
    /// of a peer that moves.
    pub(super) fn is_probe_from_elsewhere(&self, datagram: &ReceivedDatagram) -> bool {
        let Some(traversal) = self.traversal() else {
            return false;
        };
        let is_small = datagram.len < MIN_INITIAL_DATAGRAM;
        (is_small || traversal.is_target(datagram.place.tuple.peer))
            && self.paths.find(datagram.place).is_none()
    }

    pub(super) fn on_candidate_frame_acked(&mut self, frame: SentFrame) {
        if let Some(traversal) = self.traversal_mut() {
            traversal.on_acked(frame);
        }
    }

    /// Processes a response that answers no challenge of a path.
    pub(super) fn on_probe_answered(&mut self, datagram: &ReceivedDatagram, data: [u8; 8]) {
        if let Some(traversal) = self.traversal_mut() {
            traversal.on_response(datagram.place.tuple.peer, data);
        }
    }

    /// Chooses the connection ID for a datagram to an address that is no path.
    fn choose_off_path_id(&mut self, target: SocketAddr) {
        let path = self.path_at_hand();
        let ids = &mut self.ids;
        let multipath = self.multipath.as_mut();
        if let Some(traversal) = multipath.and_then(|it| it.traversal.as_mut()) {
            let is_gone = |id: &ProbeId| id.path == path && ids.id_of(id.sequence).is_none();
            traversal.probe_ids().retain(|id| !is_gone(id));
            traversal.choose_id(path, target, || ids.reserve().map(|(id, _)| id));
        }
    }

    /// Returns the connection ID that was chosen. No other path carries it, as long as the peer has issued enough
    /// (RFC 9000 §9.5).
    pub(super) fn off_path_destination(&self) -> ConnectionId {
        let traversal = self.traversal();
        let chosen = traversal.and_then(|traversal| traversal.outgoing_id());
        let chosen = chosen.and_then(|sequence| self.ids.id_of(sequence));
        chosen.unwrap_or_else(|| self.ids.destination())
    }
}

/// The room for a probe: header, one frame, tag.
const PROBE_ROOM: usize = 100;
