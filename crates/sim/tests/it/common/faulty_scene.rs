//! A client and a server on faulty machines, and an attacker beside the client.

use std::net::SocketAddr;
use std::time::Duration;

use courser_base::Time;
use courser_sim::World;
use courser_sim::apps::{AppCounters, Serve};
use courser_sim::host::{App, Host, HostSpec};
use courser_sim::node::Node;
use courser_sim::packet::Packet;
use courser_sim::world::{LinkPair, NodeId};
use courser_transport::{ConnectionError, Event};

use super::attacker::{ATTACKER, Attack, Attacker};
use super::faulty_host::{FaultyHost, MachineFaults};
use super::random::SeededRandom;
use super::{CLIENT, SERVER, Setup, Watched, Watcher};

/// A scene as [`super::Scene`], with faults. The attacker's address belongs to a victim, a machine
/// that answers nothing and counts.
pub struct FaultyScene {
    pub world: World,
    pub nodes: [NodeId; 2],
    victim: NodeId,
    link: LinkPair,
}

#[derive(Default)]
struct Victim {
    received: usize,
}

impl Node for Victim {
    fn receive(&mut self, _now: Time, packet: Packet) {
        self.received += packet.payload.len();
    }

    fn run(&mut self, _now: Time) {}

    fn transmit(&mut self, _now: Time) -> Option<Packet> {
        None
    }

    fn next_timeout(&self) -> Option<Time> {
        None
    }
}

/// Another address of the client.
pub const OTHER: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(
    std::net::Ipv4Addr::new(10, 0, 0, 9),
    CLIENT.port(),
));

impl FaultyScene {
    pub fn new(
        seed: u64,
        setup: Setup,
        app: impl App,
        faults: [MachineFaults; 2],
        attack: Attack,
    ) -> Self {
        let mut world = World::new(seed);
        let watcher = Watcher::new(SERVER, setup.lost, setup.damaged);
        let spec = HostSpec::client(CLIENT, world.seed_for("client")).with_transport(setup.client);
        let client = Watched::new(Host::new(spec, app), watcher.clone());
        let mut client =
            FaultyHost::new(client, faults[0], SeededRandom::new(seed, "client machine"));
        client.attacker = Some(Attacker::new(attack, SeededRandom::new(seed, "attacker")));
        let client = world.add("client", CLIENT.ip(), client);
        world.add_address(client, OTHER.ip());
        let mut spec = HostSpec::server(SERVER, world.seed_for("server"));
        spec.retry = setup.retry;
        let server = Host::new(spec.with_transport(setup.server), Serve::new());
        let server = Watched::new(server, watcher);
        let server = FaultyHost::new(server, faults[1], SeededRandom::new(seed, "server machine"));
        let server = world.add("server", SERVER.ip(), server);
        let victim = world.add("victim", ATTACKER.ip(), Victim::default());
        let link = world.connect(
            client,
            server,
            &setup.link.parse().expect("the link specification is valid"),
        );
        world.connect(
            server,
            victim,
            &"1ms".parse().expect("the link specification is valid"),
        );
        Self {
            world,
            nodes: [client, server],
            victim,
            link,
        }
    }

    fn node(&self, at: usize) -> &FaultyHost {
        self.world.node(self.nodes[at]).expect("the node is a host")
    }

    pub fn client_node(&mut self) -> &mut FaultyHost {
        self.world
            .node_mut(self.nodes[0])
            .expect("the node is a host")
    }

    pub fn host(&self, at: usize) -> &Host {
        self.node(at).host()
    }

    pub fn counters(&self, at: usize) -> &AppCounters {
        self.host(at)
            .counters()
            .expect("the application has counters")
    }

    /// Returns the bytes that the attacker sent from its address, and those that the victim
    /// received.
    pub fn attacker_and_victim_bytes(&self) -> (usize, usize) {
        let victim: &Victim = self
            .world
            .node(self.victim)
            .expect("the node is the victim");
        let attacker = self.node(0).attacker.as_ref();
        (attacker.map_or(0, |it| it.sent), victim.received)
    }

    pub fn rebindings(&self) -> u64 {
        self.world.rebindings(self.link)
    }

    /// Returns how often the server reported a new address of the client.
    pub fn moves(&self) -> usize {
        let log = self.host(1).log().iter();
        log.filter(|(_, _, event)| matches!(event, Event::PathChanged { .. }))
            .count()
    }

    /// Returns the reason why the first connection of an end is over.
    pub fn end(&self, at: usize) -> Option<&ConnectionError> {
        self.host(at)
            .log()
            .iter()
            .find_map(|(.., event)| match event {
                Event::Lost(error) => Some(error),
                _ => None,
            })
    }

    pub fn run_for(&mut self, time: Duration) {
        self.world.run_for(time).expect("the world does not stall");
    }

    /// Runs until `done`. Returns the duration.
    pub fn run_until(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) -> Duration {
        let start = self.world.now();
        while !done(self) {
            let elapsed = self.world.now() - start;
            assert!(
                elapsed < limit,
                "after {elapsed:?}: {:?}, {:?}",
                [0, 1].map(|at| self.host(at).log()),
                [0, 1].map(|at| self.counters(at)),
            );
            self.run_for(Duration::from_millis(1));
        }
        self.world.now() - start
    }

    /// Runs a transfer up to its end. Asserts that every byte arrives once and no connection has
    /// failed.
    pub fn finish_up(&mut self, bytes: u64, limit: Duration) -> Duration {
        let time = self.run_until(limit, |scene| {
            [0, 1].iter().all(|at| scene.counters(*at).streams == 1)
        });
        assert_eq!(self.counters(1).received, bytes);
        self.assert_clean();
        time
    }

    pub fn assert_clean(&self) {
        for at in 0..2 {
            let counters = self.counters(at);
            assert_eq!(
                (&counters.mismatch, counters.failures.len()),
                (&None, 0),
                "{counters:?}"
            );
        }
    }
}
