//! TLS of hostile endpoints: real, and trusting everybody.

use std::sync::Arc;

use courser_crypto::{ClientTls, ServerTls};
use courser_tls::rustls::client::Resumption;
use courser_tls::{ClientOptions, TlsClient, Trust, client_config};

/// TLS of a hostile client. It never resumes a session: every handshake costs the server a
/// signature.
pub fn client_tls(alpn: &[u8]) -> Arc<dyn ClientTls> {
    let options = ClientOptions {
        resumption: Resumption::disabled(),
        ..ClientOptions::new(Trust::AnyServer, vec![alpn.to_vec()])
    };
    let config = client_config(options).expect("an ALPN protocol is all that is needed");
    Arc::new(TlsClient::new(config).expect("the configuration is ours and fits QUIC"))
}

/// TLS of a hostile server, with the certificate of the simulator.
pub fn server_tls(alpn: &[u8]) -> Arc<dyn ServerTls> {
    courser_sim::host::server_tls(alpn)
}
