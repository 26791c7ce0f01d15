//! Sinks of QUIC connections, by the address that the server listens on.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use courser_quic::telemetry::{Sink, SinkFactory};
use courser_quic::{ConnectionId, Side};

use super::Server;

/// Makes the sinks of an address.
#[derive(Clone)]
pub(super) struct MakeSinks(Arc<dyn Fn(SocketAddr) -> Arc<dyn SinkFactory> + Send + Sync>);

impl fmt::Debug for MakeSinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakeSinks")
    }
}

/// The sinks of one address. The configuration needs them before the system has chosen a port, so that they are made
/// later.
#[derive(Debug)]
pub(super) struct AddressSinks {
    make: MakeSinks,
    made: OnceLock<Arc<dyn SinkFactory>>,
}

impl AddressSinks {
    pub(super) fn new(make: &MakeSinks) -> Arc<Self> {
        Arc::new(Self {
            make: make.clone(),
            made: OnceLock::new(),
        })
    }

    /// Makes the sinks, once. No client can know a port before that the system has just chosen, so that none is missed.
    pub(super) fn begin(&self, address: SocketAddr) {
        self.made.get_or_init(|| (self.make.0)(address));
    }
}

impl SinkFactory for AddressSinks {
    fn sink(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        self.made.get()?.sink(original_destination, side)
    }
}

impl Server {
    /// Records QUIC connections with sinks that know the address at which the client arrived, for example to count
    /// those of each address apart. They replace the sinks of [`Server::transport`].
    ///
    /// `sinks` is called once for each address that the server listens on. The address has the port that the system
    /// chose if the program asked for port 0.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    ///
    /// use courser::telemetry::{Sink, SinkFactory};
    ///
    /// #[derive(Debug)]
    /// struct Log(std::net::SocketAddr);
    ///
    /// impl SinkFactory for Log {
    ///     fn sink(&self, _: &courser::ConnectionId, _: courser::Side) -> Option<Box<dyn Sink>> {
    ///         println!("a client arrived at {}", self.0);
    ///         None
    ///     }
    /// }
    ///
    /// let server = courser::serve("[::]:4433", courser::Identity::dev()?);
    /// let server = server.sinks(|address| Arc::new(Log(address)));
    /// # drop(server);
    /// # Ok(()) }
    /// ```
    pub fn sinks(
        mut self,
        sinks: impl Fn(SocketAddr) -> Arc<dyn SinkFactory> + Send + Sync + 'static,
    ) -> Self {
        self.quic.sinks = Some(MakeSinks(Arc::new(sinks)));
        self
    }
}
