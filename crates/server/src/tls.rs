//! TLS for both transports: one provider, one certificate.

use std::sync::Arc;

use courser_http3_tokio as h3;
use courser_quic::ConfigError;
use courser_tls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use courser_tls::rustls::version::{TLS12, TLS13};
use courser_tls::rustls::{ServerConfig, SupportedProtocolVersion};

use super::certificates::Resolver;

/// Modifies a configuration before it is used.
pub(super) type Hook = Box<dyn Fn(&mut ServerConfig) + Send>;

/// Returns the configuration for QUIC, which supports only TLS 1.3.
pub(super) fn quic(
    resolver: &Arc<Resolver>,
    hook: Option<&Hook>,
) -> Result<Arc<ServerConfig>, ConfigError> {
    made(resolver, &[&TLS13], &[h3::ALPN], hook)
}

/// Returns the configuration for TCP.
pub(super) fn tcp(
    resolver: &Arc<Resolver>,
    hook: Option<&Hook>,
) -> Result<Arc<ServerConfig>, ConfigError> {
    made(resolver, &[&TLS13, &TLS12], &["h2", "http/1.1"], hook)
}

fn made(
    resolver: &Arc<Resolver>,
    versions: &[&'static SupportedProtocolVersion],
    protocols: &[&str],
    hook: Option<&Hook>,
) -> Result<Arc<ServerConfig>, ConfigError> {
    let unusable = |error: courser_tls::rustls::Error| ConfigError::Tls(error.to_string());
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(versions)
        .map_err(unusable)?
        .with_no_client_auth()
        .with_cert_resolver(resolver.clone());
    // Each has its own: a session of one transport is useless to the other.
    config.ticketer = aws_lc_rs::Ticketer::new().map_err(unusable)?;
    if let Some(hook) = hook {
        hook(&mut config);
    }
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    Ok(Arc::new(config))
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
