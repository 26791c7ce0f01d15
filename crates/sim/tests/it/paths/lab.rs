//! A client with one or two links to a server.

use std::net::SocketAddr;
use std::time::Duration;

use courser_base::Time;
use courser_recovery::Algorithm;
use courser_sim::World;
use courser_sim::apps::{Amount, AppCounters, Bulk, Serve, TransferDirection};
use courser_sim::host::{Host, HostSpec};
use courser_sim::link::{DuplexSpec, LinkSpec};
use courser_sim::world::{LinkPair, NodeId};
use courser_transport::{Event, PathInfo, PathSchedulerChoice, TransportConfig};
use courser_wire::PathId;

pub(super) const BOTH: [Algorithm; 2] = [Algorithm::Cubic, Algorithm::Bbr];
pub(super) const LIMIT: Duration = Duration::from_secs(300);

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const FURTHER: [u8; 4] = [10, 0, 1, 1];
const SERVER: ([u8; 4], u16) = ([10, 9, 0, 1], 443);

/// The settings of a transfer.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) algorithm: Algorithm,
    pub(super) direction: TransferDirection,
    pub(super) amount: Amount,
    pub(super) scheduler: PathSchedulerChoice,
    /// A receive window that does not grow.
    pub(super) window: Option<u64>,
}

impl Plan {
    pub(super) fn new(algorithm: Algorithm, direction: TransferDirection, bytes: u64) -> Self {
        Self {
            algorithm,
            direction,
            amount: Amount::Bytes(bytes),
            scheduler: PathSchedulerChoice::default(),
            window: None,
        }
    }

    fn transport(&self) -> TransportConfig {
        let mut config = HostSpec::client(CLIENT_ADDRESS.into(), 0).transport;
        config.congestion = self.algorithm;
        config.max_paths = 4;
        config.path_scheduler = self.scheduler.clone();
        if let Some(window) = self.window {
            (config.receive_window, config.receive_window_max) = (window, window);
            (
                config.stream_receive_window,
                config.stream_receive_window_max,
            ) = (window, window);
        }
        config
    }
}

const CLIENT_ADDRESS: ([u8; 4], u16) = (CLIENT, 5000);

/// A client, a server, and the links between them.
pub(super) struct Lab {
    pub(super) world: World,
    client: NodeId,
    server: NodeId,
    links: Vec<LinkPair>,
    specs: Vec<DuplexSpec>,
    direction: TransferDirection,
}

impl Lab {
    /// Connects the ends by one link for each specification.
    pub(super) fn new(seed: u64, links: &[&str], plan: &Plan) -> Self {
        let mut world = World::new(seed);
        let further: Vec<SocketAddr> = (1..links.len()).map(|_| (FURTHER, 5001).into()).collect();
        let client = HostSpec {
            further: further.clone(),
            ..HostSpec::client(CLIENT_ADDRESS.into(), world.seed_for("client"))
        };
        let server = HostSpec::server(SERVER.into(), world.seed_for("server"));
        let bulk = Bulk::new(SERVER.into(), plan.direction, plan.amount);
        let client = Host::new(client.with_transport(plan.transport()), bulk);
        let server = Host::new(server.with_transport(plan.transport()), Serve::new());
        let client = world.add("client", CLIENT.into(), client);
        let server = world.add("server", SERVER.0.into(), server);
        let parsed = links.iter().map(|link| link.parse().expect("a link"));
        let specs: Vec<DuplexSpec> = parsed.collect();
        let mut pairs = vec![world.connect(client, server, &specs[0])];
        for (spec, address) in specs[1..].iter().zip(&further) {
            pairs.push(world.connect_from(client, address.ip(), server, spec));
        }
        Self {
            world,
            client,
            server,
            links: pairs,
            specs,
            direction: plan.direction,
        }
    }

    pub(super) fn host(&self, is_client: bool) -> &Host {
        let id = if is_client { self.client } else { self.server };
        self.world.node(id).expect("a host")
    }

    /// Returns the counters of the end that receives.
    pub(super) fn receiver(&self) -> &AppCounters {
        let is_client = self.direction == TransferDirection::Down;
        self.host(is_client).counters().expect("counters")
    }

    /// Runs a transfer to its end and returns the time at which its last byte was read.
    pub(super) fn finish(mut self) -> Duration {
        let (client, server) = (self.client, self.server);
        let read = if self.direction == TransferDirection::Down {
            client
        } else {
            server
        };
        let done = self.world.run_until(LIMIT, |world| {
            let counters = world.node::<Host>(read).and_then(Host::counters);
            counters.is_some_and(|counters| counters.streams == 1)
        });
        assert_eq!(done, Ok(true), "{:?}", self.paths());
        self.assert_clean();
        self.receiver().finished_at.expect("finished") - Time::ZERO
    }

    pub(super) fn assert_clean(&self) {
        for is_client in [true, false] {
            let counters = self.host(is_client).counters().expect("counters");
            assert_eq!(counters.mismatch, None);
            assert_eq!(counters.failures, [""; 0]);
        }
    }

    /// Returns the paths as the client has them.
    pub(super) fn paths(&mut self) -> Vec<PathInfo> {
        let now = self.world.now();
        let host: &mut Host = self.world.node_mut(self.client).expect("a host");
        let handle = host.connections()[0];
        host.act(now, |_, context| {
            let connection = context.connection(handle);
            connection.map_or_else(Vec::new, |it| it.several_paths().list())
        })
    }

    /// Returns the longest time without new bytes at the receiver in the next `time`.
    pub(super) fn longest_stall(&mut self, time: Duration) -> Duration {
        let end = self.world.now() + time;
        let mut last = self.world.now();
        let (mut longest, mut before) = (Duration::ZERO, self.receiver().received);
        while self.world.now() < end {
            self.world
                .run_for(Duration::from_millis(1))
                .expect("time passes");
            if self.receiver().received > before {
                longest = longest.max(self.world.now() - last);
                (last, before) = (self.world.now(), self.receiver().received);
            }
        }
        longest.max(self.world.now() - last)
    }

    /// Returns the bytes per second that arrive in the next `time`.
    pub(super) fn rate(&mut self, time: Duration) -> f64 {
        let before = self.receiver().received;
        self.world.run_for(time).expect("time passes");
        (self.receiver().received - before) as f64 / time.as_secs_f64()
    }

    /// Loses all packets on a link from now on.
    pub(super) fn kill(&mut self, link: usize) {
        self.kill_direction(link, true);
        self.kill_direction(link, false);
    }

    /// Loses all packets in one direction of a link.
    pub(super) fn kill_direction(&mut self, link: usize, is_forward: bool) {
        self.change(link, is_forward, "loss=100%");
    }

    /// Changes one direction of a link, whose other properties stay.
    pub(super) fn change(&mut self, link: usize, is_forward: bool, extra: &str) {
        let old = &self.specs[link];
        let old = if is_forward { &old.forward } else { &old.back };
        let extra: LinkSpec = extra.parse().expect("a link");
        let spec = LinkSpec {
            loss: extra.loss.or(old.loss),
            rate: extra.rate.or(old.rate),
            ..old.clone()
        };
        self.set(link, is_forward, &spec);
    }

    /// Restores a link.
    pub(super) fn revive(&mut self, link: usize) {
        let spec = self.specs[link].clone();
        self.set(link, true, &spec.forward);
        self.set(link, false, &spec.back);
    }

    fn set(&mut self, link: usize, is_forward: bool, spec: &LinkSpec) {
        let now = self.world.now();
        let pair = self.links[link];
        let id = if is_forward { pair.forward } else { pair.back };
        self.world.change_link(id, |link| link.set_spec(now, spec));
    }

    /// Returns true if an end had this event.
    pub(super) fn has(&self, is_client: bool, wanted: &Event) -> bool {
        self.host(is_client)
            .log()
            .iter()
            .any(|(_, _, event)| event == wanted)
    }

    /// Returns the ID of the newest path that is open.
    pub(super) fn newest(&mut self) -> PathId {
        let open = self.paths().into_iter().filter(|path| !path.is_closing);
        open.map(|path| path.id).max().expect("a path")
    }
}

/// Returns the time that a transfer takes.
pub(super) fn time(seed: u64, links: &[&str], plan: &Plan) -> Duration {
    Lab::new(seed, links, plan).finish()
}

/// Returns the part of the sum of both links alone that a transfer over both reaches.
pub(super) fn share_of_sum(seed: u64, links: [&str; 2], plan: &Plan) -> f64 {
    let alone = links.map(|link| 1.0 / time(seed, &[link], plan).as_secs_f64());
    1.0 / time(seed, &links, plan).as_secs_f64() / (alone[0] + alone[1])
}

/// Returns the time over both links, as a part of that over the better one alone.
pub(super) fn part_of_best(seed: u64, links: [&str; 2], plan: &Plan) -> f64 {
    let best = links
        .map(|link| time(seed, &[link], plan))
        .into_iter()
        .min();
    let best = best.expect("two links");
    time(seed, &links, plan).as_secs_f64() / best.as_secs_f64()
}
