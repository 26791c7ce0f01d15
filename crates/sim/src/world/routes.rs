//! Routes of packets.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// The ID of a machine in a world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub(super) usize);

/// The ID of one direction of a link in a world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub(super) usize);

/// The IDs of both directions of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkPair {
    /// The direction from left to right, or from the first machine to the second.
    pub forward: LinkId,
    /// The direction from right to left, or from the second machine to the first.
    pub back: LinkId,
}

/// The machine or link in which a packet is, or which it enters next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum PacketLocation {
    Link(LinkId),
    Node(NodeId),
}

/// The next location of a packet, by its present location and its destination.
#[derive(Debug, Default)]
pub(super) struct Routes {
    next: BTreeMap<(PacketLocation, NodeId), PacketLocation>,
    /// The next location of packets from and to further addresses of a machine.
    at_address: BTreeMap<(PacketLocation, IpAddr), PacketLocation>,
}

impl Routes {
    pub(super) fn add(&mut self, from: NodeId, to: NodeId, links: &[LinkId]) {
        let mut location = PacketLocation::Node(from);
        for link in links {
            self.next
                .insert((location, to), PacketLocation::Link(*link));
            location = PacketLocation::Link(*link);
        }
        self.next.insert((location, to), PacketLocation::Node(to));
    }

    /// Routes packets from and to an address of a machine through a link of its own.
    pub(super) fn add_at(&mut self, address: IpAddr, of: NodeId, peer: NodeId, pair: LinkPair) {
        let (forward, back) = (
            PacketLocation::Link(pair.forward),
            PacketLocation::Link(pair.back),
        );
        let (here, there) = (PacketLocation::Node(of), PacketLocation::Node(peer));
        self.at_address.insert((here, address), forward);
        self.at_address.insert((there, address), back);
        self.next.insert((forward, peer), there);
        self.next.insert((back, of), here);
    }

    /// Returns the next location of a packet from or to an address with a link of its own.
    pub(super) fn next_at(
        &self,
        from: PacketLocation,
        source: IpAddr,
        destination: IpAddr,
    ) -> Option<PacketLocation> {
        let mut ends = [source, destination].into_iter();
        ends.find_map(|address| self.at_address.get(&(from, address)).copied())
    }

    pub(super) fn next(&self, from: PacketLocation, to: NodeId) -> Option<PacketLocation> {
        self.next.get(&(from, to)).copied()
    }
}
