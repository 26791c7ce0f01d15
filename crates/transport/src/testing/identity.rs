//! Certificates and TLS configurations, made once per test process.

use std::sync::{Arc, OnceLock};

use courser_crypto::{ClientTls, ServerTls};
use courser_tls::{
    ClientOptions, Identity, ServerOptions, TlsClient, TlsServer, Trust, client_config,
    server_config,
};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

fn certificate() -> &'static (CertificateDer<'static>, Vec<u8>) {
    static MADE: OnceLock<(CertificateDer<'static>, Vec<u8>)> = OnceLock::new();
    MADE.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])
            .expect("a certificate for localhost");
        (made.cert.der().clone(), made.signing_key.serialize_der())
    })
}

fn alpn(protocols: &[&[u8]]) -> Vec<Vec<u8>> {
    protocols.iter().map(|protocol| protocol.to_vec()).collect()
}

pub(crate) fn server_tls(protocols: &[&[u8]]) -> Arc<dyn ServerTls> {
    let (certificate, key) = certificate();
    server_tls_with_chain(protocols, vec![certificate.clone()], key)
}

/// Returns a server configuration whose chain is padded with `extra` copies of its certificate.
pub(crate) fn server_tls_with_big_chain(protocols: &[&[u8]], extra: usize) -> Arc<dyn ServerTls> {
    let (certificate, key) = certificate();
    server_tls_with_chain(protocols, vec![certificate.clone(); extra + 1], key)
}

fn server_tls_with_chain(
    protocols: &[&[u8]],
    chain: Vec<CertificateDer<'static>>,
    key: &[u8],
) -> Arc<dyn ServerTls> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.to_vec()));
    let options = ServerOptions::new(Identity { chain, key }, alpn(protocols));
    let config = server_config(options).expect("a server configuration");
    Arc::new(TlsServer::new(config).expect("it fits QUIC"))
}

pub(crate) fn client_tls(protocols: &[&[u8]]) -> Arc<dyn ClientTls> {
    let mut roots = RootCertStore::empty();
    roots
        .add(certificate().0.clone())
        .expect("our own certificate");
    let options = ClientOptions::new(Trust::Roots(roots), alpn(protocols));
    let config = client_config(options).expect("a client configuration");
    Arc::new(TlsClient::new(config).expect("it fits QUIC"))
}
