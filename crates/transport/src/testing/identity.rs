//! A certificate, created once per test process, and TLS configurations with it.

use std::sync::{Arc, OnceLock};

use courser_crypto::{ClientTls, ServerTls};
use courser_tls::{
    ClientOptions, EarlyDataOptions, Identity, ServerOptions, TlsClient, TlsServer, Trust,
    client_config, server_config,
};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

fn certificate() -> &'static (CertificateDer<'static>, Vec<u8>) {
    static CERTIFICATE: OnceLock<(CertificateDer<'static>, Vec<u8>)> = OnceLock::new();
    CERTIFICATE.get_or_init(|| {
        let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()])
            .expect("a certificate for localhost");
        (
            generated.cert.der().clone(),
            generated.signing_key.serialize_der(),
        )
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
    let config = server_config_with_chain(protocols, chain, key);
    Arc::new(TlsServer::new(config).expect("the configuration supports QUIC"))
}

fn server_config_with_chain(
    protocols: &[&[u8]],
    chain: Vec<CertificateDer<'static>>,
    key: &[u8],
) -> Arc<rustls::ServerConfig> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.to_vec()));
    let options = ServerOptions::new(Identity { chain, key }, alpn(protocols));
    let config = server_config(options).expect("a server configuration");
    // Features of other crates must not change the length of the chain on the wire.
    let mut config = Arc::unwrap_or_clone(config);
    config.cert_compressors.clear();
    Arc::new(config)
}

/// Returns a server configuration that accepts early data.
pub(crate) fn server_tls_with_early_data(protocols: &[&[u8]]) -> Arc<dyn ServerTls> {
    let (certificate, key) = certificate();
    let config = server_config_with_chain(protocols, vec![certificate.clone()], key);
    let tls = TlsServer::with_early_data(config, EarlyDataOptions::default());
    Arc::new(tls.expect("the configuration supports QUIC"))
}

/// Returns a client configuration that offers early data.
pub(crate) fn client_tls_with_early_data(protocols: &[&[u8]]) -> Arc<dyn ClientTls> {
    let config = trusting_config(protocols);
    Arc::new(TlsClient::with_early_data(config).expect("the configuration supports QUIC"))
}

pub(crate) fn client_tls(protocols: &[&[u8]]) -> Arc<dyn ClientTls> {
    Arc::new(TlsClient::new(trusting_config(protocols)).expect("the configuration supports QUIC"))
}

fn trusting_config(protocols: &[&[u8]]) -> Arc<rustls::ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots
        .add(certificate().0.clone())
        .expect("our own certificate");
    let options = ClientOptions::new(Trust::Roots(roots), alpn(protocols));
    client_config(options).expect("a client configuration")
}
