//! The fate of sent frames: the one match from `SentFrame` to its owner.

use courser_base::Time;
use courser_telemetry::{Record, Tap};

use super::handshake::Handshake;
use super::{Cids, Connection};
use crate::acknowledger::Acknowledger;
use crate::datagram::Datagrams;
use crate::recovery::{FrameOwners, LossRecovery};
use crate::space::SpaceId;
use crate::space::sent::SentFrame;
use crate::stream::Streams;

/// The parts of a connection whose frames packets carry.
pub(super) struct Owners<'a> {
    acknowledger: &'a mut Acknowledger,
    streams: &'a mut Streams,
    datagrams: &'a mut Datagrams,
    cids: &'a mut Cids,
    handshake: &'a mut Handshake,
    tap: &'a mut Tap,
}

impl Connection {
    /// Loss recovery, and the parts that it informs.
    #[inline]
    pub(super) fn recovery_and_owners(&mut self) -> (&mut LossRecovery, Owners<'_>) {
        let owners = Owners {
            acknowledger: &mut self.acknowledger,
            streams: &mut self.streams,
            datagrams: &mut self.datagrams,
            cids: &mut self.cids,
            handshake: &mut self.handshake,
            tap: &mut self.tap,
        };
        (&mut self.recovery, owners)
    }
}

impl FrameOwners for Owners<'_> {
    #[inline]
    fn on_frame_acked(&mut self, space: SpaceId, frame: SentFrame) {
        match frame {
            SentFrame::Stream { .. }
            | SentFrame::ResetStream { .. }
            | SentFrame::StopSending { .. }
            | SentFrame::MaxData { .. }
            | SentFrame::MaxStreamData { .. }
            | SentFrame::MaxStreams { .. }
            | SentFrame::DataBlocked { .. }
            | SentFrame::StreamDataBlocked { .. }
            | SentFrame::StreamsBlocked { .. } => self.streams.on_frame_acked(frame),
            SentFrame::Ack { largest } => {
                self.acknowledger.on_ack_acknowledged(space, largest);
            }
            SentFrame::Crypto { offset, len } => {
                self.handshake.crypto.on_acked(space, offset, len);
            }
            SentFrame::NewConnectionId { .. } => self.cids.issued.on_frame_acked(frame),
            SentFrame::RetireConnectionId { .. } => self.cids.peer.on_frame_acked(frame),
            SentFrame::NewToken => self.handshake.tokens = Vec::new(),
            SentFrame::Datagrams { count } => self.datagrams.on_acked(count),
            SentFrame::TrackedDatagram { id } => self.datagrams.on_tracked_acked(id),
            SentFrame::HandshakeDone => self.handshake.done_sent = None,
            SentFrame::Ping | SentFrame::PathProbe => {}
            // Loss recovery owns these.
            SentFrame::MtuProbe { .. } | SentFrame::AckFrequency { .. } => {}
        }
    }

    fn on_frame_lost(&mut self, space: SpaceId, frame: SentFrame) {
        match frame {
            SentFrame::Stream { .. }
            | SentFrame::ResetStream { .. }
            | SentFrame::StopSending { .. }
            | SentFrame::MaxData { .. }
            | SentFrame::MaxStreamData { .. }
            | SentFrame::MaxStreams { .. }
            | SentFrame::DataBlocked { .. }
            | SentFrame::StreamDataBlocked { .. }
            | SentFrame::StreamsBlocked { .. } => self.streams.on_frame_lost(frame),
            SentFrame::Crypto { offset, len } => {
                self.handshake.crypto.on_lost(space, offset, len);
            }
            SentFrame::NewConnectionId { .. } => self.cids.issued.on_frame_lost(frame),
            SentFrame::RetireConnectionId { .. } => self.cids.peer.on_frame_lost(frame),
            SentFrame::HandshakeDone => self.handshake.send_done = true,
            SentFrame::NewToken => {
                self.handshake.send_tokens = !self.handshake.tokens.is_empty();
            }
            SentFrame::Datagrams { count } => self.datagrams.on_lost(count),
            SentFrame::TrackedDatagram { id } => self.datagrams.on_tracked_lost(id),
            // A newer ACK contains more, a PING has done its work, a path probe is made fresh.
            SentFrame::Ack { .. } | SentFrame::Ping | SentFrame::PathProbe => {}
            // Loss recovery owns these.
            SentFrame::MtuProbe { .. } | SentFrame::AckFrequency { .. } => {}
        }
    }

    fn has_new_data(&self) -> bool {
        self.streams.has_stream_data() || self.datagrams.wants_to_send()
    }

    fn has_crypto(&self, space: SpaceId) -> bool {
        self.handshake.crypto.wants_to_send(space)
    }

    #[inline]
    fn record(&mut self, now: Time, record: impl FnOnce() -> Record) {
        self.tap.record(now, record);
    }
}
