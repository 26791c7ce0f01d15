//! Receives a datagram: splits it, opens its packets, and buffers those whose keys are missing.

use courser_base::Time;
use courser_crypto::EncryptionLevel;
use courser_telemetry::{PacketBuffered, Reason, Record};
use courser_wire::TransportErrorCode;
use courser_wire::frame::{ConnectionClose, Frame, Frames, permitted};
use courser_wire::packet::{self, Packet, PacketKind};

use super::Connection;
use super::dispatch::Carrier;
use super::effects::ReceivedFrames;
use super::error::ConnectionError;
use super::life::Ending;
use super::received_datagram::ReceivedDatagram;
use crate::error::TransportError;
use crate::handshake::{Finished, Reaction};
use crate::path::Arrival;
use crate::protection::{BufferedPacket, OpenFailure, Opened, ProbeTimeouts};
use crate::space::SpaceId;

/// The reason for which a received packet was not processed to its end.
enum Unprocessed {
    /// It is buffered until its keys arrive, or could not be read.
    Unread,
    /// It is dropped, and counted with this reason.
    Dropped(Reason),
    /// It is dropped, and was the forged packet that exceeds the integrity limit (RFC 9001 §6.6).
    LastForgery,
    /// It is authentic and breaks a rule.
    Violation(TransportError),
}

impl From<TransportError> for Unprocessed {
    fn from(error: TransportError) -> Self {
        Self::Violation(error)
    }
}

impl From<OpenFailure> for Unprocessed {
    fn from(failure: OpenFailure) -> Self {
        match failure {
            OpenFailure::NoKeys => Self::Unread,
            OpenFailure::NotAuthentic => Self::Dropped(Reason::NotAuthentic),
            OpenFailure::TooManyForgeries => Self::LastForgery,
            OpenFailure::Violation(error) => Self::Violation(error),
        }
    }
}

impl Connection {
    /// Processes one datagram, whose first header the endpoint has decoded.
    ///
    /// Packets that cannot be read are dropped, and packets that break a rule end the connection.
    pub(crate) fn handle_datagram(
        &mut self,
        datagram: &ReceivedDatagram,
        bytes: &mut [u8],
        first: &Packet,
    ) {
        self.counters.udp_received.on_datagram(datagram.len);
        let has_paths = self.parts.multipath.is_some() && first.kind == PacketKind::OneRtt;
        if has_paths && !self.enter_path_of(datagram, first) {
            return;
        }
        if let Some(multipath) = &mut self.parts.multipath {
            multipath.on_received(datagram.len);
        }
        self.handle_datagram_at_hand(datagram, bytes, first);
        if has_paths {
            self.leave_path(datagram.now);
        }
    }

    /// Processes one datagram of the path at hand.
    #[inline(always)]
    fn handle_datagram_at_hand(
        &mut self,
        datagram: &ReceivedDatagram,
        bytes: &mut [u8],
        first: &Packet,
    ) {
        let allowed = self.life.allowed_moves();
        let paths = &mut self.parts.paths;
        let mut arrival = paths.on_datagram(&datagram.place, datagram.len, allowed);
        if !self.life.on_datagram() {
            return;
        }
        if arrival == Arrival::Elsewhere && self.may_be_probe(datagram) {
            arrival = Arrival::Probe;
        }
        let mut opened = self.take_packet(arrival, datagram, bytes, first);
        let mut start = first.end;
        let cid_len = self.parts.handshake.local_id().len();
        while start < bytes.len() && arrival != Arrival::Elsewhere {
            let rest = &mut bytes[start..];
            let accepts = self.parts.bits.accepts_cleared();
            let Ok(next) = packet::decode_greased(rest, 0, cid_len, accepts) else {
                break;
            };
            debug_assert!(next.end > 0, "each packet has a length");
            start += next.end;
            // Packets for another ID are ignored (RFC 9000 §12.2).
            if next.destination == first.destination {
                arrival = self.parts.paths.arrival_after(arrival, &datagram.place);
                opened |= self.take_packet(arrival, datagram, rest, &next);
            }
        }
        if !opened && arrival.is_known() {
            self.check_stateless_reset(datagram.now, bytes);
        }
        self.report_silence(datagram.now);
        self.parts
            .trace
            .changes(datagram.now, &self.packets.recovery);
    }

    /// Processes one packet at the start of `bytes`, if packets of its kind are accepted on the path where it
    /// arrived. Returns true if it was authentic.
    #[inline]
    fn take_packet(
        &mut self,
        arrival: Arrival,
        datagram: &ReceivedDatagram,
        bytes: &mut [u8],
        packet: &Packet,
    ) -> bool {
        if arrival.accepts(packet.kind) {
            return self.handle_packet(datagram, bytes, packet);
        }
        self.on_packet_dropped(datagram.now, packet, Reason::UnknownPath);
        false
    }

    /// Processes one packet at the start of `bytes`. Returns true if it was authentic.
    fn handle_packet(
        &mut self,
        datagram: &ReceivedDatagram,
        bytes: &mut [u8],
        packet: &Packet,
    ) -> bool {
        let now = datagram.now;
        match self.process_packet(datagram, bytes, packet) {
            Ok(()) => true,
            Err(Unprocessed::Unread) => false,
            Err(Unprocessed::Dropped(reason)) => {
                self.on_packet_dropped(now, packet, reason);
                reason == Reason::Duplicate
            }
            Err(Unprocessed::LastForgery) => {
                self.on_packet_dropped(now, packet, Reason::NotAuthentic);
                let code = TransportErrorCode::AEAD_LIMIT_REACHED;
                let text = "too many packets failed authentication";
                self.end(now, TransportError::new(code, text));
                true
            }
            Err(Unprocessed::Violation(error)) => {
                self.end(now, error);
                true
            }
        }
    }

    /// Counts and records a packet that is dropped.
    fn on_packet_dropped(&mut self, now: Time, packet: &Packet, reason: Reason) {
        self.counters.packets_dropped += 1;
        if packet.kind == PacketKind::ZeroRtt && reason == Reason::KeysUnavailable {
            self.counters.early_packets_dropped += 1;
        }
        self.parts.trace.packet_dropped(now, packet, reason);
    }

    /// Processes a packet, if it is admitted and can be opened.
    fn process_packet(
        &mut self,
        datagram: &ReceivedDatagram,
        bytes: &mut [u8],
        packet: &Packet,
    ) -> Result<(), Unprocessed> {
        let now = datagram.now;
        if packet.kind == PacketKind::Retry {
            return self.on_retry(now, &bytes[..packet.end], packet);
        }
        let space = self.admit_packet(datagram, bytes, packet)?;
        let bytes = &mut bytes[..packet.end];
        let opened = self.open_packet(now, space, bytes, packet)?;
        let payload = &bytes[opened.payload];
        let exponent = self.packets.recovery.ack_delay_exponent();
        self.parts
            .trace
            .packet_received(now, packet, opened.number, payload, exponent);
        if !self.life.is_open() {
            // After our CONNECTION_CLOSE only the peer's own is of interest (RFC 9000 §10.2.1).
            if let Some(close) = find_close(packet.kind, payload) {
                self.end(now, Ending::by_peer(&close));
            }
            return Ok(());
        }
        self.learn_from_header(now, packet);
        let carrier = Carrier {
            datagram,
            packet,
            space,
        };
        let mut received = ReceivedFrames::default();
        self.process_payload(carrier, payload, &mut received)?;
        received.idle += opened.update.map_or(0, |update| update.cost);
        self.on_processed(carrier, opened.number, &received)?;
        Ok(())
    }

    /// Admits a packet whose header is acceptable and whose keys are there, and returns its space. Keeps a
    /// packet whose keys may come.
    #[inline]
    fn admit_packet(
        &mut self,
        datagram: &ReceivedDatagram,
        bytes: &[u8],
        packet: &Packet,
    ) -> Result<SpaceId, Unprocessed> {
        // A client never accepts 0-RTT packets (RFC 9001 §5.6).
        let is_for_server = packet.kind == PacketKind::ZeroRtt;
        let space = SpaceId::of(packet.kind).filter(|_| !is_for_server || self.side().is_server());
        let (Some(space), Some(level)) = (space, EncryptionLevel::of_packet(packet.kind)) else {
            return Err(Unprocessed::Dropped(Reason::KeysUnavailable));
        };
        if !self.parts.handshake.accepts_header(packet, datagram.len) {
            return Err(Unprocessed::Dropped(Reason::Header));
        }
        if !self.may_open(level) {
            return Err(self.buffer_packet(datagram, bytes, packet, level));
        }
        self.prepare_version(packet);
        Ok(space)
    }

    /// Opens a packet, and learns what its number and its keys show. A packet that was opened before is
    /// dropped.
    #[inline]
    fn open_packet(
        &mut self,
        now: Time,
        space: SpaceId,
        bytes: &mut [u8],
        packet: &Packet,
    ) -> Result<Opened, Unprocessed> {
        let Some(expected) = self.parts.acknowledger.expected(space) else {
            return Err(Unprocessed::Unread);
        };
        let pto = || ProbeTimeouts {
            full: self.packets.recovery.pto(),
            without_delay: self.packets.recovery.pto_without_delay(),
        };
        let opened = self.packets.protection.open(
            now,
            pto,
            (self.parts.path_at_hand(), expected),
            packet,
            bytes,
        )?;
        let is_early = packet.kind == PacketKind::ZeroRtt;
        if is_early && !self.parts.handshake.take_early_budget(packet.end) {
            // Not acknowledged, so that the client sends it again when the handshake is complete.
            return Err(Unprocessed::Dropped(Reason::KeysUnavailable));
        }
        if opened.update.is_some_and(|update| update.is_new) {
            let key_phase = self.packets.protection.key_phase();
            self.parts.trace.key_update(now, true, key_phase);
        }
        if self.parts.acknowledger.is_duplicate(space, opened.number) {
            return Err(Unprocessed::Dropped(Reason::Duplicate));
        }
        if space == SpaceId::Application {
            let side = self.parts.handshake.side();
            self.parts
                .paths
                .spin
                .on_received(side, bytes[0], opened.number);
        }
        Ok(opened)
    }

    /// Adopts the version and the connection ID in the first authentic packets of the peer.
    fn learn_from_header(&mut self, now: Time, packet: &Packet) {
        if self.parts.handshake.version_mut().on_server_packet(packet) {
            self.adopt_version(now);
        }
        if let Some(source) = self.parts.handshake.on_first_packet(packet) {
            self.parts.set_handshake_id(now, source);
        }
    }

    /// Returns true if packets of a level can and may be opened. Before the handshake is complete 1-RTT
    /// packets are not processed (RFC 9001 §5.7).
    #[inline]
    fn may_open(&self, level: EncryptionLevel) -> bool {
        let protection = &self.packets.protection;
        match level {
            EncryptionLevel::Initial => protection.has_keys(SpaceId::Initial),
            EncryptionLevel::ZeroRtt => protection.opens_zero_rtt(),
            EncryptionLevel::Handshake => protection.has_keys(SpaceId::Handshake),
            EncryptionLevel::OneRtt => {
                !self.life.is_handshaking() && protection.has_keys(SpaceId::Application)
            }
        }
    }

    /// Keeps a packet that came before its keys, if they may come. Drops it otherwise.
    fn buffer_packet(
        &mut self,
        datagram: &ReceivedDatagram,
        bytes: &[u8],
        packet: &Packet,
        level: EncryptionLevel,
    ) -> Unprocessed {
        let is_handshaking = self.life.is_handshaking();
        let has_handshake_keys = self.parts.acknowledger.has_space(SpaceId::Handshake);
        let may_get_keys = match level {
            EncryptionLevel::Initial => false,
            EncryptionLevel::ZeroRtt => is_handshaking && self.parts.handshake.may_get_early_keys(),
            EncryptionLevel::Handshake => is_handshaking && !has_handshake_keys,
            EncryptionLevel::OneRtt => is_handshaking,
        };
        let kept = may_get_keys
            && self.packets.protection.buffer_packet(BufferedPacket {
                level,
                bytes: bytes[..packet.end].to_vec(),
                place: datagram.place,
                ecn: datagram.ecn,
                arrived: datagram.arrived,
            });
        if !kept {
            let is_on_active = datagram.place == self.parts.paths.active().place();
            if level == EncryptionLevel::Handshake && is_on_active && self.life.is_confirmed() {
                let rtt = self.packets.recovery.path().rtt().smoothed();
                self.parts.handshake.on_late_packet(datagram.now, rtt);
            }
            return Unprocessed::Dropped(Reason::KeysUnavailable);
        }
        if self.side().is_client() && !has_handshake_keys {
            // The packet with the data for the keys was lost or is late.
            self.speed_up_handshake();
        }
        let (kind, len) = (packet.kind, packet.end);
        self.parts.trace.record(datagram.now, || {
            Record::PacketBuffered(PacketBuffered { kind, len })
        });
        Unprocessed::Unread
    }

    /// Processes the buffered packets whose keys are available.
    pub(super) fn open_buffered(&mut self, now: Time) {
        for level in [
            EncryptionLevel::ZeroRtt,
            EncryptionLevel::Handshake,
            EncryptionLevel::OneRtt,
        ] {
            // Refused early data never has keys, so its packets are dropped and counted.
            let is_refused = level == EncryptionLevel::ZeroRtt
                && self.side().is_server()
                && !self.parts.handshake.may_get_early_keys();
            if !is_refused && !self.may_open(level) {
                continue;
            }
            for mut early in self.packets.protection.take_buffered(level) {
                let cid_len = self.parts.handshake.local_id().len();
                let accepts = self.parts.bits.accepts_cleared();
                let packet = packet::decode_greased(&early.bytes, 0, cid_len, accepts);
                let Ok(packet) = packet else {
                    continue;
                };
                // A buffered packet does not show the present address of the client.
                let place = match self.parts.paths.may_have_rebound(early.place) {
                    true => self.parts.paths.active().place(),
                    false => early.place,
                };
                // The length of the datagram was counted on arrival. Rules on the size of datagrams
                // concern Initials, which are never buffered.
                let datagram = ReceivedDatagram {
                    now,
                    arrived: early.arrived,
                    place,
                    ecn: early.ecn,
                    len: early.bytes.len(),
                };
                self.handle_packet(&datagram, &mut early.bytes, &packet);
            }
        }
    }

    /// Ends a receive batch, all of whose packets are processed.
    pub(crate) fn on_batch_end(&mut self, now: Time) {
        self.counters.udp_received.batches += 1;
        let rtt = self.packets.recovery.path().rtt().smoothed();
        self.parts.acknowledger.on_batch_end(now, rtt);
        if let Some(multipath) = &mut self.parts.multipath {
            multipath.on_batch_end(now);
        }
        if self.life.is_confirmed() {
            let received = self.counters.udp_received.datagrams;
            self.parts.ids.on_received(now, received);
        }
    }

    /// Continues with the result of a TLS task; a panic in it ends the connection with an error for our
    /// side alone. Returns true if the connection was waiting for the task, and false if it is over.
    pub(crate) fn finish_tls_task(
        &mut self,
        now: Time,
        result: Result<Finished, ConnectionError>,
    ) -> bool {
        let finished = match result {
            Ok(finished) => self.parts.handshake.on_tls_finished(finished),
            Err(error) => {
                let is_awaited = self.parts.handshake.on_tls_lost();
                if is_awaited {
                    // Only the session is lost, so the peer can be sent an error.
                    self.end(now, Ending::Internal(error));
                }
                return is_awaited;
            }
        };
        if matches!(finished, Ok(false)) {
            return false;
        }
        match finished.and_then(|_| self.drive_handshake(now)) {
            Ok(()) => self.open_buffered(now),
            Err(error) => self.end(now, error),
        }
        let rtt = self.packets.recovery.path().rtt().smoothed();
        self.parts.acknowledger.on_batch_end(now, rtt);
        self.parts.trace.changes(now, &self.packets.recovery);
        true
    }

    /// Ends the connection if a datagram whose packets cannot be read is a stateless reset
    /// (RFC 9000 §10.3.1).
    pub(crate) fn check_stateless_reset(&mut self, now: Time, bytes: &[u8]) {
        if bytes.len() >= MIN_RESET
            && let Some(token) = bytes.last_chunk::<16>()
            && (self.parts.ids.is_reset_token(token) || self.is_reset_by_other_path(token))
        {
            self.end(now, Ending::Reset);
        }
    }

    /// Processes a Retry, by which the server validates our address (RFC 9000 §17.2.5.2).
    fn on_retry(&mut self, now: Time, bytes: &[u8], packet: &Packet) -> Result<(), Unprocessed> {
        if !self.life.is_handshaking() || !self.parts.handshake.on_retry(packet, bytes) {
            return Err(Unprocessed::Dropped(Reason::Header));
        }
        self.parts.set_handshake_id(now, packet.source);
        // Packet numbers continue, and the rest of recovery is reset (§17.2.5.3, RFC 9002 §6.3).
        // The server has dropped the 0-RTT packets, whose data is sent again.
        self.packets.recovery.on_retry(now, &mut self.parts);
        self.open_initial(&packet.source);
        Ok(())
    }

    /// Processes a Version Negotiation packet, which is accepted only as the first answer of the server
    /// (RFC 9000 §6.2, RFC 9368 §2.1).
    pub(crate) fn on_version_negotiation(
        &mut self,
        now: Time,
        mut versions: impl Iterator<Item = u32> + Clone,
        source: &[u8],
    ) {
        if !self.life.is_handshaking() || !self.parts.handshake.is_unanswered_by(source) {
            return;
        }
        let version = self.parts.handshake.version_mut();
        match version.on_version_negotiation(versions.clone()) {
            Reaction::Ignore => {}
            Reaction::Fail => {
                let offered = versions.by_ref().take(MAX_VERSIONS).collect();
                let supported = version.supported();
                let error = ConnectionError::VersionMismatch { supported, offered };
                self.end(now, Ending::Silence(error));
            }
            Reaction::Restart(version) => {
                let started = self.restart(now, version);
                if let Err(error) = started.and_then(|()| self.drive_handshake(now)) {
                    self.end(now, error);
                }
            }
        }
    }
}

/// Finds the CONNECTION_CLOSE frame in a packet.
fn find_close(kind: PacketKind, payload: &[u8]) -> Option<ConnectionClose<'_>> {
    let mut frames = Frames::new(payload).map_while(Result::ok);
    frames.find_map(|frame| {
        let is_permitted = permitted::is_permitted(frame.frame_type().value(), kind);
        let Frame::ConnectionClose(close) = frame else {
            return None;
        };
        is_permitted.then_some(close)
    })
}

/// Versions of a Version Negotiation packet that are kept for the error (limit K45).
const MAX_VERSIONS: usize = 64;

/// The minimum length of a stateless reset in bytes (RFC 9000 §10.3).
const MIN_RESET: usize = 21;
