//! Sinks of QUIC connections for each address that the server listens on.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use courser_quic::telemetry::{Sink, SinkFactory};
use courser_quic::{ConnectionId, Side};

/// Creates the sinks of an address.
#[derive(Clone)]
pub(crate) struct MakeSinks(
    pub(crate) Arc<dyn Fn(SocketAddr) -> Arc<dyn SinkFactory> + Send + Sync>,
);

impl fmt::Debug for MakeSinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakeSinks")
    }
}

/// The sinks of one address. They are created after the configuration, because the system may choose the port
/// when the socket is opened.
#[derive(Debug)]
pub(crate) struct AddressSinks {
    make: MakeSinks,
    sinks: OnceLock<Arc<dyn SinkFactory>>,
}

impl AddressSinks {
    pub(crate) fn new(make: &MakeSinks) -> Arc<Self> {
        Arc::new(Self {
            make: make.clone(),
            sinks: OnceLock::new(),
        })
    }

    /// Creates the sinks. Clients cannot have connected earlier to a port that was just chosen, so no connection
    /// is missed.
    pub(crate) fn begin(&self, address: SocketAddr) {
        self.sinks.get_or_init(|| (self.make.0)(address));
    }
}

impl SinkFactory for AddressSinks {
    fn sink(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        self.sinks.get()?.sink(original_destination, side)
    }
}
