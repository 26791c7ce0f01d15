//! An alternative service (RFC 7838).

use std::time::SystemTime;

use super::super::origin::Origin;

/// A server that offers an origin over HTTP/3.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Alternative {
    /// The host, or empty for the host of the origin.
    pub(crate) host: Box<str>,
    pub(crate) port: u16,
    pub(crate) expires: SystemTime,
    /// True if it remains valid when the network changes (RFC 7838 §3.1).
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

    /// Returns true if both have the same host and port.
    pub(crate) fn is_same_server(&self, other: &Self) -> bool {
        self.host == other.host && self.port == other.port
    }

    /// Returns true if host and port are those of the origin, so that only the protocol differs.
    pub(crate) fn is_same_authority(&self, origin: &Origin) -> bool {
        self.host(origin) == origin.host() && self.port == origin.port()
    }
}
