//! What goes into a packet: the one list of who may fill it, most urgent first.

use std::time::Duration;

use courser_base::Time;
use courser_telemetry::PathState;
use courser_wire::frame::{Frame, NewToken, PathChallenge, PathResponse};
use courser_wire::packet::MIN_INITIAL_DATAGRAM;

use super::Connection;
use crate::acknowledger::AckContext;
use crate::build::packet_builder::PacketBuilder;
use crate::path::paths::PathIndex;
use crate::space::SpaceId;
use crate::space::sent::SentFrame;

/// What a packet may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Content {
    /// Everything, most urgent first.
    All,
    /// Only stream data: packets 2 to n of a batch.
    Data,
    /// Only datagrams and stream data, when both are there.
    Mixed,
    /// Only an ACK: the window is full.
    AckOnly,
    /// Challenge and response of one path.
    Probe(PathIndex),
    /// Something to acknowledge and padding: probe of this number, for this datagram size.
    MtuProbe(u32, u16),
}

impl Connection {
    /// Asks each part, most urgent first, until the packet is full.
    pub(super) fn fill(
        &mut self,
        now: Time,
        id: SpaceId,
        packet: &mut PacketBuilder<'_>,
        content: Content,
    ) {
        match content {
            Content::Data => {
                self.streams.write_stream_frames(packet);
                return;
            }
            Content::Mixed => return self.fill_data(now, packet),
            Content::Probe(index) => {
                self.fill_path_frames(now, index, packet);
                return packet.pad_to(MIN_INITIAL_DATAGRAM);
            }
            Content::MtuProbe(probe, size) => return self.fill_mtu_probe(probe, size, packet),
            Content::AckOnly => return self.fill_ack(now, id, packet, true),
            Content::All => {}
        }
        if self.datagrams.leads() && id == SpaceId::Application {
            self.fill_datagrams(now, packet);
        }
        self.fill_ack(now, id, packet, false);
        self.fill_ping(id, packet);
        self.handshake.crypto.write_frames(id, packet);
        if id != SpaceId::Application {
            return;
        }
        let probing = self.fill_path_frames(now, self.paths.active_index(), packet);
        self.fill_handshake_frames(now, packet);
        self.cids.issued.write_frames(packet);
        self.cids.peer.write_frames(packet);
        self.recovery.ack_request().write_frames(packet);
        // Windows follow the shortest round trip: the smoothed one contains the queue that a
        // large window fills, and on a short path that queue is our own socket buffer.
        let rtt = self.recovery.route().rtt().min().max(MIN_WINDOW_RTT);
        self.streams.write_control_frames(now, rtt, packet);
        self.fill_data(now, packet);
        if probing {
            packet.pad_to(MIN_INITIAL_DATAGRAM);
        }
    }

    fn fill_ack(&mut self, now: Time, id: SpaceId, packet: &mut PacketBuilder<'_>, alone: bool) {
        // A probe of the handshake repeats the last ACK, which may have been lost: the peer sends
        // no more unless it is asked, and waits for it with a timeout that doubles.
        let recovery = &mut self.recovery;
        let has_frames = recovery.wants_ping(id) || self.handshake.crypto.wants_to_send(id);
        let is_probe = recovery.is_probing(id) && has_frames;
        // Whether the packet is more than an ACK is not known yet. A PING too many is harmless.
        let has_data = self.streams.has_stream_data() || self.datagrams.wants_to_send();
        let context = AckContext {
            is_alone: alone,
            is_repeated: is_probe && id != SpaceId::Application,
            asks: !alone && has_data,
        };
        let written = self.acknowledger.write_frame(now, id, packet, context);
        // One open question is enough: a peer that answers none must not make us ask on.
        if written.is_some_and(|ack| ack.wants_ping) && !recovery.is_waiting(id) {
            recovery.request_ping(id);
        }
    }

    fn fill_ping(&mut self, id: SpaceId, packet: &mut PacketBuilder<'_>) {
        let recovery = &mut self.recovery;
        if recovery.wants_ping(id) && packet.remaining() >= 1 {
            // A probe must not wait for the delay that the peer was granted
            // (draft-ietf-quic-ack-frequency-12 §7).
            let is_urgent = recovery.is_probing(id) && id == SpaceId::Application;
            let frame = if is_urgent && recovery.may_ask_for_acks() {
                Frame::ImmediateAck
            } else {
                Frame::Ping
            };
            frame.encode(packet.writer());
            packet.record(SentFrame::Ping);
            recovery.on_ping_written(id);
        }
    }

    /// HANDSHAKE_DONE and NEW_TOKEN of a server.
    fn fill_handshake_frames(&mut self, now: Time, packet: &mut PacketBuilder<'_>) {
        if self.handshake.send_done && packet.remaining() >= 1 {
            Frame::HandshakeDone.encode(packet.writer());
            packet.record(SentFrame::HandshakeDone);
            self.handshake.send_done = false;
            self.handshake.done_sent = Some(now);
        }
        if !self.handshake.send_tokens {
            return;
        }
        let frames = self.handshake.tokens.iter().map(|token| NewToken { token });
        let len: usize = frames.clone().map(|frame| frame.encoded_len()).sum();
        if len <= packet.remaining() {
            frames.for_each(|frame| frame.encode(packet.writer()));
            packet.record(SentFrame::NewToken);
            self.handshake.send_tokens = false;
        }
    }

    /// PATH_CHALLENGE and PATH_RESPONSE; true when one was written, because their datagram must
    /// be a full one (RFC 9000 §8.2.1, §8.2.2).
    fn fill_path_frames(
        &mut self,
        now: Time,
        index: PathIndex,
        packet: &mut PacketBuilder<'_>,
    ) -> bool {
        let challenge = self.rng_for_challenge(index);
        let Some(path) = self.paths.get_mut(index) else {
            return false;
        };
        let mut written = false;
        if let Some(data) = path.validation.response()
            && packet.remaining() >= PROBE_FRAME
        {
            PathResponse { data }.encode(packet.writer());
            packet.record(SentFrame::PathProbe);
            path.validation.on_response_sent();
            written = true;
        }
        if let Some(data) = challenge
            && packet.remaining() >= PROBE_FRAME
        {
            PathChallenge { data }.encode(packet.writer());
            packet.record(SentFrame::PathProbe);
            // The datagram is as large as the address's limit allows.
            let is_full = path.amplification.budget() >= MIN_INITIAL_DATAGRAM as u64;
            path.validation.on_challenge_sent(now, data, is_full);
            self.record_path(now, index, PathState::ProbingStarted);
            written = true;
        }
        written
    }

    /// Fresh unpredictable bytes, drawn only when they are needed (RFC 9000 §8.2.1).
    fn rng_for_challenge(&mut self, index: PathIndex) -> Option<[u8; 8]> {
        let wanted = self
            .paths
            .get_mut(index)
            .is_some_and(|path| path.validation.wants_challenge());
        wanted.then(|| self.rng.array())
    }
}

/// Below this a round trip is made of wakeups and system calls, whose delays a window must cover
/// too: 2 MiB at 1.7 GB/s, which still fits the usual socket buffers.
const MIN_WINDOW_RTT: Duration = Duration::from_micros(300);
/// PATH_CHALLENGE and PATH_RESPONSE: type and eight bytes.
const PROBE_FRAME: usize = 9;
