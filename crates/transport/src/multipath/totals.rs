//! Counters of all paths of a connection together.

use courser_wire::PathId;

use super::lane::Lane;
use super::{Multipath, PathTotals};
use crate::build::transmit::Transmit;
use crate::traffic::PathTraffic;

impl Multipath {
    /// Adds the counters of all paths that are not at hand, and of those that were closed.
    pub(crate) fn add_others(&self, totals: &mut PathTotals) {
        if let Some(past) = &self.past {
            totals.recovery += past.totals.recovery;
            totals.frames_sent += past.totals.frames_sent;
            totals.arrivals += past.totals.arrivals;
        }
        for lane in &self.lanes {
            totals.add(lane);
        }
    }

    /// Counts a datagram that arrived on the path at hand.
    pub(crate) fn on_received(&mut self, len: usize) {
        if let Some(control) = self.control_mut(self.current) {
            control.traffic.on_received(len);
        }
    }

    /// Counts a batch that is sent on the path at hand.
    pub(crate) fn on_sent(&mut self, batch: &Transmit) {
        if let Some(control) = self.control_mut(self.current) {
            control.traffic.on_sent(batch);
        }
    }

    /// Returns what a path has carried, if the connection has carried `all`. To the first path belongs what no other one has
    /// carried: it began before there were several.
    pub(crate) fn traffic_of(&self, id: PathId, all: PathTraffic) -> PathTraffic {
        if id != PathId::ZERO {
            let control = self.control(id);
            return control.map_or_else(PathTraffic::default, |control| control.traffic);
        }
        let past = self.past.as_ref();
        let mut others = past.map_or_else(PathTraffic::default, |past| past.traffic);
        let open = self.controls.iter().filter(|it| it.id != PathId::ZERO);
        open.for_each(|control| others += control.traffic);
        all.without(&others)
    }

    /// Keeps the traffic of a path that is forgotten.
    pub(super) fn keep_traffic(&mut self, id: PathId) {
        if id == PathId::ZERO {
            return;
        }
        if let Some(control) = self.control(id) {
            let traffic = control.traffic;
            self.past.get_or_insert_default().traffic += traffic;
        }
    }

    /// Keeps the counters of a path that is forgotten.
    pub(super) fn keep_totals(&mut self, lane: &Lane) {
        self.past.get_or_insert_default().totals.add(lane);
    }
}
