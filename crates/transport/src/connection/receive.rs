//! One datagram in: split it, open its packets, hand on their frames.

use courser_base::{Ecn, FourTuple, Time};
use courser_crypto::retry_integrity;
use courser_telemetry::{
    ConnectionIdUpdated, PacketBuffered, PacketDropped, PathState, Reason, Record,
};
use courser_wire::TransportErrorCode;
use courser_wire::packet::{self, MIN_INITIAL_DATAGRAM, Packet, PacketKind};
use courser_wire::version::VERSION_1;

use super::Connection;
use super::dispatch::Processed;
use super::error::ConnectionError;
use super::state::State;
use crate::acknowledger::Arrived;
use crate::error::TransportError;
use crate::protection::{Early, OpenFailure, Opened};
use crate::recovery::MUTE_PATIENCE;
use crate::space::SpaceId;

/// What is true of a whole datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) now: Time,
    /// When it came, which is before `now` for packets that had to wait for their keys.
    pub(crate) arrived: Time,
    pub(crate) path: FourTuple,
    pub(crate) ecn: Ecn,
    /// Length of the datagram.
    pub(crate) len: usize,
}

impl Connection {
    /// Takes one datagram, whose first packet the endpoint has looked at already.
    ///
    /// Whatever the datagram holds, this returns: packets that cannot be read are dropped, and
    /// packets that break a rule end the connection.
    pub(crate) fn handle_datagram(
        &mut self,
        arrival: Arrival,
        datagram: &mut [u8],
        first: &Packet,
    ) {
        self.stats.udp_received.datagrams += 1;
        self.stats.udp_received.bytes += arrival.len as u64;
        let known = self.paths.find(arrival.path);
        if let Some(path) = known.and_then(|index| self.paths.get_mut(index)) {
            path.amplification.on_received(arrival.len);
        }
        match &mut self.state {
            State::Closing(closing) => closing.on_packet(),
            State::Draining { .. } | State::Drained => return,
            _ => {}
        }
        let from_stranger = known.is_none() && !self.may_move();
        let mut opened = false;
        if !from_stranger {
            opened = self.handle_packet(arrival, datagram, first);
            opened |= self.handle_coalesced(arrival, datagram, first);
        } else {
            self.dropped(arrival.now, first, Reason::UnknownPath);
        }
        if !opened && known.is_some() {
            self.check_stateless_reset(arrival.now, datagram);
        }
        self.record_changes(arrival.now);
    }

    /// A server follows its client to new addresses once the handshake is confirmed; a client
    /// takes packets only from where it sent some (RFC 9000 §9).
    fn may_move(&self) -> bool {
        self.side.is_server()
            && (self.state.is_confirmed() || matches!(self.state, State::Closing(_)))
    }

    /// The packets behind the first one. Those for another ID are ignored (RFC 9000 §12.2).
    fn handle_coalesced(&mut self, arrival: Arrival, datagram: &mut [u8], first: &Packet) -> bool {
        let mut opened = false;
        let mut start = first.end;
        let cid_len = self.handshake.local_source.len();
        while start < datagram.len() {
            let rest = &mut datagram[start..];
            let Ok(next) = packet::decode(rest, 0, cid_len) else {
                break;
            };
            debug_assert!(next.end > 0, "each packet takes bytes");
            start += next.end;
            if next.destination == first.destination {
                opened |= self.handle_packet(arrival, rest, &next);
            }
        }
        opened
    }

    /// One packet at the start of `datagram`; true when it was authentic.
    fn handle_packet(&mut self, arrival: Arrival, datagram: &mut [u8], packet: &Packet) -> bool {
        match self.process_packet(arrival, datagram, packet) {
            Ok(opened) => opened,
            Err(error) => {
                self.fail(arrival.now, error);
                true
            }
        }
    }

    fn process_packet(
        &mut self,
        arrival: Arrival,
        datagram: &mut [u8],
        packet: &Packet,
    ) -> Result<bool, TransportError> {
        if packet.kind == PacketKind::Retry {
            return Ok(self.on_retry(arrival.now, &datagram[..packet.end], packet));
        }
        let Some(space) = SpaceId::of(packet.kind) else {
            // 0-RTT is not accepted here, and a client never takes it (RFC 9001 §5.6).
            self.dropped(arrival.now, packet, Reason::KeysUnavailable);
            return Ok(false);
        };
        if !self.header_is_fine(arrival, packet) {
            self.dropped(arrival.now, packet, Reason::Header);
            return Ok(false);
        }
        if !self.can_open(space) {
            self.keep_early(arrival, datagram, packet, space);
            return Ok(false);
        }
        if space == SpaceId::Application {
            self.derive_keys();
        }
        let Some(opened) = self.open(arrival.now, datagram, packet, space)? else {
            return Ok(false);
        };
        if self.space_has(space, opened.number) {
            self.dropped(arrival.now, packet, Reason::Duplicate);
            return Ok(true);
        }
        let payload = &datagram[opened.payload];
        self.record_packet_received(arrival.now, packet, opened.number, payload);
        if !self.state.is_open() {
            self.listen_for_close(arrival.now, packet.kind, payload);
            return Ok(true);
        }
        self.on_first_packet(arrival.now, packet);
        let mut processed = self.process_payload(arrival, packet, space, payload)?;
        processed.idle_frames += opened.update.map_or(0, |update| update.cost);
        self.on_processed(arrival, packet, space, opened.number, processed)?;
        Ok(true)
    }

    /// Rules about long headers that need no keys (RFC 9000 §7.2, §14.1, §17.2.2).
    fn header_is_fine(&self, arrival: Arrival, packet: &Packet) -> bool {
        if packet.kind == PacketKind::OneRtt {
            return true;
        }
        if packet.kind == PacketKind::Initial {
            let too_small = self.side.is_server() && arrival.len < MIN_INITIAL_DATAGRAM;
            let has_token = self.side.is_client() && !packet.token.is_empty();
            if too_small || has_token {
                return false;
            }
        }
        self.handshake
            .peer_source
            .is_none_or(|source| source == packet.source)
    }

    fn can_open(&self, space: SpaceId) -> bool {
        match space {
            // Before the handshake is complete 1-RTT packets are not processed (RFC 9001 §5.7).
            SpaceId::Application if self.state.is_handshaking() => false,
            id => self.protection.has_keys(id),
        }
    }

    fn space_has(&self, space: SpaceId, number: u64) -> bool {
        self.acknowledger.is_duplicate(space, number)
    }

    fn keep_early(&mut self, arrival: Arrival, datagram: &[u8], packet: &Packet, space: SpaceId) {
        let may_come = match space {
            SpaceId::Initial => false,
            SpaceId::Handshake => {
                self.state.is_handshaking() && !self.acknowledger.is_open(SpaceId::Handshake)
            }
            SpaceId::Application => self.state.is_handshaking(),
        };
        let (path, ecn) = (arrival.path, arrival.ecn);
        let bytes = &datagram[..packet.end];
        let kept = may_come
            && self.protection.keep_early(Early {
                space,
                bytes: bytes.to_vec(),
                path,
                ecn,
                arrived: arrival.arrived,
            });
        if !kept {
            if space == SpaceId::Handshake && arrival.path == self.paths.active().tuple {
                self.on_late_handshake_packet(arrival.now);
            }
            return self.dropped(arrival.now, packet, Reason::KeysUnavailable);
        }
        if self.side.is_client() && !self.acknowledger.is_open(SpaceId::Handshake) {
            // What makes the keys was lost, or comes later.
            self.speed_up_handshake();
        }
        let (kind, len) = (packet.kind, packet.end);
        self.tap.record(arrival.now, || {
            Record::PacketBuffered(PacketBuffered { kind, len })
        });
    }

    /// Removes the protection of a packet; `None` drops the packet.
    fn open(
        &mut self,
        now: Time,
        datagram: &mut [u8],
        packet: &Packet,
        space: SpaceId,
    ) -> Result<Option<Opened>, TransportError> {
        let Some(expected) = self.acknowledger.expected(space) else {
            return Ok(None);
        };
        let expected = (space, expected);
        let bytes = &mut datagram[..packet.end];
        let pto = || self.recovery.pto();
        let failure = match self.protection.open(now, pto, expected, packet, bytes) {
            Ok(opened) => {
                if opened.update.is_some_and(|update| update.is_new) {
                    self.record_key_update(now, true);
                }
                return Ok(Some(opened));
            }
            Err(failure) => failure,
        };
        match failure {
            OpenFailure::NoKeys => Ok(None),
            OpenFailure::NotAuthentic => {
                self.dropped(now, packet, Reason::NotAuthentic);
                Ok(None)
            }
            OpenFailure::TooManyForgeries => {
                self.dropped(now, packet, Reason::NotAuthentic);
                let code = TransportErrorCode::AEAD_LIMIT_REACHED;
                let reason = "too many packets failed authentication";
                Err(TransportError::new(code, reason))
            }
            OpenFailure::Violation(error) => Err(error),
        }
    }

    fn dropped(&mut self, now: Time, packet: &Packet, reason: Reason) {
        self.stats.packets_dropped += 1;
        let (kind, len) = (packet.kind, packet.end);
        self.tap.record(now, || {
            Record::PacketDropped(PacketDropped { kind, len, reason })
        });
    }

    /// The server's first packet tells the ID to send to (RFC 9000 §7.2).
    fn on_first_packet(&mut self, now: Time, packet: &Packet) {
        if self.handshake.peer_source.is_none() && packet.kind == PacketKind::Initial {
            self.handshake.peer_source = Some(packet.source);
            let old = *self.cids.peer.current();
            self.cids.peer.set_handshake_id(packet.source);
            self.record_peer_id(now, old);
        }
    }

    /// True when the peer has been heard for long and has acknowledged nothing.
    #[inline]
    fn is_mute(&mut self, now: Time) -> bool {
        let pto = self.recovery.pto();
        let idle = self.idle.timeout().unwrap_or_default();
        let patience = idle.max(MUTE_PATIENCE).max(pto.saturating_mul(3));
        self.recovery.is_mute(now, patience)
    }

    /// A packet was processed in full: it may be acknowledged now (RFC 9000 §13.1).
    fn on_processed(
        &mut self,
        arrival: Arrival,
        packet: &Packet,
        space: SpaceId,
        number: u64,
        processed: Processed,
    ) -> Result<(), TransportError> {
        let now = arrival.now;
        self.stats.packets_received += 1;
        self.idle.on_received(now);
        if !self.state.is_open() {
            return Ok(());
        }
        if !self
            .suspicion
            .on_packet(now, processed.idle_frames, processed.progress)
        {
            let reason = "too many frames that bring nothing";
            return Err(TransportError::protocol_violation(reason));
        }
        let (repeats, news) = (processed.repeats, processed.news);
        if !self.suspicion.on_repeats(now, repeats, news) {
            let reason = "too many frames that repeat what is known";
            return Err(TransportError::protocol_violation(reason));
        }
        if self.is_mute(now) {
            let reason = "nothing is acknowledged, although packets go on coming";
            return Err(TransportError::protocol_violation(reason));
        }
        if processed.refused {
            // Not acknowledged, so that the peer sends it again when there is room.
            return Ok(());
        }
        if self.acknowledger.is_open(space) {
            self.acknowledge(arrival, packet, space, number, &processed)?;
        }
        if space == SpaceId::Handshake && self.side.is_server() {
            // Only the real client can have these keys (RFC 9000 §8.1, RFC 9001 §4.9.1).
            self.paths.active_mut().amplification.on_validated();
            self.discard_space(now, SpaceId::Initial);
        }
        if processed.repeats_hello && self.side.is_server() {
            self.speed_up_handshake();
        }
        if processed.crypto {
            self.drive_handshake(now)?;
            self.open_early(now);
        }
        Ok(())
    }

    /// Repeats, ahead of the probe timeout, what the peer seems to miss of the handshake. Once per
    /// connection, which makes up for one lost packet: two ends that answered every such sign with
    /// another one would never stop (RFC 9002 §6.2.3).
    fn speed_up_handshake(&mut self) {
        let is_open = self.recovery.is_first_flight_open();
        if is_open && !std::mem::replace(&mut self.handshake.was_sped_up, true) {
            let (recovery, mut owners) = self.recovery_and_owners();
            recovery.speed_up_handshake(&mut owners);
        }
    }

    /// Has a packet acknowledged, and follows the peer if it came from elsewhere.
    fn acknowledge(
        &mut self,
        arrival: Arrival,
        packet: &Packet,
        space: SpaceId,
        number: u64,
        processed: &Processed,
    ) -> Result<(), TransportError> {
        let arrived = Arrived {
            number,
            at: arrival.arrived,
            ecn: arrival.ecn,
            ack_eliciting: processed.ack_eliciting,
            ends_stream: processed.ends_stream,
            wants_ack: processed.wants_ack,
        };
        self.stats.ce_received += u64::from(arrival.ecn == Ecn::Ce);
        self.stats.ack_eliciting_received += u64::from(processed.ack_eliciting);
        let (now, delay) = (arrival.now, self.config.max_ack_delay);
        let is_largest = self.acknowledger.on_packet(now, space, &arrived, delay);
        if space == SpaceId::Application && self.state.is_confirmed() {
            self.follow_peer(arrival, packet, is_largest, processed.probing_only)?;
        }
        Ok(())
    }

    /// Packets that waited for keys are processed now.
    pub(crate) fn open_early(&mut self, now: Time) {
        for space in [SpaceId::Handshake, SpaceId::Application] {
            if !self.can_open(space) {
                continue;
            }
            for mut early in self.protection.take_early(space) {
                let len = self.handshake.local_source.len();
                let Ok(packet) = packet::decode(&early.bytes, 0, len) else {
                    continue;
                };
                let (path, ecn, len) = (early.path, early.ecn, early.bytes.len());
                let arrived = early.arrived;
                // Its bytes were counted when it came; its length must not matter to rules on
                // datagrams with Initials, which never wait.
                self.handle_packet(
                    Arrival {
                        now,
                        arrived,
                        path,
                        ecn,
                        len,
                    },
                    &mut early.bytes,
                    &packet,
                );
            }
        }
    }

    /// The peer's address changed (RFC 9000 §9.3).
    fn follow_peer(
        &mut self,
        arrival: Arrival,
        packet: &Packet,
        is_largest: bool,
        probing_only: bool,
    ) -> Result<(), TransportError> {
        let Some(index) = self.arrival_path(arrival) else {
            return Ok(());
        };
        if index == self.paths.active_index() || !is_largest || probing_only {
            return Ok(());
        }
        let pto = self.validation_pto();
        // A peer that took a new ID for the new path gets a new one back, so that nobody can
        // link the two (§9.5). A rebound NAT changes no ID.
        let sequence = self.cids.issued.sequence_of(&packet.destination);
        let shared = self.cids.peer.current_sequence();
        let own = self.paths.get_mut(index).and_then(|path| path.peer_id);
        let has_own = own.is_some_and(|id| id != shared && self.cids.peer.id_of(id).is_some());
        if let Some(sequence) = sequence.filter(|&sequence| sequence > self.cids.in_use) {
            self.cids.in_use = sequence;
            let old = *self.cids.peer.current();
            self.switch_peer_id(index);
            let new = packet.destination;
            self.tap.record(arrival.now, || {
                let (of_peer, old) = (false, None);
                Record::ConnectionIdUpdated(ConnectionIdUpdated { of_peer, old, new })
            });
            self.record_peer_id(arrival.now, old);
        } else if has_own {
            let old = *self.cids.peer.current();
            self.switch_peer_id(index);
            self.record_peer_id(arrival.now, old);
        }
        // Both paths carry the same ID if the peer did not change its own, or gave no other.
        let shared = Some(shared).filter(|&id| id == self.cids.peer.current_sequence());
        self.set_peer_id(self.paths.active_index(), shared);
        self.paths.migrate(arrival.now, index, pto);
        self.record_path(arrival.now, index, PathState::MigrationStarted);
        let route = self.paths.active().route;
        self.recovery.activate_route(route);
        let peer = self.paths.active().tuple.peer;
        self.events.push_back(super::Event::PathChanged { peer });
        Ok(())
    }

    /// Changes to the ID that probes of a path had, or to a spare one.
    pub(crate) fn switch_peer_id(&mut self, index: usize) {
        let path = self.paths.get_mut(index);
        let reserved = path.and_then(|path| path.peer_id.take());
        let ids = &mut self.cids.peer;
        if reserved.is_some_and(|id| ids.switch_to(id)) {
            return;
        }
        if let Some(id) = reserved {
            ids.give_up(id);
        }
        ids.switch_to_next();
    }

    /// The path in use was given up for the one before: each keeps its own ID.
    pub(crate) fn return_to_peer_id(&mut self) {
        let current = Some(self.cids.peer.current_sequence());
        if self.paths.active().peer_id == current {
            self.paths.active_mut().peer_id = None;
        } else {
            self.switch_peer_id(self.paths.active_index());
        }
    }

    /// Sets the ID for probes of a path, and retires the one before.
    fn set_peer_id(&mut self, index: usize, id: Option<u64>) {
        let Some(path) = self.paths.get_mut(index) else {
            return;
        };
        if let Some(old) = std::mem::replace(&mut path.peer_id, id)
            && Some(old) != id
        {
            self.cids.peer.give_up(old);
        }
    }

    /// Forgets the routes of paths that were given up and retires their IDs.
    pub(crate) fn forget_given_up_paths(&mut self) {
        while let Some(path) = self.paths.take_given_up() {
            self.recovery.close_route(path.route);
            if let Some(id) = path.peer_id {
                self.cids.peer.give_up(id);
            }
        }
    }

    /// The path a packet came on, added to the table if the peer is new there.
    pub(crate) fn arrival_path(&mut self, arrival: Arrival) -> Option<usize> {
        if let Some(index) = self.paths.find(arrival.path) {
            return Some(index);
        }
        let rtt = self.recovery.route().rtt().smoothed();
        let (recovery, config) = (&mut self.recovery, &self.config);
        let open_route = || recovery.open_route(arrival.now, config);
        let index = self.paths.add(arrival.now, arrival.path, rtt, open_route);
        self.forget_given_up_paths();
        let index = index?;
        if let Some(path) = self.paths.get_mut(index) {
            path.amplification.on_received(arrival.len);
        }
        Some(index)
    }

    /// Three of these end a path validation: the larger of the current and the initial probe
    /// timeout (RFC 9000 §8.2.4).
    pub(crate) fn validation_pto(&self) -> std::time::Duration {
        let current = self.recovery.pto();
        current.max(self.config.initial_rtt.saturating_mul(3))
    }

    /// All packets of a receive batch are processed.
    pub(crate) fn on_batch_end(&mut self, now: Time) {
        self.stats.udp_received.batches += 1;
        let rtt = self.recovery.route().rtt().smoothed();
        self.acknowledger.on_batch_end(now, rtt);
    }

    /// A datagram whose packets cannot be read may say that the peer lost its state
    /// (RFC 9000 §10.3.1).
    pub(crate) fn check_stateless_reset(&mut self, now: Time, datagram: &[u8]) {
        if datagram.len() < MIN_RESET {
            return;
        }
        let Some(token) = datagram.last_chunk::<16>() else {
            return;
        };
        if self.cids.peer.is_reset_token(token) {
            self.on_stateless_reset(now);
        }
    }

    /// The server asks for a proof of address (RFC 9000 §17.2.5.2).
    fn on_retry(&mut self, now: Time, datagram: &[u8], packet: &Packet) -> bool {
        let handshake = &self.handshake;
        let welcome = self.side.is_client()
            && self.state.is_handshaking()
            && handshake.peer_source.is_none()
            && handshake.retry_source.is_none()
            && (1..=MAX_RETRY_TOKEN).contains(&packet.token.len())
            && packet.source != *self.cids.peer.current()
            && retry_integrity::is_valid(&handshake.original_destination, datagram);
        if !welcome {
            self.dropped(now, packet, Reason::Header);
            return false;
        }
        self.handshake.retry_source = Some(packet.source);
        self.handshake.token = bytes::Bytes::copy_from_slice(&datagram[packet.token.clone()]);
        let old = *self.cids.peer.current();
        self.cids.peer.set_handshake_id(packet.source);
        self.record_peer_id(now, old);
        // Packet numbers go on, everything else of recovery starts anew (§17.2.5.3, RFC 9002 §6.3).
        self.recovery.on_retry(now);
        self.set_initial_keys(packet.source);
        self.handshake.crypto.rewind_initial();
        true
    }

    /// The server speaks other versions (RFC 9000 §6.2). Only the first answer may say so.
    pub(crate) fn on_version_negotiation(
        &mut self,
        now: Time,
        mut versions: impl Iterator<Item = u32> + Clone,
        source: &[u8],
    ) {
        let untouched = self.side.is_client()
            && self.state.is_handshaking()
            && self.handshake.peer_source.is_none()
            && self.handshake.retry_source.is_none()
            && source == &self.handshake.original_destination[..];
        if untouched && versions.clone().all(|version| version != VERSION_1) {
            let offered = versions.by_ref().take(MAX_VERSIONS).collect();
            self.end_silently(now, ConnectionError::VersionMismatch { offered });
        }
    }
}

/// A client discards a Retry with a longer token (limit K95). Such a token would leave no room for
/// CRYPTO data in its Initials, and the Retry may come from anybody who saw the first one.
const MAX_RETRY_TOKEN: usize = 1024;

/// Versions of a Version Negotiation packet that are kept for the error (limit K45).
const MAX_VERSIONS: usize = 64;

/// Nothing shorter is a stateless reset (RFC 9000 §10.3).
const MIN_RESET: usize = 21;
