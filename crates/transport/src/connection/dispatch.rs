//! Passes each received frame to its owner, in the only match over `Frame`.

#![deny(
    clippy::wildcard_enum_match_arm,
    reason = "a new frame must not be ignored"
)]

use courser_base::Time;
use courser_telemetry::PathState;
use courser_wire::PathId;
use courser_wire::frame::{Ack, Datagram, Frame, NewConnectionId, Stream};
use courser_wire::packet::Packet;

use super::effects::{FrameProgress, LifeEffects, ReceivedFrames};
use super::packets::Packets;
use super::parts::Parts;
use super::received_datagram::ReceivedDatagram;
use crate::error::TransportError;
use crate::multipath::PathPreference;
use crate::path::paths::{Answered, PathIndex};
use crate::path::validation::Proof;
use crate::recovery::{Acknowledged, LossRecovery};
use crate::space::SpaceId;
use crate::stream::StreamOutcome;

/// The packet that contains a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carrier<'a> {
    pub(super) datagram: &'a ReceivedDatagram,
    pub(super) packet: &'a Packet,
    pub(super) space: SpaceId,
}

impl Parts {
    /// Passes a received frame to its owner, and adds its effects to those of its packet. Returns the effects
    /// on the life of the connection.
    ///
    /// # Errors
    ///
    /// The error for the rule that the frame breaks.
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
        received.has_non_probing_frame |= !frame.is_probing();
        let progress = match frame {
            Frame::Stream(frame) => self.on_stream_frame(now, frame, received)?,
            Frame::Ack(_) | Frame::PathAck(_) => {
                match self.acknowledgement(space, frame, &mut packets.recovery)? {
                    Some((ack, returns_to)) => {
                        let acknowledged = self.on_ack_frame(now, space, ack, packets);
                        if let Some(path) = returns_to {
                            self.go_to(path, &mut packets.recovery);
                        }
                        let acknowledged = acknowledged?;
                        received.acknowledges |= acknowledged.is_ack_eliciting;
                        if matches!(frame, Frame::Ack(_)) {
                            life.confirms = self.is_confirmed_by(space, &acknowledged);
                            life.is_path_too_small = acknowledged.is_path_too_small;
                        }
                        FrameProgress::of_ack(frame, acknowledged.has_settled)
                    }
                    None => FrameProgress::of_ack(frame, false),
                }
            }
            Frame::Padding(_) => FrameProgress::Neutral,
            Frame::Ping => FrameProgress::Nothing,
            Frame::Crypto(frame) => {
                received.has_crypto = true;
                received.repeats_hello |= self.handshake.on_crypto_frame(space, frame)?;
                FrameProgress::Neutral
            }
            Frame::ResetStream(frame) => {
                self.streams.on_reset_stream_frame(*frame)?;
                FrameProgress::Neutral
            }
            Frame::ResetStreamAt(frame) => {
                self.streams.on_reset_stream_at_frame(*frame)?;
                FrameProgress::Neutral
            }
            Frame::StopSending(frame) => {
                self.streams.on_stop_sending_frame(*frame)?;
                FrameProgress::Neutral
            }
            Frame::MaxData(frame) => {
                FrameProgress::of_credit(self.streams.on_max_data_frame(*frame)?)
            }
            Frame::MaxStreamData(frame) => {
                FrameProgress::of_credit(self.streams.on_max_stream_data_frame(*frame)?)
            }
            Frame::MaxStreams(frame) => {
                FrameProgress::of_credit(self.streams.on_max_streams_frame(*frame)?)
            }
            Frame::DataBlocked(frame) => {
                self.streams
                    .on_data_blocked_frame(now, rtt(packets), *frame)?;
                FrameProgress::Repetition
            }
            Frame::StreamDataBlocked(frame) => {
                self.streams
                    .on_stream_data_blocked_frame(now, rtt(packets), *frame)?;
                FrameProgress::Repetition
            }
            Frame::StreamsBlocked(frame) => {
                self.streams
                    .on_streams_blocked_frame(now, rtt(packets), *frame)?;
                FrameProgress::Repetition
            }
            Frame::NewConnectionId(frame) => self.on_new_connection_id_frame(now, frame)?,
            Frame::RetireConnectionId(frame) => {
                let used = &carrier.packet.destination;
                self.ids
                    .on_retire_connection_id_frame(frame.sequence, used)?;
                FrameProgress::Neutral
            }
            Frame::PathChallenge(frame) => {
                self.on_path_challenge_frame(carrier.datagram, frame.data, packets);
                FrameProgress::Nothing
            }
            Frame::PathResponse(frame) => {
                life.is_path_validated =
                    self.on_path_response_frame(carrier.datagram, frame.data, packets);
                FrameProgress::Neutral
            }
            Frame::NewToken(frame) => {
                self.handshake.on_new_token_frame(frame)?;
                FrameProgress::Nothing
            }
            Frame::HandshakeDone => {
                self.handshake.check_handshake_done_frame()?;
                life.confirms = true;
                FrameProgress::Neutral
            }
            Frame::ConnectionClose(frame) => {
                life.close = Some(*frame);
                FrameProgress::Neutral
            }
            Frame::Datagram(frame) => self.on_datagram_frame(now, frame)?,
            Frame::AckFrequency(frame) => {
                self.acknowledger.on_ack_frequency_frame(frame)?;
                FrameProgress::Nothing
            }
            Frame::ImmediateAck => {
                self.acknowledger.check_extension()?;
                received.has_immediate_ack = true;
                FrameProgress::Nothing
            }
            Frame::PathAbandon(frame) => {
                life.abandoned = self.on_path_abandon_frame(*frame)?;
                FrameProgress::Neutral
            }
            Frame::PathStatusBackup(frame) => {
                self.on_path_status_frame(frame, PathPreference::Backup)?
            }
            Frame::PathStatusAvailable(frame) => {
                self.on_path_status_frame(frame, PathPreference::Available)?
            }
            Frame::PathNewConnectionId(frame) => {
                self.on_path_new_connection_id_frame(now, frame)?
            }
            Frame::PathRetireConnectionId(frame) => {
                let used = &carrier.packet.destination;
                self.on_path_retire_connection_id_frame(frame, used)?
            }
            Frame::MaxPathId(frame) => {
                FrameProgress::of_credit(self.several_paths()?.on_max_path_id(*frame)?)
            }
            Frame::PathsBlocked(frame) => {
                self.several_paths()?.on_paths_blocked(*frame)?;
                FrameProgress::Nothing
            }
            Frame::PathCidsBlocked(frame) => self.on_path_cids_blocked_frame(*frame)?,
            Frame::ObservedAddress(frame) => self.on_observed_address_frame(*frame)?,
            Frame::AddAddress(frame) => self.on_add_address_frame(now, *frame)?,
            Frame::ReachOut(frame) => self.on_reach_out_frame(now, *frame)?,
            Frame::RemoveAddress(frame) => self.on_remove_address_frame(*frame)?,
        };
        received.count(progress);
        Ok(life)
    }

    #[inline]
    fn on_stream_frame(
        &mut self,
        now: Time,
        frame: &Stream<'_>,
        received: &mut ReceivedFrames,
    ) -> Result<FrameProgress, TransportError> {
        let outcome = self.streams.on_stream_frame(now, frame)?;
        received.ends_stream |= frame.fin;
        received.is_refused |= outcome == StreamOutcome::Refused;
        Ok(match outcome {
            _ if frame.data.is_empty() && !frame.fin => FrameProgress::Nothing,
            StreamOutcome::Fresh => FrameProgress::Fresh,
            StreamOutcome::Known => FrameProgress::Repetition,
            StreamOutcome::Refused => FrameProgress::Neutral,
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
        let path = self.path_at_hand();
        if is_application {
            if path == PathId::ZERO {
                self.handshake.check_ack(frame)?;
            }
            packets.protection.check_acknowledged(path, frame.largest)?;
        }
        self.pings.on_ack_received(now);
        let acknowledged = packets.recovery.on_ack_frame(now, space, frame, self);
        if let Some(largest) = acknowledged.largest {
            let others = self.multipath.as_ref().map_or(0, |it| it.other_windows());
            let window = packets.recovery.path().window();
            self.streams.on_congestion_window(window + others);
            if is_application {
                packets.protection.on_packet_acked(path, largest);
            }
        }
        Ok(acknowledged)
    }

    /// Returns true if an ACK frame confirms the handshake. A server that reads 1-RTT packets has our
    /// Finished. HANDSHAKE_DONE may have been lost, and until it is repeated, probes would contain only
    /// the handshake (RFC 9001 §4.1.2).
    #[inline]
    fn is_confirmed_by(&self, space: SpaceId, acknowledged: &Acknowledged) -> bool {
        let largest = acknowledged.largest;
        space == SpaceId::Application
            && self.path_at_hand() == PathId::ZERO
            && largest.is_some_and(|largest| self.handshake.is_confirmed_by(largest))
    }

    pub(super) fn on_new_connection_id_frame(
        &mut self,
        now: Time,
        frame: &NewConnectionId,
    ) -> Result<FrameProgress, TransportError> {
        let old = self.ids.destination();
        self.ids.on_new_connection_id_frame(frame)?;
        let new = self.ids.destination();
        self.trace.destination(now, old, new);
        Ok(FrameProgress::Neutral)
    }

    fn on_datagram_frame(
        &mut self,
        now: Time,
        frame: &Datagram<'_>,
    ) -> Result<FrameProgress, TransportError> {
        self.datagrams.on_datagram_frame(now, frame)?;
        // An empty datagram may be useful to the application, but does not count as progress.
        Ok(match frame.data.is_empty() {
            true => FrameProgress::Neutral,
            false => FrameProgress::Progress,
        })
    }

    /// Processes a challenge. The response is sent on the path where the challenge arrived (RFC 9000 §8.2.2).
    fn on_path_challenge_frame(
        &mut self,
        datagram: &ReceivedDatagram,
        data: [u8; 8],
        packets: &mut Packets,
    ) {
        if self.on_probe(datagram, data) {
            return;
        }
        if let Some(index) = self.arrival_path(datagram, &mut packets.recovery) {
            let pto = packets.recovery.pto();
            self.paths.on_challenge(datagram.now, index, data, pto);
        }
    }

    /// Processes the response to a challenge of ours. Returns true if it validates a path of a client, which
    /// may be waiting for that to migrate. A server follows its client before the validation.
    fn on_path_response_frame(
        &mut self,
        datagram: &ReceivedDatagram,
        data: [u8; 8],
        packets: &Packets,
    ) -> bool {
        let now = datagram.now;
        let pto = packets.recovery.pto();
        let answered = self.paths.on_path_response(now, data, pto);
        let Some(Answered {
            path: index,
            proof,
            is_new,
        }) = answered
        else {
            self.on_probe_answered(datagram, data);
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

    /// Returns the path on which an authentic packet arrived. A new path gets a state in loss
    /// recovery, and the paths that it replaces are closed there.
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
        self.release_removed(now, recovery);
        index
    }

    /// Closes abandoned paths in loss recovery, retires their IDs, and records those without a response.
    pub(super) fn release_removed(&mut self, now: Time, recovery: &mut LossRecovery) {
        while let Some(key) = self.paths.release_removed_id(&mut self.ids) {
            recovery.close_path(key);
        }
        self.trace_unanswered(now);
    }

    /// Records the paths that have not responded in time, or whose validation was abandoned.
    pub(super) fn trace_unanswered(&mut self, now: Time) {
        while let Some(path) = self.paths.take_unanswered() {
            self.trace.probing_abandoned(now, path);
        }
    }
}
