//! Another place that serves an origin.

use std::time::SystemTime;

use super::super::origin::Origin;

/// Another place that serves an origin over HTTP/3.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Alternative {
    /// The host; if empty, the host of the origin.
    pub(crate) host: Box<str>,
    pub(crate) port: u16,
    pub(crate) expires: SystemTime,
    /// True if it stays valid when the network changes (RFC 7838 §3.1).
    pub(crate) persists: bool,
}

impl Alternative {
    /// Returns the host to connect to.
    pub(crate) fn host<'a>(&'a self, origin: &'a Origin) -> &'a str {
        match &*self.host {
            "" => origin.host(),
            host => host,
        }
    }

    /// Returns true if it is the origin's own host and port, over another protocol.
    pub(crate) fn is_same_place(&self, origin: &Origin) -> bool {
        self.host(origin) == origin.host() && self.port == origin.port()
    }
}
