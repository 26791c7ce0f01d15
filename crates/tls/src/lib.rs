//! The TLS of courser's QUIC connections, implemented by rustls.
//!
//! [`TlsClient`] and [`TlsServer`] wrap a rustls configuration and start sessions for the
//! transport. The configuration is the user's own or comes from [`client_config`] and
//! [`server_config`].
//!
//! rustls creates its own packet keys behind trait objects. They are discarded, because courser
//! derives its keys from the traffic secrets. rustls exposes these only through its key log, where
//! courser reads them. The user's key log still receives every line.
//!
//! Early data (0-RTT) is disabled regardless of the configuration, unless
//! [`TlsClient::with_early_data`] or [`TlsServer::with_early_data`] enables it.

mod alert;
mod certificate_hashes;
mod client;
mod client_hello;
mod client_tickets;
mod compression;
mod config;
mod cryptography;
mod deferred;
mod early_data;
mod ech;
mod error;
mod handshake_failure;
mod key_log;
mod parts;
mod pem;
mod provider;
mod raw_key;
mod secrets;
mod server;
mod session;
mod tickets;
mod trust;

pub use certificate_hashes::CertificateHashVerifier;
pub use client::TlsClient;
pub use client_hello::offers_quic;
pub use client_tickets::ClientTickets;
pub use compression::{certificate_decompressors, compressed_chain_bytes, keep_compressed};
pub use config::{
    ClientOptions, Identity, KeyLogging, ServerOptions, client_config, server_config,
    server_config_with_resolver,
};
pub use cryptography::{Cryptography, KeyExchange, UnknownAlgorithm, provider};
pub use early_data::{EarlyDataOptions, MemoryReplayFilter, ReplayFilter};
pub use ech::{Ech, EchRejection};
pub use error::TlsConfigError;
pub use handshake_failure::{
    HandshakeFailureKind, HandshakeOffer, alert_in_text, is_about_certificates, kind_of_alert,
    kind_of_own_alert, kind_of_tls,
};
pub use key_log::QueuedKeyLog;
pub use parts::{ClientParts, ServerParts};
pub use pem::certificates as pem_certificates;
pub use provider::{crypto_provider, ticketer};
pub use raw_key::{RawKeyVerifier, raw_key};
pub use server::TlsServer;
pub use trust::{
    AnyServer, ClientAuthentication, ReviewedVerifier, Trust, client_verifier, server_verifier,
};

/// The version of rustls that builds the configurations.
pub use rustls;

#[cfg(test)]
mod testing;
