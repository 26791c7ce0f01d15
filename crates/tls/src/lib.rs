//! rustls behind courser's TLS door.
//!
//! [`TlsClient`] and [`TlsServer`] wrap a rustls configuration, the user's own or one made by
//! [`client_config`] and [`server_config`], and start sessions for the transport.
//!
//! rustls makes packet keys of its own, behind trait objects. They are dropped: courser derives
//! its keys from the traffic secrets, which come by the one door that rustls has for them, the
//! key log. The user's key log still receives every line.
//!
//! Deviates: early data (0-RTT) is off whatever the configuration says, because the transport
//! does not offer it yet.

mod alert;
mod client;
mod client_hello;
mod config;
mod key_log;
mod secrets;
mod server;
mod session;

pub use client::TlsClient;
pub use config::{
    ClientAuthentication, ClientOptions, Identity, KeyLogging, ServerOptions, TlsConfigError,
    Trust, client_config, provider, server_config, server_config_with_resolver, server_verifier,
};
pub use key_log::QueuedKeyLog;
pub use server::TlsServer;

/// The rustls that configurations are made with.
pub use rustls;

#[cfg(test)]
mod testing;
