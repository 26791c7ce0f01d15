//! Several paths of one connection: frames, timers, and the choice of the path for the next batch. RFC 10069.

mod choosing;
mod frames;
mod watching;

use std::net::SocketAddr;
use std::time::Duration;

use courser_base::{FourTuple, Time};
use courser_wire::packet::Packet;
use courser_wire::{PathId, TransportErrorCode};

use super::Connection;
use super::event::Event;
use super::life::Ending;
use super::parts::Parts;
use super::received_datagram::ReceivedDatagram;
use super::stats::PathStats;
use crate::acknowledger::ReceivedPackets;
use crate::build::transmit::SocketId;
use crate::cid::{ConnectionIds, ResetToken};
use crate::error::TransportError;
use crate::multipath::{Lane, Multipath, OpenPathError, PathPreference, PathTotals, Phase};
use crate::path::paths::Paths;
use crate::path::{NewPath, Path, Place};
use crate::traffic::PathTraffic;

/// Opens, watches and closes the paths of a connection. Borrowed by [`Connection::several_paths`].
#[derive(Debug)]
pub struct MultipathPaths<'a> {
    connection: &'a mut Connection,
}

/// The state of one path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathInfo {
    /// The ID of the path.
    pub id: PathId,
    /// The addresses of both ends. The own one is unknown if the system chooses it.
    pub addresses: FourTuple,
    /// The socket from which it sends.
    pub socket: SocketId,
    /// True once the path is validated.
    pub is_validated: bool,
    /// True once one end has given it up.
    pub is_closing: bool,
    /// True if packets in flight were not acknowledged in time: other paths are used meanwhile.
    pub is_suspect: bool,
    /// The use that this end has announced.
    pub own_status: PathPreference,
    /// The use that the peer has announced.
    pub peer_status: PathPreference,
    /// Round-trip time, window and more.
    pub stats: PathStats,
    /// What the path has carried.
    pub traffic: PathTraffic,
    /// Packets sent in all packet number spaces.
    pub packets_sent: u64,
    /// Packets sent that were declared lost.
    pub packets_lost: u64,
}

impl MultipathPaths<'_> {
    /// Opens a path to the address of the server. It carries data once it is validated:
    /// [`Event::PathOpened`] or [`Event::PathClosed`] follows.
    ///
    /// # Errors
    ///
    /// [`OpenPathError`] if no path can be opened now.
    pub fn open(&mut self, now: Time, path: &NewPath) -> Result<PathId, OpenPathError> {
        let opened = self
            .connection
            .open_further_path(now, path, |path, paths, pto| {
                paths.begin_validation_of(now, path, pto);
            });
        if let (Some(multipath), Ok(_)) = (&mut self.connection.parts.multipath, opened) {
            let tuple = FourTuple {
                local: path.local,
                ..self.connection.parts.paths.active().tuple()
            };
            let socket = path.socket;
            multipath.returning.forget(&Place { tuple, socket });
        }
        opened
    }

    /// Announces to the peer how the path should be used, and uses it so. Returns false if it is not open.
    pub fn set_status(&mut self, path: PathId, status: PathPreference) -> bool {
        let multipath = self.connection.parts.multipath.as_mut();
        let control = multipath.and_then(|multipath| multipath.control_mut(path));
        let control = control.filter(|control| control.phase != Phase::Closing);
        control.map(|control| control.set_status(status)).is_some()
    }

    /// Gives a path up. What was in flight on it is sent on other paths. Returns false if it is the last one, or not open.
    pub fn close(&mut self, now: Time, path: PathId, code: TransportErrorCode) -> bool {
        self.connection.close_further_path(now, path, code)
    }

    /// Returns the state of each path, in the order of their IDs.
    pub fn list(&self) -> Vec<PathInfo> {
        self.connection.list_paths()
    }
}

impl Connection {
    /// Returns an interface to open and close paths.
    pub fn several_paths(&mut self) -> MultipathPaths<'_> {
        MultipathPaths { connection: self }
    }

    /// Begins to use several paths if both ends have offered that (RFC 10069 §2.1).
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION for a peer that has offered it and uses no connection IDs.
    pub(super) fn begin_multipath(&mut self) -> Result<(), TransportError> {
        let Parts { handshake, ids, .. } = &self.parts;
        let Some(parameters) = handshake.peer_parameters() else {
            return Ok(());
        };
        let own = self.packets.recovery.initial_max_path_id();
        let (Some(own), Some(peer)) = (own, parameters.initial_max_path_id) else {
            return Ok(());
        };
        if ids.destination().is_empty() {
            let reason = "initial_max_path_id with an empty connection ID";
            return Err(TransportError::protocol_violation(reason));
        }
        if handshake.local_id().is_empty() {
            return Ok(());
        }
        let limit = parameters.active_connection_id_limit;
        let scheduler = self.packets.recovery.path_scheduler();
        self.parts.multipath = Some(Box::new(Multipath::new(own, peer, limit, scheduler)));
        self.parts.ids.name_path(PathId::ZERO);
        self.parts.acknowledger.name_path(PathId::ZERO);
        Ok(())
    }

    /// Returns true if a token belongs to a path that is not at hand.
    #[inline]
    pub(super) fn is_reset_by_other_path(&self, token: &ResetToken) -> bool {
        let multipath = self.parts.multipath.as_ref();
        multipath.is_some_and(|multipath| multipath.is_reset_token(token))
    }

    /// Takes the path at hand that is there while the connection rests.
    fn go_home(&mut self) {
        if let Some(home) = self.parts.multipath.as_ref().map(|it| it.home()) {
            self.parts.go_to(home, &mut self.packets.recovery);
        }
    }

    /// Takes the path of a datagram at hand whose first packet is a 1-RTT packet. Returns false if it is to be dropped.
    #[inline(never)]
    pub(super) fn enter_path_of(&mut self, datagram: &ReceivedDatagram, first: &Packet) -> bool {
        let owner = match &self.parts.multipath {
            Some(_) if self.parts.ids.has_issued(&first.destination) => None,
            Some(multipath) => multipath.owner_of(&first.destination),
            None => None,
        };
        owner.is_none_or(|path| {
            self.parts.go_to(path, &mut self.packets.recovery) || self.accept_path(datagram, path)
        })
    }

    /// Ends what [`enter_path_of`](Self::enter_path_of) has begun.
    pub(super) fn leave_path(&mut self, now: Time) {
        self.go_home();
        self.watch_paths(now);
    }

    /// Creates the state of a path on which the first packet of the client has arrived, and takes it at hand. Returns false
    /// if the packet is to be dropped.
    fn accept_path(&mut self, datagram: &ReceivedDatagram, path: PathId) -> bool {
        // A server opens no paths (RFC 10069 §3), so its packets here are invalid.
        if self.side().is_client() || !self.life.is_confirmed() {
            return false;
        }
        let Some(multipath) = &mut self.parts.multipath else {
            return false;
        };
        if multipath.opening() >= MAX_OPENING {
            return false;
        }
        let Ok((id, ids)) = multipath.take_unused(path) else {
            return false;
        };
        let mut network_path = Path::new(datagram.place, 0);
        let pto = self.packets.recovery.pto();
        self.parts
            .paths
            .begin_validation_of(datagram.now, &mut network_path, pto);
        self.add_lane(datagram.now, id, ids, network_path);
        self.parts.go_to(id, &mut self.packets.recovery)
    }

    fn add_lane(&mut self, now: Time, id: PathId, ids: ConnectionIds, path: Path) {
        let recovery = self.packets.recovery.of_path(now, &mut self.parts.rng);
        let lane = Lane {
            id,
            recovery,
            paths: self.parts.paths.of_path(path),
            ids,
            received: ReceivedPackets::default(),
        };
        if let Some(multipath) = &mut self.parts.multipath {
            multipath.add(lane, Phase::Opening);
        }
    }

    /// Adds a path to the address of the server that is in use, as [`Connection::open_path_to`] does.
    fn open_further_path(
        &mut self,
        now: Time,
        new: &NewPath,
        begin: impl FnOnce(&mut Path, &Paths, Duration),
    ) -> Result<PathId, OpenPathError> {
        let peer = self.parts.paths.active().tuple().peer;
        self.open_path_to(now, new, peer, begin)
    }

    /// Adds a path to an address of the server, whose validation `begin` begins. Its other arguments are the paths at hand and
    /// their probe timeout.
    pub(super) fn open_path_to(
        &mut self,
        now: Time,
        new: &NewPath,
        peer: SocketAddr,
        begin: impl FnOnce(&mut Path, &Paths, Duration),
    ) -> Result<PathId, OpenPathError> {
        if self.side().is_server() {
            return Err(OpenPathError::NotClient);
        }
        if !self.life.is_confirmed() {
            return Err(OpenPathError::NotConfirmed);
        }
        let parameters = self.parts.handshake.peer_parameters();
        let is_forbidden = parameters.is_some_and(|it| it.disable_active_migration);
        let is_at_hand = self.parts.paths.active().tuple().peer == peer;
        if is_forbidden && is_at_hand && self.parts.paths.is_at_first_peer() {
            return Err(OpenPathError::Forbidden);
        }
        let Some(multipath) = &mut self.parts.multipath else {
            return Err(OpenPathError::NotNegotiated);
        };
        let (id, ids) = multipath.take_next(now)?;
        let place = Place {
            tuple: FourTuple {
                peer,
                local: new.local,
            },
            socket: new.socket,
        };
        let mut path = Path::new(place, 0);
        path.exempt();
        begin(&mut path, &self.parts.paths, self.packets.recovery.pto());
        self.add_lane(now, id, ids, path);
        Ok(id)
    }

    fn close_further_path(&mut self, now: Time, path: PathId, code: TransportErrorCode) -> bool {
        let Some(multipath) = &mut self.parts.multipath else {
            return false;
        };
        let mut others = multipath.controls().iter();
        let has_other = others.any(|it| it.id != path && it.phase == Phase::Open);
        let is_open = multipath.control(path).is_some();
        if !has_other || !is_open || !multipath.abandon(path, code.value()) {
            return false;
        }
        self.on_path_abandoned(now, path);
        true
    }

    /// Sends what was in flight on a path that one end has given up on other paths, and keeps its state for late
    /// packets (RFC 10069 §3.4).
    pub(super) fn on_path_abandoned(&mut self, now: Time, path: PathId) {
        let returns_to = self.parts.path_at_hand();
        let period = self.longest_pto().saturating_mul(3);
        let Some(multipath) = &mut self.parts.multipath else {
            return;
        };
        let mut left = multipath.controls().iter();
        let left = left.find(|it| it.id != path && it.phase == Phase::Open);
        let left = left.map(|control| control.id);
        let code = multipath.control_mut(path).map(|control| {
            control.free_at = Some(now + period);
            control.code()
        });
        match left {
            Some(left) if multipath.home() == path => multipath.set_home(left),
            Some(_) => {}
            None => {
                let error = TransportError::new(
                    TransportErrorCode::NO_ERROR,
                    "the peer has given up the only path",
                );
                return self.end(now, Ending::from(error));
            }
        }
        if self.parts.go_to(path, &mut self.packets.recovery) {
            self.packets.recovery.give_up(&mut self.parts);
            self.parts.go_to(returns_to, &mut self.packets.recovery);
        }
        let code = TransportErrorCode::from_value(code.flatten().unwrap_or(0));
        self.on_direct_path_closed(now, path);
        let multipath = self.parts.multipath.as_mut();
        // The application has not asked for an attempt to open a path again.
        if !multipath.is_some_and(|it| it.returning.on_failed(now, path)) {
            self.events.push_back(Event::PathClosed { path, code });
        }
    }

    /// Returns the counters of all paths together.
    pub(in crate::connection) fn totals_of_paths(&self) -> PathTotals {
        let mut totals = PathTotals {
            recovery: *self.packets.recovery.stats(),
            frames_sent: self.packets.recovery.frames_sent(),
            arrivals: self.parts.acknowledger.arrivals(),
        };
        if let Some(multipath) = &self.parts.multipath {
            multipath.add_others(&mut totals);
        }
        totals
    }

    fn list_paths(&self) -> Vec<PathInfo> {
        let Some(multipath) = &self.parts.multipath else {
            return Vec::new();
        };
        let all = PathTraffic::of_all(&self.counters.udp_sent, &self.counters.udp_received);
        let info = |id, recovery: &crate::recovery::LossRecovery, path: &Path| {
            let control = multipath.control(id)?;
            Some(PathInfo {
                id,
                addresses: path.tuple(),
                socket: path.place().socket,
                is_validated: path.is_validated(),
                is_closing: control.phase == Phase::Closing,
                is_suspect: control.is_silent(),
                own_status: control.own_status(),
                peer_status: control.peer_status(),
                stats: recovery.path().stats(),
                traffic: multipath.traffic_of(id, all),
                packets_sent: recovery.stats().packets_sent,
                packets_lost: recovery.stats().packets_lost,
            })
        };
        let current = multipath.current();
        let at_hand = info(current, &self.packets.recovery, self.parts.paths.active());
        let lanes = multipath.lanes().iter();
        let lanes = lanes.filter_map(|lane| info(lane.id, &lane.recovery, lane.paths.active()));
        let mut all: Vec<PathInfo> = at_hand.into_iter().chain(lanes).collect();
        all.sort_by_key(|info| info.id);
        all
    }
}

/// Paths that a server validates at a time (limit K278): each costs memory, and challenges to an address that may be forged.
const MAX_OPENING: usize = 4;
