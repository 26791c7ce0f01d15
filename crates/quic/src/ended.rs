//! The values of users that wait to be dropped. [`remains`](crate::remains) has what happens to them.

use courser_base::Time;
use courser_base::foreign::Remains;
use courser_transport::ConnectionHandle;

/// Values that wait to be dropped, apart from those in the slots of connections.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Those whose connection has no handle any more, or that belong to none.
    pub(crate) others: Vec<Remains>,
    /// Connections in whose slots values wait.
    pub(crate) connections: Vec<ConnectionHandle>,
    /// When the first of them ended.
    pub(crate) since: Option<Time>,
    /// The driver is gone, and tasks drop the values of all connections.
    pub(crate) has_no_driver: bool,
}

/// Values of one connection, for a thread that may block.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) connection: Option<ConnectionHandle>,
    pub(crate) values: Vec<Remains>,
}

/// The values that have ended on one connection.
#[derive(Debug, Default)]
pub(crate) struct OfConnection {
    pub(crate) values: Vec<Remains>,
    /// A thread that may block drops earlier ones.
    pub(crate) is_handed_out: bool,
}
