//! TLS of the interop programs whose stacks use rustls.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{self, CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, KeyLogFile, ServerConfig, SignatureScheme,
};

use crate::interop::{Client, Result, Server};

/// Returns the settings of a server, which writes a key log, and accepts 0-RTT data if its case needs that.
///
/// # Errors
/// Returns an error if the certificate or the key cannot be read.
pub fn server(server: &Server) -> Result<ServerConfig> {
    let chain: std::result::Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(&server.certificate)?.collect();
    let key = PrivateKeyDer::from_pem_file(&server.key)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain?, key)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.key_log = Arc::new(KeyLogFile::new());
    if server.case == "zerortt" {
        config.max_early_data_size = u32::MAX;
    }
    Ok(config)
}

/// Returns the settings of a client, which accepts all certificates and writes a key log. In the case `chacha20`, it offers one
/// cipher suite.
///
/// # Errors
/// Returns an error if rustls rejects the settings.
pub fn client(client: &Client) -> Result<ClientConfig> {
    let mut provider = aws_lc_rs::default_provider();
    if client.case == "chacha20" {
        provider.cipher_suites = vec![aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256];
    }
    let provider = Arc::new(provider);
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyServer(provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.key_log = Arc::new(KeyLogFile::new());
    config.enable_early_data = client.case == "zerortt";
    Ok(config)
}

/// HTTP/0.9, the protocol of all cases of these stacks.
const ALPN: &[u8] = b"hq-interop";

/// Accepts all certificates: the root of a run is not known to the system. Verifies signatures with the key of
/// the certificate.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
