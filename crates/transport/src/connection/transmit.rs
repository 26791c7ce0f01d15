//! One batch out: permit, path, space, fill. RFC 9000 §12, §13, RFC 9002 §7.

use courser_base::{Ecn, Time};
use courser_crypto::TAG_LEN;
use courser_recovery::{Controller, Sent};
use courser_telemetry::SendLimit;
use courser_wire::packet::ShortHeader;
use courser_wire::{ConnectionId, TransportErrorCode, Writer, packet_number};

use super::Connection;
use super::fill::Content;
use super::permit::SendPermit;
use super::state::State;
use super::trace::Outgoing;
use crate::build::packet_builder::PacketBuilder;
use crate::build::transmit::{MAX_BATCH, Transmit, TransmitBuffer};
use crate::error::TransportError;
use crate::path::paths::PathIndex;
use crate::path::{MIN_DATAGRAM, Path};
use crate::space::SpaceId;
use crate::space::sent::{FrameLists, SentFrames};

/// A packet that was just built.
#[derive(Clone, Copy, Debug)]
pub(super) struct Built {
    pub(super) number: u64,
    pub(super) len: usize,
    pub(super) frames: SentFrames,
    pub(super) ack_eliciting: bool,
    pub(super) in_flight: bool,
}

/// What a path remembers of a packet that leaves on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) path: u32,
    pub(super) snapshot: u32,
    pub(super) tx_in_flight: u32,
}

impl Flight {
    /// Counts the packet on its path.
    #[inline]
    fn begin(now: Time, path: &mut Path, built: &Built) -> Self {
        let mut snapshot = path.delivery.newest();
        if built.in_flight {
            snapshot = path.delivery.on_sent(now, path.bytes_in_flight);
            path.bytes_in_flight += built.len as u64;
        }
        Self {
            path: path.id,
            snapshot,
            tx_in_flight: u32::try_from(path.bytes_in_flight).unwrap_or(u32::MAX),
        }
    }
}

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
        if self.spaces.application.next_packet_number > LAST_PACKET_NUMBER {
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
        if self.spaces.in_handshake() {
            return self.transmit_handshake(now, buffer);
        }
        if let Some(transmit) = self.transmit_mtu_probe(now, buffer) {
            return Some(transmit);
        }
        self.repeat_for_second_probe();
        self.transmit_batch(now, buffer)
    }

    /// A batch of 1-RTT packets on the active path.
    fn transmit_batch(&mut self, now: Time, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        if !self.wants_to_send() {
            self.note_app_limited(now);
            self.record_idle(now);
            return None;
        }
        if !self.keys_are_good(now) {
            return self.transmit_close(now, buffer);
        }
        // Then the permit is for probes: see `permit`.
        let is_probing = self.spaces.application.probes > 0;
        let (mut allowed, mut content) = self.allowance(now)?;
        let mtu = usize::from(self.paths.active().mtu);
        let codepoint = self.paths.active().congestion.ecn_codepoint();
        let ecn = self.spaces.application.ecn.mark(codepoint);
        let mut lists = std::mem::take(&mut self.recovery.lists);
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
            let is_over = is_probing && self.spaces.application.probes == 0;
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
        self.recovery.lists = lists;
        if segments == 0 {
            return None;
        }
        if in_flight > 0 {
            let path = self.paths.active_mut();
            path.on_batch_sent(now, in_flight, last_number);
            if buffer.len() >= mtu {
                path.search.on_full_datagram_sent(now);
            }
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
            SendPermit::PacedUntil(at) => {
                self.record_limit(now, SendLimit::Pacer);
                self.recovery.paced_until = Some(at);
                (u64::MAX, Content::AckOnly)
            }
        })
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

    /// The window does not grow while it is not needed (RFC 9002 §7.8).
    fn note_app_limited(&mut self, now: Time) {
        let path = self.paths.active_mut();
        if path.congestion_room() >= u64::from(path.mtu) {
            path.app_limited = true;
            path.delivery.on_app_limited(now, path.rtt.min() / 16);
        }
    }

    /// Updates keys in time; closes when they are worn out (RFC 9001 §6.6).
    pub(super) fn keys_are_good(&mut self, now: Time) -> bool {
        self.update_keys_if_due(now);
        if self
            .key_phase
            .keys
            .as_ref()
            .is_some_and(|keys| keys.is_exhausted())
        {
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
        self.spaces.application.acks.is_due()
            || self.wants_control()
            || self.streams.wants_to_send()
            || self.datagrams.wants_to_send()
    }

    /// Anything but an ACK, datagrams and stream data. Flow-control frames are part of the first packet of
    /// each batch.
    pub(super) fn wants_control(&self) -> bool {
        let space = &self.spaces.application;
        let validation = &self.paths.active().validation;
        space.ping
            || space.crypto.wants_to_send()
            || self.handshake.send_done
            || self.handshake.send_tokens
            || validation.wants_challenge()
            || validation.response().is_some()
            || self.cids.issued.wants_to_send()
            || self.cids.peer.wants_to_send()
            || self.recovery.ack_request.wants_to_send()
    }

    /// Builds, seals and protects one 1-RTT packet at the start of `room`.
    pub(super) fn build_short(
        &mut self,
        now: Time,
        room: &mut [u8],
        lists: &mut FrameLists,
        content: Content,
    ) -> Option<Built> {
        let number = self.next_number();
        let space = &self.spaces.application;
        let number_len = packet_number::encoded_len(number, space.loss.largest_acked());
        let key_phase = self.key_phase.keys.as_ref()?.key_phase();
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
        let keys = self.key_phase.keys.as_mut()?;
        keys.seal_packet(number, bytes, payload_start);
        keys.protect(bytes, payload_start - number_len, number_len);
        let frames = lists.take();
        Some(Built {
            number,
            len,
            frames,
            ack_eliciting,
            in_flight,
        })
    }

    /// The next packet number; now and then one is left out (RFC 9000 §21.4, limit K21).
    #[inline]
    pub(super) fn next_number(&self) -> u64 {
        let next = self.spaces.application.next_packet_number;
        next + u64::from(next == self.recovery.skip_at)
    }

    /// The number that is left out next, after `sent`.
    #[cold]
    fn choose_skip(&mut self, sent: u64) {
        let path = self.paths.active();
        let window = path.congestion.window() / u64::from(path.mtu);
        let window = window.clamp(2, MAX_SKIP_DISTANCE);
        self.recovery.skip_at = sent + 1 + window / 2 + self.rng.below(window * 3 / 2);
    }

    /// A lone datagram on a path that is not in use.
    fn transmit_probe(
        &mut self,
        now: Time,
        index: PathIndex,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        let path = self.paths.get_mut(index)?;
        let tuple = path.tuple;
        let budget = usize::try_from(path.amplification.budget()).unwrap_or(usize::MAX);
        let limit = budget.min(usize::from(path.mtu));
        if limit < MIN_DATAGRAM || !self.key_phase.has_keys() {
            return None;
        }
        let mut lists = std::mem::take(&mut self.recovery.lists);
        let built = self.build_short(now, buffer.room(limit), &mut lists, Content::Probe(index));
        self.recovery.lists = lists;
        let built = built?;
        buffer.advance(built.len);
        let path = self.paths.get_mut(index)?;
        path.on_datagram_sent(built.len);
        let flight = Flight::begin(now, path, &built);
        self.record_sent(now, SpaceId::Application, &built, Ecn::NotEct, flight);
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

    /// Remembers a packet that leaves on the active path.
    #[inline]
    pub(super) fn on_packet_sent(&mut self, now: Time, id: SpaceId, built: &Built, ecn: Ecn) {
        let path = self.paths.active_mut();
        let flight = Flight::begin(now, path, built);
        self.record_sent(now, id, built, ecn, flight);
    }

    #[inline]
    pub(super) fn record_sent(
        &mut self,
        now: Time,
        id: SpaceId,
        built: &Built,
        ecn: Ecn,
        flight: Flight,
    ) {
        if id == SpaceId::Application && built.number > self.recovery.skip_at {
            self.choose_skip(built.number);
        }
        let is_on_active = flight.path == self.paths.active().id;
        let Some(space) = self.spaces.get_mut(id) else {
            return;
        };
        space.next_packet_number = built.number + 1;
        let ecn_marked = ecn != Ecn::NotEct;
        space.ecn.on_sent(ecn);
        space.sent.push(
            built.number,
            Sent {
                time: now,
                size: u16::try_from(built.len).unwrap_or(u16::MAX),
                path: flight.path,
                snapshot: flight.snapshot,
                tx_in_flight: flight.tx_in_flight,
                ack_eliciting: built.ack_eliciting,
                in_flight: built.in_flight,
                ecn_marked,
                order: 0,
                is_mtu_probe: built.frames.is_mtu_probe(),
                frames: built.frames,
            },
        );
        if built.ack_eliciting {
            // Challenges on other paths have timers of their own. If they put off the probe
            // timeout, a client that moves often would never be asked for what is missing.
            if is_on_active || space.ack_eliciting_in_flight == 0 {
                space.last_ack_eliciting_sent = Some(now);
            }
            space.ack_eliciting_in_flight += 1;
            space.probes = space.probes.saturating_sub(1);
            self.idle.on_ack_eliciting_sent(now);
        }
        self.stats.packets_sent += 1;
    }
}

/// A packet that asks for an answer is so long that a peer without state may answer it with a
/// stateless reset, which is shorter than what it answers (RFC 9000 §10.3, limit K18).
const SHORTEST_QUESTION: usize = 43;
/// A batch of packets and skipped numbers ends below the last number of all.
const LAST_PACKET_NUMBER: u64 = courser_wire::MAX_PACKET_NUMBER - 2 * MAX_BATCH as u64;
/// Even with a huge window a number is skipped now and then.
const MAX_SKIP_DISTANCE: u64 = 10_000;
