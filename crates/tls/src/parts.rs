//! The parts of configurations that rustls cannot change afterwards: verifiers, cryptography, ECH.
//!
//! [`ClientParts`] and [`ServerParts`] store them, and build a new configuration from them and the
//! parts that can be changed in place.

use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};

use crate::compression;
use crate::cryptography::Cryptography;
use crate::ech::Ech;
use crate::error::{TlsConfigError, unusable};
use crate::trust::{ClientAuthentication, Trust, client_verifier, server_verifier};

/// The parts of a client's configuration that rustls cannot change afterwards.
#[derive(Clone, Debug)]
pub struct ClientParts {
    verifier: Arc<dyn ServerCertVerifier>,
    cryptography: Cryptography,
    ech: Option<Ech>,
}

impl ClientParts {
    /// Creates parts that trust these servers, with the default cryptography and without ECH.
    ///
    /// # Errors
    /// Returns [`TlsConfigError`] if there are no roots, or if those of the system are unavailable.
    pub fn new(trust: Trust) -> Result<Self, TlsConfigError> {
        let cryptography = Cryptography::default();
        Ok(Self {
            verifier: server_verifier(trust, cryptography.provider())?,
            cryptography,
            ech: None,
        })
    }

    /// Returns the verifier of servers.
    pub fn verifier(&self) -> Arc<dyn ServerCertVerifier> {
        self.verifier.clone()
    }

    /// Sets cipher suites and key exchange groups.
    pub fn set_cryptography(&mut self, cryptography: Cryptography) {
        self.cryptography = cryptography;
    }

    /// Sets the encryption of the ClientHello; `None` disables it.
    pub fn set_ech(&mut self, ech: Option<Ech>) {
        self.ech = ech;
    }

    /// Returns the encryption of the ClientHello.
    pub const fn ech(&self) -> Option<&Ech> {
        self.ech.as_ref()
    }

    /// Builds a configuration of these parts for TLS 1.3, with protocols, tickets, identity and key log of
    /// `config`.
    ///
    /// # Errors
    /// Returns [`TlsConfigError`] if rustls refuses the combination.
    pub fn build(&self, config: &ClientConfig) -> Result<Arc<ClientConfig>, TlsConfigError> {
        let builder = ClientConfig::builder_with_provider(self.cryptography.provider());
        let builder = match &self.ech {
            Some(ech) => builder.with_ech(ech.mode()),
            None => builder.with_protocol_versions(&[&TLS13]),
        };
        let mut built = builder
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier.clone())
            .with_client_cert_resolver(config.client_auth_cert_resolver.clone());
        let ClientConfig {
            alpn_protocols,
            resumption,
            key_log,
            ..
        } = config.clone();
        built.cert_decompressors = compression::certificate_decompressors();
        built.alpn_protocols = alpn_protocols;
        built.resumption = resumption;
        built.key_log = key_log;
        Ok(Arc::new(built))
    }
}

/// The parts of a server's configuration that rustls cannot change afterwards.
#[derive(Clone, Debug)]
pub struct ServerParts {
    clients: Arc<dyn ClientCertVerifier>,
    cryptography: Cryptography,
}

impl ServerParts {
    /// Returns parts with the default cryptography and this policy for client certificates.
    ///
    /// # Errors
    /// Returns [`TlsConfigError`] if the policy has no roots.
    pub fn new(clients: ClientAuthentication) -> Result<Self, TlsConfigError> {
        let cryptography = Cryptography::default();
        Ok(Self {
            clients: client_verifier(clients, cryptography.provider())?,
            cryptography,
        })
    }

    /// Sets the policy for client certificates.
    ///
    /// # Errors
    /// Returns [`TlsConfigError`] if the policy has no roots.
    pub fn set_clients(&mut self, clients: ClientAuthentication) -> Result<(), TlsConfigError> {
        self.clients = client_verifier(clients, self.cryptography.provider())?;
        Ok(())
    }

    /// Sets cipher suites and key exchange groups.
    pub fn set_cryptography(&mut self, cryptography: Cryptography) {
        self.cryptography = cryptography;
    }

    /// Builds a configuration of these parts for TLS 1.3, with protocols, tickets, certificates and key log
    /// of `config`.
    ///
    /// # Errors
    /// Returns [`TlsConfigError`] if rustls refuses the combination.
    pub fn build(&self, config: &ServerConfig) -> Result<Arc<ServerConfig>, TlsConfigError> {
        let mut built = ServerConfig::builder_with_provider(self.cryptography.provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .with_client_cert_verifier(self.clients.clone())
            .with_cert_resolver(config.cert_resolver.clone());
        built.ignore_client_order = self.cryptography.has_suites();
        let ServerConfig {
            alpn_protocols,
            session_storage,
            ticketer,
            key_log,
            cert_compressors,
            cert_compression_cache,
            ..
        } = config.clone();
        built.alpn_protocols = alpn_protocols;
        built.session_storage = session_storage;
        built.ticketer = ticketer;
        built.key_log = key_log;
        built.cert_compressors = cert_compressors;
        built.cert_compression_cache = cert_compression_cache;
        Ok(Arc::new(built))
    }
}

#[cfg(test)]
mod tests;
