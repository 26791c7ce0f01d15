//! Machines that do not run in time: stopped, busy, with late timers or coarse clocks.

use std::time::Duration;

use courser_base::Time;
use courser_sim::World;
use courser_sim::apps::{AppCounters, Serve};
use courser_sim::host::{App, Host, HostSpec};
use courser_sim::node::Node;
use courser_sim::packet::Packet;
use courser_sim::world::{LinkPair, NodeId};
use courser_transport::ConnectionStats;

use super::{CLIENT, SERVER, Setup};

/// The fault of a machine.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The machine has no fault.
    None,
    /// The machine is stopped once. Packets that arrive meanwhile wait for it.
    Stopped { from: Time, lasts: Duration },
    /// The machine runs during the first part of each period only.
    Starved { runs: Duration, period: Duration },
    /// Its timers fire late by this time.
    LateTimers(Duration),
    /// Its clock advances in steps of this time.
    CoarseClock(Duration),
}

/// A host on a machine with a fault.
pub struct Slow {
    pub host: Host,
    fault: Fault,
    inbox: Vec<Packet>,
    now: Time,
}

impl Slow {
    pub fn new(host: Host, fault: Fault) -> Self {
        Self {
            host,
            fault,
            inbox: Vec::new(),
            now: Time::ZERO,
        }
    }

    /// Returns the first time from `at` on at which it can run.
    fn next_running(&self, at: Time) -> Time {
        match self.fault {
            Fault::Stopped { from, lasts } if at >= from => at.max(from + lasts),
            Fault::Starved { runs, period } => {
                let period = nanos(period);
                let start = at.as_nanos() / period * period;
                if at.as_nanos() - start < nanos(runs) {
                    at
                } else {
                    Time::from_nanos(start + period)
                }
            }
            _ => at,
        }
    }

    /// Returns the time that its clock shows.
    fn clock(&self, now: Time) -> Time {
        match self.fault {
            Fault::CoarseClock(step) => {
                Time::from_nanos(now.as_nanos() / nanos(step) * nanos(step))
            }
            _ => now,
        }
    }

    /// Returns the time at which a timer for `at` fires.
    fn timer_fires_at(&self, at: Time) -> Time {
        match self.fault {
            Fault::LateTimers(late) => at + late,
            Fault::CoarseClock(step) => {
                Time::from_nanos(at.as_nanos().div_ceil(nanos(step)) * nanos(step))
            }
            _ => at,
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("the time fits into u64")
}

impl Node for Slow {
    fn receive(&mut self, now: Time, packet: Packet) {
        self.now = now;
        self.inbox.push(packet);
    }

    fn run(&mut self, now: Time) {
        self.now = now;
        if self.next_running(now) > now {
            return;
        }
        let clock = self.clock(now);
        for packet in std::mem::take(&mut self.inbox) {
            self.host.receive(clock, packet);
        }
        self.host.run(clock);
    }

    fn transmit(&mut self, now: Time) -> Option<Packet> {
        self.host.transmit(self.clock(now))
    }

    fn next_timeout(&self) -> Option<Time> {
        let waiting = (!self.inbox.is_empty()).then_some(self.now);
        let timer = self.host.next_timeout().map(|at| self.timer_fires_at(at));
        let at = waiting.into_iter().chain(timer).min()?;
        Some(self.next_running(at.max(self.now)))
    }
}

/// A client and a server on such machines.
pub struct SlowScene {
    pub world: World,
    pub client: NodeId,
    pub server: NodeId,
    pub link: LinkPair,
}

impl SlowScene {
    /// Creates a scene as [`super::Scene::new`] does, with the fault of each machine.
    pub fn new(seed: u64, setup: Setup, app: impl App, faults: [Fault; 2]) -> Self {
        let mut world = World::new(seed);
        let spec = HostSpec::client(CLIENT, world.seed_for("client")).with_transport(setup.client);
        let client = Slow::new(Host::new(spec, app), faults[0]);
        let client = world.add("client", CLIENT.ip(), client);
        let spec = HostSpec::server(SERVER, world.seed_for("server")).with_transport(setup.server);
        let server = Slow::new(Host::new(spec, Serve::new()), faults[1]);
        let server = world.add("server", SERVER.ip(), server);
        let link = setup.link.parse().expect("the link specification is valid");
        let link = world.connect(client, server, &link);
        Self {
            world,
            client,
            server,
            link,
        }
    }

    fn host(&self, id: NodeId) -> &Host {
        &self
            .world
            .node::<Slow>(id)
            .expect("the node is a host")
            .host
    }

    pub fn client(&self) -> &Host {
        self.host(self.client)
    }

    pub fn server(&self) -> &Host {
        self.host(self.server)
    }

    /// Returns the counters of the client's connection.
    pub fn stats(&self) -> ConnectionStats {
        let host = self.client();
        host.stats(host.connections()[0])
            .expect("the connection has counters")
    }

    fn counters(&self) -> [&AppCounters; 2] {
        [self.client(), self.server()]
            .map(|host| host.counters().expect("the application has counters"))
    }

    /// Runs a transfer up to its end. Returns the duration from now on.
    pub fn finish_up(&mut self, bytes: u64, limit: Duration) -> Duration {
        let start = self.world.now();
        loop {
            let [client, server] = self.counters();
            if client.streams == 1 && server.streams == 1 {
                break;
            }
            let elapsed = self.world.now() - start;
            assert!(
                elapsed < limit,
                "{client:?}, {server:?}, {:?}",
                self.stats()
            );
            self.world
                .run_for(Duration::from_millis(1))
                .expect("the world does not stall");
        }
        let [client, server] = self.counters();
        assert_eq!(server.received, bytes);
        for counters in [client, server] {
            assert_eq!(
                (&counters.mismatch, counters.failures.len()),
                (&None, 0),
                "{counters:?}"
            );
        }
        self.world.now() - start
    }
}
