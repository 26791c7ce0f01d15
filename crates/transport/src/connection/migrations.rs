//! Changes of the path in use, and their consequences. RFC 9000 §9.

use std::fmt;

use courser_base::Time;
use courser_telemetry::PathState;
use courser_wire::ConnectionId;
use courser_wire::packet::Packet;

use super::Connection;
use super::event::Event;
use super::parts::Parts;
use super::received_datagram::ReceivedDatagram;
use crate::build::transmit::SocketId;
use crate::path::paths::{PathIndex, PathsOutcome};
use crate::path::{MigrationState, NewPath, OwnPath};
use crate::space::SpaceId;

/// Moves a connection to other paths. Borrowed by [`Connection::migrations`].
#[derive(Debug)]
pub struct Migrations<'a> {
    connection: &'a mut Connection,
}

/// The reason why a client cannot move to another path. The connection is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MigrateError {
    /// Only clients migrate (RFC 9000 §9).
    NotClient,
    /// The handshake is not confirmed yet, or the connection is over (RFC 9000 §9).
    NotConfirmed,
    /// The server has sent disable_active_migration, and its address is that of the handshake.
    Forbidden,
    /// One end has chosen to be addressed without connection IDs, so that it could not route the
    /// packets on the new path (RFC 9000 §5.1, §9.5).
    WithoutConnectionIds,
    /// The server has issued no unused connection ID (RFC 9000 §9.5). It issues one for each retired
    /// ID, so a later attempt may succeed.
    NoSpareConnectionId,
    /// There were many moves just before, which a server may consider an attack. One is possible every
    /// quarter of a second.
    TooSoon,
}

impl fmt::Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotClient => "only clients migrate",
            Self::NotConfirmed => "the handshake is not confirmed",
            Self::Forbidden => "the server has disabled active migration",
            Self::WithoutConnectionIds => "one end uses no connection ids",
            Self::NoSpareConnectionId => "the server has issued no spare connection id",
            Self::TooSoon => "there were too many moves just before",
        })
    }
}

impl std::error::Error for MigrateError {}

impl Migrations<'_> {
    /// Begins to move to another path. A fresh connection ID is used there, and the path is
    /// validated (RFC 9000 §9.2, §9.5). [`Event::Migrated`] or [`Event::MigrationFailed`] follows.
    /// An unfinished move is abandoned.
    ///
    /// # Errors
    ///
    /// [`MigrateError`] if the rules do not allow it now.
    pub fn begin(&mut self, now: Time, path: &NewPath) -> Result<(), MigrateError> {
        self.connection.check_may_move()?;
        if !self.connection.parts.paths.moves().is_allowed(now) {
            return Err(MigrateError::TooSoon);
        }
        self.connection.move_now(now, path)
    }

    /// Begins to move like [`begin`](Self::begin), but postpones the move instead of failing with
    /// [`MigrateError::TooSoon`]. Only the last postponed move is begun, because the latest change of the
    /// network counts.
    ///
    /// # Errors
    ///
    /// [`MigrateError`] if the rules do not allow it now, apart from [`MigrateError::TooSoon`].
    pub fn begin_in_time(&mut self, now: Time, path: &NewPath) -> Result<(), MigrateError> {
        self.connection.move_in_time(now, path)
    }

    /// Returns the number of moves so far, and the state of the latest.
    pub fn latest(&self) -> (u64, MigrationState) {
        self.connection.parts.paths.own_move()
    }

    /// Returns true while packets may be sent on `socket` or are expected there.
    pub fn uses_socket(&self, socket: SocketId) -> bool {
        let parts = &self.connection.parts;
        let lanes = parts.multipath.iter().flat_map(|it| it.lanes());
        let mut others = lanes.map(|lane| &lane.paths);
        let returning = parts.multipath.iter().flat_map(|it| it.returning.places());
        parts.paths.has_socket(socket)
            || others.any(|paths| paths.has_socket(socket))
            || returning.into_iter().any(|place| place.socket == socket)
    }
}

impl Connection {
    /// Returns an interface to move the connection to another path.
    pub fn migrations(&mut self) -> Migrations<'_> {
        Migrations { connection: self }
    }

    fn move_in_time(&mut self, now: Time, path: &NewPath) -> Result<(), MigrateError> {
        self.check_may_move()?;
        match self.parts.paths.moves().is_allowed(now) {
            true => self.move_now(now, path),
            false => {
                self.parts.paths.moves().postpone(now, path);
                Ok(())
            }
        }
    }

    fn move_now(&mut self, now: Time, path: &NewPath) -> Result<(), MigrateError> {
        let peer = self.parts.paths.active().tuple().peer;
        if !self.open_path(now, OwnPath::to(peer, path)) {
            return Err(MigrateError::NoSpareConnectionId);
        }
        self.parts.paths.moves().on_begun(now);
        Ok(())
    }

    /// Begins to move to the address that the server prefers, if there is one (§9.6.1). Only probes
    /// are sent there until it is validated.
    pub(super) fn follow_preferred(&mut self, now: Time) {
        let Parts {
            handshake, paths, ..
        } = &self.parts;
        let offered = handshake
            .peer_parameters()
            .and_then(|it| it.preferred_address);
        let has_ids = !handshake.local_id().is_empty();
        let path = offered.and_then(|offered| paths.to_preferred(&offered));
        if let Some(path) = path.filter(|_| has_ids) {
            self.open_path(now, path);
        }
    }

    fn check_may_move(&self) -> Result<(), MigrateError> {
        let handshake = &self.parts.handshake;
        if handshake.side().is_server() {
            return Err(MigrateError::NotClient);
        }
        let parameters = handshake.peer_parameters();
        let Some(parameters) = parameters.filter(|_| self.is_confirmed()) else {
            return Err(MigrateError::NotConfirmed);
        };
        if parameters.disable_active_migration && self.parts.paths.is_at_first_peer() {
            return Err(MigrateError::Forbidden);
        }
        if handshake.local_id().is_empty() || self.parts.ids.destination().is_empty() {
            return Err(MigrateError::WithoutConnectionIds);
        }
        Ok(())
    }

    /// Opens a path; false if there is no spare ID for it.
    fn open_path(&mut self, now: Time, path: OwnPath) -> bool {
        let (recovery, parts) = (&mut self.packets.recovery, &mut self.parts);
        let (pto, old) = (recovery.pto(), parts.ids.destination());
        let open_path = || recovery.open_path(now);
        let is_open = parts
            .paths
            .begin_own(now, path, pto, open_path, &mut parts.ids);
        if is_open && path.is_at_once {
            self.enter_path(now, old);
        }
        self.close_removed(now);
        is_open
    }

    /// Follows the peer to the address that a packet came from, if `is_move` (RFC 9000 §9.3).
    #[inline]
    pub(super) fn follow_peer_to(
        &mut self,
        datagram: &ReceivedDatagram,
        packet: &Packet,
        is_move: bool,
    ) {
        let Some(index) = self
            .parts
            .arrival_path(datagram, &mut self.packets.recovery)
        else {
            return;
        };
        if index != self.parts.paths.active_index() && self.side().is_server() {
            self.follow_to(index, datagram.now, packet, is_move);
        }
    }

    /// Follows a client whose NAT assigned another port during the handshake, which could not complete
    /// otherwise. `packet` is a Handshake packet with the largest number so far. As after any other move, the
    /// amplification limit holds for the new port until it is validated, and the old one is challenged too.
    pub(super) fn follow_rebinding(&mut self, datagram: &ReceivedDatagram, packet: &Packet) {
        if self.parts.paths.may_have_rebound(datagram.place) {
            self.follow_peer_to(datagram, packet, true);
        }
    }

    fn follow_to(&mut self, index: PathIndex, now: Time, packet: &Packet, is_move: bool) {
        let (pto, destination) = (self.packets.recovery.pto(), &packet.destination);
        let Parts { paths, ids, .. } = &mut self.parts;
        if paths.needs_validation_first(now, index, pto) || !is_move {
            return;
        }
        let migration = paths.follow(now, index, destination, pto, ids);
        if migration.has_new_id {
            self.parts.trace.source(now, packet.destination);
        }
        self.enter_path(now, migration.old_destination);
    }

    /// Updates recovery and trace after a change of the path in use. `old` is the previous destination ID.
    fn enter_path(&mut self, now: Time, old: ConnectionId) {
        let Parts {
            handshake,
            paths,
            ids,
            trace,
            ..
        } = &mut self.parts;
        trace.destination(now, old, ids.destination());
        let path = paths.active();
        trace.path(now, path, PathState::MigrationStarted);
        self.packets.recovery.activate_path(path.key());
        let peer = path.tuple().peer;
        self.events.push_back(Event::PathChanged { peer });
        if handshake.side().is_client() {
            // The server follows only packets with non-probing frames (§9.2).
            self.packets.recovery.request_ping(SpaceId::Application);
        } else if path.is_validated() {
            // The client has responded there before, so the migration is complete.
            trace.path(now, path, PathState::MigrationComplete);
        }
    }

    /// Completes the move of this end if its path was just validated.
    pub(super) fn on_path_validated(&mut self, now: Time) {
        let (pto, old) = (self.packets.recovery.pto(), self.parts.ids.destination());
        let Parts { paths, ids, .. } = &mut self.parts;
        match paths.finish_own(now, pto, ids) {
            None => {
                self.report_failed_move();
                return self.close_removed(now);
            }
            Some(true) => self.enter_path(now, old),
            Some(false) => {}
        }
        let path = self.parts.paths.active();
        let trace = &mut self.parts.trace;
        trace.path(now, path, PathState::MigrationComplete);
        self.events.push_back(Event::Migrated);
        self.close_removed(now);
    }

    /// Runs the timers of the paths. Returns true if no path is left.
    pub(super) fn on_path_timeout(&mut self, now: Time) -> bool {
        let old = self.parts.ids.destination();
        let Parts { paths, ids, .. } = &mut self.parts;
        let outcome = paths.on_timeout(now, ids);
        self.parts.trace_unanswered(now);
        let Parts {
            paths, ids, trace, ..
        } = &mut self.parts;
        if outcome == PathsOutcome::Reverted {
            let path = paths.active();
            self.packets.recovery.activate_path(path.key());
            trace.destination(now, old, ids.destination());
            trace.path(now, path, PathState::MigrationAbandoned);
            let peer = path.tuple().peer;
            self.events.push_back(Event::PathChanged { peer });
        }
        self.report_failed_move();
        self.close_removed(now);
        let postponed = self.parts.paths.moves().take_due(now);
        if let Some(path) = postponed
            && self.move_in_time(now, &path).is_err()
        {
            // A PING at least tests whether the path in use still works.
            self.packets.recovery.request_ping(SpaceId::Application);
        }
        outcome == PathsOutcome::NoneLeft
    }

    fn report_failed_move(&mut self) {
        if self.parts.paths.take_failed_move() {
            self.events.push_back(Event::MigrationFailed);
        }
    }

    fn close_removed(&mut self, now: Time) {
        let recovery = &mut self.packets.recovery;
        self.parts.release_removed(now, recovery);
    }
}
