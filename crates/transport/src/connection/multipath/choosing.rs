//! The choice of the path for the next batch.

use std::time::Duration;

use courser_base::Time;
use courser_recovery::{PathChoice, PathDemand, PathView};
use courser_wire::PathId;

use crate::build::transmit::{Transmit, TransmitBuffer};
use crate::config::MAX_OPEN_PATHS;
use crate::connection::Connection;
use crate::multipath::{Control, Lane, Multipath, Phase};
use crate::path::paths::Paths;
use crate::recovery::LossRecovery;
use crate::space::SpaceId;

/// The frames that a path has to send itself, whatever the scheduler chooses for data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Due {
    Nothing,
    /// Challenges and responses, because it is not validated.
    Probe,
    /// Acknowledgements, challenges, and probes of a timeout.
    Own,
}

/// The state of a path on which the choice depends.
#[derive(Clone, Copy, Debug)]
struct View {
    id: PathId,
    due: Due,
    /// True if the path may carry data, while no better one may.
    is_open: bool,
    is_silent: bool,
    is_available: bool,
    path: PathView,
}

/// The views of all paths.
#[derive(Debug)]
struct Views {
    all: [Option<View>; MAX_PATHS],
}

/// The paths among which the scheduler chooses.
#[derive(Debug)]
struct Choices {
    ids: [PathId; MAX_PATHS],
    views: [PathView; MAX_PATHS],
    /// True for those that permit nothing now.
    are_refused: [bool; MAX_PATHS],
    count: usize,
}

impl Connection {
    /// Builds the next batch on the first path that has something to send.
    pub(in crate::connection) fn transmit_on_paths(
        &mut self,
        now: Time,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        self.note_opened_paths(now);
        let demand = self.demand_of_paths();
        let views = self.views(demand.bytes);
        let transmit = match self.transmit_due(now, &views, buffer) {
            None if self.life.is_open() => self.transmit_data(now, &views, &demand, buffer),
            transmit => transmit,
        };
        if let (Some(transmit), Some(multipath)) = (&transmit, &mut self.parts.multipath) {
            multipath.on_sent(transmit);
        }
        self.go_home();
        transmit
    }

    /// Builds what a path has to send itself.
    fn transmit_due(
        &mut self,
        now: Time,
        views: &Views,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        for view in views.iter().filter(|view| view.due != Due::Nothing) {
            if !self.parts.go_to(view.id, &mut self.packets.recovery) {
                continue;
            }
            let index = self.parts.paths.active_index();
            let is_probing = self.parts.paths.active().has_frames_to_send();
            let transmit = if is_probing {
                self.refresh_observations(now);
                self.transmit_path_probe(now, index, buffer)
            } else if view.due == Due::Own {
                self.restrict_path(true);
                let transmit = self.transmit_open(now, buffer);
                self.restrict_path(false);
                transmit
            } else {
                None
            };
            if transmit.is_some() || !self.life.is_open() {
                return transmit;
            }
        }
        None
    }

    /// Builds a batch of data on the path that the scheduler chooses. Without data, each path is asked for what it may send by
    /// itself, such as larger datagrams to test.
    fn transmit_data(
        &mut self,
        now: Time,
        views: &Views,
        demand: &PathDemand,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        self.go_home();
        let mut choices = views.choices();
        let has_data = self.has_frames_to_send() || self.copy_to_faster_path(now, &choices);
        if !has_data
            && self.parts.streams.backlog().unsent == 0
            && let Some(multipath) = &mut self.parts.multipath
        {
            multipath.idle_at = self.parts.streams.counters().data_sent;
        }
        while let Some(index) = self.choose_path(now, &choices, demand, has_data) {
            if self
                .parts
                .go_to(choices.ids[index], &mut self.packets.recovery)
            {
                let transmit = self.transmit_open(now, buffer);
                if transmit.is_some() || !self.life.is_open() {
                    return transmit;
                }
            }
            // The scheduler sees that the path permits nothing now, and until when the pacer does not.
            let paced_until = self.packets.recovery.paced_until();
            choices.refuse(index, paced_until);
        }
        None
    }

    /// Queues data again that is in flight on slow paths, if a faster one has nothing to send: the end of a transfer, or the
    /// receive window, waits for it. Returns true if there is any.
    fn copy_to_faster_path(&mut self, now: Time, choices: &Choices) -> bool {
        let views = &choices.views[..choices.count];
        let fastest = views
            .iter()
            .filter(|view| view.is_ready(now))
            .min_by_key(|view| view.rtt);
        let Some(fastest) = fastest else {
            return false;
        };
        let mut is_any = false;
        for (view, id) in views.iter().zip(choices.ids) {
            let is_slow = view.rtt > fastest.rtt * 3 / 2;
            let sent = self.parts.streams.counters().data_sent;
            let multipath = self.parts.multipath.as_ref();
            let budget = multipath.map_or(0, |multipath| multipath.copy_budget(sent));
            if !is_slow || budget == 0 || !self.parts.go_to(id, &mut self.packets.recovery) {
                continue;
            }
            let copied = self.packets.recovery.repeat_within(budget, &mut self.parts);
            if let Some(multipath) = &mut self.parts.multipath {
                multipath.on_copied(copied);
            }
            is_any |= copied > 0;
        }
        self.go_home();
        is_any && self.has_frames_to_send()
    }

    /// Returns the index of the next path to try.
    fn choose_path(
        &mut self,
        now: Time,
        choices: &Choices,
        demand: &PathDemand,
        has_data: bool,
    ) -> Option<usize> {
        if !has_data {
            return choices
                .are_refused
                .iter()
                .take(choices.count)
                .position(|refused| !refused);
        }
        let multipath = self.parts.multipath.as_mut()?;
        let views = &choices.views[..choices.count];
        match multipath.scheduler.choose(now, views, demand) {
            PathChoice::Send(index) if choices.are_refused.get(index) == Some(&false) => {
                (index < choices.count).then_some(index)
            }
            PathChoice::Send(_) | PathChoice::Wait => None,
        }
    }

    fn restrict_path(&mut self, restricts: bool) {
        if let Some(multipath) = &mut self.parts.multipath {
            multipath.restrict(restricts);
        }
    }

    /// Returns the data that waits. A writer that has filled its buffer is expected to send as much again as it has since the
    /// connection was idle: its transfer is more likely long than short.
    fn demand_of_paths(&mut self) -> PathDemand {
        let backlog = self.parts.streams.backlog();
        let idle_at = self.parts.multipath.as_ref().map_or(0, |it| it.idle_at);
        let sent = self
            .parts
            .streams
            .counters()
            .data_sent
            .saturating_sub(idle_at);
        let expected = if backlog.is_limited { sent } else { 0 };
        let datagrams = self.parts.datagrams.waiting_bytes() as u64;
        PathDemand {
            bytes: backlog.unsent + expected + datagrams,
            credit: backlog.credit,
        }
    }

    fn views(&self, bytes: u64) -> Views {
        let mut all = [None; MAX_PATHS];
        let Some(multipath) = &self.parts.multipath else {
            return Views { all };
        };
        let is_ack_due = self.parts.acknowledger.is_due(SpaceId::Application);
        let current = multipath.current();
        let view = |id| {
            let control = multipath.control(id)?;
            match multipath.lanes().iter().find(|lane| lane.id == id) {
                Some(Lane {
                    recovery,
                    paths,
                    received,
                    ..
                }) => Some(view(
                    multipath,
                    control,
                    recovery,
                    paths,
                    received.is_due(),
                    bytes,
                )),
                None if id == current => {
                    let (recovery, paths) = (&self.packets.recovery, &self.parts.paths);
                    Some(view(multipath, control, recovery, paths, is_ack_due, bytes))
                }
                None => None,
            }
        };
        let ids = multipath.controls().iter().map(|control| control.id);
        for (place, id) in all.iter_mut().zip(ids) {
            *place = view(id);
        }
        Views { all }
    }
}

fn view(
    multipath: &Multipath,
    control: &Control,
    recovery: &LossRecovery,
    paths: &Paths,
    is_ack_due: bool,
    bytes: u64,
) -> View {
    let (active, path) = (paths.active(), recovery.path());
    // Acknowledgements for a silent path are better sent on others.
    let is_ack_due =
        is_ack_due && !(control.is_silent() && multipath.other_that_answers(control.id).is_some());
    let has_own = is_ack_due
        || recovery.is_probing(SpaceId::Application)
        || recovery.is_ping_due(SpaceId::Application)
        || active.has_frames_to_send()
        || paths.next_to_probe().is_some();
    let due = match control.phase {
        Phase::Opening if active.has_frames_to_send() => Due::Probe,
        Phase::Open if has_own => Due::Own,
        _ => Due::Nothing,
    };
    let mtu = path.mtu();
    let little = bytes.saturating_add(BESIDE_DATA);
    View {
        id: control.id,
        due,
        is_open: control.phase == Phase::Open,
        is_silent: control.is_silent(),
        is_available: control.is_available(),
        path: PathView {
            id: control.id.value(),
            rtt: path.rtt().smoothed(),
            room: path.congestion_room(),
            window: path.window(),
            is_growing: path.in_slow_start(),
            size: u16::try_from(little).map_or(mtu, |little| little.min(mtu)),
            ready_at: recovery.paced_until().unwrap_or(Time::ZERO),
        },
    }
}

impl Views {
    fn iter(&self) -> impl Iterator<Item = &View> {
        self.all.iter().flatten()
    }

    /// Returns the paths that may carry data: those that answer, and backups only if no other does.
    fn choices(&self) -> Choices {
        let mut choices = Choices {
            ids: [PathId::ZERO; MAX_PATHS],
            views: [NO_VIEW; MAX_PATHS],
            are_refused: [false; MAX_PATHS],
            count: 0,
        };
        let is_best = |view: &View| view.is_open && !view.is_silent && view.is_available;
        let is_good = |view: &View| view.is_open && !view.is_silent;
        let has = |is: fn(&View) -> bool| self.iter().any(is);
        let may_carry: fn(&View) -> bool = if has(is_best) {
            is_best
        } else if has(is_good) {
            is_good
        } else {
            |view| view.is_open
        };
        for view in self.iter().filter(|view| may_carry(view)) {
            choices.ids[choices.count] = view.id;
            choices.views[choices.count] = view.path;
            choices.count += 1;
        }
        choices
    }
}

impl Choices {
    /// Records that a path permits nothing now.
    fn refuse(&mut self, index: usize, paced_until: Option<Time>) {
        self.are_refused[index] = true;
        let view = &mut self.views[index];
        match paced_until {
            Some(at) => view.ready_at = at,
            None => view.room = 0,
        }
    }
}

const MAX_PATHS: usize = MAX_OPEN_PATHS as usize;

/// Bytes of a packet beside its data.
const BESIDE_DATA: u64 = 128;

const NO_VIEW: PathView = PathView {
    id: 0,
    rtt: Duration::ZERO,
    room: 0,
    window: 0,
    is_growing: false,
    size: 0,
    ready_at: Time::ZERO,
};
