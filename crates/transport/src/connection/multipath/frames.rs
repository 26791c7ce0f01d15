//! Frames of several paths. RFC 10069 §4.

use courser_base::Time;
use courser_wire::frame::{
    Ack, Frame, PathAbandon, PathCidsBlocked, PathNewConnectionId, PathRetireConnectionId,
    PathStatus,
};
use courser_wire::{ConnectionId, PathId};

use crate::connection::effects::FrameProgress;
use crate::connection::parts::Parts;
use crate::error::TransportError;
use crate::multipath::{Multipath, PathPreference, Target};
use crate::recovery::LossRecovery;
use crate::space::SpaceId;

impl Parts {
    /// Returns the state of several paths.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION if the ends have not agreed on several paths (RFC 10069 §2).
    pub(in crate::connection) fn several_paths(
        &mut self,
    ) -> Result<&mut Multipath, TransportError> {
        self.multipath.as_deref_mut().ok_or_else(|| {
            let reason = "frame of several paths, which were not negotiated";
            TransportError::protocol_violation(reason)
        })
    }

    /// Returns the acknowledgement in an ACK frame, which is for path 0 in 1-RTT packets (RFC 10069 §2.3), or PATH_ACK, whose path
    /// is at hand then, and the path to return to. `None` if the path is gone.
    ///
    /// Both frames are processed in one place, so that ACK frames of connections with one path take no call more.
    #[inline]
    pub(in crate::connection) fn acknowledgement<'f, 'd>(
        &mut self,
        space: SpaceId,
        frame: &'f Frame<'d>,
        recovery: &mut LossRecovery,
    ) -> Result<Option<(&'f Ack<'d>, Option<PathId>)>, TransportError> {
        match frame {
            Frame::Ack(ack) if self.multipath.is_none() || space != SpaceId::Application => {
                Ok(Some((ack, None)))
            }
            _ => self.acknowledgement_of_path(frame, recovery),
        }
    }

    #[inline(never)]
    fn acknowledgement_of_path<'f, 'd>(
        &mut self,
        frame: &'f Frame<'d>,
        recovery: &mut LossRecovery,
    ) -> Result<Option<(&'f Ack<'d>, Option<PathId>)>, TransportError> {
        let (path, ack) = match frame {
            Frame::Ack(ack) => (PathId::ZERO, ack),
            Frame::PathAck(frame) => {
                let (path, target) = self.several_paths()?.target(frame.path_id)?;
                match target {
                    Target::AtHand | Target::Lane => (path, &frame.ack),
                    Target::Unused => {
                        let reason = "PATH_ACK for a path on which nothing was sent";
                        return Err(TransportError::protocol_violation(reason));
                    }
                    Target::Gone => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        let returns_to = self.path_at_hand();
        let is_open = self.go_to(path, recovery);
        Ok(is_open.then_some((ack, Some(returns_to))))
    }

    /// Processes a PATH_ABANDON frame. Returns the path if this end had not given it up.
    pub(in crate::connection) fn on_path_abandon_frame(
        &mut self,
        frame: PathAbandon,
    ) -> Result<Option<PathId>, TransportError> {
        let multipath = self.several_paths()?;
        let (path, target) = multipath.target(frame.path_id)?;
        let is_new = target != Target::Gone && multipath.on_abandon(path, frame);
        Ok(is_new.then_some(path))
    }

    pub(in crate::connection) fn on_path_status_frame(
        &mut self,
        frame: &PathStatus,
        status: PathPreference,
    ) -> Result<FrameProgress, TransportError> {
        let multipath = self.several_paths()?;
        let (path, _) = multipath.target(frame.path_id)?;
        multipath.on_status(path, frame, status);
        Ok(FrameProgress::Nothing)
    }

    pub(in crate::connection) fn on_path_new_connection_id_frame(
        &mut self,
        now: Time,
        frame: &PathNewConnectionId,
    ) -> Result<FrameProgress, TransportError> {
        let (path, target) = self.several_paths()?.target(frame.path_id)?;
        match target {
            Target::AtHand => return self.on_new_connection_id_frame(now, &frame.issued),
            Target::Lane | Target::Unused => {
                if self.ids.has_peer_id(&frame.issued.id) {
                    let reason = "a connection id was issued for another path";
                    return Err(TransportError::protocol_violation(reason));
                }
                self.several_paths()?.on_new_connection_id(path, frame)?;
            }
            Target::Gone => {}
        }
        Ok(FrameProgress::Neutral)
    }

    pub(in crate::connection) fn on_path_retire_connection_id_frame(
        &mut self,
        frame: &PathRetireConnectionId,
        used: &ConnectionId,
    ) -> Result<FrameProgress, TransportError> {
        let (path, target) = self.several_paths()?.target(frame.path_id)?;
        match target {
            Target::AtHand => self
                .ids
                .on_retire_connection_id_frame(frame.retired.sequence, used)?,
            Target::Lane | Target::Unused => {
                let multipath = self.several_paths()?;
                multipath.on_retire_connection_id(path, frame, used)?;
            }
            Target::Gone => {}
        }
        Ok(FrameProgress::Neutral)
    }

    pub(in crate::connection) fn on_path_cids_blocked_frame(
        &mut self,
        frame: PathCidsBlocked,
    ) -> Result<FrameProgress, TransportError> {
        self.several_paths()?;
        if let Some(multipath) = &self.multipath {
            multipath.on_cids_blocked(frame, &self.ids)?;
        }
        Ok(FrameProgress::Nothing)
    }
}
