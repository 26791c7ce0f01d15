//! Frames of several paths that were acknowledged or lost.

use courser_wire::PathId;

use super::Multipath;
use crate::acknowledger::Acknowledger;
use crate::cid::ConnectionIds;
use crate::space::SpaceId;
use crate::space::sent::SentFrame;

impl Multipath {
    /// Processes the acknowledgement of a frame.
    pub(crate) fn on_acked(
        &mut self,
        frame: SentFrame,
        at_hand: &mut ConnectionIds,
        acknowledger: &mut Acknowledger,
    ) {
        match frame {
            SentFrame::PathAck { path, largest } if path == self.current => {
                acknowledger.on_ack_acknowledged(SpaceId::Application, largest);
            }
            SentFrame::PathAck { path, largest } => {
                if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.id == path) {
                    lane.received.on_ack_acknowledged(largest);
                }
            }
            SentFrame::PathNewConnectionId { path, sequence } => {
                self.with_ids(path, at_hand, |ids| {
                    ids.on_new_connection_id_acked(sequence)
                });
                if let Some(path) = self.unused.iter_mut().find(|it| it.id() == path) {
                    path.on_acked(sequence);
                }
            }
            SentFrame::PathRetireConnectionId { path, sequence } => {
                self.with_ids(path, at_hand, |ids| {
                    ids.on_retire_connection_id_acked(sequence)
                });
            }
            SentFrame::PathAbandon { path } => {
                if let Some(control) = self.control_mut(path) {
                    control.on_abandon_acked();
                }
            }
            SentFrame::PathStatus { path, sequence } => {
                if let Some(control) = self.control_mut(path) {
                    control.on_status_acked(sequence);
                }
            }
            SentFrame::MaxPathId { limit } => self.limits.on_acked(limit),
            _ => {}
        }
    }

    /// Sends a lost frame again, if it is still of use.
    pub(crate) fn on_lost(&mut self, frame: SentFrame, at_hand: &mut ConnectionIds) {
        match frame {
            SentFrame::PathNewConnectionId { path, sequence } => {
                self.with_ids(path, at_hand, |ids| ids.on_new_connection_id_lost(sequence));
                if let Some(path) = self.unused.iter_mut().find(|it| it.id() == path) {
                    path.on_lost(sequence);
                }
            }
            SentFrame::PathRetireConnectionId { path, sequence } => {
                self.with_ids(path, at_hand, |ids| {
                    ids.on_retire_connection_id_lost(sequence)
                });
            }
            SentFrame::PathAbandon { path } => {
                if let Some(control) = self.control_mut(path) {
                    control.on_abandon_lost();
                }
            }
            SentFrame::PathStatus { path, sequence } => {
                if let Some(control) = self.control_mut(path) {
                    control.on_status_lost(sequence);
                }
            }
            SentFrame::MaxPathId { .. } => self.limits.on_lost(),
            _ => {}
        }
    }

    fn with_ids(
        &mut self,
        path: PathId,
        at_hand: &mut ConnectionIds,
        act: impl FnOnce(&mut ConnectionIds),
    ) {
        if path == self.current {
            act(at_hand);
        } else if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.id == path) {
            act(&mut lane.ids);
        }
    }
}
