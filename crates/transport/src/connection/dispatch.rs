//! Which part sees a received frame: the one match over `Frame`.

#![deny(
    clippy::wildcard_enum_match_arm,
    reason = "a new frame must not be ignored"
)]

use courser_base::Time;
use courser_telemetry::PathState;
use courser_wire::frame::{Ack, Datagram, Frame, NewConnectionId, Stream};
use courser_wire::packet::Packet;

use super::effects::{LifeEffects, ReceivedFrames, Worth};
use super::packets::Packets;
use super::parts::Parts;
use super::received_datagram::ReceivedDatagram;
use crate::error::TransportError;
use crate::path::paths::{Answered, PathIndex};
use crate::path::validation::Proof;
use crate::recovery::{Acknowledged, LossRecovery};
use crate::space::SpaceId;
use crate::stream::StreamOutcome;

/// The packet that a frame came in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carrier<'a> {
    pub(super) datagram: &'a ReceivedDatagram,
    pub(super) packet: &'a Packet,
    pub(super) space: SpaceId,
}

impl Parts {
    /// Hands a received frame to its owner, and adds its effects to those of its packet. Returns the effects
    /// on the life of the connection.
    ///
    /// # Errors
    ///
    /// The rule that the frame breaks.
    #[expect(clippy::too_many_lines, reason = "an arm for each frame")]
    pub(super) fn on_frame<'a>(
        &mut self,
        frame: &Frame<'a>,
        carrier: Carrier<'_>,
        packets: &mut Packets,
        received: &mut ReceivedFrames,
    ) -> Result<LifeEffects<'a>, TransportError> {
        let (now, space) = (carrier.datagram.now, carrier.space);
        let rtt = |packets: &Packets| packets.recovery.path().rtt().smoothed();
        let mut life = LifeEffects::default();
        received.is_ack_eliciting |= frame.is_ack_eliciting();
        received.is_beyond_probing |= !frame.is_probing();
        let worth = match frame {
            Frame::Stream(frame) => self.on_stream_frame(now, frame, received)?,
            Frame::Ack(frame) => {
                let acknowledged = self.on_ack_frame(now, space, frame, packets)?;
                received.acknowledges |= acknowledged.is_ack_eliciting;
                life.confirms = self.is_confirmed_by(space, &acknowledged);
                life.is_path_too_small = acknowledged.is_path_too_small;
                Worth::of_progress(acknowledged.has_settled)
            }
            Frame::Padding(_) => Worth::Neutral,
            Frame::Ping => Worth::Nothing,
            Frame::Crypto(frame) => {
                received.has_crypto = true;
                received.repeats_hello |= self.handshake.on_crypto_frame(space, frame)?;
                Worth::Neutral
            }
            Frame::ResetStream(frame) => {
                self.streams.on_reset_stream_frame(*frame)?;
                Worth::Neutral
            }
            Frame::ResetStreamAt(frame) => {
                self.streams.on_reset_stream_at_frame(*frame)?;
                Worth::Neutral
            }
            Frame::StopSending(frame) => {
                self.streams.on_stop_sending_frame(*frame)?;
                Worth::Neutral
            }
            Frame::MaxData(frame) => Worth::of_credit(self.streams.on_max_data_frame(*frame)?),
            Frame::MaxStreamData(frame) => {
                Worth::of_credit(self.streams.on_max_stream_data_frame(*frame)?)
            }
            Frame::MaxStreams(frame) => {
                Worth::of_credit(self.streams.on_max_streams_frame(*frame)?)
            }
            Frame::DataBlocked(frame) => {
                self.streams
                    .on_data_blocked_frame(now, rtt(packets), *frame)?;
                Worth::Repetition
            }
            Frame::StreamDataBlocked(frame) => {
                self.streams
                    .on_stream_data_blocked_frame(now, rtt(packets), *frame)?;
                Worth::Repetition
            }
            Frame::StreamsBlocked(frame) => {
                self.streams
                    .on_streams_blocked_frame(now, rtt(packets), *frame)?;
                Worth::Repetition
            }
            Frame::NewConnectionId(frame) => self.on_new_connection_id_frame(now, frame)?,
            Frame::RetireConnectionId(frame) => {
                let used = &carrier.packet.destination;
                self.ids
                    .on_retire_connection_id_frame(frame.sequence, used)?;
                Worth::Neutral
            }
            Frame::PathChallenge(frame) => {
                self.on_path_challenge_frame(carrier.datagram, frame.data, packets);
                Worth::Nothing
            }
            Frame::PathResponse(frame) => {
                life.is_path_validated = self.on_path_response_frame(now, frame.data, packets);
                Worth::Neutral
            }
            Frame::NewToken(frame) => {
                self.handshake.on_new_token_frame(frame)?;
                Worth::Nothing
            }
            Frame::HandshakeDone => {
                self.handshake.check_handshake_done_frame()?;
                life.confirms = true;
                Worth::Neutral
            }
            Frame::ConnectionClose(frame) => {
                life.close = Some(*frame);
                Worth::Neutral
            }
            Frame::Datagram(frame) => self.on_datagram_frame(frame)?,
            Frame::AckFrequency(frame) => {
                self.acknowledger.on_ack_frequency_frame(frame)?;
                Worth::Nothing
            }
            Frame::ImmediateAck => {
                self.acknowledger.check_extension()?;
                received.wants_ack = true;
                Worth::Nothing
            }
        };
        received.count(worth);
        Ok(life)
    }

    #[inline]
    fn on_stream_frame(
        &mut self,
        now: Time,
        frame: &Stream<'_>,
        received: &mut ReceivedFrames,
    ) -> Result<Worth, TransportError> {
        let outcome = self.streams.on_stream_frame(now, frame)?;
        received.ends_stream |= frame.fin;
        received.is_refused |= outcome == StreamOutcome::Refused;
        Ok(match outcome {
            _ if frame.data.is_empty() && !frame.fin => Worth::Nothing,
            StreamOutcome::Fresh => Worth::Fresh,
            StreamOutcome::Known => Worth::Repetition,
            StreamOutcome::Refused => Worth::Neutral,
        })
    }

    fn on_ack_frame(
        &mut self,
        now: Time,
        space: SpaceId,
        frame: &Ack<'_>,
        packets: &mut Packets,
    ) -> Result<Acknowledged, TransportError> {
        packets.recovery.check_ack(space, frame)?;
        let is_application = space == SpaceId::Application;
        if is_application {
            self.handshake.check_ack(frame)?;
            packets.protection.check_acknowledged(frame.largest)?;
        }
        self.pings.on_ack_received(now);
        let acknowledged = packets.recovery.on_ack_frame(now, space, frame, self);
        if let Some(largest) = acknowledged.largest {
            let window = packets.recovery.path().window();
            self.streams.on_congestion_window(window);
            if is_application {
                packets.protection.on_packet_acked(largest);
            }
        }
        Ok(acknowledged)
    }

    /// Returns true if an ACK frame shows that the peer has confirmed the handshake. A server that reads 1-RTT
    /// packets has our Finished. HANDSHAKE_DONE may have been lost, and until it comes again only the
    /// handshake would be probed (RFC 9001 §4.1.2).
    #[inline]
    fn is_confirmed_by(&self, space: SpaceId, acknowledged: &Acknowledged) -> bool {
        let largest = acknowledged.largest;
        space == SpaceId::Application
            && largest.is_some_and(|largest| self.handshake.is_confirmed_by(largest))
    }

    fn on_new_connection_id_frame(
        &mut self,
        now: Time,
        frame: &NewConnectionId,
    ) -> Result<Worth, TransportError> {
        let old = self.ids.destination();
        self.ids.on_new_connection_id_frame(frame)?;
        let new = self.ids.destination();
        self.trace.destination(now, old, new);
        Ok(Worth::Neutral)
    }

    fn on_datagram_frame(&mut self, frame: &Datagram<'_>) -> Result<Worth, TransportError> {
        self.datagrams.on_datagram_frame(frame)?;
        // An empty one may mean something to the application, but pays for nothing.
        Ok(match frame.data.is_empty() {
            true => Worth::Neutral,
            false => Worth::Progress,
        })
    }

    /// Takes a challenge. The answer leaves on the path where the challenge arrived (RFC 9000 §8.2.2).
    fn on_path_challenge_frame(
        &mut self,
        datagram: &ReceivedDatagram,
        data: [u8; 8],
        packets: &mut Packets,
    ) {
        if let Some(index) = self.arrival_path(datagram, &mut packets.recovery) {
            let pto = packets.recovery.pto();
            self.paths.on_challenge(datagram.now, index, data, pto);
        }
    }

    /// Takes the answer to a challenge of ours. Returns true if it validates a path of a client, which may be
    /// waiting for that to move. A server has followed its client before.
    fn on_path_response_frame(&mut self, now: Time, data: [u8; 8], packets: &Packets) -> bool {
        let pto = packets.recovery.pto();
        let answered = self.paths.on_path_response(now, data, pto);
        let Some(Answered {
            path: index,
            proof,
            is_new,
        }) = answered
        else {
            return false;
        };
        let is_server = self.handshake.side().is_server();
        let is_active = index == self.paths.active_index();
        if let Some(path) = self.paths.get_mut(index)
            && proof != Proof::Size
        {
            self.trace.path(now, path, PathState::ProbingSuccessful);
            if is_server && is_active && is_new {
                self.trace.path(now, path, PathState::MigrationComplete);
            }
        }
        !is_server
    }

    /// Returns the path that an authentic packet came on. A new path gets a state in loss
    /// recovery, and the paths that make room for it are closed there.
    pub(super) fn arrival_path(
        &mut self,
        datagram: &ReceivedDatagram,
        recovery: &mut LossRecovery,
    ) -> Option<PathIndex> {
        let now = datagram.now;
        let rtt = recovery.path().rtt().smoothed();
        let open_path = || recovery.open_path(now);
        let index = self
            .paths
            .on_packet(now, datagram.place, datagram.len, rtt, open_path);
        self.release_given_up(now, recovery);
        index
    }

    /// Closes the paths that were given up in loss recovery, retires their IDs, and records which have not answered.
    pub(super) fn release_given_up(&mut self, now: Time, recovery: &mut LossRecovery) {
        while let Some(key) = self.paths.take_given_up(&mut self.ids) {
            recovery.close_path(key);
        }
        self.trace_unanswered(now);
    }

    /// Records the paths that have not answered in time, or were left before.
    pub(super) fn trace_unanswered(&mut self, now: Time) {
        while let Some(path) = self.paths.take_unanswered() {
            self.trace.probing_abandoned(now, path);
        }
    }
}
