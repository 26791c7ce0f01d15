//! A client and a server on faulty machines, and an attacker beside the client.

use std::net::SocketAddr;
use std::time::Duration;

use courser_base::Time;
use courser_sim::World;
use courser_sim::apps::{Serve, Tally};
use courser_sim::host::{App, Host, HostSpec};
use courser_sim::node::Node;
use courser_sim::packet::Packet;
use courser_sim::world::{LinkPair, NodeId};
use courser_transport::{ConnectionError, Event};

use super::attacker::{ATTACKER, Attack, Attacker};
use super::dice::Dice;
use super::disturbed::{Disturbed, Trouble};
use super::{CLIENT, SERVER, Setup, Watched, Watcher};

/// A scene as [`super::Scene`], with faults. The attacker's address belongs to a victim, a machine
/// that answers nothing and counts.
pub struct Troubled {
    pub world: World,
    pub nodes: [NodeId; 2],
    victim: NodeId,
    link: LinkPair,
}

#[derive(Default)]
struct Victim {
    got: usize,
}

impl Node for Victim {
    fn receive(&mut self, _now: Time, packet: Packet) {
        self.got += packet.payload.len();
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

impl Troubled {
    pub fn new(
        seed: u64,
        setup: Setup,
        app: impl App,
        troubles: [Trouble; 2],
        attack: Attack,
    ) -> Self {
        let mut world = World::new(seed);
        let watcher = Watcher::new(SERVER, setup.lost, setup.damaged);
        let spec = HostSpec::client(CLIENT, world.seed_for("client")).with_transport(setup.client);
        let client = Watched::new(Host::new(spec, app), watcher.clone());
        let mut client = Disturbed::new(client, troubles[0], Dice::new(seed, "client machine"));
        client.attacker = Some(Attacker::new(attack, Dice::new(seed, "attacker")));
        let client = world.add("client", CLIENT.ip(), client);
        world.add_address(client, OTHER.ip());
        let mut spec = HostSpec::server(SERVER, world.seed_for("server"));
        spec.retry = setup.retry;
        let server = Host::new(spec.with_transport(setup.server), Serve::new());
        let server = Watched::new(server, watcher);
        let server = Disturbed::new(server, troubles[1], Dice::new(seed, "server machine"));
        let server = world.add("server", SERVER.ip(), server);
        let victim = world.add("victim", ATTACKER.ip(), Victim::default());
        let link = world.connect(client, server, &setup.link.parse().expect("a link"));
        world.connect(server, victim, &"1ms".parse().expect("a link"));
        Self {
            world,
            nodes: [client, server],
            victim,
            link,
        }
    }

    fn node(&self, at: usize) -> &Disturbed {
        self.world.node(self.nodes[at]).expect("a host")
    }

    pub fn client_node(&mut self) -> &mut Disturbed {
        self.world.node_mut(self.nodes[0]).expect("a host")
    }

    pub fn host(&self, at: usize) -> &Host {
        self.node(at).host()
    }

    pub fn tally(&self, at: usize) -> &Tally {
        self.host(at).tally().expect("the application has a tally")
    }

    /// Returns the bytes that the attacker sent from its address, and those that the victim
    /// received.
    pub fn attackers_account(&self) -> (usize, usize) {
        let victim: &Victim = self.world.node(self.victim).expect("a victim");
        let attacker = self.node(0).attacker.as_ref();
        (attacker.map_or(0, |it| it.sent), victim.got)
    }

    pub fn rebindings(&self) -> u64 {
        self.world.rebindings(self.link)
    }

    /// Returns the number of the server's events that the client has moved.
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
        self.world.run_for(time).expect("it does not spin");
    }

    /// Runs until `done`. Returns the duration.
    pub fn run_until(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) -> Duration {
        let begun = self.world.now();
        while !done(self) {
            let gone = self.world.now() - begun;
            assert!(
                gone < limit,
                "after {gone:?}: {:?}, {:?}",
                [0, 1].map(|at| self.host(at).log()),
                [0, 1].map(|at| self.tally(at)),
            );
            self.run_for(Duration::from_millis(1));
        }
        self.world.now() - begun
    }

    /// Runs a transfer up to its end. Asserts that every byte arrives once and no connection has
    /// failed.
    pub fn finish_up(&mut self, bytes: u64, limit: Duration) -> Duration {
        let time = self.run_until(limit, |scene| {
            [0, 1].iter().all(|at| scene.tally(*at).streams == 1)
        });
        assert_eq!(self.tally(1).received, bytes);
        self.assert_clean();
        time
    }

    pub fn assert_clean(&self) {
        for at in 0..2 {
            let tally = self.tally(at);
            assert_eq!(
                (&tally.mismatch, tally.failures.len()),
                (&None, 0),
                "{tally:?}"
            );
        }
    }
}
