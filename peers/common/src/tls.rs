//! TLS 1.3 with one cipher suite and one group, without resumption, for every stack alike.

use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::{Failure, identity};

/// A server with the certificate of `folder`. It sends no tickets.
///
/// # Errors
/// When the identity cannot be read or does not fit together.
pub fn server(folder: &Path, alpn: &[&[u8]]) -> Result<ServerConfig, Failure> {
    let chain = vec![identity::certificate(folder)?];
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, identity::key(folder)?)?;
    config.alpn_protocols = protocols(alpn);
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// A client that trusts the certificate of `folder` and no other.
///
/// # Errors
/// When the certificate cannot be read.
pub fn client(folder: &Path, alpn: &[&[u8]]) -> Result<ClientConfig, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(identity::certificate(folder)?)?;
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols(alpn);
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// `TLS_AES_128_GCM_SHA256` and X25519: with nothing else on offer, nothing else is negotiated.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![aws_lc_rs::kx_group::X25519],
        ..aws_lc_rs::default_provider()
    })
}

fn protocols(alpn: &[&[u8]]) -> Vec<Vec<u8>> {
    alpn.iter().map(|protocol| protocol.to_vec()).collect()
}
