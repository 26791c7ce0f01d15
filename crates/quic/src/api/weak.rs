//! Handles that do not keep a connection.

use std::sync::{Arc, Weak};

use crate::api::connection::Connection;
use crate::api::handles::ConnectionRef;

/// A handle that does not keep its connection: when all [`Connection`]s and streams are dropped,
/// the connection is closed although this exists.
///
/// Suits caches and tables of connections. Comes from [`Connection::downgrade`].
#[derive(Clone, Debug)]
pub struct WeakConnection(Weak<ConnectionRef>);

impl WeakConnection {
    /// Returns a handle that keeps the connection, or `None` if its last handle was dropped.
    ///
    /// The connection may be over in either case; see
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
