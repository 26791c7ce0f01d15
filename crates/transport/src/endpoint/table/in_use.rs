//! The connection that is in use, to which panics and values of users that end are attributed.

use courser_base::foreign;

use super::handle::ConnectionHandle;
use crate::connection::Connection;

/// Notes the connection that is used from now on.
#[inline]
pub fn note_use(in_use: &mut Option<ConnectionHandle>, handle: ConnectionHandle) {
    *in_use = Some(handle);
    foreign::set_owner(handle.to_bits());
}

/// Drops a connection that is over, after its sinks, which may have more to do.
pub fn drop_connection(mut connection: Box<Connection>) {
    connection.tap().set(None);
    connection.tap().set_guest(None);
    foreign::defer(connection);
}
