//! Routes of packets.

use std::collections::BTreeMap;

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
    /// The opposite direction.
    pub back: LinkId,
}

/// The present or next place of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Place {
    Link(LinkId),
    Node(NodeId),
}

/// The next place for each place and destination.
#[derive(Debug, Default)]
pub(super) struct Routes {
    next: BTreeMap<(Place, NodeId), Place>,
}

impl Routes {
    pub(super) fn add(&mut self, from: NodeId, to: NodeId, links: &[LinkId]) {
        let mut place = Place::Node(from);
        for link in links {
            self.next.insert((place, to), Place::Link(*link));
            place = Place::Link(*link);
        }
        self.next.insert((place, to), Place::Node(to));
    }

    pub(super) fn next(&self, from: Place, to: NodeId) -> Option<Place> {
        self.next.get(&(from, to)).copied()
    }
}
