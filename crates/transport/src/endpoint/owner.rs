//! The owners of datagrams.

use super::handle::ConnectionHandle;

/// The owner of a connection ID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    Connection(ConnectionHandle),
    Waiting(u64),
}
