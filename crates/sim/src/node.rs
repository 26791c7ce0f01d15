//! The interface of machines in a world.

use std::any::Any;

use courser_base::Time;

use crate::packet::{Packet, TooBig};

/// A machine of a world, which receives packets, has timers, and sends packets.
///
/// The world may call it any number of times at one point in time: first [`receive`](Node::receive)
/// for all packets that have arrived, then [`run`](Node::run), then [`transmit`](Node::transmit)
/// until that returns `None`. It does so again at the time of [`next_timeout`](Node::next_timeout).
///
/// It is [`Any`], so that a world can return the machine with its concrete type.
pub trait Node: Any {
    /// Receives a packet that has arrived at an address of the machine.
    fn receive(&mut self, now: Time, packet: Packet);
    /// Receives the report of a router that a packet of this machine was too large and dropped. The
    /// world calls it as it calls [`receive`](Node::receive). The default ignores ICMP.
    fn packet_too_big(&mut self, _now: Time, _message: &TooBig) {}
    /// Fires the timers that are due, and runs the application.
    fn run(&mut self, now: Time);
    /// Returns the next packet to send now.
    fn transmit(&mut self, now: Time) -> Option<Packet>;
    /// Returns the time of the next call of [`run`](Node::run) without a packet, the earliest that
    /// any part needs.
    fn next_timeout(&self) -> Option<Time>;
}
