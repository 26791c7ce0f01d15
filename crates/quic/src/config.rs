//! Configurations of servers and clients.
//!
//! Both start from a TLS configuration, a default or a custom one, and need the names of their
//! application protocols (ALPN), without which QUIC makes no connection.

mod certificate_requests;
mod client;
mod hooks;
mod identity;
mod server;
mod server_tokens;
mod tls;
mod unfinished;

pub use certificate_requests::CertificateRequests;
pub use client::ClientConfig;
pub use hooks::{ClientConfigHooks, IdentityHooks};
pub use identity::Identity;
pub use server::ServerConfig;

#[cfg(test)]
mod tests;
