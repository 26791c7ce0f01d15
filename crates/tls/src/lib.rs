//! The TLS of courser's QUIC connections, implemented by rustls.
//!
//! [`TlsClient`] and [`TlsServer`] wrap a rustls configuration and start sessions for the
//! transport. The configuration is the user's own or comes from [`client_config`] and
//! [`server_config`].
//!
//! rustls creates packet keys of its own, behind trait objects. They are discarded: courser derives
//! its keys from the traffic secrets. rustls exposes those only through its key log, so courser
//! reads them there. The user's key log still receives every line.
//!
//! Early data (0-RTT) is off whatever the configuration says, unless
//! [`TlsClient::with_early_data`] and [`TlsServer::with_early_data`] turn it on.

mod alert;
mod client;
mod client_hello;
mod config;
mod deferred;
mod early_data;
mod key_log;
mod secrets;
mod server;
mod session;
mod tickets;

pub use client::TlsClient;
pub use config::{
    ClientAuthentication, ClientOptions, Identity, KeyLogging, ServerOptions, TlsConfigError,
    Trust, client_config, provider, server_config, server_config_with_resolver, server_verifier,
};
pub use early_data::{EarlyDataOptions, MemoryReplayFilter, ReplayFilter};
pub use key_log::QueuedKeyLog;
pub use server::TlsServer;
pub use tickets::ClientTickets;

/// The version of rustls that builds the configurations.
pub use rustls;

#[cfg(test)]
mod testing;
