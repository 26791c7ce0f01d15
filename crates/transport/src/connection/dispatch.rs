//! Which part sees a frame: the one match over `Frame`.

use courser_base::Time;
use courser_telemetry::PathState;
use courser_wire::TransportErrorCode;
use courser_wire::frame::{Frame, FrameError, Frames, permitted};
use courser_wire::packet::{Packet, PacketKind};
use courser_wire::{DecodeErrorKind, frame};

use super::Connection;
use super::receive::Arrival;
use crate::error::TransportError;
use crate::space::SpaceId;
use crate::stream::Stored;

/// What a packet's frames amounted to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processed {
    pub(crate) ack_eliciting: bool,
    /// Nothing but frames that probe a path (RFC 9000 §9.1).
    pub(crate) probing_only: bool,
    /// A part had no room: the packet must not be acknowledged.
    pub(crate) refused: bool,
    /// CRYPTO data arrived.
    pub(crate) crypto: bool,
    /// CRYPTO data of an Initial arrived that was here before: the peer has not heard of that.
    pub(crate) repeats_hello: bool,
    /// A stream ends in it.
    pub(crate) ends_stream: bool,
    /// The peer wants an ACK at once.
    pub(crate) wants_ack: bool,
    /// Frames that brought nothing.
    pub(crate) idle_frames: u32,
    /// Something else did.
    pub(crate) progress: bool,
    /// STREAM and credit frames that brought what was known.
    pub(crate) repeats: u32,
    /// STREAM and credit frames that brought something new.
    pub(crate) news: u32,
    /// Credit frames among them that raised a limit.
    raised: u32,
}

impl Connection {
    /// Hands every frame of a packet to its owner, in order.
    pub(crate) fn process_payload(
        &mut self,
        arrival: Arrival,
        packet: &Packet,
        space: SpaceId,
        payload: &[u8],
    ) -> Result<Processed, TransportError> {
        if payload.is_empty() {
            return Err(TransportError::protocol_violation("packet without frames"));
        }
        let mut processed = Processed {
            ack_eliciting: false,
            probing_only: true,
            refused: false,
            crypto: false,
            repeats_hello: false,
            ends_stream: false,
            wants_ack: false,
            idle_frames: 0,
            progress: false,
            repeats: 0,
            news: 0,
            raised: 0,
        };
        for frame in Frames::new(payload) {
            let frame = frame.map_err(encoding_error)?;
            // Nearly every frame is this one, and it has its rule checked by its own part.
            let frame_type = frame.frame_type().value();
            if !permitted::is_permitted(frame_type, packet.kind) {
                let reason = "frame type not allowed in this packet type";
                return Err(TransportError::protocol_violation(reason).in_frame(frame_type));
            }
            processed.ack_eliciting |= frame.is_ack_eliciting();
            processed.probing_only &= frame.is_probing();
            let open_before = self.recovery.remembered(space);
            let fresh_before = self.streams.fresh_frames();
            let raised_before = processed.raised;
            self.dispatch(arrival, packet, space, &frame, &mut processed)
                .map_err(|error| error.in_frame(frame_type))?;
            let settled = self.recovery.remembered(space) < open_before;
            let is_fresh =
                self.streams.fresh_frames() != fresh_before || processed.raised != raised_before;
            match worth(&frame, settled, is_fresh) {
                Worth::Nothing => processed.idle_frames += 1,
                Worth::Progress => processed.progress = true,
                Worth::Neutral => {}
            }
            if is_repeatable(&frame) {
                let is_known = !is_fresh && !processed.refused;
                processed.news += u32::from(is_fresh);
                processed.repeats += u32::from(is_known);
            }
            if !self.state.is_open() {
                break;
            }
        }
        Ok(processed)
    }

    /// Once we have said CONNECTION_CLOSE, only the peer's own is of interest (RFC 9000 §10.2.1).
    pub(crate) fn listen_for_close(&mut self, now: Time, kind: PacketKind, payload: &[u8]) {
        for frame in Frames::new(payload).map_while(Result::ok) {
            if let Frame::ConnectionClose(close) = &frame
                && permitted::is_permitted(frame.frame_type().value(), kind)
            {
                return self.on_connection_close_frame(now, close);
            }
        }
    }

    /// Takes a frame that grants credit; returns whether it raises a limit.
    fn on_credit_frame(&mut self, frame: &Frame<'_>) -> Result<bool, TransportError> {
        match frame {
            Frame::MaxData(frame) => self.streams.on_max_data_frame(*frame),
            Frame::MaxStreamData(frame) => self.streams.on_max_stream_data_frame(*frame),
            Frame::MaxStreams(frame) => self.streams.on_max_streams_frame(*frame),
            _ => Ok(false),
        }
    }

    fn dispatch(
        &mut self,
        arrival: Arrival,
        packet: &Packet,
        space: SpaceId,
        frame: &Frame<'_>,
        processed: &mut Processed,
    ) -> Result<(), TransportError> {
        let now = arrival.now;
        match frame {
            Frame::Stream(frame) => {
                processed.ends_stream |= frame.fin;
                processed.refused |= self.streams.on_stream_frame(now, frame)? == Stored::Refused;
                Ok(())
            }
            Frame::Ack(frame) => self.on_ack_frame(now, space, frame),
            Frame::Padding(_) | Frame::Ping => Ok(()),
            Frame::Crypto(frame) => {
                processed.crypto = true;
                processed.repeats_hello |=
                    space == SpaceId::Initial && self.handshake.crypto.has_received_initial(frame);
                self.on_crypto_frame(space, frame)
            }
            Frame::ResetStream(frame) => self.streams.on_reset_stream_frame(*frame),
            Frame::StopSending(frame) => self.streams.on_stop_sending_frame(*frame),
            Frame::MaxData(_) | Frame::MaxStreamData(_) | Frame::MaxStreams(_) => {
                processed.raised += u32::from(self.on_credit_frame(frame)?);
                Ok(())
            }
            Frame::DataBlocked(_) | Frame::StreamDataBlocked(_) | Frame::StreamsBlocked(_) => {
                self.on_blocked_frame(now, frame)
            }
            Frame::NewConnectionId(frame) => {
                let limit = super::handshake::LOCAL_CID_LIMIT;
                let old = *self.cids.peer.current();
                self.cids.peer.on_new_connection_id_frame(frame, limit)?;
                self.record_peer_id(now, old);
                Ok(())
            }
            Frame::RetireConnectionId(frame) => {
                let destination = &packet.destination;
                let issued = &mut self.cids.issued;
                let retired = issued.on_retire_connection_id_frame(frame.sequence, destination)?;
                self.cids.retired.extend(retired);
                Ok(())
            }
            Frame::PathChallenge(frame) => {
                self.on_path_challenge_frame(arrival, frame);
                Ok(())
            }
            Frame::PathResponse(frame) => {
                let pto = self.validation_pto();
                if self.paths.on_path_response(now, frame.data, pto) {
                    let index = self.paths.active_index();
                    self.record_path(now, index, PathState::MigrationComplete);
                }
                Ok(())
            }
            Frame::NewToken(frame) => self.on_new_token_frame(frame),
            Frame::HandshakeDone => self.on_handshake_done_frame(now),
            Frame::ConnectionClose(frame) => {
                self.on_connection_close_frame(now, frame);
                Ok(())
            }
            Frame::Datagram(frame) => self.datagrams.on_datagram_frame(frame),
            Frame::AckFrequency(frame) => {
                self.check_ack_extension()?;
                let least = self.config.min_ack_delay();
                self.acknowledger.on_ack_frequency_frame(frame, least)
            }
            Frame::ImmediateAck => {
                processed.wants_ack = true;
                self.check_ack_extension()
            }
        }
    }

    fn on_ack_frame(
        &mut self,
        now: Time,
        space: SpaceId,
        frame: &frame::Ack<'_>,
    ) -> Result<(), TransportError> {
        self.recovery.check_ack(space, frame)?;
        let is_application = space == SpaceId::Application;
        if is_application {
            self.protection.check_acknowledged(frame.largest)?;
        }
        let (recovery, mut owners) = self.recovery_and_owners();
        let acknowledged = recovery.on_ack_frame(now, space, frame, &mut owners);
        if let Some(largest) = acknowledged.largest {
            let window = self.recovery.route().window();
            self.streams.on_congestion_window(window);
            if is_application {
                self.protection.on_packet_acked(largest);
            }
            if is_application && self.side.is_client() {
                // A server that reads 1-RTT packets has our Finished. HANDSHAKE_DONE may have been
                // lost, and until it comes again only the handshake would be probed
                // (RFC 9001 §4.1.2).
                self.confirm(now);
            }
        }
        if acknowledged.is_path_too_small {
            self.on_path_too_small(now);
        }
        Ok(())
    }

    /// Without our `min_ack_delay` the frames of draft-ietf-quic-ack-frequency-12 are unknown ones
    /// (§3).
    fn check_ack_extension(&self) -> Result<(), TransportError> {
        if self.config.ack_frequency {
            return Ok(());
        }
        let reason = "a frame of an extension that was not offered";
        Err(TransportError::frame_encoding(reason))
    }

    /// The peer reports that a limit of ours blocks it (RFC 9000 §19.12 to §19.14).
    fn on_blocked_frame(&mut self, now: Time, frame: &Frame<'_>) -> Result<(), TransportError> {
        let rtt = self.recovery.route().rtt().smoothed();
        match frame {
            Frame::DataBlocked(frame) => self.streams.on_data_blocked_frame(now, rtt, *frame),
            Frame::StreamDataBlocked(frame) => {
                self.streams.on_stream_data_blocked_frame(now, rtt, *frame)
            }
            Frame::StreamsBlocked(frame) => self.streams.on_streams_blocked_frame(now, rtt, *frame),
            _ => Ok(()),
        }
    }

    fn on_crypto_frame(
        &mut self,
        space: SpaceId,
        frame: &frame::Crypto<'_>,
    ) -> Result<(), TransportError> {
        let crypto = &mut self.handshake.crypto;
        if space < self.handshake.reading {
            // A repetition is harmless; more than that is not (RFC 9001 §4.1.3).
            if crypto.is_ahead(space, frame) {
                let reason = "CRYPTO data at an old encryption level";
                return Err(TransportError::protocol_violation(reason));
            }
            return Ok(());
        }
        if self.handshake.tls.is_gone() {
            let code = TransportErrorCode::crypto(courser_crypto::session::UNEXPECTED_MESSAGE);
            return Err(TransportError::new(code, "TLS message after the handshake"));
        }
        crypto.on_crypto_frame(space, frame)
    }

    /// The answer goes out where the challenge came from (RFC 9000 §8.2.2).
    fn on_path_challenge_frame(&mut self, arrival: Arrival, frame: &frame::PathChallenge) {
        if let Some(path) = self
            .arrival_path(arrival)
            .and_then(|index| self.paths.get_mut(index))
        {
            path.validation.on_challenge(frame.data);
        }
    }

    fn on_new_token_frame(&mut self, frame: &frame::NewToken<'_>) -> Result<(), TransportError> {
        if self.side.is_server() {
            return Err(TransportError::protocol_violation(
                "NEW_TOKEN from a client",
            ));
        }
        if let Some((store, name)) = &self.handshake.token_store
            && frame.token.len() <= MAX_TOKEN
        {
            store.put(name, bytes::Bytes::copy_from_slice(frame.token));
        }
        Ok(())
    }

    fn on_handshake_done_frame(&mut self, now: Time) -> Result<(), TransportError> {
        if self.side.is_server() {
            return Err(TransportError::protocol_violation(
                "HANDSHAKE_DONE from a client",
            ));
        }
        self.confirm(now);
        Ok(())
    }
}

/// The progress that a frame made for its sender (RFC 9000 §21.9).
enum Worth {
    Nothing,
    Neutral,
    Progress,
}

/// `settled` tells that an ACK acknowledged something new, or showed something lost, `is_fresh`
/// that a STREAM frame brought something new.
fn worth(frame: &Frame<'_>, settled: bool, is_fresh: bool) -> Worth {
    match frame {
        Frame::Stream(frame) if frame.data.is_empty() && !frame.fin => Worth::Nothing,
        Frame::Stream(_) if is_fresh => Worth::Progress,
        // What was here already pays for nothing, but honest peers repeat themselves too.
        Frame::Stream(_) => Worth::Neutral,
        // An empty one may mean something to the application, but pays for nothing.
        Frame::Datagram(frame) if !frame.data.is_empty() => Worth::Progress,
        Frame::Ack(_) if settled => Worth::Progress,
        Frame::Ack(_)
        | Frame::Ping
        | Frame::DataBlocked(_)
        | Frame::StreamDataBlocked(_)
        | Frame::StreamsBlocked(_)
        | Frame::PathChallenge(_)
        | Frame::NewToken(_)
        | Frame::ImmediateAck
        | Frame::AckFrequency(_) => Worth::Nothing,
        _ => Worth::Neutral,
    }
}

/// Frames that honest peers send again when an acknowledgement is late or lost.
const fn is_repeatable(frame: &Frame<'_>) -> bool {
    match frame {
        // Empty ones count as frames without progress.
        Frame::Stream(frame) => !frame.data.is_empty() || frame.fin,
        Frame::MaxData(_) | Frame::MaxStreamData(_) | Frame::MaxStreams(_) => true,
        _ => false,
    }
}

/// A token must leave room for the ClientHello in our Initials. Longer ones are neither kept nor
/// taken from a store (limit K36).
pub(super) const MAX_TOKEN: usize = 512;

fn encoding_error(error: FrameError) -> TransportError {
    let transport = match error.error.kind {
        DecodeErrorKind::OverlongFrameType => {
            TransportError::protocol_violation(error.error.to_string())
        }
        _ => TransportError::frame_encoding(error.error.to_string()),
    };
    transport.in_frame(error.frame_type)
}
