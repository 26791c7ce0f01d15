//! The routes of a connection: one for each path, the active one among them.

use courser_base::Time;

use super::features::Experience;
use super::route::{Route, RouteId};
use crate::config::TransportConfig;

/// The routes of all paths.
#[derive(Debug)]
pub(super) struct Routes {
    /// Never empty: the active route cannot be closed.
    table: Vec<Route>,
    active: usize,
    next_id: RouteId,
    /// Largest datagram that the peer accepts.
    peer_limit: u16,
}

impl Routes {
    /// Creates a table with one route, which is active.
    pub(super) fn new(now: Time, config: &TransportConfig, experience: &Experience) -> Self {
        Self {
            table: vec![Route::new(now, config, experience, 0)],
            active: 0,
            next_id: 1,
            peer_limit: u16::MAX,
        }
    }

    /// The route of the path in use.
    #[inline]
    pub(super) fn active(&self) -> &Route {
        &self.table[self.active]
    }

    /// The route of the path in use.
    #[inline]
    pub(super) fn active_mut(&mut self) -> &mut Route {
        &mut self.table[self.active]
    }

    /// The route with this ID; `None` once it is closed.
    pub(super) fn get_mut(&mut self, id: RouteId) -> Option<&mut Route> {
        if self.active().id == id {
            return Some(self.active_mut());
        }
        self.table.iter_mut().find(|route| route.id == id)
    }

    /// Bytes in flight on all routes.
    #[cfg(test)]
    pub(super) fn bytes_in_flight(&self) -> u64 {
        self.table.iter().map(|route| route.bytes_in_flight).sum()
    }

    /// Opens a route for a new path.
    pub(super) fn open(
        &mut self,
        now: Time,
        config: &TransportConfig,
        experience: &Experience,
    ) -> RouteId {
        let id = self.next_id;
        self.next_id += 1;
        let mut route = Route::new(now, config, experience, id);
        route.set_peer_limit(self.peer_limit);
        self.table.push(route);
        id
    }

    /// Makes a route the active one.
    pub(super) fn activate(&mut self, id: RouteId) {
        if let Some(index) = self.table.iter().position(|route| route.id == id) {
            self.active = index;
        }
    }

    /// Forgets a route that is not active. Packets sent on it keep its ID.
    pub(super) fn close(&mut self, id: RouteId) {
        let Some(index) = self.table.iter().position(|route| route.id == id) else {
            return;
        };
        debug_assert_ne!(index, self.active, "the active route stays");
        if index != self.active {
            self.table.remove(index);
            self.active -= usize::from(self.active > index);
        }
    }

    /// Frees all but what describes the active route.
    pub(super) fn give_back(&mut self) {
        let mut active = self.table.swap_remove(self.active);
        active.give_back();
        (self.table, self.active) = (vec![active], 0);
    }

    /// Frees the room for packets that are not in flight.
    pub(super) fn shrink(&mut self) {
        for route in &mut self.table {
            route.delivery.shrink();
        }
    }

    /// Sets the size of the largest datagram that the peer accepts, on every route.
    pub(super) fn set_peer_limit(&mut self, size: u16) {
        self.peer_limit = size;
        self.table
            .iter_mut()
            .for_each(|route| route.set_peer_limit(size));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes() -> (Routes, TransportConfig) {
        let config = TransportConfig::default();
        (
            Routes::new(Time::ZERO, &config, &Experience::default()),
            config,
        )
    }

    #[test]
    fn closing_a_route_keeps_the_active_one() {
        let (mut routes, config) = routes();
        let [second, third] =
            [0; 2].map(|_| routes.open(Time::ZERO, &config, &Experience::default()));
        routes.activate(third);
        routes.close(second);
        assert_eq!(routes.active().id, third);
        assert!(routes.get_mut(second).is_none());
        routes.activate(0);
        assert_eq!(routes.active().id, 0);
    }

    #[test]
    fn a_route_that_opens_later_obeys_the_limit_of_the_peer() {
        let (mut routes, config) = routes();
        routes.set_peer_limit(1200);
        let id = routes.open(Time::ZERO, &config, &Experience::default());
        assert_eq!(routes.get_mut(id).map(|route| route.mtu()), Some(1200));
    }

    #[test]
    fn an_id_is_never_used_again() {
        let (mut routes, config) = routes();
        let first = routes.open(Time::ZERO, &config, &Experience::default());
        routes.close(first);
        assert_ne!(
            routes.open(Time::ZERO, &config, &Experience::default()),
            first
        );
    }
}
