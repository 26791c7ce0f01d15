//! Attacks in a world of the simulator.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use courser_base::{Ecn, Time};
use courser_sim::node::Node;
use courser_sim::packet::Packet;

use crate::attack::{Attack, Pace};
use crate::attacker::Attacker;

/// A node of a world that runs an attack.
pub struct AttackNode {
    address: IpAddr,
    first_port: u16,
    attacker: Attacker,
    attack: Box<dyn Attack>,
    interval: Duration,
    next_turn: Option<Time>,
}

impl AttackNode {
    /// Runs `attack` from `address`, whose port is the first of the local ports.
    ///
    /// An attack at full speed has one turn per `interval`, because simulated time does not advance
    /// while a node is busy.
    pub fn new(
        address: SocketAddr,
        mut attacker: Attacker,
        mut attack: Box<dyn Attack>,
        interval: Duration,
    ) -> Self {
        attack.start(&mut attacker);
        Self {
            address: address.ip(),
            first_port: address.port(),
            attacker,
            attack,
            interval,
            next_turn: Some(Time::from_nanos(0)),
        }
    }

    /// Returns the attacker with its connections.
    pub fn attacker(&self) -> &Attacker {
        &self.attacker
    }

    /// Stops the turns of the attack. Its connections remain and still send acknowledgments.
    pub fn stop(&mut self) {
        self.next_turn = None;
    }
}

impl Node for AttackNode {
    fn receive(&mut self, now: Time, packet: Packet) {
        let port = packet.destination.port().wrapping_sub(self.first_port);
        let mut bytes = packet.payload.to_vec();
        self.attacker.receive(now, port, packet.source, &mut bytes);
    }

    fn run(&mut self, now: Time) {
        if self.next_turn.is_some_and(|at| at <= now) {
            self.next_turn = Some(match self.attack.turn(&mut self.attacker, now) {
                Pace::Now => now + self.interval,
                Pace::At(at) => at.max(now + self.interval),
            });
        }
        self.attacker.transmit(now);
    }

    fn transmit(&mut self, _now: Time) -> Option<Packet> {
        let datagram = self.attacker.poll_datagram()?;
        let port = self.first_port.wrapping_add(datagram.port);
        Some(Packet {
            source: SocketAddr::from((self.address, port)),
            destination: datagram.to,
            ecn: Ecn::NotEct,
            payload: Bytes::from(datagram.bytes),
        })
    }

    fn next_timeout(&self) -> Option<Time> {
        let connections = self.attacker.next_timeout();
        connections.into_iter().chain(self.next_turn).min()
    }
}

impl std::fmt::Debug for AttackNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AttackNode")
            .field("address", &self.address)
            .field("attacker", &self.attacker)
            .finish_non_exhaustive()
    }
}
