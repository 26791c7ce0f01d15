//! Steps and checks that many scenarios use.

use std::time::Duration;

use courser_base::Time;
use courser_sim::host::Host;
use courser_sim::link::{Dropped, LinkSpec, LinkStats};
use courser_sim::world::LinkId;
use courser_transport::{ConnectionError, ConnectionHandle, Event, KeyUpdateBlocked};

use super::Scene;

/// Parses one direction of a link.
fn parsed(spec: &str) -> LinkSpec {
    match spec.parse() {
        Ok(spec) => spec,
        Err(error) => panic!("link '{spec}': {error}"),
    }
}

impl Scene {
    /// Returns the counters of the link from client to server.
    pub fn forward(&self) -> LinkStats {
        self.world.link(self.link.forward).stats()
    }

    /// Returns the counters of the link from server to client.
    pub fn back(&self) -> LinkStats {
        self.world.link(self.link.back).stats()
    }

    /// Returns the drops of both links together, as `reason` counts them.
    pub fn dropped(&self, reason: impl Fn(&Dropped) -> u64) -> u64 {
        reason(&self.forward().dropped) + reason(&self.back().dropped)
    }

    /// Replaces the link to the server from now on.
    pub fn set_forward(&mut self, spec: &str) {
        self.set_link(self.link.forward, &parsed(spec));
    }

    /// Replaces the link to the client from now on.
    pub fn set_back(&mut self, spec: &str) {
        self.set_link(self.link.back, &parsed(spec));
    }

    /// Replaces both directions from now on.
    pub fn set_links(&mut self, spec: &str) {
        self.set_forward(spec);
        self.set_back(spec);
    }

    fn set_link(&mut self, id: LinkId, spec: &LinkSpec) {
        let now = self.world.now();
        self.world.change_link(id, |link| link.set_spec(now, spec));
    }

    /// Loses the next `count` datagrams to the server. `spec` has the other effects of the link.
    pub fn lose_forward(&mut self, count: u64, spec: &str) {
        let mut spec = parsed(spec);
        let first = self.forward().packets_in + 1;
        spec.drop.add(first..=first + count - 1);
        self.set_link(self.link.forward, &spec);
    }

    /// Loses the next `count` datagrams to the client. `spec` has the other effects of the link.
    pub fn lose_back(&mut self, count: u64, spec: &str) {
        let mut spec = parsed(spec);
        let first = self.back().packets_in + 1;
        spec.drop.add(first..=first + count - 1);
        self.set_link(self.link.back, &spec);
    }

    /// Returns the client's first connection.
    pub fn client_handle(&self) -> ConnectionHandle {
        first(self.client())
    }

    /// Returns the server's first connection.
    pub fn server_handle(&self) -> ConnectionHandle {
        first(self.server())
    }

    /// Closes the connection at the client.
    pub fn close_client(&mut self, code: u64) {
        let (now, handle) = (self.world.now(), self.client_handle());
        self.client_mut()
            .act(now, |_, context| context.close(handle, code, b"client"));
    }

    /// Closes the connection at the server.
    pub fn close_server(&mut self, code: u64) {
        let (now, handle) = (self.world.now(), self.server_handle());
        self.server_mut()
            .act(now, |_, context| context.close(handle, code, b"server"));
    }

    /// Updates the client's keys if the rules allow it.
    pub fn update_client_keys(&mut self) -> Result<(), KeyUpdateBlocked> {
        let (now, handle) = (self.world.now(), self.client_handle());
        update_keys(self.client_mut(), now, handle)
    }

    /// Updates the server's keys if the rules allow it.
    pub fn update_server_keys(&mut self) -> Result<(), KeyUpdateBlocked> {
        let (now, handle) = (self.world.now(), self.server_handle());
        update_keys(self.server_mut(), now, handle)
    }

    /// Returns the time and reason of the end of the client's connection.
    pub fn end(&self) -> Option<(Time, ConnectionError)> {
        end(self.client())
    }

    /// Returns the time and reason of the end of the server's connection.
    pub fn server_end(&self) -> Option<(Time, ConnectionError)> {
        end(self.server())
    }

    /// Runs until the client's application has read this number of streams to their ends.
    pub fn finish(&mut self, limit: Duration, streams: u64) -> Duration {
        self.run_until(limit, "transfer", |scene| {
            scene.counters().streams == streams
        })
    }

    /// Asserts that every received byte was correct and no connection failed.
    pub fn assert_clean(&self) {
        for (who, counters) in [
            ("client", self.counters()),
            ("server", self.server_counters()),
        ] {
            assert_eq!(counters.mismatch, None, "{who}");
            assert_eq!(counters.failures, [""; 0], "{who}");
        }
    }
}

fn first(host: &Host) -> ConnectionHandle {
    *host
        .connections()
        .first()
        .expect("the host has a connection")
}

fn update_keys(
    host: &mut Host,
    now: Time,
    handle: ConnectionHandle,
) -> Result<(), KeyUpdateBlocked> {
    host.act(now, |_, context| {
        let connection = context.connection(handle).expect("the connection exists");
        connection.initiate_key_update(now)
    })
}

fn end(host: &Host) -> Option<(Time, ConnectionError)> {
    host.log().iter().find_map(|(at, _, event)| match event {
        Event::Lost(error) => Some((*at, error.clone())),
        _ => None,
    })
}
