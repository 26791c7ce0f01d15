//! The owners of datagrams.

use crate::endpoint::table::handle::ConnectionHandle;

/// The owner of a connection ID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    Connection(ConnectionHandle),
    Waiting(u64),
}
