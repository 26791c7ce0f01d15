//! One run: choices from its seed, chaos, calm, an end, and the checks.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use courser_base::{Side, Time};
use courser_sim::World;
use courser_sim::host::{Host, HostSpec};
use courser_sim::world::{LinkPair, NodeId};
use courser_transport::{RetryPolicy, TransportConfig};

use super::actor::{Actor, Plan};
use super::book::SharedBook;
use super::network::Network;
use super::settings::settings;
use crate::common::attacker::{Attack, Attacker};
use crate::common::faulty_host::{AddressChanges, FaultyHost, MachineFaults};
use crate::common::random::SeededRandom;
use crate::common::{SERVER, Watched, Watcher};

/// Separate from the server's network: a NAT chooses addresses within it.
const CLIENT: std::net::SocketAddr = std::net::SocketAddr::V4(std::net::SocketAddrV4::new(
    std::net::Ipv4Addr::new(10, 9, 0, 1),
    50_000,
));

/// The second address of the client.
const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 0, 2));

/// The end of a run if both ends are still there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    Idle,
    Close {
        client: Option<u64>,
        server: Option<u64>,
    },
}

/// The choices that follow from a seed.
#[derive(Debug)]
pub struct Choices {
    pub network: Network,
    pub settings: [TransportConfig; 2],
    pub faults: [MachineFaults; 2],
    pub plans: [Plan; 2],
    pub retry: RetryPolicy,
    pub chaos: Duration,
    pub ending: Ending,
    pub attack: Attack,
}

impl Choices {
    pub fn new(seed: u64) -> Self {
        let random = &mut SeededRandom::new(seed, "choices");
        let chaos = random.millis(300, 6000);
        let network = Network::new(random, chaos);
        let mtu = match network.has_mtu {
            true => 1200,
            false => random.pick(&[1200, 1200, 1350, 1452]),
        };
        let settings = [settings(random, mtu), settings(random, mtu)];
        let faults = [(); 2].map(|()| MachineFaults::new(random, chaos));
        let ops = random.magnitude(10, 300);
        let bytes = random.magnitude(1000, 200_000);
        let closes = random.pick(&[0, 0, 0, 1, 10]);
        let connections = random.pick(&[1, 1, 1, 2, 3]);
        let interface_mtu = random.pick(&[None, Some(1500), Some(9000), Some(65_535)]);
        let mut plan = |side: Side, peer: &TransportConfig| Plan {
            connect: side.is_client().then_some((SERVER, connections)),
            pause: chaos / u32::try_from(ops).expect("the number fits into u32"),
            settle_at: Time::ZERO + chaos,
            bytes: smallest_window(peer).min(5000) * bytes / 5000,
            piece: random.magnitude(10, 40_000),
            closes,
            limits: [0; 2],
            interface_mtu,
        };
        let mut plans = [
            plan(Side::Client, &settings[1]),
            plan(Side::Server, &settings[0]),
        ];
        for (plan, own) in plans.iter_mut().zip(&settings) {
            plan.limits = [own.max_bidi_streams, own.max_uni_streams];
        }
        let keeps_alive = settings.iter().any(|it| it.keep_alive_interval.is_some());
        let code = random.below(1 << 62);
        let ending = match random.below(4) {
            0 => Ending::Close {
                client: Some(code),
                server: None,
            },
            1 => Ending::Close {
                client: None,
                server: Some(code),
            },
            2 => Ending::Close {
                client: Some(code),
                server: Some(code ^ 1),
            },
            _ if keeps_alive => Ending::Close {
                client: None,
                server: Some(code),
            },
            _ => Ending::Idle,
        };
        let retry = random.pick(&[RetryPolicy::Never, RetryPolicy::Never, RetryPolicy::Always]);
        let mut choices = Self {
            network,
            settings,
            faults,
            plans,
            retry,
            chaos,
            ending,
            attack: attack(random),
        };
        // Only a client may change its address (RFC 9000 §9).
        if random.percent(8) {
            choices.faults[0].address_changes = Some(AddressChanges {
                every: Duration::from_millis(random.magnitude(5, 3000)),
                other: SocketAddr::from((OTHER, CLIENT.port())),
            });
        }
        choices
    }

    /// Returns true if the server may see the client at more than one address, or an attacker
    /// there.
    pub fn changes_address(&self) -> bool {
        self.network.has_nat || self.faults[0].address_changes.is_some() || self.attack.race > 0
    }

    /// Returns the shorter of both idle timeouts, which counts for both ends.
    pub fn idle(&self) -> Duration {
        let timeouts = self.settings.iter().filter_map(|it| it.max_idle_timeout);
        timeouts.min().expect("at least one idle timeout is set")
    }

    /// Returns an upper bound of probe timeouts on a calm network: the smoothed round-trip time and
    /// four times its variation, as the first sample or the worst of the chaos may have made them,
    /// and the delay.
    pub fn pto(&self, worst_rtt: Duration) -> Duration {
        let delays = self.settings.iter().map(|it| it.max_ack_delay).max();
        5 * worst_rtt.max(Duration::from_millis(333)) + delays.unwrap_or_default()
    }

    /// Returns the longest time from the start of the calm until everything has ended.
    ///
    /// An open connection has received a packet within its idle timeout, so its next probe, which
    /// comes after at most the same time again, is answered. Then windows open once per round trip,
    /// and each byte passes a few times.
    fn settling(&self) -> Duration {
        let [client, server] = &self.plans;
        let connections = u32::try_from(client.connect.map_or(1, |(_, times)| times))
            .expect("the number fits into u32");
        let bytes = (client.bytes + server.bytes) * u64::from(connections);
        let window = self.settings.iter().map(smallest_window).min().unwrap_or(1);
        let trips =
            u32::try_from(bytes / window.min(2400)).expect("the number fits into u32") + 100;
        let delay = self.settings.iter().map(|it| it.max_ack_delay).max();
        let trip = 2 * self.network.delay + delay.unwrap_or_default() + Duration::from_millis(20);
        let moving = Duration::from_micros(bytes * 8 * 4_000_000 / self.network.rate);
        3 * self.idle() + trips * trip + moving + Duration::from_secs(30)
    }
}

/// Draws an attacker beside the client, in one run of four.
fn attack(random: &mut SeededRandom) -> Attack {
    let mut attack = Attack::default();
    if random.percent(25) {
        let share = random.between(1, 40);
        match random.below(4) {
            0 => attack.race = share,
            1 => attack.forge = share,
            2 => attack.replay = share,
            _ => {
                attack = Attack {
                    race: share,
                    forge: random.between(1, 40),
                    replay: random.between(1, 40),
                }
            }
        }
    }
    attack
}

/// The smallest limit of bytes in flight.
fn smallest_window(config: &TransportConfig) -> u64 {
    let windows = [
        config.stream_receive_window,
        config.receive_window,
        config.unsent_limit,
    ];
    windows.into_iter().min().unwrap_or(1)
}

/// A run in progress.
pub struct Run {
    pub choices: Choices,
    pub world: World,
    pub nodes: [NodeId; 2],
    pub book: SharedBook,
    link: LinkPair,
}

impl Run {
    pub fn new(seed: u64) -> Self {
        let choices = Choices::new(seed);
        let mut world = World::new(seed);
        let book = SharedBook::default();
        let watcher = Watcher::new(SERVER, Vec::new(), Vec::new());
        let specs = [
            HostSpec::client(CLIENT, world.seed_for("client")),
            HostSpec {
                retry: choices.retry,
                ..HostSpec::server(SERVER, world.seed_for("server"))
            },
        ];
        let sides = [Side::Client, Side::Server];
        let parts = sides
            .iter()
            .zip(specs)
            .zip(["client", "server"])
            .enumerate();
        let mut nodes = Vec::new();
        for (at, ((side, spec), name)) in parts {
            let address = spec.address.ip();
            let random = |part| SeededRandom::new(seed, &format!("{name} {part}"));
            let actor = Actor::new(
                *side,
                choices.plans[at].clone(),
                random("app"),
                book.clone(),
            );
            let spec = spec.with_transport(choices.settings[at].clone());
            let watched = Watched::new(Host::new(spec, actor), watcher.clone());
            let mut node = FaultyHost::new(watched, choices.faults[at], random("machine"));
            if side.is_client() && choices.attack.is_on() {
                node.attacker = Some(Attacker::new(choices.attack, random("attacker")));
            }
            nodes.push(world.add(name, address, node));
        }
        let nodes = [nodes[0], nodes[1]];
        world.add_address(nodes[0], OTHER);
        let link = world.connect(nodes[0], nodes[1], &choices.network.faulty());
        Self {
            choices,
            world,
            nodes,
            book,
            link,
        }
    }

    pub fn node(&self, at: usize) -> &FaultyHost {
        self.world.node(self.nodes[at]).expect("the node is a host")
    }

    fn node_mut(&mut self, at: usize) -> &mut FaultyHost {
        self.world
            .node_mut(self.nodes[at])
            .expect("the node is a host")
    }

    fn pass(&mut self, time: Duration) {
        if let Err(stall) = self.world.run_for(time) {
            panic!("{stall}");
        }
    }

    /// Runs until `done`, but not longer than `limit`. Returns the last result of `done`.
    fn pass_until(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) -> bool {
        let end = self.world.now() + limit;
        let mut step = Duration::from_millis(5);
        while !done(self) {
            if self.world.now() >= end {
                return false;
            }
            self.pass(step);
            step = (step * 2).min(Duration::from_millis(500));
        }
        true
    }

    /// Runs the time of the faults.
    pub fn chaos(&mut self) {
        self.pass(self.choices.chaos);
    }

    /// Ends the faults and runs until everything has ended.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn calm(&mut self) {
        let calm = self.choices.network.calm();
        let now = self.world.now();
        for (id, spec) in [
            (self.link.forward, &calm.forward),
            (self.link.back, &calm.back),
        ] {
            self.world.change_link(id, |link| link.set_spec(now, spec));
        }
        for at in 0..2 {
            self.node_mut(at).calm();
        }
        let limit = self.choices.settling();
        if !self.pass_until(limit, Self::is_settled) {
            panic!("not settled {limit:?} after the faults:\n{}", self.state());
        }
    }

    fn is_settled(&self) -> bool {
        let (now, from) = (self.world.now(), Time::ZERO + self.choices.chaos);
        if (0..2).any(|at| self.node(at).clock_time(now) <= from) {
            // By its clock the chaos continues, and it may start something.
            return false;
        }
        let book = self.book.borrow();
        let limits = |is_server: bool| self.choices.plans[usize::from(!is_server)].limits;
        let awaits_credit = |(of, handle, kind): &(bool, _, usize)| {
            let key = book.ends.get(&(*of, *handle)).and_then(|end| end.key);
            limits(*of)[*kind] > 0 && key.is_some_and(|key| book.is_alive(key))
        };
        book.is_settled() && !book.awaiting_credit.iter().any(awaits_credit)
    }

    /// Ends the remaining connections as chosen, and runs until they are removed.
    pub fn end(&mut self) -> Time {
        let now = self.world.now();
        if let Ending::Close { client, server } = self.choices.ending {
            for (at, code) in [(0, client), (1, server)] {
                let Some(code) = code else {
                    continue;
                };
                self.node_mut(at).act(now, |app, context| {
                    let app: &mut dyn std::any::Any = app;
                    let actor: &mut Actor =
                        app.downcast_mut().expect("the application is an actor");
                    actor.close_all(context, code);
                });
            }
        }
        let limit = self.choices.idle().mul_f64(2.2)
            + 6 * self.choices.pto(WORST_RTT)
            + Duration::from_secs(20);
        let are_removed =
            |run: &Self| (0..2).all(|at| run.node(at).host().endpoint().connections() == 0);
        if !self.pass_until(limit, are_removed) {
            panic!(
                "connections remain {limit:?} after the end:\n{}",
                self.state()
            );
        }
        now
    }

    fn state(&self) -> String {
        use fmt::Write;
        let mut text = String::new();
        let book = self.book.borrow();
        for (id, flow) in book.unsettled() {
            let _ = writeln!(text, "{id:?} {flow:?}");
        }
        let _ = writeln!(text, "waiting for credit {:?}", book.awaiting_credit);
        for (of, end) in &book.ends {
            let _ = writeln!(text, "{of:?} {end:?}");
        }
        for at in 0..2 {
            let host = self.node(at).host();
            for handle in host.endpoint().handles() {
                let stats = host.stats(handle);
                let _ = writeln!(text, "{at} {handle:?} {stats:?}");
            }
        }
        text
    }
}

/// The largest round-trip time that delay jumps, late timers and full queues can cause.
pub const WORST_RTT: Duration = Duration::from_secs(12);
