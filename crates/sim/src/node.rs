//! What takes part in a world.

use std::any::Any;

use courser_base::Time;

use crate::packet::{Packet, TooBig};

/// A machine of the world: it takes packets, has timers, and sends packets.
///
/// The world calls it at one point in time as often as it likes: first [`receive`](Node::receive)
/// for all that has arrived, then [`run`](Node::run), then [`transmit`](Node::transmit) until
/// that returns `None`. It does so again when [`next_timeout`](Node::next_timeout) has come.
///
/// It is [`Any`], so that a world can give back the machine that was put into it.
pub trait Node: Any {
    /// A packet has arrived.
    fn receive(&mut self, now: Time, packet: Packet);
    /// A router has dropped a packet of this machine because it was too large, and says so.
    /// Called as [`receive`](Node::receive) is. Who does not listen to ICMP does nothing.
    fn packet_too_big(&mut self, _now: Time, _message: &TooBig) {}
    /// Runs timers that are due, and the application.
    fn run(&mut self, now: Time);
    /// The next packet to send now.
    fn transmit(&mut self, now: Time) -> Option<Packet>;
    /// When to call [`run`](Node::run) without a packet; not later than asked for by any part.
    fn next_timeout(&self) -> Option<Time>;
}
