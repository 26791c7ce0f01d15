//! The world of a scenario: a client and a server for each flow, and the shared link.

use std::net::SocketAddr;
use std::sync::Arc;

use courser_base::{Mutex, Side, Time};
use courser_telemetry::{Detail, Record, Sink, SinkFactory, Tee};
use courser_transport::{ConnectionStats, TransportConfig};
use courser_wire::ConnectionId;

use crate::World;
use crate::apps::{AppCounters, Bulk, Exchange, Paced, Serve, TransferDirection};
use crate::host::{App, Context, Host, HostSpec};
use crate::report::{MAX_LOSSES, Point};
use crate::scenario::{Action, ActionKind, Flow, Kind, Scenario};
use crate::world::{LinkPair, NodeId};

/// The world of a scenario with the IDs of its parts.
pub(super) struct Stage {
    pub(super) world: World,
    pub(super) link: LinkPair,
    pub(super) access: Vec<(usize, LinkPair)>,
    pub(super) actors: Vec<Actor>,
}

/// The two ends of a flow.
pub(super) struct Actor {
    pub(super) flow: Flow,
    pub(super) client: NodeId,
    pub(super) server: NodeId,
    pub(super) losses: Arc<Mutex<Vec<Point>>>,
}

impl Stage {
    pub(super) fn build(
        scenario: &Scenario,
        seed: u64,
        sinks: Option<&Arc<dyn SinkFactory>>,
    ) -> Self {
        let mut world = World::new(seed);
        let link = world.add_duplex("link", &scenario.link);
        let mut stage = Self {
            world,
            link,
            access: Vec::new(),
            actors: Vec::new(),
        };
        for (index, flow) in scenario.flows.iter().enumerate() {
            stage.add_flow(scenario, index, flow, sinks);
        }
        stage
    }

    fn add_flow(
        &mut self,
        scenario: &Scenario,
        index: usize,
        flow: &Flow,
        sinks: Option<&Arc<dyn SinkFactory>>,
    ) {
        let world = &mut self.world;
        let losses = Arc::new(Mutex::new(Vec::new()));
        let recorder = Recorder {
            sender: match flow.kind.direction() {
                TransferDirection::Up => Side::Client,
                TransferDirection::Down => Side::Server,
            },
            losses: Arc::clone(&losses),
            others: sinks.cloned(),
        };
        let transport = TransportConfig {
            congestion: flow.controller,
            sinks: Some(Arc::new(recorder)),
            ..scenario.transport.clone()
        };
        let (client_at, server_at) = (address(1, index, 50_000), address(2, index, 443));
        let names = [
            format!("{} client", flow.name),
            format!("{} server", flow.name),
        ];
        let client_spec = HostSpec::client(client_at, world.seed_for(&names[0]));
        let server_spec = HostSpec::server(server_at, world.seed_for(&names[1]));
        let client_spec = client_spec.with_transport(transport.clone());
        let server_spec = server_spec.with_transport(transport);
        let client = client(client_spec, server_at, flow);
        let server = Host::new(server_spec, Serve::new());
        let client = world.add(&names[0], client_at.ip(), client);
        let server = world.add(&names[1], server_at.ip(), server);
        let mut pairs = vec![self.link];
        if let Some(spec) = &flow.access {
            let pair = world.add_duplex(&format!("{} access", flow.name), spec);
            self.access.push((index, pair));
            pairs.insert(0, pair);
        }
        world.join(client, server, &pairs);
        self.actors.push(Actor {
            flow: flow.clone(),
            client,
            server,
            losses,
        });
    }

    /// Returns true if every flow has reached its end, or no longer can.
    pub(super) fn is_over(&self) -> bool {
        self.actors.iter().all(|actor| {
            let has_failed = !self.counters(actor.client).failures.is_empty();
            has_failed || self.finished_at(actor).is_some()
        })
    }

    /// Returns the time at which the flow reached its own end, if it has one.
    pub(super) fn finished_at(&self, actor: &Actor) -> Option<Time> {
        let counters = self.counters(self.receiver(actor));
        let is_finished = match actor.flow.kind {
            _ if !actor.flow.kind.is_finite() => false,
            Kind::Bulk { .. } => counters.streams > 0,
            Kind::Requests { repeat, .. } => {
                Some(self.counters(actor.client).exchanges.len() as u64) >= repeat
            }
            Kind::Paced { .. } => false,
        };
        if is_finished {
            counters.finished_at
        } else {
            None
        }
    }

    pub(super) fn receiver(&self, actor: &Actor) -> NodeId {
        match actor.flow.kind.direction() {
            TransferDirection::Up => actor.server,
            TransferDirection::Down => actor.client,
        }
    }

    pub(super) fn sender(&self, actor: &Actor) -> NodeId {
        match actor.flow.kind.direction() {
            TransferDirection::Up => actor.client,
            TransferDirection::Down => actor.server,
        }
    }

    pub(super) fn host(&self, id: NodeId) -> &Host {
        self.world.node(id).expect("add_flow added hosts only")
    }

    pub(super) fn counters(&self, id: NodeId) -> &AppCounters {
        let counters = self.host(id).counters();
        counters.expect("every application of a scenario has counters")
    }

    /// Returns the counters of the connection at one end, once it exists.
    pub(super) fn stats(&self, id: NodeId) -> Option<ConnectionStats> {
        let host = self.host(id);
        let handle = *host.connections().first()?;
        host.stats(handle)
    }

    /// Applies an action of the scenario to all connections of its flow.
    pub(super) fn act(&mut self, action: &Action) {
        let now = self.world.now();
        let is_affected = |flow: &Flow| flow.name == action.flow || flow.group == action.flow;
        for actor in self.actors.iter().filter(|actor| is_affected(&actor.flow)) {
            let Some(host) = self.world.node_mut::<Host>(actor.client) else {
                continue;
            };
            let Some(handle) = host.connections().first().copied() else {
                continue;
            };
            host.act(now, |_: &mut dyn App, context: &mut Context<'_>| {
                match action.what {
                    ActionKind::Close => context.close(handle, 0, b"closed by the scenario"),
                    ActionKind::KeyUpdate => {
                        if let Some(connection) = context.connection(handle) {
                            // Key updates that come too early are refused. The counter shows that
                            // none happened.
                            let _ = connection.initiate_key_update(now);
                        }
                    }
                }
            });
        }
    }
}

/// Flows have separate networks, in which a NAT can choose other addresses.
fn address(side: u8, index: usize, port: u16) -> SocketAddr {
    let index = u16::try_from(index).expect("scenarios have a thousand flows at most");
    let [high, low] = index.to_be_bytes();
    SocketAddr::from(([10, side * 64 + high, low, 1], port))
}

fn client(spec: HostSpec, server: SocketAddr, flow: &Flow) -> Host {
    match flow.kind {
        Kind::Bulk { direction, amount } => Host::new(
            spec,
            Bulk::new(server, direction, amount).starting_at(flow.start),
        ),
        Kind::Requests {
            request,
            response,
            repeat,
            interval,
        } => {
            let exchange = Exchange::new(server, request, response, repeat);
            Host::new(spec, exchange.every(interval).starting_at(flow.start))
        }
        Kind::Paced {
            size,
            interval,
            end,
        } => Host::new(
            spec,
            Paced::new(server, size, interval).between(flow.start, end),
        ),
    }
}

/// Records the losses of the sending end, and forwards all records to the other sinks.
#[derive(Debug)]
struct Recorder {
    sender: Side,
    losses: Arc<Mutex<Vec<Point>>>,
    others: Option<Arc<dyn SinkFactory>>,
}

impl SinkFactory for Recorder {
    fn sink(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        let others = self.others.as_ref();
        let other = others.and_then(|others| others.sink(original_destination, side));
        if side != self.sender {
            return other;
        }
        let losses = Losses {
            points: Arc::clone(&self.losses),
        };
        Some(match other {
            Some(other) => Box::new(Tee(losses, other)),
            None => Box::new(losses),
        })
    }
}

/// Records the time and number of each lost packet.
struct Losses {
    points: Arc<Mutex<Vec<Point>>>,
}

impl Sink for Losses {
    fn record(&mut self, now: Time, record: &Record) {
        let Record::PacketLost(lost) = record else {
            return;
        };
        let mut points = self.points.lock();
        if points.len() < MAX_LOSSES {
            points.push(Point {
                at: now,
                value: lost.packet_number,
            });
        }
    }

    fn detail(&self) -> Detail {
        Detail::Events
    }
}
