//! A first flight in another version, which a Version Negotiation packet may cause. RFC 9368 §2.1.

use std::sync::Arc;

use courser_base::foreign::Foreign;
use courser_crypto::{ClientTls, TicketOrigin, TlsSession, TlsStartError};
use courser_wire::Version;
use courser_wire::transport_parameters::TransportParameters;

/// The values that a client needs to start TLS again in another version.
pub(crate) struct Restart {
    pub(crate) tls: Foreign<Arc<dyn ClientTls>, true>,
    pub(crate) server_name: String,
    /// The server by name and port, for its tickets.
    pub(crate) server: String,
    pub(crate) parameters: TransportParameters,
    pub(crate) grease: Option<u64>,
}

impl Restart {
    /// Starts TLS with [`Restart::parameters`] for this version.
    pub(super) fn start(&self, version: Version) -> Result<Box<dyn TlsSession>, TlsStartError> {
        let mut bytes = Vec::with_capacity(256);
        self.parameters.encode(&mut bytes, self.grease);
        let origin = TicketOrigin {
            server: &self.server,
            version: Some(version.value()),
        };
        self.tls
            .start_with_tickets_of(origin, &self.server_name, bytes)
    }
}
