//! TLS configurations of clients and servers, created once per process.

use std::sync::{Arc, OnceLock};

use courser_crypto::{ClientTls, ServerTls};

/// Returns the configuration of a server under attack. Its signatures have a fixed length.
pub(crate) fn server() -> Arc<dyn ServerTls> {
    static CONFIG: OnceLock<Arc<dyn ServerTls>> = OnceLock::new();
    Arc::clone(CONFIG.get_or_init(|| courser_sim::host::server_tls(ALPN)))
}

/// Returns the configuration of a client under attack. It trusts the server's certificate and resumes
/// no sessions.
pub(crate) fn client() -> Arc<dyn ClientTls> {
    static CONFIG: OnceLock<Arc<dyn ClientTls>> = OnceLock::new();
    Arc::clone(CONFIG.get_or_init(|| courser_sim::host::client_tls(ALPN)))
}

/// Returns the configuration of a hostile client.
pub(crate) fn hostile_client() -> Arc<dyn ClientTls> {
    static CONFIG: OnceLock<Arc<dyn ClientTls>> = OnceLock::new();
    Arc::clone(CONFIG.get_or_init(|| courser_adversary::client_tls(ALPN)))
}

/// Returns the configuration of a hostile server. The client trusts its certificate.
pub(crate) fn hostile_server() -> Arc<dyn ServerTls> {
    server()
}

const ALPN: &[u8] = b"h3";
