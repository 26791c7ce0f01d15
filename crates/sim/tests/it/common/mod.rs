//! The parts that scenarios share: a client and a server on a link, and checks that apply to every
//! scenario.

#![allow(dead_code, reason = "each test binary uses its part")]

pub mod attacker;
pub mod faulty_host;
pub mod faulty_scene;
pub mod forged;
pub mod lab;
pub mod random;
pub mod requests;
pub mod shared;
pub mod slow;
mod steps;
mod watch;

use std::net::SocketAddr;
use std::time::Duration;

use courser_base::Time;
use courser_sim::World;
use courser_sim::apps::{AppCounters, Serve};
use courser_sim::host::{App, Host, HostSpec};
use courser_sim::world::{LinkPair, NodeId};
use courser_transport::{ConnectionStats, Event, RetryPolicy, TransportConfig};

#[allow(unused_imports, reason = "each test binary uses its part")]
pub use courser_sim::replay::for_each_seed;
pub use watch::{Watched, Watcher};

/// Returns the client's address.
pub const CLIENT: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(
    std::net::Ipv4Addr::new(10, 0, 0, 1),
    50_000,
));
/// Returns the server's address.
pub const SERVER: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(
    std::net::Ipv4Addr::new(10, 0, 0, 2),
    4433,
));

/// The settings of a scene.
pub struct Setup {
    /// The link, in the grammar of scenario files and the command line.
    pub link: String,
    pub client: TransportConfig,
    pub server: TransportConfig,
    pub retry: RetryPolicy,
    /// The datagrams to lose, by their number among all datagrams of both hosts, counted from 1.
    pub lost: Vec<u64>,
    /// The datagrams to corrupt, by the same numbers, with the offset of the byte. Past the end it
    /// is the last byte.
    pub damaged: Vec<(u64, usize)>,
}

impl Setup {
    /// Creates settings with this link and defaults for everything else.
    pub fn on(link: &str) -> Self {
        Self {
            link: link.to_owned(),
            client: TransportConfig::default(),
            server: TransportConfig::default(),
            retry: RetryPolicy::Never,
            lost: Vec::new(),
            damaged: Vec::new(),
        }
    }

    /// Changes the settings of both ends.
    pub fn both(mut self, change: impl Fn(&mut TransportConfig)) -> Self {
        change(&mut self.client);
        change(&mut self.server);
        self
    }
}

/// A client and a server in a world. Every datagram of the server is checked against the
/// three-times limit (RFC 9000 §8.1) in every scenario.
pub struct Scene {
    pub world: World,
    pub client: NodeId,
    pub server: NodeId,
    pub link: LinkPair,
}

impl Scene {
    /// Creates a scene with `app` on the client. The server answers its requests.
    pub fn new(seed: u64, setup: Setup, app: impl App) -> Self {
        Self::with(seed, setup, app, Serve::new())
    }

    /// Creates a scene with both applications.
    pub fn with(seed: u64, setup: Setup, app: impl App, serve: impl App) -> Self {
        let mut world = World::new(seed);
        let watcher = Watcher::new(SERVER, setup.lost, setup.damaged);
        let spec = HostSpec::client(CLIENT, world.seed_for("client")).with_transport(setup.client);
        let client = Watched::new(Host::new(spec, app), watcher.clone());
        let client = world.add("client", CLIENT.ip(), client);
        let mut spec = HostSpec::server(SERVER, world.seed_for("server"));
        spec.retry = setup.retry;
        let spec = spec.with_transport(setup.server);
        let server = Watched::new(Host::new(spec, serve), watcher);
        let server = world.add("server", SERVER.ip(), server);
        let link = match setup.link.parse() {
            Ok(link) => link,
            Err(error) => panic!("link '{}': {error}", setup.link),
        };
        let link = world.connect(client, server, &link);
        Self {
            world,
            client,
            server,
            link,
        }
    }

    fn host(&self, id: NodeId) -> &Host {
        let watched: &Watched = self.world.node(id).expect("the node is a watched host");
        &watched.host
    }

    pub fn client(&self) -> &Host {
        self.host(self.client)
    }

    pub fn server(&self) -> &Host {
        self.host(self.server)
    }

    pub fn client_mut(&mut self) -> &mut Host {
        let watched: &mut Watched = self
            .world
            .node_mut(self.client)
            .expect("the node is a watched host");
        &mut watched.host
    }

    pub fn server_mut(&mut self) -> &mut Host {
        let watched: &mut Watched = self
            .world
            .node_mut(self.server)
            .expect("the node is a watched host");
        &mut watched.host
    }

    /// Returns the counters of the client's application.
    pub fn counters(&self) -> &AppCounters {
        self.client()
            .counters()
            .expect("the application has counters")
    }

    /// Returns the counters of the server's application.
    pub fn server_counters(&self) -> &AppCounters {
        self.server()
            .counters()
            .expect("the application has counters")
    }

    /// Returns the counters of the client's first connection.
    pub fn stats(&self) -> ConnectionStats {
        first_stats(self.client())
    }

    /// Returns the counters of the server's first connection.
    pub fn server_stats(&self) -> ConnectionStats {
        first_stats(self.server())
    }

    /// Returns the time of the client's first event of this kind.
    pub fn when(&self, matches: impl Fn(&Event) -> bool) -> Option<Time> {
        when(self.client(), matches)
    }

    /// Returns the time of the server's first event of this kind.
    pub fn when_server(&self, matches: impl Fn(&Event) -> bool) -> Option<Time> {
        when(self.server(), matches)
    }

    pub fn run_for(&mut self, time: Duration) {
        if let Err(stall) = self.world.run_for(time) {
            panic!("{stall}");
        }
    }

    /// Runs until `done`. Returns the duration from now on.
    ///
    /// # Panics
    /// If it takes longer than `limit`.
    pub fn run_until(
        &mut self,
        limit: Duration,
        what: &str,
        done: impl Fn(&Self) -> bool,
    ) -> Duration {
        let start = self.world.now();
        // `World::run_until` borrows the world, so its closure cannot take the scene: time advances
        // in steps.
        while !done(self) {
            let elapsed = self.world.now() - start;
            assert!(
                elapsed < limit,
                "no {what} after {elapsed:?}: client {:?}, server {:?}, {:?}",
                self.client().log(),
                self.server().log(),
                self.stats(),
            );
            self.run_for(STEP);
        }
        self.world.now() - start
    }

    /// Runs until the handshake is confirmed at both ends.
    pub fn confirm(&mut self, limit: Duration) -> Duration {
        self.run_until(limit, "handshake", |scene| {
            let confirmed = |event: &Event| *event == Event::Confirmed;
            scene.when(confirmed).is_some() && scene.when_server(confirmed).is_some()
        })
    }
}

fn first_stats(host: &Host) -> ConnectionStats {
    host.connections()
        .first()
        .and_then(|handle| host.stats(*handle))
        .unwrap_or_default()
}

fn when(host: &Host, matches: impl Fn(&Event) -> bool) -> Option<Time> {
    let mut log = host.log().iter();
    log.find(|(_, _, event)| matches(event))
        .map(|(at, _, _)| *at)
}

const STEP: Duration = Duration::from_millis(1);
