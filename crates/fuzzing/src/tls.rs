//! TLS of both kinds of ends, made once in a process.

use std::sync::{Arc, OnceLock};

use courser_crypto::{ClientTls, ServerTls};

/// TLS of a server that is attacked. Its signatures have a fixed length.
pub(crate) fn server() -> Arc<dyn ServerTls> {
    static MADE: OnceLock<Arc<dyn ServerTls>> = OnceLock::new();
    Arc::clone(MADE.get_or_init(|| courser_sim::host::server_tls(ALPN)))
}

/// TLS of a client that is attacked. It knows the server's certificate, and resumes nothing.
pub(crate) fn client() -> Arc<dyn ClientTls> {
    static MADE: OnceLock<Arc<dyn ClientTls>> = OnceLock::new();
    Arc::clone(MADE.get_or_init(|| courser_sim::host::client_tls(ALPN)))
}

/// TLS of a client that attacks.
pub(crate) fn hostile_client() -> Arc<dyn ClientTls> {
    static MADE: OnceLock<Arc<dyn ClientTls>> = OnceLock::new();
    Arc::clone(MADE.get_or_init(|| courser_adversary::client_tls(ALPN)))
}

/// TLS of a server that attacks: the certificate is the one that the client knows.
pub(crate) fn hostile_server() -> Arc<dyn ServerTls> {
    server()
}

const ALPN: &[u8] = b"h3";
