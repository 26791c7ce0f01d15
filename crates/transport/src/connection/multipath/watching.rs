//! Timers of several paths, and what follows when one does not answer. RFC 10069 §3.4, §5.7.

use std::time::Duration;

use courser_base::Time;
use courser_wire::{PathId, TransportErrorCode};

use crate::connection::{Connection, Event};
use crate::multipath::{
    ATTEMPT, BETWEEN_CHALLENGES, Health, HealthChange, Lane, OpenPathError, Phase,
};
use crate::path::{NewPath, Place};
use crate::recovery::LossRecovery;

impl Connection {
    /// Returns the largest probe timeout of all paths (RFC 10069 §2.5, §2.6).
    pub(in crate::connection) fn longest_pto(&self) -> Duration {
        let lanes = self.parts.multipath.iter().flat_map(|it| it.lanes());
        let others = lanes.map(|lane| lane.recovery.pto());
        others.fold(self.packets.recovery.pto(), Duration::max)
    }

    /// Returns true if no path answers.
    pub(in crate::connection) fn are_all_paths_silent(&self) -> bool {
        let multipath = self.parts.multipath.iter();
        let mut others = multipath.flat_map(|it| {
            let lanes = it.lanes().iter();
            lanes.filter(|lane| !it.is_closing(lane.id))
        });
        self.packets.recovery.is_silent() && others.all(|lane| lane.recovery.is_silent())
    }

    /// Returns the time of the first timer of the paths that are not at hand.
    pub(in crate::connection) fn next_timeout_of_paths(&self) -> Option<Time> {
        let multipath = self.parts.multipath.as_ref()?;
        let lanes = multipath.lanes().iter();
        let of_lanes = lanes.filter(|lane| !multipath.is_closing(lane.id));
        let of_lanes = of_lanes.filter_map(Lane::next_timeout).min();
        let frees = multipath.controls().iter().filter_map(|it| it.free_at);
        [of_lanes, frees.min()]
            .into_iter()
            .fold(multipath.next_timeout(), Time::earliest)
    }

    /// Runs the timers of the paths that are not at hand, and frees closed ones.
    pub(in crate::connection) fn run_timers_of_paths(&mut self, now: Time) {
        let Some(multipath) = &mut self.parts.multipath else {
            return;
        };
        let closed = multipath.controls().iter();
        let closed: Vec<PathId> = closed
            .filter(|it| it.free_at.is_some_and(|at| at <= now))
            .map(|it| it.id)
            .collect();
        for path in closed {
            multipath.remove(now, path);
        }
        multipath.raise_limit(now);
        let due: Vec<PathId> = multipath
            .lanes()
            .iter()
            .filter(|lane| lane.next_timeout().is_some_and(|at| at <= now))
            .filter(|lane| !multipath.is_closing(lane.id))
            .map(|lane| lane.id)
            .collect();
        for path in due {
            self.run_timers_of_path(now, path);
        }
    }

    fn run_timers_of_path(&mut self, now: Time, path: PathId) {
        if !self.parts.go_to(path, &mut self.packets.recovery) {
            return;
        }
        self.parts.acknowledger.on_timeout(now);
        let has_failed = self.on_path_timeout(now);
        if self.packets.recovery.begin_search(now) {
            self.want_interface_mtu();
        }
        let is_too_small = self.run_loss_timer(now);
        self.go_home();
        if has_failed || is_too_small {
            self.give_up_path(now, path);
        }
    }

    /// Compares which paths answer with what the ends have agreed on, after each datagram and timer: silent paths are probed and
    /// finally given up, and their statuses follow.
    #[inline]
    pub(in crate::connection) fn watch_paths(&mut self, now: Time) {
        if self.parts.multipath.is_some() {
            self.watch_several_paths(now);
        }
    }

    fn watch_several_paths(&mut self, now: Time) {
        let Some(multipath) = &mut self.parts.multipath else {
            return;
        };
        if multipath.take_second_attempt(now) {
            self.events.push_back(Event::MayOpenPath);
        }
        self.note_health(now);
        self.leave_silent_home();
        self.probe_silent_paths(now);
        self.give_up_silent_paths(now);
        self.retry_paths(now);
    }

    fn note_health(&mut self, now: Time) {
        let Some(multipath) = &mut self.parts.multipath else {
            return;
        };
        let health = |id, recovery: &LossRecovery| Health {
            id,
            is_silent: recovery.unanswered() > 0,
            pto: recovery.pto(),
        };
        let mut all = [None; MAX_PATHS];
        let at_hand = health(multipath.current(), &self.packets.recovery);
        let lanes = multipath.lanes().iter();
        let lanes = lanes.map(|lane| health(lane.id, &lane.recovery));
        for (place, health) in all.iter_mut().zip(std::iter::once(at_hand).chain(lanes)) {
            *place = Some(health);
        }
        let mut longest = Duration::ZERO;
        for health in all.iter().flatten() {
            longest = longest.max(health.pto);
            match multipath.on_health(now, health) {
                None => {}
                Some(HealthChange::Suspect) => {
                    self.events.push_back(Event::PathSuspect(health.id));
                }
                Some(HealthChange::Answers) => {
                    self.events.push_back(Event::PathRecovered(health.id));
                }
            }
        }
        multipath.adjust_statuses(now, longest);
    }

    /// Rests on a path that answers, if the one on which the connection rests does not: keep-alives are sent there.
    fn leave_silent_home(&mut self) {
        let Some(multipath) = &mut self.parts.multipath else {
            return;
        };
        let home = multipath.home();
        if !multipath.answers(home)
            && let Some(other) = multipath.other_that_answers(home)
        {
            multipath.set_home(other);
            self.go_home();
            let peer = self.parts.paths.active().tuple().peer;
            self.events.push_back(Event::PathChanged { peer });
        }
    }

    fn probe_silent_paths(&mut self, now: Time) {
        while let Some(path) = self
            .parts
            .multipath
            .as_mut()
            .and_then(|it| it.take_probe(now))
        {
            if self.parts.go_to(path, &mut self.packets.recovery) {
                self.packets.recovery.probe_path();
            }
        }
        self.go_home();
    }

    fn give_up_silent_paths(&mut self, now: Time) {
        let next = |connection: &Self| connection.parts.multipath.as_ref()?.next_to_give_up(now);
        while let Some(path) = next(self) {
            self.give_up_path(now, path);
        }
    }

    /// Gives up a path that does not work. A client tries it again.
    fn give_up_path(&mut self, now: Time, path: PathId) {
        let code = TransportErrorCode::PATH_UNSTABLE_OR_POOR;
        let multipath = self.parts.multipath.as_mut();
        if multipath.is_some_and(|it| it.abandon(path, code.value())) {
            self.on_path_given_up(now, path);
        }
    }

    /// Continues without a path that one end has given up, and tries it again if it did not work.
    pub(in crate::connection) fn on_path_given_up(&mut self, now: Time, path: PathId) {
        let is_client = self.side().is_client();
        let place = self.place_of(path);
        let Some(multipath) = &mut self.parts.multipath else {
            return;
        };
        let code = multipath.control(path).and_then(|control| control.code());
        let is_poor = code == Some(TransportErrorCode::PATH_UNSTABLE_OR_POOR.value());
        let was_open = multipath
            .control(path)
            .is_some_and(|control| control.was_open);
        if let Some(place) = place
            && is_client
            && is_poor
            && was_open
        {
            multipath.returning.on_given_up(now, place);
        }
        self.on_path_abandoned(now, path);
    }

    fn place_of(&self, path: PathId) -> Option<Place> {
        let multipath = self.parts.multipath.as_ref()?;
        if multipath.current() == path {
            return Some(self.parts.paths.active().place());
        }
        let lane = multipath.lanes().iter().find(|lane| lane.id == path);
        lane.map(|lane| lane.paths.active().place())
    }

    /// Opens the paths again that were given up, when it is their time.
    fn retry_paths(&mut self, now: Time) {
        let due = |connection: &Self| connection.parts.multipath.as_ref()?.returning.due(now);
        while let Some(place) = due(self) {
            let path = NewPath {
                local: place.tuple.local,
                socket: place.socket,
                is_same_address: false,
                is_at_once: false,
            };
            let opened = self.open_further_path(now, &path, |path, _, _| {
                path.begin_patient_validation(now, BETWEEN_CHALLENGES, ATTEMPT);
            });
            let Some(multipath) = &mut self.parts.multipath else {
                return;
            };
            match opened {
                Ok(id) => multipath.returning.on_attempt(&place, id),
                Err(
                    OpenPathError::NoConnectionId
                    | OpenPathError::LimitReached
                    | OpenPathError::TooManyPaths,
                ) => multipath.returning.postpone(now, &place),
                Err(_) => multipath.returning.clear(),
            }
        }
    }

    /// Reports the paths whose addresses were validated since.
    pub(super) fn note_opened_paths(&mut self, now: Time) {
        let Some(multipath) = &mut self.parts.multipath else {
            return;
        };
        let opened = |multipath: &crate::multipath::Multipath| {
            let lanes = multipath.lanes().iter();
            let mut validated = lanes.filter(|lane| lane.paths.active().is_validated());
            let opened = validated.find(|lane| {
                let control = multipath.control(lane.id);
                control.is_some_and(|control| control.phase == Phase::Opening)
            });
            opened.map(|lane| lane.id)
        };
        while let Some(id) = opened(multipath) {
            if let Some(control) = multipath.control_mut(id) {
                (control.phase, control.was_open) = (Phase::Open, true);
            }
            if let Some(lane) = multipath.lane_mut(id) {
                lane.recovery.on_path_opened(now);
            }
            multipath.returning.on_opened(id);
            self.events.push_back(Event::PathOpened(id));
        }
    }
}

const MAX_PATHS: usize = crate::config::MAX_OPEN_PATHS as usize + 1;
