//! One batch out: permit, path, space, fill. RFC 9000 §12, §13, RFC 9002 §7.

use courser_base::{Ecn, Time};
use courser_crypto::TAG_LEN;
use courser_telemetry::SendLimit;
use courser_wire::packet::ShortHeader;
use courser_wire::{ConnectionId, TransportErrorCode, Writer, packet_number};

use super::Connection;
use super::fill::Content;
use super::state::State;
use super::trace::Outgoing;
use crate::build::packet_builder::PacketBuilder;
use crate::build::transmit::{MAX_BATCH, Transmit, TransmitBuffer};
use crate::error::TransportError;
use crate::path::MIN_DATAGRAM;
use crate::path::paths::PathIndex;
use crate::protection::Sealing;
use crate::recovery::{Built, Demand, SendPermit};
use crate::space::SpaceId;
use crate::space::sent::FrameLists;

impl Connection {
    /// Builds the next batch of datagrams; `None` when nothing may or need leave now.
    ///
    /// All datagrams of a batch go the same way and have the same size, but the last, which may
    /// be shorter.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Time,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        buffer.start();
        self.derive_keys();
        let transmit = match &self.state {
            State::Drained => None,
            State::Closing(_) | State::Draining { .. } => self.transmit_close(now, buffer),
            _ => self.transmit_open(now, buffer),
        }?;
        self.record_changes(now);
        self.stats.udp_sent.batches += 1;
        self.stats.udp_sent.bytes += transmit.len as u64;
        let size = transmit.segment_size.unwrap_or(transmit.len);
        self.stats.udp_sent.datagrams += transmit.len.div_ceil(size) as u64;
        Some(transmit)
    }

    fn transmit_open(&mut self, now: Time, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        if self.recovery.is_out_of_numbers() {
            // RFC 9000 §12.3: without a number there is not even a packet for CONNECTION_CLOSE.
            let reason = "all packet numbers are used up";
            let error = TransportError::new(TransportErrorCode::INTERNAL_ERROR, reason);
            self.end_silently(now, error.into());
            return None;
        }
        if let Some(index) = self.paths.wanting_probe()
            && let Some(transmit) = self.transmit_probe(now, index, buffer)
        {
            return Some(transmit);
        }
        if self.acknowledger.is_in_handshake() {
            return self.transmit_handshake(now, buffer);
        }
        if let Some(transmit) = self.transmit_mtu_probe(now, buffer) {
            return Some(transmit);
        }
        if self.recovery.wants_second_probe() && !self.wants_to_send() {
            let (recovery, mut owners) = self.recovery_and_owners();
            recovery.repeat_for_second_probe(&mut owners);
        }
        self.transmit_batch(now, buffer)
    }

    /// A batch of 1-RTT packets on the active path.
    fn transmit_batch(&mut self, now: Time, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        if !self.wants_to_send() {
            self.recovery.on_app_limited(now);
            self.record_idle(now);
            return None;
        }
        if !self.keys_are_good(now) {
            return self.transmit_close(now, buffer);
        }
        // Then the permit is for probes: see `permit`.
        let is_probing = self.recovery.is_probing(SpaceId::Application);
        let (mut allowed, mut content) = self.allowance(now)?;
        let mtu = usize::from(self.recovery.route().mtu());
        let ecn = self.recovery.mark(SpaceId::Application).unwrap_or_default();
        let mut lists = self.recovery.take_lists();
        let (mut segments, mut last_number, mut in_flight) = (0, 0, 0);
        while segments < buffer.max_segments() && buffer.len() + mtu <= MAX_BATCH {
            let mut limit = self.datagram_limit(mtu);
            if segments == 0 {
                // Where little is left, that is what the permit is for.
                limit = limit.min(usize::try_from(allowed).unwrap_or(usize::MAX));
            }
            if limit < MIN_DATAGRAM || allowed < limit as u64 {
                break;
            }
            let room = buffer.room(limit);
            let Some(built) = self.build_short(now, room, &mut lists, content) else {
                break;
            };
            self.on_packet_sent(now, SpaceId::Application, &built, ecn);
            self.paths.active_mut().on_datagram_sent(built.len);
            buffer.advance(built.len);
            segments += 1;
            last_number = built.number;
            in_flight += if built.in_flight { built.len as u64 } else { 0 };
            allowed = allowed.saturating_sub(built.len as u64);
            let is_lone = matches!(content, Content::AckOnly | Content::Probe(_));
            // What follows the probes needs a permit of its own: controllers hear of a batch when
            // it has left, so their room does not shrink meanwhile.
            let is_over = is_probing && !self.recovery.is_probing(SpaceId::Application);
            if built.len < mtu || is_lone || is_over {
                break;
            }
            content = if self.wants_control() {
                Content::All
            } else if self.datagrams.wants_to_send() {
                Content::Mixed
            } else {
                Content::Data
            };
        }
        self.recovery.put_lists(lists);
        if segments == 0 {
            return None;
        }
        if in_flight > 0 {
            let is_full = buffer.len() >= mtu;
            self.recovery
                .on_batch_sent(now, in_flight, last_number, is_full);
        }
        Some(self.transmit_of(buffer, segments, mtu, ecn))
    }

    /// How many bytes of 1-RTT packets may leave now, and what may be in them.
    fn allowance(&mut self, now: Time) -> Option<(u64, Content)> {
        Some(match self.permit(now, SpaceId::Application) {
            SendPermit::Nothing => {
                self.record_limit(now, SendLimit::Amplification);
                return None;
            }
            SendPermit::Probe => (u64::MAX, Content::All),
            SendPermit::Bytes(_) if self.makes_room_for_probe() => (u64::MAX, Content::AckOnly),
            SendPermit::Bytes(bytes) => (bytes, Content::All),
            // What fills the window may have gone to where the peer no longer is: only the answer
            // to a challenge, of which there is one per probe timeout, can tell.
            SendPermit::AckOnly if self.paths.active().validation.wants_challenge() => {
                (u64::MAX, Content::Probe(self.paths.active_index()))
            }
            SendPermit::AckOnly => {
                self.record_limit(now, SendLimit::CongestionWindow);
                (u64::MAX, Content::AckOnly)
            }
            SendPermit::PacedUntil(_) => {
                self.record_limit(now, SendLimit::Pacer);
                (u64::MAX, Content::AckOnly)
            }
        })
    }

    fn makes_room_for_probe(&self) -> bool {
        let has_data = self.streams.wants_to_send();
        self.recovery.makes_room_for_probe(has_data)
    }

    /// What may be sent in a space on the path in use.
    pub(super) fn permit(&mut self, now: Time, id: SpaceId) -> SendPermit {
        let little = match id {
            SpaceId::Application => self.little_left(),
            _ => None,
        };
        let demand = Demand {
            budget: self.paths.active().amplification.budget(),
            is_ack_due: self.acknowledger.is_due(id),
            little,
        };
        self.recovery.permit(now, id, &demand)
    }

    /// Bytes of a datagram with all that there is to send, if they are few. It need not wait until
    /// there is room for a whole one, nor for a quantum: the end of a message has a short way.
    fn little_left(&mut self) -> Option<u64> {
        // Datagrams of the handshake are as long as they have to be.
        if self.acknowledger.is_in_handshake()
            || self.wants_control()
            || self.datagrams.wants_to_send()
        {
            return None;
        }
        let mtu = u64::from(self.recovery.route().mtu());
        let left = self.streams.little_left(mtu)?;
        Some(left + BESIDE_STREAMS)
    }

    pub(super) fn transmit_of(
        &self,
        buffer: &TransmitBuffer,
        segments: usize,
        size: usize,
        ecn: Ecn,
    ) -> Transmit {
        let tuple = self.paths.active().tuple;
        Transmit {
            destination: tuple.peer,
            source: tuple.local,
            ecn,
            segment_size: (segments > 1).then_some(size),
            len: buffer.len(),
        }
    }

    /// Updates keys in time; closes when they are worn out (RFC 9001 §6.6).
    pub(super) fn keys_are_good(&mut self, now: Time) -> bool {
        if self.protection.is_update_due() {
            // While the rules do not allow it the next batch tries again; the hard stop is far.
            let _ = self.initiate_key_update(now);
        }
        if self.protection.is_exhausted() {
            let code = TransportErrorCode::AEAD_LIMIT_REACHED;
            self.fail(
                now,
                TransportError::new(code, "the keys have sealed too many packets"),
            );
            return false;
        }
        true
    }

    /// Bytes of the next datagram: towards an unproven address the limit may be short.
    fn datagram_limit(&self, mtu: usize) -> usize {
        let budget = self.paths.active().amplification.budget();
        usize::try_from(budget).unwrap_or(usize::MAX).min(mtu)
    }

    /// Anything at all for the application space.
    pub(super) fn wants_to_send(&self) -> bool {
        self.acknowledger.is_due(SpaceId::Application)
            || self.wants_control()
            || self.streams.wants_to_send()
            || self.datagrams.wants_to_send()
    }

    /// Anything but an ACK, datagrams and stream data. Flow-control frames are part of the first packet of
    /// each batch.
    pub(super) fn wants_control(&self) -> bool {
        let validation = &self.paths.active().validation;
        self.recovery.wants_ping(SpaceId::Application)
            || self.handshake.crypto.wants_to_send(SpaceId::Application)
            || self.handshake.send_done
            || self.handshake.send_tokens
            || validation.wants_challenge()
            || validation.response().is_some()
            || self.cids.issued.wants_to_send()
            || self.cids.peer.wants_to_send()
            || self.recovery.wants_ack_frequency()
    }

    /// Builds, seals and protects one 1-RTT packet at the start of `room`.
    pub(super) fn build_short(
        &mut self,
        now: Time,
        room: &mut [u8],
        lists: &mut FrameLists,
        content: Content,
    ) -> Option<Built> {
        let (number, number_len) = self.recovery.next_number(SpaceId::Application)?;
        let key_phase = self.protection.key_phase()?;
        let destination = match content {
            Content::Probe(index) => self.probe_destination(index),
            _ => *self.cids.peer.current(),
        };
        let header = ShortHeader {
            destination,
            spin: false,
            key_phase,
        };
        let payload_start = header.encoded_len() + number_len;
        let frames_end = room
            .len()
            .checked_sub(TAG_LEN)
            .filter(|&end| end > payload_start)?;
        let mut packet = PacketBuilder::new(&mut room[payload_start..frames_end], lists);
        self.fill(now, SpaceId::Application, &mut packet, content);
        if packet.is_empty() {
            return None;
        }
        // A header protection sample needs four bytes behind the start of the number
        // (RFC 9001 §5.4.2).
        packet.pad_to(4 - number_len);
        let ack_eliciting = packet.is_ack_eliciting();
        if ack_eliciting {
            packet.pad_to(SHORTEST_QUESTION.saturating_sub(payload_start + TAG_LEN));
        }
        let in_flight = ack_eliciting || packet.is_padded();
        let frames_len = packet.end();
        let len = payload_start + frames_len + TAG_LEN;
        let bytes = &mut room[..len];
        let mut writer = Writer::new(bytes);
        header.encode(&mut writer, number_len);
        packet_number::write(&mut writer, number, number_len);
        let outgoing = Outgoing {
            id: SpaceId::Application,
            number,
            len,
            ack_eliciting,
            is_mtu_probe: false,
            destination,
        };
        self.record_packet_sent(now, outgoing, &bytes[payload_start..][..frames_len]);
        let sealing = Sealing {
            number,
            number_offset: payload_start - number_len,
            number_len,
        };
        self.protection.seal(SpaceId::Application, sealing, bytes);
        let frames = lists.take();
        Some(Built {
            number,
            len,
            frames,
            ack_eliciting,
            in_flight,
        })
    }

    /// A lone datagram on a path that is not in use.
    fn transmit_probe(
        &mut self,
        now: Time,
        index: PathIndex,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        let path = self.paths.get_mut(index)?;
        let (tuple, route) = (path.tuple, path.route);
        let budget = usize::try_from(path.amplification.budget()).unwrap_or(usize::MAX);
        let limit = budget.min(usize::from(self.recovery.mtu_of(route)?));
        if limit < MIN_DATAGRAM || !self.protection.has_keys(SpaceId::Application) {
            return None;
        }
        let mut lists = self.recovery.take_lists();
        let built = self.build_short(now, buffer.room(limit), &mut lists, Content::Probe(index));
        self.recovery.put_lists(lists);
        let built = built?;
        buffer.advance(built.len);
        self.paths.get_mut(index)?.on_datagram_sent(built.len);
        let recovery = &mut self.recovery;
        recovery.on_path_probe_sent(now, route, &built, &mut self.rng);
        if built.ack_eliciting {
            self.idle.on_ack_eliciting_sent(now);
        }
        Some(Transmit {
            destination: tuple.peer,
            source: tuple.local,
            ecn: Ecn::NotEct,
            segment_size: None,
            len: built.len,
        })
    }

    /// The ID that probes of a path are addressed to. Another path has another one as far as the
    /// peer gave enough of them, so that nobody can link the two (RFC 9000 §9.5).
    fn probe_destination(&mut self, index: PathIndex) -> ConnectionId {
        let current = *self.cids.peer.current();
        if index == self.paths.active_index() {
            return current;
        }
        let Some(path) = self.paths.get_mut(index) else {
            return current;
        };
        let of_path = path.peer_id.and_then(|id| self.cids.peer.id_of(id));
        if let Some(&id) = of_path {
            return id;
        }
        let Some((sequence, id)) = self.cids.peer.reserve() else {
            return current;
        };
        path.peer_id = Some(sequence);
        id
    }

    /// Remembers a packet that leaves on the path in use.
    #[inline]
    pub(super) fn on_packet_sent(&mut self, now: Time, id: SpaceId, built: &Built, ecn: Ecn) {
        self.recovery
            .on_packet_sent(now, id, built, ecn, &mut self.rng);
        if built.ack_eliciting {
            self.idle.on_ack_eliciting_sent(now);
        }
    }
}

/// A packet that asks for an answer is so long that a peer without state may answer it with a
/// stateless reset, which is shorter than what it answers (RFC 9000 §10.3, limit K18).
const SHORTEST_QUESTION: usize = 43;

/// Header, tag, and some room for an ACK, which may take more.
const BESIDE_STREAMS: u64 = 128;
