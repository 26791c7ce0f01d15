//! The owners of datagrams.

use crate::endpoint::handle::ConnectionHandle;

/// The owner of a connection ID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    Connection(ConnectionHandle),
    /// A client that waits to be accepted, by its number.
    Waiting(u64),
}

impl Owner {
    /// Returns the connection, if the owner is one.
    pub fn connection(self) -> Option<ConnectionHandle> {
        match self {
            Self::Connection(handle) => Some(handle),
            Self::Waiting(_) => None,
        }
    }
}
