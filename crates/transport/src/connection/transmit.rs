//! Builds the next batch of datagrams: permit, path, space, packets. RFC 9000 §12, §13, RFC 9002 §7.

use courser_base::{Ecn, Time};
use courser_telemetry::SendLimit;
use courser_wire::TransportErrorCode;
use courser_wire::packet::MIN_INITIAL_DATAGRAM;

use super::Connection;
use super::batch::{Batch, BatchPermit};
use super::coalesced::CoalescedDatagram;
use super::event::Event;
use super::fill::{Content, Order};
use super::life::Ending;
use crate::build::transmit::{MAX_BATCH, Transmit, TransmitBuffer};
use crate::error::TransportError;
use crate::multipath::Multipath;
use crate::path::paths::PathIndex;
use crate::path::{MIN_DATAGRAM, Path, Place};
use crate::recovery::{Built, Demand, FeatureUse, SendPermit};
use crate::space::SpaceId;

impl Connection {
    /// Builds the next batch of datagrams. Returns `None` if nothing waits or the limits permit none now.
    ///
    /// All datagrams of a batch use the same path and have the same size, except the last, which may
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
        let transmit = if self.parts.multipath.is_some() && self.life.is_open() {
            self.follow_probes(now);
            self.transmit_response(now, buffer)
                .or_else(|| self.transmit_on_paths(now, buffer))
        } else if self.life.is_open() {
            self.transmit_open(now, buffer)
        } else {
            self.transmit_close(now, buffer)
        }?;
        self.parts.trace.changes(now, &self.packets.recovery);
        self.counters.udp_sent.on_batch(&transmit);
        Some(transmit)
    }

    /// Builds the next datagrams of an open connection: the probe of a path that is not in use, else the
    /// handshake, an MTU probe, or a batch.
    pub(super) fn transmit_open(
        &mut self,
        now: Time,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        if self.packets.recovery.is_out_of_numbers() {
            // RFC 9000 §12.3: no number is left for a packet with CONNECTION_CLOSE.
            let reason = "all packet numbers are used up";
            let error = TransportError::new(TransportErrorCode::INTERNAL_ERROR, reason);
            self.end(now, Ending::Silence(error.into()));
            return None;
        }
        self.refresh_observations(now);
        if let Some(index) = self.parts.paths.next_to_probe()
            && let Some(transmit) = self.transmit_path_probe(now, index, buffer)
        {
            return Some(transmit);
        }
        if self.parts.acknowledger.is_in_handshake() {
            return self.transmit_handshake(now, buffer);
        }
        // Derived keys show that the connection sends, so that it may need larger packets.
        if !self.packets.protection.is_underived()
            && let Some(transmit) = self.transmit_size_probe(now, buffer)
        {
            return Some(transmit);
        }
        // Other paths carry the data of a silent path already.
        let is_restricted = self.is_path_restricted();
        if self.packets.recovery.is_second_probe_due()
            && !is_restricted
            && !self.has_frames_to_send()
        {
            self.packets
                .recovery
                .repeat_for_second_probe(&mut self.parts);
        }
        self.transmit_batch(now, buffer)
    }

    /// Sends a batch of 1-RTT packets on the active path.
    fn transmit_batch(&mut self, now: Time, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        if !self.has_frames_to_send() {
            self.packets.recovery.on_app_limited(now);
            self.parts.trace.nothing_to_send(now, &self.parts.streams);
            return None;
        }
        if !self.keys_are_good(now) {
            return self.transmit_close(now, buffer);
        }
        let batch_permit = self.batch_permit(now)?;
        let features = self.next_features(now);
        self.parts.bits.set_clearing(features.clears_quic_bit);
        let mtu = usize::from(self.packets.recovery.path().mtu());
        let mut batch = Batch::new(batch_permit, mtu, &features, buffer.max_segments());
        while let Some(limit) = batch.next_limit(self.parts.paths.active()) {
            let (order, room) = (Order::one_rtt(now, batch.content()), buffer.spare(limit));
            let Some(built) = self.packets.build_short(order, room, &mut self.parts) else {
                if batch.grow() {
                    continue;
                }
                break;
            };
            self.on_one_rtt_sent(now, &built, features.ecn);
            buffer.advance(built.len);
            let is_probing = self.packets.recovery.is_probing(SpaceId::Application);
            if !batch.add(&built, is_probing, || self.parts.has_only_datagrams()) {
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
    fn batch_permit(&mut self, now: Time) -> Option<BatchPermit> {
        let demand = Demand {
            budget: self.parts.paths.active().budget(),
            is_ack_due: self.parts.acknowledger.is_due(SpaceId::Application),
            little: self.little_to_send(),
        };
        let permit = self
            .packets
            .recovery
            .permit(now, SpaceId::Application, &demand);
        if self.is_path_restricted() && permit != SendPermit::Nothing {
            let is_ping_due = self.packets.recovery.is_ping_due(SpaceId::Application);
            let content = match permit {
                SendPermit::Probe => {
                    self.packets.recovery.request_ping(SpaceId::Application);
                    Content::Ping
                }
                SendPermit::Bytes(_) if is_ping_due => Content::Ping,
                _ if self.parts.paths.active().has_frames_to_send() => {
                    Content::Probe(self.parts.paths.active_index())
                }
                _ => Content::AckOnly,
            };
            return Some(BatchPermit::unlimited(content));
        }
        Some(match permit {
            SendPermit::Nothing => {
                self.parts.trace.limit(now, SendLimit::Amplification);
                return None;
            }
            SendPermit::Probe => BatchPermit {
                is_for_probes: true,
                ..BatchPermit::unlimited(Content::All)
            },
            SendPermit::Bytes(bytes) => {
                let has_data = self.parts.streams.has_frames_to_send();
                match self.packets.recovery.makes_room_for_probe(has_data) {
                    true => BatchPermit::unlimited(Content::AckOnly),
                    false => BatchPermit {
                        bytes,
                        ..BatchPermit::unlimited(Content::All)
                    },
                }
            }
            // The packets that fill the window may have been sent to an address that the peer has
            // left. Only the response to a challenge, one per probe timeout, can show that.
            SendPermit::AckOnly if self.parts.paths.active().is_challenge_due() => {
                BatchPermit::unlimited(Content::Probe(self.parts.paths.active_index()))
            }
            SendPermit::AckOnly => {
                self.parts.trace.limit(now, SendLimit::CongestionWindow);
                BatchPermit::unlimited(Content::AckOnly)
            }
            SendPermit::PacedUntil(_) => {
                self.parts.trace.limit(now, SendLimit::Pacer);
                BatchPermit::unlimited(Content::AckOnly)
            }
        })
    }

    /// Returns true if the path at hand may not carry data now.
    #[inline]
    fn is_path_restricted(&self) -> bool {
        let multipath = self.parts.multipath.as_deref();
        multipath.is_some_and(Multipath::restricts)
    }

    /// Returns the bytes of a packet with all that waits, if they are few. The end of a message and small datagrams
    /// may be sent although the window or the pacer does not permit a full packet yet.
    fn little_to_send(&mut self) -> Option<u64> {
        if self.has_control_frames() || self.packets.pads {
            return None;
        }
        let mtu = u64::from(self.packets.recovery.path().mtu());
        let left = mtu.checked_sub(self.parts.datagrams.frame_bytes())?;
        let of_streams = self.parts.streams.pending_bytes_up_to(left)?;
        Some(mtu - left + of_streams + BESIDE_DATA)
    }

    /// Updates keys in time, and closes the connection when they have reached their limit (RFC 9001
    /// §6.6). Returns false if it did.
    fn keys_are_good(&mut self, now: Time) -> bool {
        if self.packets.protection.is_update_due() {
            // If an update is not allowed yet, the next batch tries again long before the hard limit.
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

    /// Returns true if frames wait for 1-RTT packets.
    #[inline]
    pub(super) fn has_frames_to_send(&self) -> bool {
        self.parts.acknowledger.is_due(SpaceId::Application)
            || self.has_control_frames()
            || self.parts.streams.has_frames_to_send()
            || self.parts.datagrams.has_frames_to_send()
    }

    /// Returns true if frames wait that are neither ACK, flow control, datagrams nor stream data.
    #[inline]
    fn has_control_frames(&self) -> bool {
        self.packets.recovery.has_frames_to_send() || self.parts.has_control_frames()
    }

    /// Sends a single datagram on a path that is not in use.
    pub(super) fn transmit_path_probe(
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
        let room = buffer.spare(limit);
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

    /// Sends a single datagram that is larger than the present MTU, if an MTU probe is due.
    fn transmit_size_probe(&mut self, now: Time, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        let is_validated = self.parts.paths.active().is_validated();
        let has_data = self.parts.streams.has_frames_to_send();
        if self.packets.recovery.needs_interface_mtu() {
            self.want_interface_mtu();
        }
        let size = self
            .packets
            .recovery
            .next_size_probe(now, is_validated, has_data)?;
        if !self.keys_are_good(now) {
            return self.transmit_close(now, buffer);
        }
        if !self.has_frames_to_send() {
            // A single probe says nothing about the rate of the path. BBR would take it for all that the path
            // can carry, and leave startup.
            self.packets.recovery.on_lone_size_probe(size);
        }
        let probe = self.packets.recovery.begin_size_probe(size);
        let order = Order::one_rtt(now, Content::MtuProbe(probe, size));
        let room = buffer.spare(usize::from(size));
        self.parts.bits.set_clearing(false);
        let built = self.packets.build_short(order, room, &mut self.parts)?;
        self.on_one_rtt_sent(now, &built, Ecn::NotEct);
        self.packets.recovery.on_size_probe_sent(now, &built);
        buffer.advance(built.len);
        let path = self.parts.paths.active();
        Some(path.transmit(Ecn::NotEct, None, built.len))
    }

    /// Sends datagrams with packets of all spaces. A flight of several full datagrams is one batch, except
    /// for a client's first flight and for retransmissions: a path may drop every batch as a whole.
    fn transmit_handshake(&mut self, now: Time, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        let may_clear = self.parts.bits.may_clear();
        let features = self.packets.recovery.handshake_features(now, may_clear);
        let mark = features.is_none().then_some(Ecn::NotEct);
        let features = features.unwrap_or(FeatureUse::NONE);
        self.parts.bits.set_clearing(features.clears_quic_bit);
        let mtu = self.packets.recovery.path().mtu();
        let limit = handshake_limit(self.parts.paths.active(), mtu)?.min(features.max_size);
        let is_hello =
            self.side().is_client() && self.parts.handshake.has_crypto_to_send(SpaceId::Initial);
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
            // An ack-eliciting Initial would require a full datagram.
            return Some(Content::AckOnly);
        }
        // Datagrams of the handshake are sent at their full length or not at all.
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
        // A frame that the amplification limit holds back is sent as soon as the limit permits.
        self.life.on_closing_sent(false);
        let limit = handshake_limit(
            self.parts.paths.active(),
            self.packets.recovery.path().mtu(),
        )?;
        self.parts.bits.set_clearing(false);
        let mut datagram = CoalescedDatagram::new(buffer.spare(limit));
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

    /// Returns true if 1-RTT keys that exist as secrets should be derived to send. An idle connection is
    /// polled often although it has nothing to send.
    #[cold]
    fn needs_keys(&self) -> bool {
        if !self.life.is_open() {
            return true;
        }
        if self.life.is_confirmed() {
            return self.has_frames_to_send()
                || self.packets.recovery.is_second_probe_due()
                || self.parts.paths.next_to_probe().is_some();
        }
        let is_validated = self.parts.paths.active().is_validated();
        self.parts.handshake.may_send_application(is_validated)
    }

    /// Returns the features that the next 1-RTT datagrams may use. There are none after a timeout, which
    /// a feature may have caused.
    fn next_features(&mut self, now: Time) -> FeatureUse {
        let (recovery, streams) = (&self.packets.recovery, &mut self.parts.streams);
        if recovery.is_after_timeout() {
            return FeatureUse::NONE;
        }
        let several = u64::from(recovery.path().mtu()) * DATAGRAMS_FOR_TRIAL;
        let (datagrams, may_clear) = (&self.parts.datagrams, self.parts.bits.may_clear());
        recovery.features(now, may_clear, || {
            streams.has_stream_data() && streams.pending_bytes_up_to(several).is_none()
                || datagrams.waiting_bytes() as u64 > several
        })
    }

    /// Adds a datagram of at most `limit` bytes to the batch. `ecn` is the mark of a batch that has begun.
    /// Returns the length and the mark.
    fn build_handshake_datagram(
        &mut self,
        now: Time,
        limit: usize,
        ecn: Option<Ecn>,
        buffer: &mut TransmitBuffer,
    ) -> Option<(usize, Ecn)> {
        self.packets.recovery.repeat_for_probes(&mut self.parts);
        let follows_in_batch = buffer.len() > 0;
        let mut datagram = CoalescedDatagram::new(buffer.spare(limit));
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
        if self.packets.pads && datagram.has(SpaceId::Application) {
            datagram.pad_to(limit);
        }
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

/// Returns the maximum size of a handshake datagram; `None` when nothing may be sent.
fn handshake_limit(path: &Path, mtu: u16) -> Option<usize> {
    let limit = path.datagram_limit(usize::from(mtu).min(HANDSHAKE_MTU));
    (limit >= MIN_DATAGRAM).then_some(limit)
}

/// Full datagrams that must be waiting before a disabled feature is tried again, so that its loss is
/// detected without a probe timeout (RFC 9002 §6.1.1).
const DATAGRAMS_FOR_TRIAL: u64 = 8;

/// Bytes for header, tag and a usual ACK beside data.
const BESIDE_DATA: u64 = 128;

/// The largest handshake datagram on any path, because the Length field of a long header has two
/// bytes.
const HANDSHAKE_MTU: usize = 1472;
