//! TLS of all hosts of all worlds, with one certificate.

use std::sync::{Arc, OnceLock};

use courser_crypto::{ClientTls, ServerTls};
use courser_tls::rustls::RootCertStore;
use courser_tls::rustls::pki_types::CertificateDer;
use courser_tls::{
    ClientOptions, Identity, ServerOptions, TlsClient, TlsServer, Trust, client_config,
    server_config,
};

/// The name in the certificate.
pub const SERVER_NAME: &str = "localhost";

/// The certificate, valid from 2020 to 9999. It has an Ed25519 key, whose signatures have a
/// constant length.
const CERTIFICATE: &[u8] = include_bytes!("certificate.pem");
/// The private key. It is public and must not be used outside of a world.
const KEY: &[u8] = include_bytes!("key.pem");

/// Returns the certificate and the key of all hosts.
pub fn identity() -> Identity {
    Identity::from_pem(CERTIFICATE, KEY).expect("the files in this directory are PEM")
}

/// Returns the certificate that all hosts present.
pub fn certificate() -> &'static CertificateDer<'static> {
    static READ: OnceLock<CertificateDer<'static>> = OnceLock::new();
    READ.get_or_init(|| identity().chain.swap_remove(0))
}

/// Returns TLS of a server in a world.
pub fn server_tls(alpn: &[u8]) -> Arc<dyn ServerTls> {
    let options = ServerOptions::new(identity(), vec![alpn.to_vec()]);
    let config = server_config(options).expect("certificate and key match");
    Arc::new(TlsServer::new(config).expect("the built-in configurations support QUIC"))
}

/// Returns TLS of a client in a world, which trusts the servers there. It does not resume sessions,
/// because a resumed handshake has other sizes.
pub fn client_tls(alpn: &[u8]) -> Arc<dyn ClientTls> {
    let mut roots = RootCertStore::empty();
    roots
        .add(certificate().clone())
        .expect("the certificate can be a root");
    let options = ClientOptions::new(Trust::Roots(roots), vec![alpn.to_vec()]);
    let config = client_config(options).expect("the built-in configurations are complete");
    Arc::new(TlsClient::new(config).expect("the built-in configurations support QUIC"))
}
