//! Which part sees a received frame: the one match over `Frame`.

use courser_base::Time;
use courser_telemetry::PathState;
use courser_wire::frame::{Ack, Frame};
use courser_wire::packet::Packet;

use super::arrival::Arrival;
use super::effects::Effects;
use super::owners::Owners;
use crate::error::TransportError;
use crate::path::paths::{Answered, PathIndex};
use crate::path::validation::Proof;
use crate::protection::PacketProtection;
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

/// Hands a received frame to its owner.
///
/// # Errors
///
/// The rule that the frame breaks.
pub(super) fn dispatch(
    frame: &Frame<'_>,
    carrier: Carrier<'_>,
    recovery: &mut LossRecovery,
    protection: &mut PacketProtection,
    owners: &mut Owners<'_>,
) -> Result<Effects, TransportError> {
    let (now, space) = (carrier.arrival.now, carrier.space);
    let none = Effects::default();
    match frame {
        Frame::Stream(frame) => {
            let before = owners.streams.fresh_frames();
            let is_refused = owners.streams.on_stream_frame(now, frame)? == Stored::Refused;
            let is_fresh = owners.streams.fresh_frames() != before;
            Ok(Effects::ENDS_STREAM
                .when(frame.fin)
                .and(Effects::REFUSED.when(is_refused))
                .and(Effects::NEWS.when(is_fresh)))
        }
        Frame::Ack(frame) => on_ack_frame(now, space, frame, recovery, protection, owners),
        Frame::Padding(_) | Frame::Ping => Ok(none),
        Frame::Crypto(frame) => {
            let is_repeated = owners.handshake.on_crypto_frame(space, frame)?;
            Ok(Effects::CRYPTO.and(Effects::REPEATS_HELLO.when(is_repeated)))
        }
        Frame::ResetStream(_) | Frame::ResetStreamAt(_) | Frame::StopSending(_) => {
            on_abort_frame(frame, owners.streams).map(|()| none)
        }
        Frame::MaxData(_) | Frame::MaxStreamData(_) | Frame::MaxStreams(_) => {
            let raises = on_credit_frame(frame, owners.streams)?;
            Ok(Effects::NEWS.when(raises))
        }
        Frame::DataBlocked(_) | Frame::StreamDataBlocked(_) | Frame::StreamsBlocked(_) => {
            on_blocked_frame(now, frame, recovery, owners.streams).map(|()| none)
        }
        Frame::NewConnectionId(frame) => {
            let old = owners.ids.destination();
            owners.ids.on_new_connection_id_frame(frame)?;
            let new = owners.ids.destination();
            owners.trace.destination(now, old, new);
            Ok(none)
        }
        Frame::RetireConnectionId(frame) => owners
            .ids
            .on_retire_connection_id_frame(frame.sequence, &carrier.packet.destination)
            .map(|()| none),
        Frame::PathChallenge(frame) => {
            // The answer goes out where the challenge came from (RFC 9000 §8.2.2).
            if let Some(index) = arrival_path(carrier.arrival, recovery, owners) {
                let pto = recovery.pto();
                owners.paths.on_challenge(now, index, frame.data, pto);
            }
            Ok(none)
        }
        Frame::PathResponse(frame) => Ok(on_path_response_frame(now, frame.data, recovery, owners)),
        Frame::NewToken(frame) => owners.handshake.on_new_token_frame(frame).map(|()| none),
        Frame::HandshakeDone => {
            owners.handshake.check_handshake_done_frame()?;
            Ok(Effects::CONFIRMS)
        }
        Frame::ConnectionClose(_) => Ok(Effects::CLOSES),
        Frame::Datagram(frame) => owners.datagrams.on_datagram_frame(frame).map(|()| none),
        Frame::AckFrequency(frame) => owners
            .acknowledger
            .on_ack_frequency_frame(frame)
            .map(|()| none),
        Frame::ImmediateAck => {
            owners.acknowledger.check_extension()?;
            Ok(Effects::WANTS_ACK)
        }
    }
}

fn on_ack_frame(
    now: Time,
    space: SpaceId,
    frame: &Ack<'_>,
    recovery: &mut LossRecovery,
    protection: &mut PacketProtection,
    owners: &mut Owners<'_>,
) -> Result<Effects, TransportError> {
    recovery.check_ack(space, frame)?;
    let is_application = space == SpaceId::Application;
    if is_application {
        owners.handshake.check_ack(frame)?;
        protection.check_acknowledged(frame.largest)?;
    }
    owners.pings.on_ack_received(now);
    let before = recovery.remembered(space);
    let acknowledged = recovery.on_ack_frame(now, space, frame, owners);
    let mut effects = Effects::SETTLED
        .when(recovery.remembered(space) < before)
        .and(Effects::PATH_TOO_SMALL.when(acknowledged.is_path_too_small));
    if let Some(largest) = acknowledged.largest {
        let window = recovery.route().window();
        owners.streams.on_congestion_window(window);
        if is_application {
            protection.on_packet_acked(largest);
            // A server that reads 1-RTT packets has our Finished. HANDSHAKE_DONE may have been
            // lost, and until it comes again only the handshake would be probed
            // (RFC 9001 §4.1.2).
            let is_confirmed = owners.handshake.is_confirmed_by(largest);
            effects = effects.and(Effects::CONFIRMS.when(is_confirmed));
        }
    }
    Ok(effects)
}

/// Takes the answer to a challenge of ours. A client goes on with it, when it is about to move, and a server
/// has followed its client before.
fn on_path_response_frame(
    now: Time,
    data: [u8; 8],
    recovery: &LossRecovery,
    owners: &mut Owners<'_>,
) -> Effects {
    let answered = owners.paths.on_path_response(now, data, recovery.pto());
    let Some(Answered {
        path: index,
        proof,
        is_new,
    }) = answered
    else {
        return Effects::default();
    };
    let is_server = owners.handshake.side().is_server();
    let is_active = index == owners.paths.active_index();
    if let Some(path) = owners.paths.get_mut(index)
        && proof != Proof::Size
    {
        owners.trace.path(now, path, PathState::ProbingSuccessful);
        if is_server && is_active && is_new {
            owners.trace.path(now, path, PathState::MigrationComplete);
        }
    }
    Effects::PATH_VALIDATED.when(!is_server)
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
    let rtt = recovery.route().rtt().smoothed();
    match frame {
        Frame::DataBlocked(frame) => streams.on_data_blocked_frame(now, rtt, *frame),
        Frame::StreamDataBlocked(frame) => streams.on_stream_data_blocked_frame(now, rtt, *frame),
        Frame::StreamsBlocked(frame) => streams.on_streams_blocked_frame(now, rtt, *frame),
        _ => Ok(()),
    }
}

/// Returns the path that an authentic packet came on. A new path gets a route, and the routes of
/// paths that make room for it are closed.
pub(super) fn arrival_path(
    arrival: &Arrival,
    recovery: &mut LossRecovery,
    owners: &mut Owners<'_>,
) -> Option<PathIndex> {
    let now = arrival.now;
    let rtt = recovery.route().rtt().smoothed();
    let open_route = || recovery.open_route(now);
    let index = owners
        .paths
        .on_packet(now, (arrival.path, arrival.len), rtt, open_route);
    release_given_up(now, recovery, owners);
    index
}

/// Closes the routes of paths that were given up, retires their IDs, and records which have not answered.
pub(super) fn release_given_up(now: Time, recovery: &mut LossRecovery, owners: &mut Owners<'_>) {
    while let Some(route) = owners.paths.take_given_up(owners.ids) {
        recovery.close_route(route);
    }
    trace_unanswered(now, owners);
}

/// Records the paths that have not answered in time, or were left before.
pub(super) fn trace_unanswered(now: Time, owners: &mut Owners<'_>) {
    while let Some(path) = owners.paths.take_unanswered() {
        owners.trace.probing_abandoned(now, path);
    }
}
