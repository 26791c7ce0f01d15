//! One batch out: permit, path, space, packets. RFC 9000 §12, §13, RFC 9002 §7.

use courser_base::{Ecn, Time};
use courser_telemetry::SendLimit;
use courser_wire::TransportErrorCode;
use courser_wire::packet::MIN_INITIAL_DATAGRAM;

use super::Connection;
use super::coalesced::{Coalesced, Unsealed, common_mark, pad};
use super::event::Event;
use super::fill::{Content, Order};
use super::life::Ending;
use super::packets::build_short;
use super::spaces::discard_space;
use crate::build::transmit::{MAX_BATCH, Transmit, TransmitBuffer};
use crate::error::TransportError;
use crate::path::paths::PathIndex;
use crate::path::{MIN_DATAGRAM, Path};
use crate::recovery::{Built, Demand, FeatureUse, SendPermit};
use crate::space::SpaceId;

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
        if self.packets.protection.is_underived() && self.needs_keys() {
            self.packets.protection.derive();
        }
        let transmit = if self.life.is_open() {
            self.transmit_open(now, buffer)
        } else {
            self.transmit_close(now, buffer)
        }?;
        self.parts.trace.changes(now, &self.packets.recovery);
        self.counters.udp_sent.on_batch(&transmit);
        Some(transmit)
    }

    fn transmit_open(&mut self, now: Time, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        if self.packets.recovery.is_out_of_numbers() {
            // RFC 9000 §12.3: without a number there is not even a packet for CONNECTION_CLOSE.
            let reason = "all packet numbers are used up";
            let error = TransportError::new(TransportErrorCode::INTERNAL_ERROR, reason);
            self.end(now, Ending::Silence(error.into()));
            return None;
        }
        if let Some(index) = self.parts.paths.wanting_probe()
            && let Some(transmit) = self.transmit_path_probe(now, index, buffer)
        {
            return Some(transmit);
        }
        if self.parts.acknowledger.is_in_handshake() {
            return self.transmit_handshake(now, buffer);
        }
        // A connection that sends nothing else needs no larger packets.
        if !self.packets.protection.is_underived()
            && let Some(transmit) = self.transmit_size_probe(now, buffer)
        {
            return Some(transmit);
        }
        if self.packets.recovery.wants_second_probe() && !self.wants_to_send() {
            self.packets
                .recovery
                .repeat_for_second_probe(&mut self.parts);
        }
        self.transmit_batch(now, buffer)
    }

    /// Records a datagram with one 1-RTT packet on the active path.
    #[inline]
    fn on_one_rtt_sent(&mut self, now: Time, built: &Built, ecn: Ecn) {
        let rng = &mut self.parts.rng;
        self.packets
            .recovery
            .on_packet_sent(now, SpaceId::Application, built, ecn, rng);
        self.watchdog.on_packet_sent(now, built.ack_eliciting);
        self.parts.paths.active_mut().on_datagram_sent(built.len);
    }

    /// Sends a batch of 1-RTT packets on the active path.
    fn transmit_batch(&mut self, now: Time, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        if !self.wants_to_send() {
            self.packets.recovery.on_app_limited(now);
            self.parts.trace.nothing_to_send(now, &self.parts.streams);
            return None;
        }
        if !self.keys_are_good(now) {
            return self.transmit_close(now, buffer);
        }
        // Then the permit is for probes: see `permit`.
        let is_probing = self.packets.recovery.is_probing(SpaceId::Application);
        let (mut allowed, mut content) = self.allowance(now)?;
        let mtu = usize::from(self.packets.recovery.path().mtu());
        let features = self.next_features(now);
        self.parts.bits.set_clearing(features.clears_quic_bit);
        let max_segments = features.max_segments.min(buffer.max_segments());
        let ecn = features.ecn;
        let (mut segments, mut last_number, mut in_flight) = (0, 0, 0);
        // The size of all segments but the last.
        let mut size = mtu.min(features.max_size);
        while segments < max_segments && buffer.len() + size <= MAX_BATCH {
            let mut limit = self.parts.paths.active().datagram_limit(size);
            if segments == 0 {
                // Where little is left, that is what the permit is for.
                limit = limit.min(usize::try_from(allowed).unwrap_or(usize::MAX));
            }
            if limit < MIN_DATAGRAM || allowed < limit as u64 {
                break;
            }
            let (order, room) = (Order::one_rtt(now, content), buffer.room(limit));
            let mut built = build_short(order, room, &mut self.packets, &mut self.parts);
            let Some(built) = &mut built else {
                if segments == 0 && size < mtu {
                    // A datagram of the application may be too large for a probe of the base size.
                    size = mtu;
                    continue;
                }
                break;
            };
            built.follows_in_batch = segments > 0;
            self.on_one_rtt_sent(now, built, ecn);
            buffer.advance(built.len);
            segments += 1;
            last_number = built.number;
            in_flight += if built.in_flight { built.len as u64 } else { 0 };
            allowed = allowed.saturating_sub(built.len as u64);
            let is_lone = matches!(content, Content::AckOnly | Content::Probe(_));
            // What follows the probes needs a permit of its own: controllers learn of a batch when
            // it has left, so their room does not shrink meanwhile.
            let is_over = is_probing && !self.packets.recovery.is_probing(SpaceId::Application);
            if is_lone || is_over {
                break;
            }
            if built.len < size {
                // Datagrams of an application often have one size, which is not that of full packets. What needs
                // full packets gets the next batch.
                let needs_full =
                    self.parts.streams.wants_to_send() || self.parts.paths.active().wants_to_send();
                if segments > 1 || needs_full || !self.parts.datagrams.wants_to_send() {
                    break;
                }
                size = built.len;
            }
            content = self.next_content();
        }
        if segments == 0 {
            return None;
        }
        if in_flight > 0 {
            let is_full = size == mtu && buffer.len() >= mtu;
            self.packets
                .recovery
                .on_batch_sent(now, in_flight, last_number, is_full);
        }
        let way = self.parts.paths.active().way();
        Some(Transmit::batch(way, ecn, (segments, size), buffer.len()))
    }

    /// Returns how many bytes of 1-RTT packets may leave now, and what may be in them.
    fn allowance(&mut self, now: Time) -> Option<(u64, Content)> {
        // The end of a message has a short way: it need not wait until there is room for a whole
        // datagram, nor for a quantum.
        let has_more = self.parts.wants_control(&self.packets.recovery)
            || self.parts.datagrams.wants_to_send();
        let mtu = u64::from(self.packets.recovery.path().mtu());
        let left = (!has_more).then(|| self.parts.streams.little_left(mtu));
        let demand = Demand {
            budget: self.parts.paths.active().budget(),
            is_ack_due: self.parts.acknowledger.is_due(SpaceId::Application),
            little: left.flatten().map(|left| left + BESIDE_STREAMS),
        };
        let permit = self
            .packets
            .recovery
            .permit(now, SpaceId::Application, &demand);
        Some(match permit {
            SendPermit::Nothing => {
                self.parts.trace.limit(now, SendLimit::Amplification);
                return None;
            }
            SendPermit::Probe => (u64::MAX, Content::All),
            SendPermit::Bytes(bytes) => {
                let has_data = self.parts.streams.wants_to_send();
                match self.packets.recovery.makes_room_for_probe(has_data) {
                    true => (u64::MAX, Content::AckOnly),
                    false => (bytes, Content::All),
                }
            }
            // What fills the window may have gone to where the peer no longer is: only the answer
            // to a challenge, of which there is one per probe timeout, can show it.
            SendPermit::AckOnly if self.parts.paths.active().wants_challenge() => {
                (u64::MAX, Content::Probe(self.parts.paths.active_index()))
            }
            SendPermit::AckOnly => {
                self.parts.trace.limit(now, SendLimit::CongestionWindow);
                (u64::MAX, Content::AckOnly)
            }
            SendPermit::PacedUntil(_) => {
                self.parts.trace.limit(now, SendLimit::Pacer);
                (u64::MAX, Content::AckOnly)
            }
        })
    }

    /// Updates keys in time; closes when they are worn out (RFC 9001 §6.6).
    fn keys_are_good(&mut self, now: Time) -> bool {
        if self.packets.protection.is_update_due() {
            // While the rules do not allow it the next batch tries again; the hard stop is far.
            let _ = self.initiate_key_update(now);
        }
        if self.packets.protection.is_exhausted() {
            let code = TransportErrorCode::AEAD_LIMIT_REACHED;
            let reason = "the keys have sealed too many packets";
            self.end(now, TransportError::new(code, reason));
            return false;
        }
        true
    }

    /// True when there is anything at all for the application space.
    fn wants_to_send(&self) -> bool {
        self.parts.acknowledger.is_due(SpaceId::Application)
            || self.parts.wants_control(&self.packets.recovery)
            || self.parts.streams.wants_to_send()
            || self.parts.datagrams.wants_to_send()
    }

    /// Sends a lone datagram on a path that is not in use.
    fn transmit_path_probe(
        &mut self,
        now: Time,
        index: PathIndex,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        let path = self.parts.paths.get_mut(index)?;
        let (way, key) = (path.way(), path.key());
        let limit = path.datagram_limit(usize::from(self.packets.recovery.mtu_of(key)?));
        if limit < MIN_DATAGRAM || !self.packets.protection.has_keys(SpaceId::Application) {
            return None;
        }
        let order = Order::one_rtt(now, Content::Probe(index));
        self.parts.bits.set_clearing(false);
        let built = build_short(
            order,
            buffer.room(limit),
            &mut self.packets,
            &mut self.parts,
        )?;
        self.packets
            .recovery
            .on_path_probe_sent(now, key, &built, &mut self.parts.rng);
        self.watchdog.on_packet_sent(now, built.ack_eliciting);
        buffer.advance(built.len);
        self.parts.paths.get_mut(index)?.on_datagram_sent(built.len);
        Some(Transmit::single(way, Ecn::NotEct, built.len))
    }

    /// Sends a lone datagram that is larger than today's, when it is time for one.
    fn transmit_size_probe(&mut self, now: Time, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        let is_validated = self.parts.paths.active().is_validated();
        let has_data = self.parts.streams.wants_to_send();
        if self.packets.recovery.wants_interface() {
            let (tuple, socket) = self.parts.paths.active().way();
            let peer = tuple.peer;
            self.events
                .push_back(Event::InterfaceMtuWanted { peer, socket });
        }
        let size = self
            .packets
            .recovery
            .next_size_probe(now, is_validated, has_data)?;
        if !self.keys_are_good(now) {
            return self.transmit_close(now, buffer);
        }
        let probe = self.packets.recovery.begin_size_probe(size);
        let order = Order::one_rtt(now, Content::MtuProbe(probe, size));
        let room = buffer.room(usize::from(size));
        self.parts.bits.set_clearing(false);
        let built = build_short(order, room, &mut self.packets, &mut self.parts)?;
        self.packets.recovery.on_packet_sent(
            now,
            order.space,
            &built,
            Ecn::NotEct,
            &mut self.parts.rng,
        );
        self.packets.recovery.on_size_probe_sent(now, &built);
        self.watchdog.on_packet_sent(now, built.ack_eliciting);
        buffer.advance(built.len);
        let path = self.parts.paths.active_mut();
        path.on_datagram_sent(built.len);
        Some(Transmit::single(path.way(), Ecn::NotEct, built.len))
    }

    /// Sends datagrams with whatever the spaces have to send. A flight that takes several full datagrams
    /// is one batch. A client's first flight and everything that is repeated is none: a batch may be
    /// lost as a whole, and then nothing would ever arrive.
    fn transmit_handshake(&mut self, now: Time, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        let may_clear = self.parts.bits.may_clear();
        let features = self.packets.recovery.handshake_features(now, may_clear);
        let mark = features.is_none().then_some(Ecn::NotEct);
        let features = features.unwrap_or(FeatureUse::NONE);
        self.parts.bits.set_clearing(features.clears_quic_bit);
        let mtu = self.packets.recovery.path().mtu();
        let limit = handshake_limit(self.parts.paths.active(), mtu)?.min(features.max_size);
        let is_hello =
            self.side().is_client() && self.parts.handshake.wants_to_send_crypto(SpaceId::Initial);
        let max_segments = match is_hello {
            true => 1,
            false => features.max_segments.min(buffer.max_segments()),
        };
        let (size, ecn) = self.build_handshake_datagram(now, (limit, mark), buffer)?;
        let (mut segments, mut last) = (1, size);
        while last == limit
            && segments < max_segments
            && buffer.len() + limit <= MAX_BATCH
            && self.packets.recovery.marks_all(ecn)
        {
            let left = handshake_limit(self.parts.paths.active(), mtu);
            let Some(left) = left else { break };
            let order = (left.min(limit), Some(ecn));
            let Some((len, _)) = self.build_handshake_datagram(now, order, buffer) else {
                break;
            };
            (segments, last) = (segments + 1, len);
        }
        let way = self.parts.paths.active().way();
        Some(Transmit::batch(way, ecn, (segments, size), buffer.len()))
    }

    /// Returns what a space may send in a datagram of the handshake.
    fn handshake_content(&mut self, now: Time, id: SpaceId, limit: usize) -> Option<Content> {
        let path = self.parts.paths.active();
        let is_early = id == SpaceId::Application && self.packets.protection.seals_zero_rtt();
        let is_too_soon = id == SpaceId::Application
            && !is_early
            && !self
                .parts
                .handshake
                .may_send_application(path.is_validated());
        if is_too_soon || !is_early && !self.packets.protection.has_keys(id) {
            return None;
        }
        if id == SpaceId::Initial && limit < MIN_INITIAL_DATAGRAM {
            // Nothing that asks for an answer, because then the datagram had to be a full one.
            return Some(Content::AckOnly);
        }
        // Datagrams of the handshake are as long as they have to be.
        let demand = Demand {
            budget: path.budget(),
            is_ack_due: self.parts.acknowledger.is_due(id),
            little: None,
        };
        match self.packets.recovery.permit(now, id, &demand) {
            SendPermit::Nothing => None,
            SendPermit::AckOnly | SendPermit::PacedUntil(_) if is_early => None,
            SendPermit::AckOnly | SendPermit::PacedUntil(_) => Some(Content::AckOnly),
            SendPermit::Probe | SendPermit::Bytes(_) if is_early => Some(Content::Early),
            SendPermit::Probe | SendPermit::Bytes(_) => Some(Content::All),
        }
    }

    /// Sends CONNECTION_CLOSE in every space whose keys the peer might have, if it is due
    /// (RFC 9000 §10.2.3).
    fn transmit_close(&mut self, now: Time, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        let closing = self.life.closing()?.clone();
        // What the amplification limit holds back leaves as soon as there is room.
        self.life.on_closing_sent(false);
        let limit = handshake_limit(
            self.parts.paths.active(),
            self.packets.recovery.path().mtu(),
        )?;
        let room = buffer.room(limit);
        self.parts.bits.set_clearing(false);
        let mut packets: Coalesced = [None; 3];
        let mut at = 0;
        for id in SpaceId::ALL {
            if !self.packets.protection.has_keys(id)
                || self.packets.recovery.next_number(id).is_none()
            {
                continue;
            }
            let place = (&mut *room, at);
            let packet = Unsealed::build_close(id, &closing, place, &self.packets, &self.parts);
            let Some(packet) = packet else {
                break;
            };
            at = packet.end();
            packets[id as usize] = Some(packet);
        }
        if at == 0 {
            return None;
        }
        pad(self.parts.handshake.side(), &mut packets, room);
        let mut len = 0;
        for packet in packets.iter().flatten() {
            packet.seal(now, room, &mut self.packets.protection, &mut self.parts);
            self.packets
                .recovery
                .on_close_sent(packet.id(), packet.built().number);
            len = packet.end();
        }
        buffer.advance(len);
        self.life.on_closing_sent(true);
        let path = self.parts.paths.active_mut();
        path.on_datagram_sent(len);
        Some(Transmit::single(path.way(), Ecn::NotEct, len))
    }

    /// Returns true if 1-RTT keys that exist as secrets should be derived to send. An idle connection is asked
    /// again and again although it has nothing to send.
    #[cold]
    fn needs_keys(&self) -> bool {
        if !self.life.is_open() {
            return true;
        }
        if self.life.is_confirmed() {
            return self.wants_to_send()
                || self.packets.recovery.wants_second_probe()
                || self.parts.paths.wanting_probe().is_some();
        }
        let is_validated = self.parts.paths.active().is_validated();
        self.parts.handshake.may_send_application(is_validated)
    }

    /// Returns the features that the next 1-RTT datagrams may use: none after a timeout, because one of
    /// them may be its cause.
    fn next_features(&mut self, now: Time) -> FeatureUse {
        let (recovery, streams) = (&self.packets.recovery, &mut self.parts.streams);
        if recovery.is_after_timeout() {
            return FeatureUse::NONE;
        }
        let several = u64::from(recovery.path().mtu()) * DATAGRAMS_FOR_TRIAL;
        let (datagrams, may_clear) = (&self.parts.datagrams, self.parts.bits.may_clear());
        recovery.features(now, may_clear, || {
            streams.has_stream_data() && streams.little_left(several).is_none()
                || datagrams.waiting_bytes() as u64 > several
        })
    }

    /// Adds a datagram of at most `limit` bytes to the batch, with the ECN mark of the batch if it has
    /// begun. Returns the length and the mark.
    fn build_handshake_datagram(
        &mut self,
        now: Time,
        (limit, ecn): (usize, Option<Ecn>),
        buffer: &mut TransmitBuffer,
    ) -> Option<(usize, Ecn)> {
        self.packets.recovery.repeat_for_probes(&mut self.parts);
        let follows_in_batch = buffer.len() > 0;
        let room = buffer.room(limit);
        let mut packets: Coalesced = [None; 3];
        let mut at = 0;
        for space in SpaceId::ALL {
            let Some(content) = self.handshake_content(now, space, limit) else {
                continue;
            };
            let order = Order {
                now,
                space,
                content,
            };
            let packet = Unsealed::build(order, (room, at), &mut self.packets, &mut self.parts);
            if let Some(packet) = packet {
                at = packet.end();
                packets[space as usize] = Some(packet);
            }
        }
        if at == 0 {
            return None;
        }
        pad(self.parts.handshake.side(), &mut packets, room);
        let ecn = ecn.unwrap_or_else(|| common_mark(&packets, &self.packets.recovery));
        let mut len = 0;
        for packet in packets.iter().flatten() {
            let built = Built {
                quic_bit_cleared: packet.seal(
                    now,
                    room,
                    &mut self.packets.protection,
                    &mut self.parts,
                ),
                follows_in_batch,
                ..packet.built()
            };
            self.packets.recovery.on_packet_sent(
                now,
                packet.id(),
                &built,
                ecn,
                &mut self.parts.rng,
            );
            self.packets.recovery.on_handshake_packet_sent(now, &built);
            self.watchdog.on_packet_sent(now, built.ack_eliciting);
            len = packet.end();
        }
        buffer.advance(len);
        self.parts.paths.active_mut().on_datagram_sent(len);
        self.packets.recovery.on_handshake_datagram_sent(len);
        if self.parts.handshake.side().is_client() && packets[SpaceId::Handshake as usize].is_some()
        {
            // RFC 9001 §4.9.1: the server has shown Handshake keys, Initials are done.
            discard_space(now, SpaceId::Initial, &mut self.packets, &mut self.parts);
        }
        Some((len, ecn))
    }

    /// Returns what the next packet of a batch may contain.
    #[inline]
    fn next_content(&self) -> Content {
        let control = self.parts.wants_control(&self.packets.recovery);
        match control {
            true => Content::All,
            false if self.parts.datagrams.wants_to_send() => Content::Mixed,
            false => Content::Data,
        }
    }
}

/// Returns the room for a handshake datagram; `None` when nothing may be sent.
fn handshake_limit(path: &Path, mtu: u16) -> Option<usize> {
    let limit = path.datagram_limit(usize::from(mtu).min(HANDSHAKE_MTU));
    (limit >= MIN_DATAGRAM).then_some(limit)
}

/// Full datagrams that must wait for a feature that was given up to be tried: with the trial, as many
/// as reveal its loss without a probe timeout (RFC 9002 §6.1.1).
const DATAGRAMS_FOR_TRIAL: u64 = 8;

/// Header, tag, and some room for an ACK, which may take more.
const BESIDE_STREAMS: u64 = 128;

/// Handshake datagrams stay below this however large the path's datagrams are: the Length field
/// of a long header has two bytes.
const HANDSHAKE_MTU: usize = 1472;
