//! Handles that do not keep a connection.

use std::sync::{Arc, Weak};

use crate::api::connection::Connection;
use crate::api::handles::ConnectionRef;

/// A handle that does not keep its connection open: the connection is closed when all [`Connection`]s and streams
/// are dropped.
///
/// It suits caches and tables of connections. [`Connection::downgrade`] returns it.
#[derive(Clone, Debug)]
pub struct WeakConnection(Weak<ConnectionRef>);

impl WeakConnection {
    /// Returns a handle that keeps the connection open, or `None` if its last handle was dropped.
    ///
    /// The connection may already be over; see
    /// [`close_reason`](Connection::close_reason).
    pub fn upgrade(&self) -> Option<Connection> {
        self.0.upgrade().map(Connection)
    }
}

impl Connection {
    /// Returns a handle that does not keep the connection.
    pub fn downgrade(&self) -> WeakConnection {
        WeakConnection(Arc::downgrade(&self.0))
    }
}
