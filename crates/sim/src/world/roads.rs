//! Which way packets go.

use std::collections::BTreeMap;

use super::nat::Nat;

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
    pub(super) nats: Vec<Nat>,
}

impl Roads {
    pub(super) fn lead(&mut self, from: NodeId, to: NodeId, links: &[LinkId]) {
        let end = self.lead_as_far_as(from, to, links);
        self.next.insert((end, to), Place::Node(to));
    }

    /// Leads through links, and says nothing of what comes behind them.
    pub(super) fn lead_as_far_as(&mut self, from: NodeId, to: NodeId, links: &[LinkId]) -> Place {
        let mut place = Place::Node(from);
        for link in links {
            self.next.insert((place, to), Place::Link(*link));
            place = Place::Link(*link);
        }
        place
    }

    pub(super) fn next(&self, from: Place, to: NodeId) -> Option<Place> {
        self.next.get(&(from, to)).copied()
    }
}
