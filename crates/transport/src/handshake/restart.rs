//! The means of a client's first flight in another version, and the names of tokens of each version.
//! RFC 9368 §2.1, RFC 9369 §5.

use std::borrow::Cow;
use std::sync::Arc;

use courser_crypto::ClientTls;
use courser_wire::Version;
use courser_wire::transport_parameters::TransportParameters;

/// The values that a client needs for a first flight in another version.
pub(crate) struct Restart {
    pub(crate) tls: Arc<dyn ClientTls>,
    pub(crate) server_name: String,
    pub(crate) parameters: TransportParameters,
    pub(crate) grease: Option<u64>,
}

/// Returns the name under which a client stores tokens: they belong to one version (RFC 9369 §5).
pub(super) fn token_key(server_name: &str, version: Version) -> Cow<'_, str> {
    match version {
        Version::V1 => Cow::Borrowed(server_name),
        other => Cow::Owned(format!("{server_name}#quic-v{other}")),
    }
}
