//! What both ends have agreed on for one path: its phase, its status, its end. RFC 10069 §3.3, §3.4.

use std::time::Duration;

use courser_base::Time;
use courser_wire::frame::{PathAbandon, PathStatus};
use courser_wire::{Frame, PathId};

use super::silence::Silence;
use super::writing::write;
use crate::build::packet_builder::PacketBuilder;
use crate::space::sent::SentFrame;
use crate::traffic::PathTraffic;

/// The use that an end prefers for a path. RFC 10069 §3.3.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PathPreference {
    /// The path is for data.
    #[default]
    Available,
    /// The path is for data only while no available path works.
    Backup,
}

/// The phase of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Its addresses are being validated.
    Opening,
    /// It carries data.
    Open,
    /// One end has given it up. Its state is kept for late packets.
    Closing,
}

/// The control state of a path.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) id: PathId,
    pub(crate) phase: Phase,
    own: OwnStatus,
    peer: Option<(u64, PathPreference)>,
    abandon: Option<Abandon>,
    /// True once it has carried data.
    pub(crate) was_open: bool,
    /// The time at which the state of a closing path is freed.
    pub(crate) free_at: Option<Time>,
    /// What it has carried. That of the first path is what remains of the connection's.
    pub(crate) traffic: PathTraffic,
    /// Its state while it does not answer.
    pub(super) silence: Option<Silence>,
}

#[derive(Debug, Default)]
struct OwnStatus {
    /// The use that the application prefers.
    status: PathPreference,
    /// The use that the peer is asked for, which differs while a path does not answer.
    announced: PathPreference,
    /// The use that is announced when it may change again.
    wanted: PathPreference,
    /// The time before which the announced use does not change by itself.
    fixed_until: Time,
    sequence: u64,
    is_due: bool,
}

#[derive(Debug)]
struct Abandon {
    code: u64,
    is_due: bool,
    is_acked: bool,
    is_answered: bool,
}

impl Control {
    pub(super) fn new(id: PathId, phase: Phase) -> Self {
        Self {
            id,
            phase,
            own: OwnStatus::default(),
            peer: None,
            abandon: None,
            was_open: phase == Phase::Open,
            free_at: None,
            traffic: PathTraffic::default(),
            silence: None,
        }
    }

    /// Returns the status that this end has set.
    pub(crate) fn own_status(&self) -> PathPreference {
        self.own.status
    }

    /// Returns the status that the peer has set.
    pub(crate) fn peer_status(&self) -> PathPreference {
        self.peer
            .map_or(PathPreference::Available, |(_, status)| status)
    }

    /// Returns true if both ends want data on the path.
    pub(crate) fn is_available(&self) -> bool {
        let both = [self.own_status(), self.peer_status()];
        self.phase == Phase::Open && both == [PathPreference::Available; 2]
    }

    /// Returns true if acknowledgements are better sent on another path.
    pub(super) fn is_mute(&self) -> bool {
        self.phase == Phase::Closing || self.silence.is_some()
    }

    /// Returns true if the path does not answer.
    pub(crate) fn is_silent(&self) -> bool {
        self.silence.is_some()
    }

    /// Returns the code with which the path was given up.
    pub(crate) fn code(&self) -> Option<u64> {
        self.abandon.as_ref().map(|abandon| abandon.code)
    }

    /// Sets the status that the application prefers, and announces it to the peer.
    pub(crate) fn set_status(&mut self, status: PathPreference) {
        (self.own.status, self.own.wanted) = (status, status);
        self.send_status(status);
    }

    /// Announces a status that follows from the health of the paths, once per `interval` at most (attack A215).
    pub(super) fn announce(&mut self, now: Time, wanted: PathPreference, interval: Duration) {
        self.own.wanted = wanted;
        if self.own.announced != wanted && self.own.fixed_until <= now {
            self.own.fixed_until = now + interval;
            self.send_status(wanted);
        }
    }

    /// Returns the time at which a status may be announced that differs from the last one.
    pub(super) fn announce_at(&self) -> Option<Time> {
        (self.own.announced != self.own.wanted).then_some(self.own.fixed_until)
    }

    fn send_status(&mut self, status: PathPreference) {
        if self.own.announced != status {
            self.own.announced = status;
            self.own.sequence += 1;
            self.own.is_due = true;
        }
    }

    /// Records a status of the peer, unless a newer one has arrived.
    pub(super) fn on_peer_status(&mut self, sequence: u64, status: PathPreference) {
        if self.peer.is_none_or(|(last, _)| sequence > last) {
            self.peer = Some((sequence, status));
        }
    }

    /// Gives the path up. Returns false if it was given up before.
    pub(super) fn abandon(&mut self, code: u64) -> bool {
        if self.abandon.is_some() {
            return false;
        }
        self.phase = Phase::Closing;
        self.silence = None;
        self.own.is_due = false;
        self.abandon = Some(Abandon {
            code,
            is_due: true,
            is_acked: false,
            is_answered: false,
        });
        true
    }

    /// Records that the peer has given the path up, too.
    pub(super) fn on_peer_abandons(&mut self) {
        if let Some(abandon) = &mut self.abandon {
            abandon.is_answered = true;
        }
    }

    pub(super) fn has_frames_to_send(&self) -> bool {
        self.own.is_due || self.abandon.as_ref().is_some_and(|abandon| abandon.is_due)
    }

    pub(super) fn write_frames(&mut self, packet: &mut PacketBuilder<'_>) {
        let path = self.id;
        let path_id = u64::from(path.value());
        if let Some(abandon) = self.abandon.as_mut().filter(|abandon| abandon.is_due) {
            let frame = Frame::PathAbandon(PathAbandon {
                path_id,
                error_code: abandon.code,
            });
            abandon.is_due = !write(packet, &frame, SentFrame::PathAbandon { path });
        }
        if self.own.is_due {
            let sequence = self.own.sequence;
            let status = PathStatus { path_id, sequence };
            let frame = match self.own.announced {
                PathPreference::Available => Frame::PathStatusAvailable(status),
                PathPreference::Backup => Frame::PathStatusBackup(status),
            };
            self.own.is_due = !write(packet, &frame, SentFrame::PathStatus { path, sequence });
        }
    }

    pub(super) fn on_status_acked(&mut self, sequence: u64) {
        self.own.is_due &= sequence != self.own.sequence;
    }

    pub(super) fn on_status_lost(&mut self, sequence: u64) {
        // Only the newest status is of use (RFC 10069 §4.3).
        self.own.is_due |= sequence == self.own.sequence && self.abandon.is_none();
    }

    pub(super) fn on_abandon_acked(&mut self) {
        if let Some(abandon) = &mut self.abandon {
            (abandon.is_acked, abandon.is_due) = (true, false);
        }
    }

    pub(super) fn on_abandon_lost(&mut self) {
        if let Some(abandon) = &mut self.abandon {
            abandon.is_due |= !abandon.is_acked;
        }
    }
}
