//! quiche as a peer of `courser interop matrix`: `peer-quiche server|client`, with the variables of the
//! QUIC interop runner and LISTEN, WWW, CERTS and DOWNLOADS.

mod client;
mod outbox;
mod server;

use std::env;
use std::error::Error;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::ExitCode;

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// quiche marks no packets, has no version 2 and no preferred addresses, and follows key updates only.
/// BoringSSL offers all of its suites of TLS 1.3.
const BOTH: [&str; 7] = [
    "handshake",
    "transfer",
    "multiconnect",
    "retry",
    "resumption",
    "zerortt",
    "http3",
];

const HQ: &[u8] = b"hq-interop";
const HTTP3: &[u8] = b"h3";

/// Long IDs, so that one of a damaged packet is unknown.
const ID_LEN: usize = 16;

fn main() -> Result<ExitCode> {
    let test = env::var("TESTCASE")?;
    let is_server = env::args().nth(1).as_deref() == Some("server");
    // A server has no part in the choice of the suite.
    if !BOTH.contains(&test.as_str()) && !(is_server && test == "chacha20") {
        return Ok(ExitCode::from(127));
    }
    if is_server {
        server::serve(&test)?;
    } else {
        client::fetch(&test)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Settings of both ends, with windows that a transfer has to raise.
fn config() -> Result<quiche::Config> {
    let mut config = quiche::Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_max_idle_timeout(60_000);
    config.set_max_send_udp_payload_size(1452);
    config.set_initial_max_data(1 << 20);
    config.set_initial_max_stream_data_bidi_local(1 << 19);
    config.set_initial_max_stream_data_bidi_remote(1 << 19);
    config.set_initial_max_stream_data_uni(1 << 19);
    config.set_initial_max_streams_bidi(100);
    config.set_initial_max_streams_uni(10);
    config.set_active_connection_id_limit(4);
    config.log_keys();
    config.enable_early_data();
    Ok(config)
}

fn log_keys(connection: &mut quiche::Connection) -> Result {
    if let Ok(path) = env::var("SSLKEYLOGFILE") {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        connection.set_keylog(Box::new(file));
    }
    Ok(())
}

fn folder(variable: &str) -> Result<PathBuf> {
    Ok(env::var(variable)?.into())
}

fn random<const LEN: usize>() -> [u8; LEN] {
    let mut bytes = [0; LEN];
    getrandom::fill(&mut bytes).expect("random bytes of the system");
    bytes
}

/// Gives the peer as many IDs as it takes, and returns them.
fn offer_ids(connection: &mut quiche::Connection) -> Result<Vec<[u8; ID_LEN]>> {
    let mut ids = Vec::new();
    while connection.is_established() && connection.scids_left() > 0 {
        let id = random();
        let token = u128::from_be_bytes(random());
        connection.new_scid(&quiche::ConnectionId::from_ref(&id), token, false)?;
        ids.push(id);
    }
    Ok(ids)
}
