//! Which part sees a received frame: the one match over `Frame`.

use courser_base::Time;
use courser_telemetry::PathState;
use courser_wire::frame::{Ack, Frame};
use courser_wire::packet::Packet;

use super::arrival::Arrival;
use super::effects::Effects;
use super::parts::{Packets, Parts};
use crate::error::TransportError;
use crate::path::paths::{Answered, PathIndex};
use crate::path::validation::Proof;
use crate::recovery::LossRecovery;
use crate::space::SpaceId;
use crate::stream::{Stored, Streams};

/// The packet that a frame came in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carrier<'a> {
    pub(super) arrival: &'a Arrival,
    pub(super) packet: &'a Packet,
    pub(super) space: SpaceId,
}

impl Parts {
    /// Hands a received frame to its owner.
    ///
    /// # Errors
    ///
    /// The rule that the frame breaks.
    pub(super) fn on_frame(
        &mut self,
        frame: &Frame<'_>,
        carrier: Carrier<'_>,
        packets: &mut Packets,
    ) -> Result<Effects, TransportError> {
        let (now, space) = (carrier.arrival.now, carrier.space);
        let none = Effects::default();
        match frame {
            Frame::Stream(frame) => {
                let before = self.streams.fresh_frames();
                let is_refused = self.streams.on_stream_frame(now, frame)? == Stored::Refused;
                let is_fresh = self.streams.fresh_frames() != before;
                Ok(Effects::ENDS_STREAM
                    .when(frame.fin)
                    .and(Effects::REFUSED.when(is_refused))
                    .and(Effects::NEWS.when(is_fresh)))
            }
            Frame::Ack(frame) => self.on_ack_frame(now, space, frame, packets),
            Frame::Padding(_) | Frame::Ping => Ok(none),
            Frame::Crypto(frame) => {
                let is_repeated = self.handshake.on_crypto_frame(space, frame)?;
                Ok(Effects::CRYPTO.and(Effects::REPEATS_HELLO.when(is_repeated)))
            }
            Frame::ResetStream(_) | Frame::ResetStreamAt(_) | Frame::StopSending(_) => {
                on_abort_frame(frame, &mut self.streams).map(|()| none)
            }
            Frame::MaxData(_) | Frame::MaxStreamData(_) | Frame::MaxStreams(_) => {
                let raises = on_credit_frame(frame, &mut self.streams)?;
                Ok(Effects::NEWS.when(raises))
            }
            Frame::DataBlocked(_) | Frame::StreamDataBlocked(_) | Frame::StreamsBlocked(_) => {
                on_blocked_frame(now, frame, &packets.recovery, &mut self.streams).map(|()| none)
            }
            Frame::NewConnectionId(frame) => {
                let old = self.ids.destination();
                self.ids.on_new_connection_id_frame(frame)?;
                let new = self.ids.destination();
                self.trace.destination(now, old, new);
                Ok(none)
            }
            Frame::RetireConnectionId(frame) => self
                .ids
                .on_retire_connection_id_frame(frame.sequence, &carrier.packet.destination)
                .map(|()| none),
            Frame::PathChallenge(frame) => {
                // The answer goes out where the challenge came from (RFC 9000 §8.2.2).
                if let Some(index) = self.arrival_path(carrier.arrival, &mut packets.recovery) {
                    let pto = packets.recovery.pto();
                    self.paths.on_challenge(now, index, frame.data, pto);
                }
                Ok(none)
            }
            Frame::PathResponse(frame) => {
                Ok(self.on_path_response_frame(now, frame.data, &packets.recovery))
            }
            Frame::NewToken(frame) => self.handshake.on_new_token_frame(frame).map(|()| none),
            Frame::HandshakeDone => {
                self.handshake.check_handshake_done_frame()?;
                Ok(Effects::CONFIRMS)
            }
            Frame::ConnectionClose(_) => Ok(Effects::CLOSES),
            Frame::Datagram(frame) => self.datagrams.on_datagram_frame(frame).map(|()| none),
            Frame::AckFrequency(frame) => self
                .acknowledger
                .on_ack_frequency_frame(frame)
                .map(|()| none),
            Frame::ImmediateAck => {
                self.acknowledger.check_extension()?;
                Ok(Effects::WANTS_ACK)
            }
        }
    }

    fn on_ack_frame(
        &mut self,
        now: Time,
        space: SpaceId,
        frame: &Ack<'_>,
        packets: &mut Packets,
    ) -> Result<Effects, TransportError> {
        packets.recovery.check_ack(space, frame)?;
        let is_application = space == SpaceId::Application;
        if is_application {
            self.handshake.check_ack(frame)?;
            packets.protection.check_acknowledged(frame.largest)?;
        }
        self.pings.on_ack_received(now);
        let before = packets.recovery.remembered(space);
        let acknowledged = packets.recovery.on_ack_frame(now, space, frame, self);
        let mut effects = Effects::SETTLED
            .when(packets.recovery.remembered(space) < before)
            .and(Effects::PATH_TOO_SMALL.when(acknowledged.is_path_too_small));
        if let Some(largest) = acknowledged.largest {
            let window = packets.recovery.path().window();
            self.streams.on_congestion_window(window);
            if is_application {
                packets.protection.on_packet_acked(largest);
                // A server that reads 1-RTT packets has our Finished. HANDSHAKE_DONE may have been
                // lost, and until it comes again only the handshake would be probed
                // (RFC 9001 §4.1.2).
                let is_confirmed = self.handshake.is_confirmed_by(largest);
                effects = effects.and(Effects::CONFIRMS.when(is_confirmed));
            }
        }
        Ok(effects)
    }

    /// Takes the answer to a challenge of ours. A client goes on with it, when it is about to move, and a server
    /// has followed its client before.
    fn on_path_response_frame(
        &mut self,
        now: Time,
        data: [u8; 8],
        recovery: &LossRecovery,
    ) -> Effects {
        let answered = self.paths.on_path_response(now, data, recovery.pto());
        let Some(Answered {
            path: index,
            proof,
            is_new,
        }) = answered
        else {
            return Effects::default();
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
        Effects::PATH_VALIDATED.when(!is_server)
    }

    /// Returns the path that an authentic packet came on. A new path gets a state in loss
    /// recovery, and the paths that make room for it are closed there.
    pub(super) fn arrival_path(
        &mut self,
        arrival: &Arrival,
        recovery: &mut LossRecovery,
    ) -> Option<PathIndex> {
        let now = arrival.now;
        let rtt = recovery.path().rtt().smoothed();
        let open_path = || recovery.open_path(now);
        let index = self
            .paths
            .on_packet(now, (arrival.path, arrival.len), rtt, open_path);
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

/// Takes a frame that ends a stream early.
fn on_abort_frame(frame: &Frame<'_>, streams: &mut Streams) -> Result<(), TransportError> {
    match frame {
        Frame::ResetStream(frame) => streams.on_reset_stream_frame(*frame),
        Frame::ResetStreamAt(frame) => streams.on_reset_stream_at_frame(*frame),
        Frame::StopSending(frame) => streams.on_stop_sending_frame(*frame),
        _ => Ok(()),
    }
}

/// Takes a frame that grants credit; returns whether it raises a limit.
fn on_credit_frame(frame: &Frame<'_>, streams: &mut Streams) -> Result<bool, TransportError> {
    match frame {
        Frame::MaxData(frame) => streams.on_max_data_frame(*frame),
        Frame::MaxStreamData(frame) => streams.on_max_stream_data_frame(*frame),
        Frame::MaxStreams(frame) => streams.on_max_streams_frame(*frame),
        _ => Ok(false),
    }
}

/// Takes the report that a limit of ours blocks the peer (RFC 9000 §19.12 to §19.14).
fn on_blocked_frame(
    now: Time,
    frame: &Frame<'_>,
    recovery: &LossRecovery,
    streams: &mut Streams,
) -> Result<(), TransportError> {
    let rtt = recovery.path().rtt().smoothed();
    match frame {
        Frame::DataBlocked(frame) => streams.on_data_blocked_frame(now, rtt, *frame),
        Frame::StreamDataBlocked(frame) => streams.on_stream_data_blocked_frame(now, rtt, *frame),
        Frame::StreamsBlocked(frame) => streams.on_streams_blocked_frame(now, rtt, *frame),
        _ => Ok(()),
    }
}
