//! The world: hosts, links between them, one clock, one seed.

mod error;
mod machines;
mod routes;
mod timetable;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use courser_base::Time;

use crate::link::{DuplexSpec, Link, Nat};
use crate::machine::Notifiers;
use crate::node::Node;
use crate::packet::{Packet, TooBig};
use crate::seed::derive;
use crate::trace::{Listener, PacketEvent, Trace};

pub use self::error::Stall;
pub use self::machines::NotDone;
pub use self::routes::{LinkId, LinkPair, NodeId};

use self::routes::{PacketLocation, Routes};
use self::timetable::Timetable;

/// Hosts and links in virtual time.
///
/// Everything follows from the seed and from the order in which the world was built. Events at one
/// point in time happen in the order in which they were scheduled.
#[derive(Debug)]
pub struct World {
    seed: u64,
    now: Time,
    machines: Vec<Machine>,
    wires: Vec<Wire>,
    addresses: BTreeMap<IpAddr, NodeId>,
    /// Machines behind NATs, by their networks.
    hidden: BTreeMap<IpAddr, NodeId>,
    nats: Vec<Nat>,
    routes: Routes,
    timetable: Timetable<PacketLocation>,
    /// Machines that received something at this point in time and have not run since.
    ready: Vec<NodeId>,
    /// Machines with a task that another machine's task woke.
    notifiers: Notifiers,
    trace: Trace,
    steps: u64,
}

struct Machine {
    name: String,
    node: Box<dyn Node>,
    is_ready: bool,
    calls: CallCount,
}

#[derive(Debug)]
struct Wire {
    name: String,
    link: Link,
    /// The NAT whose inside the packets from this link enter.
    nat_in: Option<usize>,
    /// The NAT whose outside the packets for this link come from.
    nat_out: Option<usize>,
    calls: CallCount,
}

/// The number of calls at one point in time.
#[derive(Clone, Copy, Debug, Default)]
struct CallCount {
    at: Time,
    count: u32,
}

/// The number of calls at one point in time after which [`Stall`] is returned. The largest
/// legitimate number is that of a jumbo batch of a few thousand packets through a link without a
/// rate.
const MAX_CALLS: u32 = 100_000;

impl World {
    /// Creates an empty world at time zero.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            now: Time::ZERO,
            machines: Vec::new(),
            wires: Vec::new(),
            addresses: BTreeMap::new(),
            hidden: BTreeMap::new(),
            nats: Vec::new(),
            routes: Routes::default(),
            timetable: Timetable::default(),
            ready: Vec::new(),
            notifiers: Notifiers::default(),
            trace: Trace::default(),
            steps: 0,
        }
    }

    /// Returns the seed that everything follows from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns a seed for one part of this world, by the name of the part.
    pub fn seed_for(&self, name: &str) -> u64 {
        derive(self.seed, name)
    }

    /// Returns the virtual time since the start of the world.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Adds a machine. It first runs when the world does.
    ///
    /// A machine behind a NAT needs a network (/24 or /64) of its own, from which the NAT takes
    /// other addresses.
    ///
    /// # Panics
    /// If another machine has this address.
    pub fn add(&mut self, name: &str, address: IpAddr, node: impl Node) -> NodeId {
        let id = NodeId(self.machines.len());
        let before = self.addresses.insert(address, id);
        assert!(before.is_none(), "{address} is in use");
        self.machines.push(Machine {
            name: name.to_owned(),
            node: Box::new(node),
            is_ready: false,
            calls: CallCount::default(),
        });
        self.make_ready(id);
        id
    }

    /// Gives a machine another address. Packets to it take the same routes as before.
    ///
    /// # Panics
    /// If another machine has this address.
    pub fn add_address(&mut self, id: NodeId, address: IpAddr) {
        let before = self.addresses.insert(address, id);
        assert!(
            before.is_none_or(|before| before == id),
            "{address} is in use"
        );
    }

    fn add_wire(&mut self, name: String, link: Link) -> LinkId {
        let id = LinkId(self.wires.len());
        self.wires.push(Wire {
            name,
            link,
            nat_in: None,
            nat_out: None,
            calls: CallCount::default(),
        });
        id
    }

    /// Adds a link with both directions, and its NAT if the specification has one.
    pub fn add_duplex(&mut self, name: &str, spec: &DuplexSpec) -> LinkPair {
        let (forward, back) = spec.links(self.seed_for(name));
        let pair = LinkPair {
            forward: self.add_wire(format!("{name} forward"), forward),
            back: self.add_wire(format!("{name} back"), back),
        };
        if let Some(nat) = spec.nat {
            let index = Some(self.nats.len());
            self.nats
                .push(Nat::new(nat, self.seed_for(&format!("{name} nat"))));
            self.wires[pair.forward.0].nat_out = index;
            self.wires[pair.back.0].nat_in = index;
        }
        pair
    }

    /// Returns the number of changes of mappings of a link's NAT, or zero without a NAT.
    pub fn rebindings(&self, pair: LinkPair) -> u64 {
        let nat = self.wires[pair.forward.0].nat_out;
        nat.and_then(|index| self.nats.get(index))
            .map_or(0, Nat::changes)
    }

    /// Connects two machines with a new link. Its `forward` direction leads from `a` to `b`.
    pub fn connect(&mut self, a: NodeId, b: NodeId, spec: &DuplexSpec) -> LinkPair {
        let name = format!("{}-{}", self.machines[a.0].name, self.machines[b.0].name);
        let pair = self.add_duplex(&name, spec);
        self.join(a, b, &[pair]);
        pair
    }

    /// Connects every machine on the left with every machine on the right through one shared link.
    /// Its `forward` direction leads from left to right.
    pub fn bottleneck(&mut self, left: &[NodeId], right: &[NodeId], spec: &DuplexSpec) -> LinkPair {
        let pair = self.add_duplex("bottleneck", spec);
        for a in left {
            for b in right {
                self.join(*a, *b, &[pair]);
            }
        }
        pair
    }

    /// Connects two machines through existing links, in their order from `a` to `b`.
    pub fn join(&mut self, a: NodeId, b: NodeId, pairs: &[LinkPair]) {
        let there: Vec<LinkId> = pairs.iter().map(|pair| pair.forward).collect();
        let back: Vec<LinkId> = pairs.iter().rev().map(|pair| pair.back).collect();
        self.route(a, b, &there);
        self.route(b, a, &back);
        if pairs
            .iter()
            .any(|pair| self.wires[pair.forward.0].nat_out.is_some())
        {
            self.route_network(a);
        }
    }

    /// Routes packets to any address in the network of a machine behind a NAT to that machine.
    fn route_network(&mut self, id: NodeId) {
        let of_machine = self.addresses.iter().filter(|(_, of)| **of == id);
        let networks: Vec<_> = of_machine.map(|(ip, _)| network(*ip)).collect();
        self.hidden.extend(networks.into_iter().map(|it| (it, id)));
    }

    /// Gives a machine a further address, with a new link from there to `peer`: packets from and to this address take it. Its
    /// `forward` direction leads to `peer`.
    ///
    /// # Panics
    /// If another machine has this address.
    pub fn connect_from(
        &mut self,
        id: NodeId,
        address: IpAddr,
        peer: NodeId,
        spec: &DuplexSpec,
    ) -> LinkPair {
        self.add_address(id, address);
        let name = format!("{}-{address}", self.machines[id.0].name);
        let pair = self.add_duplex(&name, spec);
        self.routes.add_at(address, id, peer, pair);
        if spec.nat.is_some() {
            self.hidden.insert(network(address), id);
        }
        pair
    }

    /// Routes packets of `from` to `to` through these links. Without links they arrive at once.
    pub fn route(&mut self, from: NodeId, to: NodeId, links: &[LinkId]) {
        self.routes.add(from, to, links);
    }

    /// Returns one direction of a link, for its statistics and queue.
    pub fn link(&self, id: LinkId) -> &Link {
        &self.wires[id.0].link
    }

    /// Changes a link. The world updates the time of its next event.
    pub fn change_link<T>(&mut self, id: LinkId, change: impl FnOnce(&mut Link) -> T) -> T {
        let result = change(&mut self.wires[id.0].link);
        self.schedule_link(id);
        result
    }

    /// Returns the name of a link's direction.
    pub fn link_name(&self, id: LinkId) -> &str {
        &self.wires[id.0].name
    }

    /// Returns a machine if it has this type.
    pub fn node<N: Node>(&self, id: NodeId) -> Option<&N> {
        let node: &dyn std::any::Any = &*self.machines[id.0].node;
        node.downcast_ref()
    }

    /// Returns a machine if it has this type. It runs again at this point in time.
    pub fn node_mut<N: Node>(&mut self, id: NodeId) -> Option<&mut N> {
        self.make_ready(id);
        let node: &mut dyn std::any::Any = &mut *self.machines[id.0].node;
        node.downcast_mut()
    }

    /// Returns the digest of all packets sent and delivered so far, which is the same on every
    /// machine.
    pub fn digest(&self) -> u64 {
        self.trace.digest()
    }

    /// Returns the number of events in the trace so far.
    pub fn events(&self) -> u64 {
        self.trace.events()
    }

    /// Returns the number of steps so far: runs of machines and packets out of links.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Passes every event of the trace to `listener` from now on.
    pub fn on_trace(&mut self, listener: Listener) {
        self.trace.listen(listener);
    }

    /// Runs the world for a time.
    ///
    /// # Errors
    /// [`Stall`] if time stands still because a machine or link never stops at one point in time.
    pub fn run_for(&mut self, time: Duration) -> Result<(), Stall> {
        self.run_until(time, |_| false).map(|_| ())
    }

    /// Runs the world until `done` returns true, but no longer than `limit`. The world calls `done`
    /// after every point in time with events. Returns the last result of `done`.
    ///
    /// # Errors
    /// As for [`World::run_for`].
    pub fn run_until(
        &mut self,
        limit: Duration,
        mut done: impl FnMut(&Self) -> bool,
    ) -> Result<bool, Stall> {
        let end = self.now + limit;
        loop {
            self.run_ready()?;
            if done(self) {
                return Ok(true);
            }
            match self.timetable.next_time() {
                Some(at) if at <= end => self.advance_to(at)?,
                _ => {
                    self.now = end;
                    return Ok(done(self));
                }
            }
        }
    }

    /// Processes everything that is due at `at`, without running machines.
    fn advance_to(&mut self, at: Time) -> Result<(), Stall> {
        self.now = self.now.max(at);
        while let Some(place) = self.timetable.take(at) {
            match place {
                PacketLocation::Node(id) => {
                    if self.is_due(id) {
                        self.make_ready(id);
                    } else {
                        self.schedule_node(id);
                    }
                }
                PacketLocation::Link(id) => self.forward_from_link(id)?,
            }
        }
        Ok(())
    }

    fn is_due(&self, id: NodeId) -> bool {
        let next = self.machines[id.0].node.next_timeout();
        next.is_some_and(|at| at <= self.now)
    }

    /// Runs all ready machines, and those that they make ready, until none is ready.
    fn run_ready(&mut self) -> Result<(), Stall> {
        self.make_woken_machines_ready();
        while !self.ready.is_empty() {
            for id in std::mem::take(&mut self.ready) {
                self.run_node(id)?;
            }
            // A link without delay delivers packets at once.
            while self.timetable.next_time().is_some_and(|at| at <= self.now) {
                self.advance_to(self.now)?;
            }
            self.make_woken_machines_ready();
        }
        Ok(())
    }

    fn run_node(&mut self, id: NodeId) -> Result<(), Stall> {
        let now = self.now;
        let machine = &mut self.machines[id.0];
        machine.is_ready = false;
        machine.calls.count(now, &machine.name)?;
        self.steps += 1;
        machine.node.run(now);
        while let Some(packet) = self.machines[id.0].node.transmit(now) {
            let machine = &mut self.machines[id.0];
            machine.calls.count(now, &machine.name)?;
            self.trace.record(now, PacketEvent::Sent, &packet);
            self.forward(PacketLocation::Node(id), packet);
        }
        self.schedule_node(id);
        Ok(())
    }

    /// Forwards all packets that have left a link by now.
    fn forward_from_link(&mut self, id: LinkId) -> Result<(), Stall> {
        let now = self.now;
        while let Some(packet) = self.wires[id.0].link.poll(now) {
            let wire = &mut self.wires[id.0];
            wire.calls.count(now, &wire.name)?;
            self.steps += 1;
            match wire.nat_in {
                None => self.forward(PacketLocation::Link(id), packet),
                Some(nat) => self.deliver_inbound(id, nat, packet),
            }
        }
        while let Some(message) = self.wires[id.0].link.poll_report(now) {
            let wire = &mut self.wires[id.0];
            wire.calls.count(now, &wire.name)?;
            self.report_too_big(message);
        }
        self.schedule_link(id);
        Ok(())
    }

    /// Reports to the sender of a packet that it was too large, through any NATs.
    fn report_too_big(&mut self, mut message: TooBig) {
        let now = self.now;
        self.trace
            .record(now, PacketEvent::Refused, &message.packet);
        let packet = &mut message.packet;
        let mut return_packet = Packet {
            destination: packet.source,
            ..packet.clone()
        };
        if self
            .nats
            .iter_mut()
            .any(|nat| nat.inbound(now, &mut return_packet))
        {
            packet.source = return_packet.destination;
        }
        if let Some(to) = self.addresses.get(&packet.source.ip()).copied() {
            self.machines[to.0].node.packet_too_big(now, &message);
            self.make_ready(to);
        }
    }

    fn deliver_inbound(&mut self, id: LinkId, nat: usize, mut packet: Packet) {
        if self.nats[nat].inbound(self.now, &mut packet) {
            self.forward(PacketLocation::Link(id), packet);
        } else {
            self.trace.record(self.now, PacketEvent::Unmapped, &packet);
        }
    }

    /// Forwards a packet from a machine or link to the next one on its route.
    fn forward(&mut self, from: PacketLocation, mut packet: Packet) {
        let now = self.now;
        let ip = packet.destination.ip();
        let owner = self.addresses.get(&ip);
        let next = owner
            .or_else(|| self.hidden.get(&network(ip)))
            .and_then(|to| {
                let at_address = self.routes.next_at(from, packet.source.ip(), ip);
                at_address.or_else(|| self.routes.next(from, *to))
            });
        match next {
            None => self.trace.record(now, PacketEvent::Unroutable, &packet),
            Some(PacketLocation::Node(to)) => {
                self.trace.record(now, PacketEvent::Delivered, &packet);
                self.machines[to.0].node.receive(now, packet);
                self.make_ready(to);
            }
            Some(PacketLocation::Link(link)) => {
                if let Some(nat) = self.wires[link.0].nat_out {
                    self.nats[nat].outbound(now, &mut packet);
                }
                self.wires[link.0].link.send(now, packet);
                self.schedule_link(link);
            }
        }
    }

    fn make_ready(&mut self, id: NodeId) {
        let machine = &mut self.machines[id.0];
        if !std::mem::replace(&mut machine.is_ready, true) {
            self.ready.push(id);
        }
    }

    fn schedule_node(&mut self, id: NodeId) {
        if let Some(at) = self.machines[id.0].node.next_timeout() {
            self.timetable
                .put(at.max(self.now), PacketLocation::Node(id));
        }
    }

    fn schedule_link(&mut self, id: LinkId) {
        if let Some(at) = self.wires[id.0].link.next_time() {
            self.timetable
                .put(at.max(self.now), PacketLocation::Link(id));
        }
    }
}

/// Returns the network of an address, /24 or /64. A NAT chooses addresses within it.
fn network(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits() & !0xff).into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
    }
}

impl CallCount {
    fn count(&mut self, now: Time, name: &str) -> Result<(), Stall> {
        if self.at != now {
            *self = Self { at: now, count: 0 };
        }
        self.count += 1;
        if self.count <= MAX_CALLS {
            return Ok(());
        }
        Err(Stall {
            at: now,
            name: name.to_owned(),
            steps: self.count,
        })
    }
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
