//! Several paths of one connection. RFC 10069.
//!
//! A path ID has packet numbers, connection IDs, loss recovery and network paths of its own. The parts of a connection
//! have this state of one path only, the one *at hand*, and are not aware of others. A [`Lane`] keeps the same
//! state of each other path, and [`Parts::go_to`](crate::connection) exchanges both. A connection with one path therefore
//! pays nothing.
//!
//! [`Multipath`] owns the lanes, the connection IDs of paths that are not open yet, the limits on path IDs, and
//! the status of each path.

mod control;
mod fates;
mod health;
mod ids;
mod lane;
mod limits;
mod opening;
mod past;
mod returning;
mod silence;
mod totals;
mod unused;
mod writing;

use std::time::Duration;

use courser_base::Time;
use courser_recovery::PathScheduler;
use courser_wire::frame::{MaxPathId, PathAbandon, PathStatus as StatusFrame, PathsBlocked};
use courser_wire::{ConnectionId, PathId};

pub use self::control::PathPreference;
pub(crate) use self::control::{Control, Phase};
pub(crate) use self::lane::Lane;
use self::limits::PathIdLimits;
pub use self::opening::OpenPathError;
use self::past::Past;
pub(crate) use self::past::PathTotals;
pub(crate) use self::returning::{ATTEMPT, BETWEEN_CHALLENGES, ReturningPaths};
pub(crate) use self::silence::{Health, HealthChange};
use self::unused::UnusedPath;
use crate::acknowledger::{AckContext, Acknowledger};
use crate::build::packet_builder::PacketBuilder;
use crate::cid::{ConnectionIds, ResetToken};
use crate::config::MAX_OPEN_PATHS;
use crate::error::TransportError;
use crate::nat::Traversal;
use crate::path::paths::Paths;
use crate::recovery::LossRecovery;

/// The state of several paths, while their use is negotiated.
#[derive(Debug)]
pub(crate) struct Multipath {
    /// The path at hand.
    current: PathId,
    /// The path that is at hand while the connection rests.
    home: PathId,
    lanes: Vec<Lane>,
    /// The paths that are open or being closed, in ascending order.
    controls: Vec<Control>,
    /// The path IDs that may be opened, in ascending order.
    unused: Vec<UnusedPath>,
    limits: PathIdLimits,
    /// The smallest path ID that was never used.
    next: PathId,
    /// The smallest path ID for which no connection IDs were prepared. The peer may open paths out of order.
    unprepared: PathId,
    /// The peer's `active_connection_id_limit`, which counts for each path (RFC 10069 §2.2).
    peer_id_limit: u64,
    /// IDs of closed paths, which the endpoint takes.
    retired: Vec<ConnectionId>,
    /// Reset tokens of closed paths that the endpoint forgets.
    dropped_tokens: Vec<ResetToken>,
    /// True if the path at hand may not carry data.
    restricts: bool,
    /// The time until which an attempt to open a path waits for connection IDs.
    awaits_ids_until: Option<Time>,
    /// The paths of a client that are tried again.
    pub(crate) returning: ReturningPaths,
    /// Chooses the path of each batch of data.
    pub(crate) scheduler: Box<dyn PathScheduler>,
    /// The bytes of streams that had been sent when nothing was left to send.
    pub(crate) idle_at: u64,
    /// Bytes of packets whose content was sent on a faster path, too.
    copied: u64,
    /// The counters of closed paths, if there were any.
    past: Option<Box<Past>>,
    /// The search for direct paths, while both ends have agreed on it.
    pub(crate) traversal: Option<Box<Traversal>>,
}

/// A frame that this end ignores: its path is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// The path is at hand.
    AtHand,
    /// The path is open, and not at hand.
    Lane,
    /// The path is not open yet.
    Unused,
    /// The path was closed.
    Gone,
}

impl Multipath {
    /// Creates the state of a connection whose ends have sent these values of initial_max_path_id.
    pub(crate) fn new(
        own: PathId,
        peer: PathId,
        peer_id_limit: u64,
        scheduler: Box<dyn PathScheduler>,
    ) -> Self {
        let mut multipath = Self {
            current: PathId::ZERO,
            home: PathId::ZERO,
            lanes: Vec::new(),
            controls: vec![Control::new(PathId::ZERO, Phase::Open)],
            unused: Vec::new(),
            limits: PathIdLimits::new(own, peer),
            next: PathId::new(1),
            unprepared: PathId::new(1),
            peer_id_limit,
            retired: Vec::new(),
            dropped_tokens: Vec::new(),
            restricts: false,
            awaits_ids_until: None,
            returning: ReturningPaths::default(),
            scheduler,
            idle_at: 0,
            copied: 0,
            past: None,
            traversal: None,
        };
        multipath.prepare_unused();
        multipath
    }

    /// Returns the path at hand.
    #[inline]
    pub(crate) fn current(&self) -> PathId {
        self.current
    }

    /// Returns the path that is at hand while the connection rests.
    #[inline]
    pub(crate) fn home(&self) -> PathId {
        self.home
    }

    /// Sets the path that is at hand while the connection rests.
    pub(crate) fn set_home(&mut self, home: PathId) {
        self.home = home;
    }

    /// Returns true if the path at hand may carry no data now.
    #[inline]
    pub(crate) fn restricts(&self) -> bool {
        self.restricts
    }

    /// Sets whether the path at hand may carry data.
    pub(crate) fn restrict(&mut self, restricts: bool) {
        self.restricts = restricts;
    }

    /// Exchanges the state of the path at hand for that of a lane. Returns false if there is no such lane.
    pub(crate) fn exchange(
        &mut self,
        to: PathId,
        recovery: &mut LossRecovery,
        paths: &mut Paths,
        ids: &mut ConnectionIds,
        acknowledger: &mut Acknowledger,
    ) -> bool {
        let Some(lane) = self.lanes.iter_mut().find(|lane| lane.id == to) else {
            return false;
        };
        lane.exchange(&mut self.current, recovery, paths, ids, acknowledger);
        true
    }

    /// Adds the state of a path that opens.
    pub(crate) fn add(&mut self, lane: Lane, phase: Phase) {
        let control = Control::new(lane.id, phase);
        self.lanes.push(lane);
        let at = self.controls.partition_point(|it| it.id < control.id);
        self.controls.insert(at, control);
    }

    /// Removes and returns the state of a closed path.
    pub(crate) fn remove(&mut self, now: Time, id: PathId) -> Option<Lane> {
        self.keep_traffic(id);
        self.controls.retain(|control| control.id != id);
        self.limits.on_freed(now);
        self.prepare_unused();
        let at = self.lanes.iter().position(|lane| lane.id == id)?;
        let mut lane = self.lanes.swap_remove(at);
        self.keep_totals(&lane);
        lane.ids.retire_all();
        while let Some(id) = lane.ids.take_retired() {
            self.retired.push(id);
        }
        self.dropped_tokens.extend(lane.ids.take_reported_tokens());
        Some(lane)
    }

    /// Permits further path IDs that had to wait.
    pub(crate) fn raise_limit(&mut self, now: Time) {
        if self.limits.on_timeout(now) {
            self.prepare_unused();
        }
    }

    /// Returns the time of the next change that depends on no path: a limit that rises, an attempt, a wait that ends.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        [
            self.limits.next_timeout(),
            self.returning.next_timeout(),
            self.awaits_ids_until,
        ]
        .into_iter()
        .fold(self.next_health_timeout(), Time::earliest)
    }

    /// Returns true once if an attempt to open a path failed for want of connection IDs, and these have arrived or did not
    /// arrive in time.
    pub(crate) fn take_second_attempt(&mut self, now: Time) -> bool {
        let Some(until) = self.awaits_ids_until else {
            return false;
        };
        let mut next = self.unused.iter().filter(|path| path.id() == self.next);
        let is_over = until <= now || next.any(UnusedPath::has_both);
        if is_over {
            self.awaits_ids_until = None;
        }
        is_over
    }

    /// Returns the bytes that may be sent twice by choice now, after `sent` bytes of data (limit K279).
    pub(crate) fn copy_budget(&self, sent: u64) -> u64 {
        let allowed = sent / COPIED_PART + COPIED_AT_ONCE;
        allowed.saturating_sub(self.copied)
    }

    /// Records bytes that are sent twice by choice.
    pub(crate) fn on_copied(&mut self, bytes: u64) {
        self.copied += bytes;
    }

    /// Ends a batch of received packets, some of which may have arrived on paths that are not at hand.
    pub(crate) fn on_batch_end(&mut self, now: Time) {
        for lane in &mut self.lanes {
            let rtt = lane.recovery.path().rtt().smoothed();
            lane.received.on_batch_end(now, rtt);
        }
    }

    /// Returns the recovery states of the paths that are not at hand and work.
    fn working(&self) -> impl Iterator<Item = &LossRecovery> {
        let works = |lane: &&Lane| self.answers(lane.id);
        self.lanes.iter().filter(works).map(|lane| &lane.recovery)
    }

    /// Returns the congestion windows of the paths that are not at hand, together: send buffers cover all paths.
    pub(crate) fn other_windows(&self) -> u64 {
        self.working()
            .map(|recovery| recovery.path().window())
            .sum()
    }

    /// Returns the longest round trip of the paths that are not at hand, if there are any. Receive windows cover what all
    /// paths deliver while data is on its way on the slowest, with the queue that it passes.
    pub(crate) fn longest_rtt(&self) -> Option<Duration> {
        let rtts = self
            .working()
            .map(|recovery| recovery.path().rtt().smoothed());
        rtts.max()
    }

    /// Returns the smallest datagram size of the paths that are not at hand.
    pub(crate) fn smallest_mtu(&self) -> u16 {
        let sizes = self.working().map(|recovery| recovery.path().mtu());
        sizes.fold(u16::MAX, u16::min)
    }

    /// Returns the number of paths that are being validated.
    pub(crate) fn opening(&self) -> usize {
        let opening = self.controls.iter();
        opening.filter(|it| it.phase == Phase::Opening).count()
    }

    /// Returns the paths that are not at hand.
    pub(crate) fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Returns the path with this ID, unless it is at hand.
    pub(crate) fn lane_mut(&mut self, id: PathId) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|lane| lane.id == id)
    }

    /// Returns what is known of each path that is open or being closed.
    pub(crate) fn controls(&self) -> &[Control] {
        &self.controls
    }

    /// Returns what is known of a path.
    pub(crate) fn control(&self, id: PathId) -> Option<&Control> {
        self.controls.iter().find(|control| control.id == id)
    }

    /// Returns what is known of a path.
    pub(crate) fn control_mut(&mut self, id: PathId) -> Option<&mut Control> {
        self.controls.iter_mut().find(|control| control.id == id)
    }

    /// Returns the next path ID that this end may open, with the connection IDs of both ends.
    ///
    /// # Errors
    ///
    /// The reason why there is none. A frame tells the peer of it once (RFC 10069 §4.7).
    pub(crate) fn take_next(
        &mut self,
        now: Time,
    ) -> Result<(PathId, ConnectionIds), OpenPathError> {
        let open = self.controls.len();
        if open >= usize::from(MAX_OPEN_PATHS) {
            return Err(OpenPathError::TooManyPaths);
        }
        if self.next > self.limits.usable() {
            self.limits.request_more(self.next);
            return Err(OpenPathError::LimitReached);
        }
        let taken = self.take_unused(self.next);
        if taken.is_err() {
            self.awaits_ids_until.get_or_insert(now + ID_PATIENCE);
        }
        taken
    }

    /// Takes the connection IDs of a path that the peer opens, or this end. All lower IDs count as used, too.
    pub(crate) fn take_unused(
        &mut self,
        id: PathId,
    ) -> Result<(PathId, ConnectionIds), OpenPathError> {
        let at = self.unused.iter().position(|path| path.id() == id);
        let at = at.ok_or(OpenPathError::LimitReached)?;
        if !self.unused[at].has_both() {
            self.unused[at].request_ids();
            return Err(OpenPathError::NoConnectionId);
        }
        let taken = self.unused.remove(at);
        let Some(mut ids) = taken.into_ids() else {
            return Err(OpenPathError::NoConnectionId);
        };
        ids.on_peer_limit(self.peer_id_limit);
        self.next = self.next.max(next_after(id));
        Ok((id, ids))
    }

    /// Creates the places for connection IDs of all path IDs that may be opened.
    fn prepare_unused(&mut self) {
        let last = self.limits.usable();
        while self.unprepared <= last && self.unused.len() < usize::from(MAX_OPEN_PATHS) {
            self.unused.push(UnusedPath::new(self.unprepared));
            self.unprepared = next_after(self.unprepared);
        }
    }

    /// Returns true if frames wait that name a path.
    #[inline]
    pub(crate) fn has_frames_to_send(&self) -> bool {
        self.limits.has_frames_to_send()
            || self.controls.iter().any(Control::has_frames_to_send)
            || self.unused.iter().any(UnusedPath::has_frames_to_send)
            || self.lanes.iter().any(|lane| lane.ids.has_frames_to_send())
            || self
                .traversal
                .as_ref()
                .is_some_and(|it| it.has_frames_to_send())
    }

    /// Writes the frames that name a path, as many as fit.
    pub(crate) fn write_frames(&mut self, packet: &mut PacketBuilder<'_>) {
        for control in &mut self.controls {
            control.write_frames(packet);
        }
        if let Some(traversal) = &mut self.traversal {
            traversal.write_frames(packet);
        }
        self.limits.write_frames(packet);
        for lane in &mut self.lanes {
            lane.ids.write_frames(packet);
        }
        for path in &mut self.unused {
            path.write_frames(packet);
        }
    }

    /// Writes the acknowledgements of paths that are being closed, on which nothing is sent any more
    /// (RFC 10069 §3.4.3), and of those that do not answer.
    pub(crate) fn write_acks(&mut self, now: Time, packet: &mut PacketBuilder<'_>) {
        let controls = &self.controls;
        for lane in &mut self.lanes {
            let mut control = controls.iter().filter(|control| control.id == lane.id);
            if lane.received.is_due() && control.any(Control::is_mute) {
                let context = AckContext {
                    is_ack_only: true,
                    is_repeated: false,
                    is_ack_eliciting: true,
                };
                lane.received
                    .write_frame(now, Some(lane.id), packet, context);
            }
        }
    }

    /// Returns true if an acknowledgement is due of a path that is being closed or does not answer.
    pub(crate) fn has_acks_to_send(&self) -> bool {
        let mut due = self.lanes.iter().filter(|lane| lane.received.is_due());
        due.any(|lane| self.control(lane.id).is_some_and(Control::is_mute))
    }

    /// Returns the state of the path that a frame names.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION for a path ID above the limit that we announced (RFC 10069 §4).
    pub(crate) fn target(&self, path_id: u64) -> Result<(PathId, Target), TransportError> {
        let id = self.limits.check(path_id)?;
        let target = if id == self.current {
            Target::AtHand
        } else if self.lanes.iter().any(|lane| lane.id == id) {
            Target::Lane
        } else if self.unused.iter().any(|path| path.id() == id) {
            Target::Unused
        } else {
            Target::Gone
        };
        Ok((id, target))
    }

    /// Processes PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP. A status of a path that is not open yet is kept.
    pub(crate) fn on_status(&mut self, id: PathId, frame: &StatusFrame, status: PathPreference) {
        if let Some(control) = self.control_mut(id) {
            control.on_peer_status(frame.sequence, status);
        } else if let Some(path) = self.unused.iter_mut().find(|path| path.id() == id) {
            path.on_status(frame.sequence, status);
        }
    }

    /// Processes MAX_PATH_ID.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION for a value that is too large, or below initial_max_path_id (RFC 10069 §4.6).
    pub(crate) fn on_max_path_id(&mut self, frame: MaxPathId) -> Result<bool, TransportError> {
        let is_raised = self.limits.on_max_path_id(frame.limit)?;
        if is_raised {
            self.prepare_unused();
        }
        Ok(is_raised)
    }

    /// Processes PATHS_BLOCKED, which requires no answer.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION for a value above our limit (RFC 10069 §4.7).
    pub(crate) fn on_paths_blocked(&self, frame: PathsBlocked) -> Result<(), TransportError> {
        self.limits.check(frame.limit).map(|_| ())
    }

    /// Records that this end or the peer gives up a path, with the code of the reason. Returns false if it was given up before.
    pub(crate) fn abandon(&mut self, id: PathId, code: u64) -> bool {
        // A path that was never opened is used up all the same (RFC 10069 §3.4).
        if let Some(at) = self.unused.iter().position(|path| path.id() == id) {
            let path = self.unused.remove(at);
            self.retired.extend(path.active());
            self.next = self.next.max(next_after(id));
            let mut control = Control::new(id, Phase::Closing);
            control.abandon(code);
            let at = self.controls.partition_point(|it| it.id < id);
            self.controls.insert(at, control);
            return true;
        }
        let Some(control) = self.controls.iter_mut().find(|control| control.id == id) else {
            return false;
        };
        control.abandon(code)
    }

    /// Returns true if one end has given the path up.
    pub(crate) fn is_closing(&self, id: PathId) -> bool {
        let control = self.control(id);
        control.is_some_and(|control| control.phase == Phase::Closing)
    }

    /// Processes PATH_ABANDON. Returns true if this end had not given up the path before.
    pub(crate) fn on_abandon(&mut self, id: PathId, frame: PathAbandon) -> bool {
        let is_new = self.abandon(id, frame.error_code);
        if let Some(control) = self.control_mut(id) {
            control.on_peer_abandons();
        }
        is_new
    }
}

/// The part of all data that is sent on two paths, at most, and the bytes that may be at any time (limit K279).
const COPIED_PART: u64 = 20;
const COPIED_AT_ONCE: u64 = 65_536;

/// The time for which an attempt to open a path waits for connection IDs of the peer.
const ID_PATIENCE: Duration = Duration::from_secs(10);

fn next_after(id: PathId) -> PathId {
    PathId::new(id.value().saturating_add(1))
}
