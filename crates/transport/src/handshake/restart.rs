//! The means of a client's first flight in another version. RFC 9368 §2.1.

use std::sync::Arc;

use courser_base::foreign::Foreign;
use courser_crypto::ClientTls;
use courser_wire::transport_parameters::TransportParameters;

/// The values that a client needs for a first flight in another version.
pub(crate) struct Restart {
    pub(crate) tls: Foreign<Arc<dyn ClientTls>, true>,
    pub(crate) server_name: String,
    /// The server by name and port, for its tickets.
    pub(crate) server: String,
    pub(crate) parameters: TransportParameters,
    pub(crate) grease: Option<u64>,
}
