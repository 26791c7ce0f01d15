//! Processes the payload of a received packet. RFC 9000 §13.1.

use courser_base::Time;
use courser_wire::DecodeErrorKind;
use courser_wire::frame::{FrameError, Frames, permitted};

use super::Connection;
use super::close::path_too_small;
use super::dispatch::Carrier;
use super::effects::{LifeEffects, ReceivedFrames};
use super::life::Ending;
use crate::acknowledger::Arrived;
use crate::error::TransportError;
use crate::space::SpaceId;

impl Connection {
    /// Passes every frame of a packet to its owner, in order.
    ///
    /// Neither the frames nor `received` are moved: the processor would stall when it reads as a whole what was
    /// just written field by field.
    pub(super) fn process_payload(
        &mut self,
        carrier: Carrier<'_>,
        payload: &[u8],
        received: &mut ReceivedFrames,
    ) -> Result<(), TransportError> {
        if payload.is_empty() {
            return Err(TransportError::protocol_violation("packet without frames"));
        }
        let mut frames = Frames::new(payload);
        loop {
            let next = frames.next();
            let frame = match &next {
                None => return Ok(()),
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Err(encoding_error(*error)),
            };
            let frame_type = frame.frame_type().value();
            if !permitted::is_permitted(frame_type, carrier.packet.kind) {
                let reason = "frame type not allowed in this packet type";
                return Err(TransportError::protocol_violation(reason).in_frame(frame_type));
            }
            self.counters.frames_received.on_received(frame);
            let effects = self
                .parts
                .on_frame(frame, carrier, &mut self.packets, received)
                .map_err(|error| error.in_frame(frame_type))?;
            if effects.any() {
                self.on_life_effects(carrier.datagram.now, effects);
                if !self.life.is_open() {
                    return Ok(());
                }
            }
        }
    }

    /// Applies the effects of a frame on the life of the connection.
    #[cold]
    fn on_life_effects(&mut self, now: Time, effects: LifeEffects<'_>) {
        if effects.confirms {
            self.confirm(now);
        }
        if effects.is_path_too_small && self.life.is_confirmed() {
            self.end(now, path_too_small());
        }
        if effects.is_path_validated {
            self.on_path_validated(now);
        }
        if let Some(path) = effects.abandoned {
            self.on_path_given_up(now, path);
        }
        if let Some(close) = effects.close {
            self.end(now, Ending::by_peer(&close));
        }
    }

    /// Completes a packet whose frames were all processed: it may be acknowledged now (RFC 9000 §13.1).
    pub(super) fn on_processed(
        &mut self,
        carrier: Carrier<'_>,
        number: u64,
        received: &ReceivedFrames,
    ) -> Result<(), TransportError> {
        let now = carrier.datagram.now;
        self.counters.packets_received += 1;
        let recovery = &self.packets.recovery;
        self.watchdog.on_packet_received(now, || recovery.pto());
        if !self.life.is_open() {
            return Ok(());
        }
        let is_waiting = recovery.is_waiting(SpaceId::Application);
        self.watchdog
            .judge(now, received, is_waiting, || recovery.pto())?;
        if received.is_refused {
            // Not acknowledged, so that the peer sends it again later.
            return Ok(());
        }
        let is_largest = self.acknowledge(carrier, number, received);
        self.follow_peer(carrier, is_largest, received);
        if carrier.space == SpaceId::Handshake && self.side().is_server() {
            self.on_client_keys(carrier, is_largest);
        }
        if received.repeats_hello && self.side().is_server() {
            self.speed_up_handshake();
        }
        self.packets.recovery.on_packet_received(&mut self.parts);
        if received.has_crypto {
            self.on_crypto(now)?;
        }
        Ok(())
    }

    /// Records a packet to be acknowledged. Returns true if it has the largest number of its space so far.
    #[inline]
    fn acknowledge(
        &mut self,
        carrier: Carrier<'_>,
        number: u64,
        received: &ReceivedFrames,
    ) -> bool {
        let Carrier {
            datagram, space, ..
        } = carrier;
        if !self.parts.acknowledger.has_space(space) {
            return false;
        }
        self.packets.recovery.on_mark_received(datagram.ecn);
        self.counters
            .on_packet(datagram.ecn, received.is_ack_eliciting);
        let arrived = Arrived {
            number,
            at: datagram.arrived,
            ecn: datagram.ecn,
            ack_eliciting: received.is_ack_eliciting,
            ends_stream: received.ends_stream,
            has_immediate_ack: received.has_immediate_ack,
        };
        self.parts
            .acknowledger
            .on_packet(datagram.now, space, &arrived)
    }

    /// Follows the peer to the address that a 1-RTT packet came from (RFC 9000 §9.3).
    #[inline]
    fn follow_peer(&mut self, carrier: Carrier<'_>, is_largest: bool, received: &ReceivedFrames) {
        let Carrier {
            datagram,
            packet,
            space,
        } = carrier;
        let paths = &self.parts.paths;
        let may_be_elsewhere = !paths.is_here(&datagram.place) || paths.has_removed();
        if may_be_elsewhere && self.parts.is_probe_from_elsewhere(datagram) {
            let may_move = self.parts.paths.may_move_to(datagram.place.tuple);
            if !may_move || !received.has_non_probing_frame {
                return;
            }
        }
        if space == SpaceId::Application && may_be_elsewhere && self.life.is_confirmed() {
            let is_move = is_largest && received.has_non_probing_frame;
            self.follow_peer_to(datagram, packet, is_move);
        }
    }

    /// Processes the receipt of a Handshake packet of a client. It validates the first address, where the
    /// client received these keys, and ends the Initial space (RFC 9000 §8.1, RFC 9001 §4.9.1).
    fn on_client_keys(&mut self, carrier: Carrier<'_>, is_largest: bool) {
        let Carrier {
            datagram, packet, ..
        } = carrier;
        self.parts.paths.on_first_peer_validated();
        if is_largest {
            self.follow_rebinding(datagram, packet);
        }
        self.discard_space(datagram.now, SpaceId::Initial);
    }

    /// Drives the handshake with CRYPTO data that arrived.
    fn on_crypto(&mut self, now: Time) -> Result<(), TransportError> {
        if self.side().is_client() {
            self.parts.handshake.version_mut().on_crypto();
        }
        self.drive_handshake(now)?;
        self.open_buffered(now);
        Ok(())
    }

    /// Repeats, ahead of the probe timeout, the packets of the handshake that the peer seems to miss. Does so
    /// once per connection.
    pub(super) fn speed_up_handshake(&mut self) {
        if self.packets.recovery.is_first_flight_open() && self.parts.handshake.take_speed_up() {
            self.packets.recovery.speed_up_handshake(&mut self.parts);
        }
    }
}

fn encoding_error(error: FrameError) -> TransportError {
    let transport = match error.error.kind {
        DecodeErrorKind::OverlongFrameType => {
            TransportError::protocol_violation(error.error.to_string())
        }
        _ => TransportError::frame_encoding(error.error.to_string()),
    };
    transport.in_frame(error.frame_type)
}
