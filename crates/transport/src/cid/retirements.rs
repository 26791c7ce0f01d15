//! RETIRE_CONNECTION_ID frames on their way to the peer (RFC 9000 §19.16).

use courser_wire::{Frame, PathId, PathRetireConnectionId, RetireConnectionId, TransportErrorCode};

use crate::build::packet_builder::PacketBuilder;
use crate::error::TransportError;
use crate::space::sent::SentFrame;

/// Maximum of retirements that wait for the peer's acknowledgement (limit K05). RFC 9000 §5.1.2
/// asks for at least twice our active_connection_id_limit.
pub const MAX_RETIREMENTS: usize = 16;

/// Maximum of retirements for our own reasons, such as a change of path. The rest of
/// [`MAX_RETIREMENTS`] is left to requests of the peer, so that an honest one never exceeds the
/// limit because of us.
pub const MAX_OWN_RETIREMENTS: usize = MAX_RETIREMENTS / 2;

/// The IDs that we retired, until the peer has acknowledged the frame.
#[derive(Debug, Default)]
pub(super) struct Retirements {
    /// The path ID that the IDs belong to, if the ends have agreed on several paths.
    pub(super) path: Option<PathId>,
    /// Unacknowledged retirements, at most [`MAX_RETIREMENTS`].
    pub(super) open: Vec<Retirement>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Retirement {
    pub(super) sequence: u64,
    pub(super) is_in_flight: bool,
}

impl Retirements {
    /// Adds an ID that the peer asked to retire.
    ///
    /// # Errors
    ///
    /// CONNECTION_ID_LIMIT_ERROR above [`MAX_RETIREMENTS`]: the peer makes us retire IDs without
    /// acknowledging it (RFC 9000 §5.1.2).
    pub(super) fn add(&mut self, sequence: u64) -> Result<(), TransportError> {
        if self.open.len() >= MAX_RETIREMENTS {
            let count = self.open.len() + 1;
            return Err(TransportError::new(
                TransportErrorCode::CONNECTION_ID_LIMIT_ERROR,
                format!("{count} unacknowledged retirements exceed limit {MAX_RETIREMENTS}"),
            ));
        }
        self.push(sequence);
        Ok(())
    }

    /// Adds an ID that we retire for a reason of our own. Check [`Retirements::has_room_for_own`] first.
    pub(super) fn add_own(&mut self, sequence: u64) {
        debug_assert!(self.has_room_for_own(), "too many retirements of our own");
        self.push(sequence);
    }

    /// Returns true if we may retire an ID that the peer did not ask us to retire.
    pub(super) fn has_room_for_own(&self) -> bool {
        self.open.len() < MAX_OWN_RETIREMENTS
    }

    fn push(&mut self, sequence: u64) {
        self.open.push(Retirement {
            sequence,
            is_in_flight: false,
        });
    }

    pub(super) fn has_frames_to_send(&self) -> bool {
        self.open.iter().any(|retirement| !retirement.is_in_flight)
    }

    pub(super) fn write_frames(&mut self, packet: &mut PacketBuilder<'_>) {
        for retirement in self.open.iter_mut().filter(|waiting| !waiting.is_in_flight) {
            let sequence = retirement.sequence;
            let retired = RetireConnectionId { sequence };
            let (frame, record) = match self.path {
                None => (
                    Frame::RetireConnectionId(retired),
                    SentFrame::RetireConnectionId { sequence },
                ),
                Some(path) => (
                    Frame::PathRetireConnectionId(PathRetireConnectionId {
                        path_id: path.value().into(),
                        retired,
                    }),
                    SentFrame::PathRetireConnectionId { path, sequence },
                ),
            };
            if packet.remaining() < frame.encoded_len() {
                return;
            }
            frame.encode(packet.writer());
            packet.record(record);
            retirement.is_in_flight = true;
        }
    }

    pub(super) fn on_acked(&mut self, sequence: u64) {
        self.open
            .retain(|retirement| retirement.sequence != sequence);
    }

    pub(super) fn on_lost(&mut self, sequence: u64) {
        if let Some(lost) = self
            .open
            .iter_mut()
            .find(|known| known.sequence == sequence)
        {
            lost.is_in_flight = false;
        }
    }
}
