//! TLS configurations of hostile endpoints. They accept any certificate.

use std::sync::Arc;

use courser_crypto::{ClientTls, ServerTls};
use courser_tls::rustls::client::Resumption;
use courser_tls::{ClientOptions, TlsClient, Trust, client_config};

/// Returns the configuration of a hostile client. It never resumes sessions, so that every handshake
/// costs the server a signature.
pub fn client_tls(alpn: &[u8]) -> Arc<dyn ClientTls> {
    let options = ClientOptions {
        resumption: Resumption::disabled(),
        ..ClientOptions::new(Trust::AnyServer, vec![alpn.to_vec()])
    };
    let config = client_config(options).expect("the options are valid");
    Arc::new(TlsClient::new(config).expect("the configuration supports QUIC"))
}

/// Returns the configuration of a hostile server, with the certificate of the simulator.
pub fn server_tls(alpn: &[u8]) -> Arc<dyn ServerTls> {
    courser_sim::host::server_tls(alpn)
}
