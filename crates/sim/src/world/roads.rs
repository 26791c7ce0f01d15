//! Which way packets go.

use std::collections::BTreeMap;

/// A machine of a world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub(super) usize);

/// One direction of a link of a world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub(super) usize);

/// Both directions of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkPair {
    /// From the left to the right, or from the first to the second.
    pub forward: LinkId,
    /// The other way.
    pub back: LinkId,
}

/// Where a packet is, or goes next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Place {
    Link(LinkId),
    Node(NodeId),
}

/// For each place and destination, the next place.
#[derive(Debug, Default)]
pub(super) struct Roads {
    next: BTreeMap<(Place, NodeId), Place>,
}

impl Roads {
    pub(super) fn lead(&mut self, from: NodeId, to: NodeId, links: &[LinkId]) {
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
