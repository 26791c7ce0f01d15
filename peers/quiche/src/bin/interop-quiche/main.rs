//! quiche as an end of `courser interop matrix`: `interop-quiche server|client`.

mod client;
mod server;

use std::process::ExitCode;
use std::time::Duration;

use peer_quiche::body::Quic;
use peer_quiche::setup::Limits;
use peers_common::interop::{Cases, Result, run};
use peers_common::key_log;

/// quiche marks no packets, has no version 2 and no preferred addresses, and follows key updates only.
/// BoringSSL offers all of its suites of TLS 1.3; a server has no part in the choice of the suite.
const CASES: Cases = Cases {
    both: &[
        "handshake",
        "transfer",
        "multiconnect",
        "retry",
        "resumption",
        "zerortt",
        "http3",
    ],
    server: &["chacha20"],
};

fn main() -> Result<ExitCode> {
    run(CASES, server::serve, client::fetch)
}

/// Settings of both ends, with windows that a transfer has to raise.
fn config() -> Result<quiche::Config> {
    let mut config = quiche::Config::new(quiche::PROTOCOL_VERSION)?;
    let limits = Limits {
        idle: Duration::from_secs(60),
        datagram: 1452,
        stream: 1 << 19,
        connection: 1 << 20,
        streams: 100,
    };
    limits.set(&mut config)?;
    config.set_active_connection_id_limit(4);
    config.log_keys();
    config.enable_early_data();
    Ok(config)
}

fn log_keys(quic: &mut Quic) -> Result {
    if let Some(file) = key_log::open()? {
        quic.set_keylog(Box::new(file));
    }
    Ok(())
}

const HQ: &[u8] = b"hq-interop";
const HTTP3: &[u8] = b"h3";
