//! Events of a server.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// An event about one client of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A client has disconnected.
    Closed {
        /// `quic` or `tls over tcp`.
        protocol: &'static str,
        /// The address of the client.
        peer: SocketAddr,
        /// The bytes that its requests transferred.
        moved: Moved,
    },
    /// Serving one client failed. Other clients are not affected.
    Failed {
        /// `quic` or `tls over tcp`.
        protocol: &'static str,
        /// The address of the client.
        peer: SocketAddr,
        /// The reason in one line.
        error: String,
    },
}

/// Bytes that a connection transferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moved {
    /// Bytes received from the client.
    pub received: u64,
    /// Bytes sent to the client.
    pub sent: u64,
}

/// The function that receives the events of a server.
#[derive(Clone)]
pub(crate) struct Events(Arc<dyn Fn(Event) + Send + Sync>);

impl Events {
    pub(crate) fn new(handler: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(handler))
    }

    pub(crate) fn closed(&self, protocol: &'static str, peer: SocketAddr, moved: Moved) {
        (self.0)(Event::Closed {
            protocol,
            peer,
            moved,
        });
    }

    pub(crate) fn failed(
        &self,
        protocol: &'static str,
        peer: SocketAddr,
        error: &dyn fmt::Display,
    ) {
        (self.0)(Event::Failed {
            protocol,
            peer,
            error: error.to_string(),
        });
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}
