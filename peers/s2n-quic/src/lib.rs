//! s2n-quic: the program that measures it, and its program for the interop matrix.

pub mod interop_program;
pub mod quic_program;

use rustls::{ClientConfig, ServerConfig};
use s2n_quic::provider::tls;

// The only way to give s2n-quic a configuration of rustls is one that its authors call deprecated, because the version of
// rustls may change. Its own builder offers all suites, and verifies chains of at most six intermediates.

#[allow(deprecated)]
fn server_tls(config: ServerConfig) -> tls::rustls::Server {
    config.into()
}

#[allow(deprecated)]
fn client_tls(config: ClientConfig) -> tls::rustls::Client {
    config.into()
}
