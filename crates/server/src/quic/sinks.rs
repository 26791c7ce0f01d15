//! Sinks of QUIC connections, by the address that the server listens on.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use courser_quic::telemetry::{Sink, SinkFactory};
use courser_quic::{ConnectionId, Side};

/// Makes the sinks of an address.
#[derive(Clone)]
pub(crate) struct MakeSinks(
    pub(crate) Arc<dyn Fn(SocketAddr) -> Arc<dyn SinkFactory> + Send + Sync>,
);

impl fmt::Debug for MakeSinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakeSinks")
    }
}

/// The sinks of one address. The configuration needs them before the system has chosen a port, so that they are made
/// later.
#[derive(Debug)]
pub(crate) struct AddressSinks {
    make: MakeSinks,
    made: OnceLock<Arc<dyn SinkFactory>>,
}

impl AddressSinks {
    pub(crate) fn new(make: &MakeSinks) -> Arc<Self> {
        Arc::new(Self {
            make: make.clone(),
            made: OnceLock::new(),
        })
    }

    /// Makes the sinks, once. Clients cannot connect earlier to a port that the system has just chosen, so none is missed.
    pub(crate) fn begin(&self, address: SocketAddr) {
        self.made.get_or_init(|| (self.make.0)(address));
    }
}

impl SinkFactory for AddressSinks {
    fn sink(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        self.made.get()?.sink(original_destination, side)
    }
}
