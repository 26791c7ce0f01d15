//! One batch out: permit, path, space, packets. RFC 9000 §12, §13, RFC 9002 §7.

use courser_base::{Ecn, Time};
use courser_telemetry::SendLimit;
use courser_wire::TransportErrorCode;
use courser_wire::packet::MIN_INITIAL_DATAGRAM;

use super::Connection;
use super::batch::{Allowance, Batch};
use super::coalesced::CoalescedDatagram;
use super::event::Event;
use super::fill::{Content, Order};
use super::life::Ending;
use crate::build::transmit::{MAX_BATCH, Transmit, TransmitBuffer};
use crate::error::TransportError;
use crate::path::paths::PathIndex;
use crate::path::{MIN_DATAGRAM, Path, Place};
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

    /// Builds what an open connection sends next: the probe of a path that is not in use, else the handshake, a
    /// probe for larger datagrams, or a batch.
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
        let allowance = self.allowance(now)?;
        let features = self.next_features(now);
        self.parts.bits.set_clearing(features.clears_quic_bit);
        let mtu = usize::from(self.packets.recovery.path().mtu());
        let mut batch = Batch::new(allowance, mtu, &features, buffer.max_segments());
        while let Some(limit) = batch.next_limit(self.parts.paths.active()) {
            let (order, room) = (Order::one_rtt(now, batch.content()), buffer.room(limit));
            let Some(built) = self.packets.build_short(order, room, &mut self.parts) else {
                if batch.grow() {
                    continue;
                }
                break;
            };
            self.on_one_rtt_sent(now, &built, features.ecn);
            buffer.advance(built.len);
            let is_probing = self.packets.recovery.is_probing(SpaceId::Application);
            if !batch.add(&built, is_probing, || self.parts.wants_datagrams_alone()) {
                break;
            }
        }
        if buffer.len() == 0 {
            return None;
        }
        self.packets.recovery.on_batch_sent(now, &batch.sent());
        let path = self.parts.paths.active();
        Some(path.transmit(features.ecn, batch.segment_size(), buffer.len()))
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

    /// Returns the 1-RTT packets that may leave now.
    fn allowance(&mut self, now: Time) -> Option<Allowance> {
        // The end of a message has a short way: it need not wait until there is room for a whole
        // datagram, nor for a quantum.
        let has_more = self.wants_control() || self.parts.datagrams.wants_to_send();
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
            SendPermit::Probe => Allowance {
                is_for_probes: true,
                ..Allowance::unlimited(Content::All)
            },
            SendPermit::Bytes(bytes) => {
                let has_data = self.parts.streams.wants_to_send();
                match self.packets.recovery.makes_room_for_probe(has_data) {
                    true => Allowance::unlimited(Content::AckOnly),
                    false => Allowance {
                        bytes,
                        ..Allowance::unlimited(Content::All)
                    },
                }
            }
            // What fills the window may have gone to where the peer no longer is: only the answer
            // to a challenge, of which there is one per probe timeout, can show it.
            SendPermit::AckOnly if self.parts.paths.active().wants_challenge() => {
                Allowance::unlimited(Content::Probe(self.parts.paths.active_index()))
            }
            SendPermit::AckOnly => {
                self.parts.trace.limit(now, SendLimit::CongestionWindow);
                Allowance::unlimited(Content::AckOnly)
            }
            SendPermit::PacedUntil(_) => {
                self.parts.trace.limit(now, SendLimit::Pacer);
                Allowance::unlimited(Content::AckOnly)
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

    /// Returns true if anything waits for 1-RTT packets.
    #[inline]
    fn wants_to_send(&self) -> bool {
        self.parts.acknowledger.is_due(SpaceId::Application)
            || self.wants_control()
            || self.parts.streams.wants_to_send()
            || self.parts.datagrams.wants_to_send()
    }

    /// Returns true if frames wait that are neither ACK, flow control, datagrams nor stream data.
    #[inline]
    fn wants_control(&self) -> bool {
        self.packets.recovery.wants_to_send() || self.parts.wants_control()
    }

    /// Sends a lone datagram on a path that is not in use.
    fn transmit_path_probe(
        &mut self,
        now: Time,
        index: PathIndex,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        let path = self.parts.paths.get_mut(index)?;
        let key = path.key();
        let limit = path.datagram_limit(usize::from(self.packets.recovery.mtu_of(key)?));
        if limit < MIN_DATAGRAM || !self.packets.protection.has_keys(SpaceId::Application) {
            return None;
        }
        let order = Order::one_rtt(now, Content::Probe(index));
        self.parts.bits.set_clearing(false);
        let room = buffer.room(limit);
        let built = self.packets.build_short(order, room, &mut self.parts)?;
        self.packets
            .recovery
            .on_path_probe_sent(now, key, &built, &mut self.parts.rng);
        self.watchdog.on_packet_sent(now, built.ack_eliciting);
        buffer.advance(built.len);
        let path = self.parts.paths.get_mut(index)?;
        path.on_datagram_sent(built.len);
        Some(path.transmit(Ecn::NotEct, None, built.len))
    }

    /// Asks the driver for the MTU of the interface of the path in use.
    pub(super) fn want_interface_mtu(&mut self) {
        let Place { tuple, socket } = self.parts.paths.active().place();
        let peer = tuple.peer;
        self.events
            .push_back(Event::InterfaceMtuWanted { peer, socket });
    }

    /// Sends a lone datagram that is larger than today's, when it is time for one.
    fn transmit_size_probe(&mut self, now: Time, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        let is_validated = self.parts.paths.active().is_validated();
        let has_data = self.parts.streams.wants_to_send();
        if self.packets.recovery.wants_interface() {
            self.want_interface_mtu();
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
        let built = self.packets.build_short(order, room, &mut self.parts)?;
        self.on_one_rtt_sent(now, &built, Ecn::NotEct);
        self.packets.recovery.on_size_probe_sent(now, &built);
        buffer.advance(built.len);
        let path = self.parts.paths.active();
        Some(path.transmit(Ecn::NotEct, None, built.len))
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
        let (size, ecn) = self.build_handshake_datagram(now, limit, mark, buffer)?;
        let (mut segments, mut last) = (1, size);
        while last == limit
            && segments < max_segments
            && buffer.len() + limit <= MAX_BATCH
            && self.packets.recovery.marks_all(ecn)
        {
            let left = handshake_limit(self.parts.paths.active(), mtu);
            let Some(left) = left else { break };
            let left = left.min(limit);
            let Some((len, _)) = self.build_handshake_datagram(now, left, Some(ecn), buffer) else {
                break;
            };
            (segments, last) = (segments + 1, len);
        }
        let segment_size = (segments > 1).then_some(size);
        let path = self.parts.paths.active();
        Some(path.transmit(ecn, segment_size, buffer.len()))
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
        self.parts.bits.set_clearing(false);
        let mut datagram = CoalescedDatagram::new(buffer.room(limit));
        for id in SpaceId::ALL {
            let can_send = self.packets.protection.has_keys(id)
                && self.packets.recovery.next_number(id).is_some();
            if can_send && !datagram.add_close(id, &closing, &self.packets, &self.parts) {
                break;
            }
        }
        if datagram.is_empty() {
            return None;
        }
        datagram.pad(self.parts.handshake.side());
        for id in SpaceId::ALL {
            let (protection, parts) = (&mut self.packets.protection, &mut self.parts);
            if let Some(built) = datagram.seal(now, id, protection, parts) {
                self.packets.recovery.on_close_sent(id, built.number);
            }
        }
        let len = datagram.len();
        buffer.advance(len);
        self.life.on_closing_sent(true);
        let path = self.parts.paths.active_mut();
        path.on_datagram_sent(len);
        Some(path.transmit(Ecn::NotEct, None, len))
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
        limit: usize,
        ecn: Option<Ecn>,
        buffer: &mut TransmitBuffer,
    ) -> Option<(usize, Ecn)> {
        self.packets.recovery.repeat_for_probes(&mut self.parts);
        let follows_in_batch = buffer.len() > 0;
        let mut datagram = CoalescedDatagram::new(buffer.room(limit));
        for space in SpaceId::ALL {
            if let Some(content) = self.handshake_content(now, space, limit) {
                let order = Order {
                    now,
                    space,
                    content,
                };
                datagram.add(order, &mut self.packets, &mut self.parts);
            }
        }
        if datagram.is_empty() {
            return None;
        }
        let side = self.parts.handshake.side();
        datagram.pad(side);
        let ecn = ecn.unwrap_or_else(|| datagram.common_mark(&self.packets.recovery));
        for id in SpaceId::ALL {
            let (protection, parts) = (&mut self.packets.protection, &mut self.parts);
            let Some(built) = datagram.seal(now, id, protection, parts) else {
                continue;
            };
            let built = Built {
                follows_in_batch,
                ..built
            };
            let recovery = &mut self.packets.recovery;
            recovery.on_packet_sent(now, id, &built, ecn, &mut self.parts.rng);
            recovery.on_handshake_packet_sent(now, &built);
            self.watchdog.on_packet_sent(now, built.ack_eliciting);
        }
        let (len, has_handshake) = (datagram.len(), datagram.has(SpaceId::Handshake));
        buffer.advance(len);
        self.parts.paths.active_mut().on_datagram_sent(len);
        self.packets.recovery.on_handshake_datagram_sent(len);
        if side.is_client() && has_handshake {
            // RFC 9001 §4.9.1: the server has shown Handshake keys, Initials are done.
            self.discard_space(now, SpaceId::Initial);
        }
        Some((len, ecn))
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
