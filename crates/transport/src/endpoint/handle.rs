//! Identifiers of connections.

/// Identifies a connection of one endpoint. Handles of connections that are gone match nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionHandle {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl ConnectionHandle {
    /// Returns a small number that is unique among the living connections: an index for side
    /// tables.
    pub fn index(self) -> usize {
        self.index as usize
    }
}
