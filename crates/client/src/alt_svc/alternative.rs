//! Another place that serves an origin.

use std::time::SystemTime;

use super::super::origin::Origin;

/// Where else an origin can be had, over HTTP/3.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Alternative {
    /// The same host as the origin's when empty.
    pub(crate) host: Box<str>,
    pub(crate) port: u16,
    pub(crate) expires: SystemTime,
    /// Stays when the network changes (RFC 7838 §3.1).
    pub(crate) persists: bool,
}

impl Alternative {
    /// The host to connect to.
    pub(crate) fn host<'a>(&'a self, origin: &'a Origin) -> &'a str {
        match &*self.host {
            "" => origin.host(),
            host => host,
        }
    }

    /// True when it is the origin itself, only over another protocol.
    pub(crate) fn is_same_place(&self, origin: &Origin) -> bool {
        self.host(origin) == origin.host() && self.port == origin.port()
    }
}
