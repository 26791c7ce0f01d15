//! One batch out: permit, path, space, packets. RFC 9000 §12, §13, RFC 9002 §7.

use courser_base::{Ecn, Time};
use courser_telemetry::SendLimit;
use courser_wire::TransportErrorCode;
use courser_wire::packet::MIN_INITIAL_DATAGRAM;

use super::Connection;
use super::coalesced::{Packets, Unsealed, common_mark, pad};
use super::event::Event;
use super::fill::{Content, Order};
use super::life::Ending;
use super::packets::build_short;
use super::spaces::discard_space;
use crate::build::transmit::{MAX_BATCH, Transmit, TransmitBuffer};
use crate::cid::ConnectionIds;
use crate::error::TransportError;
use crate::handshake::Handshake;
use crate::path::paths::{PathIndex, Paths};
use crate::path::{MIN_DATAGRAM, Path};
use crate::pings::Pings;
use crate::recovery::{Built, Demand, FeatureUse, LossRecovery, SendPermit};
use crate::space::SpaceId;

/// Returns true if 1-RTT keys that exist as secrets should be derived to send. An idle connection is asked
/// again and again although it has nothing to send.
#[cold]
fn needs_keys(connection: &Connection) -> bool {
    if !connection.life.is_open() {
        return true;
    }
    if connection.life.is_confirmed() {
        return connection.wants_to_send()
            || connection.recovery.wants_second_probe()
            || connection.paths.wanting_probe().is_some();
    }
    let is_validated = connection.paths.active().is_validated();
    connection.handshake.may_send_application(is_validated)
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
        if self.protection.is_underived() && needs_keys(self) {
            self.protection.derive();
        }
        let transmit = if self.life.is_open() {
            self.transmit_open(now, buffer)
        } else {
            self.transmit_close(now, buffer)
        }?;
        self.trace.changes(now, &self.recovery);
        self.counters.udp_sent.on_batch(&transmit);
        Some(transmit)
    }

    fn transmit_open(&mut self, now: Time, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        if self.recovery.is_out_of_numbers() {
            // RFC 9000 §12.3: without a number there is not even a packet for CONNECTION_CLOSE.
            let reason = "all packet numbers are used up";
            let error = TransportError::new(TransportErrorCode::INTERNAL_ERROR, reason);
            self.end(now, Ending::Silence(error.into()));
            return None;
        }
        if let Some(index) = self.paths.wanting_probe()
            && let Some(transmit) = self.transmit_path_probe(now, index, buffer)
        {
            return Some(transmit);
        }
        if self.acknowledger.is_in_handshake() {
            return self.transmit_handshake(now, buffer);
        }
        // A connection that sends nothing else needs no larger packets.
        if !self.protection.is_underived()
            && let Some(transmit) = self.transmit_size_probe(now, buffer)
        {
            return Some(transmit);
        }
        if self.recovery.wants_second_probe() && !self.wants_to_send() {
            let (recovery, _, mut owners) = self.split();
            recovery.repeat_for_second_probe(&mut owners);
        }
        self.transmit_batch(now, buffer)
    }

    /// Sends a batch of 1-RTT packets on the active path.
    fn transmit_batch(&mut self, now: Time, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        if !self.wants_to_send() {
            self.recovery.on_app_limited(now);
            self.trace.nothing_to_send(now, &self.streams);
            return None;
        }
        if !self.keys_are_good(now) {
            return self.transmit_close(now, buffer);
        }
        // Then the permit is for probes: see `permit`.
        let is_probing = self.recovery.is_probing(SpaceId::Application);
        let (mut allowed, mut content) = self.allowance(now)?;
        let mtu = usize::from(self.recovery.route().mtu());
        let features = next_features(self, now);
        self.bits.set_clearing(features.clears_quic_bit);
        let max_segments = features.max_segments.min(buffer.max_segments());
        let ecn = features.ecn;
        let (mut segments, mut last_number, mut in_flight) = (0, 0, 0);
        // The size of all segments but the last.
        let mut size = mtu.min(features.max_size);
        while segments < max_segments && buffer.len() + size <= MAX_BATCH {
            let mut limit = self.paths.active().datagram_limit(size);
            if segments == 0 {
                // Where little is left, that is what the permit is for.
                limit = limit.min(usize::try_from(allowed).unwrap_or(usize::MAX));
            }
            if limit < MIN_DATAGRAM || allowed < limit as u64 {
                break;
            }
            let (order, room) = (Order::one_rtt(now, content), buffer.room(limit));
            let (recovery, protection, mut owners) = self.split();
            let mut built = build_short(order, room, recovery, protection, &mut owners);
            let Some(built) = &mut built else {
                if segments == 0 && size < mtu {
                    // A datagram of the application may be too large for a probe of the base size.
                    size = mtu;
                    continue;
                }
                break;
            };
            built.follows_in_batch = segments > 0;
            recovery.on_packet_sent(now, order.space, built, ecn, owners.rng);
            self.idle.on_packet_sent(now, built.ack_eliciting);
            self.paths.active_mut().on_datagram_sent(built.len);
            buffer.advance(built.len);
            segments += 1;
            last_number = built.number;
            in_flight += if built.in_flight { built.len as u64 } else { 0 };
            allowed = allowed.saturating_sub(built.len as u64);
            let is_lone = matches!(content, Content::AckOnly | Content::Probe(_));
            // What follows the probes needs a permit of its own: controllers learn of a batch when
            // it has left, so their room does not shrink meanwhile.
            let is_over = is_probing && !self.recovery.is_probing(SpaceId::Application);
            if is_lone || is_over {
                break;
            }
            if built.len < size {
                // Datagrams of an application often have one size, which is not that of full packets. What needs
                // full packets gets the next batch.
                let needs_full =
                    self.streams.wants_to_send() || self.paths.active().wants_to_send();
                if segments > 1 || needs_full || !self.datagrams.wants_to_send() {
                    break;
                }
                size = built.len;
            }
            content = next_content(self);
        }
        if segments == 0 {
            return None;
        }
        if in_flight > 0 {
            let is_full = size == mtu && buffer.len() >= mtu;
            self.recovery
                .on_batch_sent(now, in_flight, last_number, is_full);
        }
        let way = self.paths.active().way();
        Some(Transmit::batch(way, ecn, (segments, size), buffer.len()))
    }

    /// Returns how many bytes of 1-RTT packets may leave now, and what may be in them.
    fn allowance(&mut self, now: Time) -> Option<(u64, Content)> {
        // The end of a message has a short way: it need not wait until there is room for a whole
        // datagram, nor for a quantum.
        let has_more = wants_control(
            &self.recovery,
            &self.handshake,
            &self.paths,
            &self.ids,
            &self.pings,
        ) || self.datagrams.wants_to_send();
        let mtu = u64::from(self.recovery.route().mtu());
        let left = (!has_more).then(|| self.streams.little_left(mtu));
        let demand = Demand {
            budget: self.paths.active().budget(),
            is_ack_due: self.acknowledger.is_due(SpaceId::Application),
            little: left.flatten().map(|left| left + BESIDE_STREAMS),
        };
        let permit = self.recovery.permit(now, SpaceId::Application, &demand);
        Some(match permit {
            SendPermit::Nothing => {
                self.trace.limit(now, SendLimit::Amplification);
                return None;
            }
            SendPermit::Probe => (u64::MAX, Content::All),
            SendPermit::Bytes(bytes) => {
                let has_data = self.streams.wants_to_send();
                match self.recovery.makes_room_for_probe(has_data) {
                    true => (u64::MAX, Content::AckOnly),
                    false => (bytes, Content::All),
                }
            }
            // What fills the window may have gone to where the peer no longer is: only the answer
            // to a challenge, of which there is one per probe timeout, can show it.
            SendPermit::AckOnly if self.paths.active().wants_challenge() => {
                (u64::MAX, Content::Probe(self.paths.active_index()))
            }
            SendPermit::AckOnly => {
                self.trace.limit(now, SendLimit::CongestionWindow);
                (u64::MAX, Content::AckOnly)
            }
            SendPermit::PacedUntil(_) => {
                self.trace.limit(now, SendLimit::Pacer);
                (u64::MAX, Content::AckOnly)
            }
        })
    }

    /// Updates keys in time; closes when they are worn out (RFC 9001 §6.6).
    fn keys_are_good(&mut self, now: Time) -> bool {
        if self.protection.is_update_due() {
            // While the rules do not allow it the next batch tries again; the hard stop is far.
            let _ = self.initiate_key_update(now);
        }
        if self.protection.is_exhausted() {
            let code = TransportErrorCode::AEAD_LIMIT_REACHED;
            let reason = "the keys have sealed too many packets";
            self.end(now, TransportError::new(code, reason));
            return false;
        }
        true
    }

    /// True when there is anything at all for the application space.
    fn wants_to_send(&self) -> bool {
        self.acknowledger.is_due(SpaceId::Application)
            || wants_control(
                &self.recovery,
                &self.handshake,
                &self.paths,
                &self.ids,
                &self.pings,
            )
            || self.streams.wants_to_send()
            || self.datagrams.wants_to_send()
    }

    /// Sends a lone datagram on a path that is not in use.
    fn transmit_path_probe(
        &mut self,
        now: Time,
        index: PathIndex,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        let path = self.paths.get_mut(index)?;
        let (way, route) = (path.way(), path.route());
        let limit = path.datagram_limit(usize::from(self.recovery.mtu_of(route)?));
        if limit < MIN_DATAGRAM || !self.protection.has_keys(SpaceId::Application) {
            return None;
        }
        let order = Order::one_rtt(now, Content::Probe(index));
        self.bits.set_clearing(false);
        let (recovery, protection, mut owners) = self.split();
        let built = build_short(order, buffer.room(limit), recovery, protection, &mut owners)?;
        recovery.on_path_probe_sent(now, route, &built, owners.rng);
        self.idle.on_packet_sent(now, built.ack_eliciting);
        buffer.advance(built.len);
        self.paths.get_mut(index)?.on_datagram_sent(built.len);
        Some(Transmit::single(way, Ecn::NotEct, built.len))
    }

    /// Sends a lone datagram that is larger than today's, when it is time for one.
    fn transmit_size_probe(&mut self, now: Time, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        let is_validated = self.paths.active().is_validated();
        let has_data = self.streams.wants_to_send();
        if self.recovery.wants_interface() {
            let (tuple, socket) = self.paths.active().way();
            let peer = tuple.peer;
            self.events
                .push_back(Event::InterfaceMtuWanted { peer, socket });
        }
        let size = self.recovery.next_size_probe(now, is_validated, has_data)?;
        if !self.keys_are_good(now) {
            return self.transmit_close(now, buffer);
        }
        let probe = self.recovery.begin_size_probe(size);
        let order = Order::one_rtt(now, Content::MtuProbe(probe, size));
        let room = buffer.room(usize::from(size));
        self.bits.set_clearing(false);
        let (recovery, protection, mut owners) = self.split();
        let built = build_short(order, room, recovery, protection, &mut owners)?;
        recovery.on_packet_sent(now, order.space, &built, Ecn::NotEct, owners.rng);
        recovery.on_size_probe_sent(now, &built);
        self.idle.on_packet_sent(now, built.ack_eliciting);
        buffer.advance(built.len);
        let path = self.paths.active_mut();
        path.on_datagram_sent(built.len);
        Some(Transmit::single(path.way(), Ecn::NotEct, built.len))
    }

    /// Sends datagrams with whatever the spaces have to send. A flight that takes several full datagrams
    /// is one batch. A client's first flight and everything that is repeated is none: a batch may be
    /// lost as a whole, and then nothing would ever arrive.
    fn transmit_handshake(&mut self, now: Time, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        let may_clear = self.bits.may_clear();
        let features = self.recovery.handshake_features(now, may_clear);
        let mark = features.is_none().then_some(Ecn::NotEct);
        let features = features.unwrap_or(FeatureUse::NONE);
        self.bits.set_clearing(features.clears_quic_bit);
        let mtu = self.recovery.route().mtu();
        let limit = handshake_limit(self.paths.active(), mtu)?.min(features.max_size);
        let is_hello =
            self.side().is_client() && self.handshake.wants_to_send_crypto(SpaceId::Initial);
        let max_segments = match is_hello {
            true => 1,
            false => features.max_segments.min(buffer.max_segments()),
        };
        let (size, ecn) = build_handshake_datagram(self, now, (limit, mark), buffer)?;
        let (mut segments, mut last) = (1, size);
        while last == limit
            && segments < max_segments
            && buffer.len() + limit <= MAX_BATCH
            && self.recovery.marks_all(ecn)
        {
            let left = handshake_limit(self.paths.active(), mtu);
            let Some(left) = left else { break };
            let order = (left.min(limit), Some(ecn));
            let Some((len, _)) = build_handshake_datagram(self, now, order, buffer) else {
                break;
            };
            (segments, last) = (segments + 1, len);
        }
        let way = self.paths.active().way();
        Some(Transmit::batch(way, ecn, (segments, size), buffer.len()))
    }

    /// Returns what a space may send in a datagram of the handshake.
    fn handshake_content(&mut self, now: Time, id: SpaceId, limit: usize) -> Option<Content> {
        let path = self.paths.active();
        let is_early = id == SpaceId::Application && self.protection.seals_zero_rtt();
        let is_too_soon = id == SpaceId::Application
            && !is_early
            && !self.handshake.may_send_application(path.is_validated());
        if is_too_soon || !is_early && !self.protection.has_keys(id) {
            return None;
        }
        if id == SpaceId::Initial && limit < MIN_INITIAL_DATAGRAM {
            // Nothing that asks for an answer, because then the datagram had to be a full one.
            return Some(Content::AckOnly);
        }
        // Datagrams of the handshake are as long as they have to be.
        let demand = Demand {
            budget: path.budget(),
            is_ack_due: self.acknowledger.is_due(id),
            little: None,
        };
        match self.recovery.permit(now, id, &demand) {
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
        let limit = handshake_limit(self.paths.active(), self.recovery.route().mtu())?;
        let room = buffer.room(limit);
        self.bits.set_clearing(false);
        let mut packets: Packets = [None; 3];
        let mut at = 0;
        for id in SpaceId::ALL {
            if !self.protection.has_keys(id) || self.recovery.next_number(id).is_none() {
                continue;
            }
            let (recovery, protection, owners) = self.split();
            let place = (&mut *room, at);
            let packet = Unsealed::build_close(id, &closing, place, recovery, protection, &owners);
            let Some(packet) = packet else {
                break;
            };
            at = packet.end();
            packets[id as usize] = Some(packet);
        }
        if at == 0 {
            return None;
        }
        pad(self.handshake.side(), &mut packets, room);
        let mut len = 0;
        for packet in packets.iter().flatten() {
            let (recovery, protection, mut owners) = self.split();
            packet.seal(now, room, protection, &mut owners);
            recovery.on_close_sent(packet.id(), packet.built().number);
            len = packet.end();
        }
        buffer.advance(len);
        self.life.on_closing_sent(true);
        let path = self.paths.active_mut();
        path.on_datagram_sent(len);
        Some(Transmit::single(path.way(), Ecn::NotEct, len))
    }
}

/// Returns the features that the next 1-RTT datagrams may use: none after a timeout, because one of
/// them may be its cause.
fn next_features(connection: &mut Connection, now: Time) -> FeatureUse {
    let (recovery, streams) = (&connection.recovery, &mut connection.streams);
    if recovery.is_after_timeout() {
        return FeatureUse::NONE;
    }
    let several = u64::from(recovery.route().mtu()) * DATAGRAMS_FOR_TRIAL;
    let (datagrams, may_clear) = (&connection.datagrams, connection.bits.may_clear());
    recovery.features(now, may_clear, || {
        streams.has_stream_data() && streams.little_left(several).is_none()
            || datagrams.waiting_bytes() as u64 > several
    })
}

/// Adds a datagram of at most `limit` bytes to the batch, with the ECN mark of the batch if it has
/// begun. Returns the length and the mark.
fn build_handshake_datagram(
    connection: &mut Connection,
    now: Time,
    (limit, ecn): (usize, Option<Ecn>),
    buffer: &mut TransmitBuffer,
) -> Option<(usize, Ecn)> {
    let (recovery, _, mut owners) = connection.split();
    recovery.repeat_for_probes(&mut owners);
    let follows_in_batch = buffer.len() > 0;
    let room = buffer.room(limit);
    let mut packets: Packets = [None; 3];
    let mut at = 0;
    for space in SpaceId::ALL {
        let Some(content) = connection.handshake_content(now, space, limit) else {
            continue;
        };
        let order = Order {
            now,
            space,
            content,
        };
        let (recovery, protection, mut owners) = connection.split();
        let packet = Unsealed::build(order, (room, at), recovery, protection, &mut owners);
        if let Some(packet) = packet {
            at = packet.end();
            packets[space as usize] = Some(packet);
        }
    }
    if at == 0 {
        return None;
    }
    pad(connection.handshake.side(), &mut packets, room);
    let ecn = ecn.unwrap_or_else(|| common_mark(&packets, &connection.recovery));
    let mut len = 0;
    for packet in packets.iter().flatten() {
        let (recovery, protection, mut owners) = connection.split();
        let built = Built {
            quic_bit_cleared: packet.seal(now, room, protection, &mut owners),
            follows_in_batch,
            ..packet.built()
        };
        recovery.on_packet_sent(now, packet.id(), &built, ecn, owners.rng);
        recovery.on_handshake_packet_sent(now, &built);
        connection.idle.on_packet_sent(now, built.ack_eliciting);
        len = packet.end();
    }
    buffer.advance(len);
    connection.paths.active_mut().on_datagram_sent(len);
    connection.recovery.on_handshake_datagram_sent(len);
    if connection.handshake.side().is_client() && packets[SpaceId::Handshake as usize].is_some() {
        // RFC 9001 §4.9.1: the server has shown Handshake keys, Initials are done.
        let (recovery, protection, mut owners) = connection.split();
        discard_space(now, SpaceId::Initial, recovery, protection, &mut owners);
    }
    Some((len, ecn))
}

/// Returns what the next packet of a batch may contain.
#[inline]
fn next_content(connection: &Connection) -> Content {
    let control = wants_control(
        &connection.recovery,
        &connection.handshake,
        &connection.paths,
        &connection.ids,
        &connection.pings,
    );
    match control {
        true => Content::All,
        false if connection.datagrams.wants_to_send() => Content::Mixed,
        false => Content::Data,
    }
}

/// True when there is anything but an ACK, datagrams and stream data. Flow-control frames are part
/// of the first packet of each batch.
#[inline]
fn wants_control(
    recovery: &LossRecovery,
    handshake: &Handshake,
    paths: &Paths,
    ids: &ConnectionIds,
    pings: &Pings,
) -> bool {
    recovery.wants_ping(SpaceId::Application)
        || pings.wants_to_send()
        || handshake.wants_to_send()
        || paths.active().wants_to_send()
        || ids.wants_to_send()
        || recovery.wants_ack_frequency()
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
