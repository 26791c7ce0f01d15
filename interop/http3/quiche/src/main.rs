//! quiche's side of examples/interop_http3.rs, which tells what is asked and answered.
//!
//! `interop-quiche server CERTIFICATE KEY` serves until its standard input ends, `/hash` with PUT
//! too and all else with HEAD too.
//!
//! `interop-quiche client ROOT ADDRESS SIZE COUNT` asks a server of that kind.
//!
//! `interop-quiche fetch ROOT ADDRESS METHOD PATH COUNT` asks any server COUNT times at once, and
//! prints how often it got which answer: `count status content-length length hash`.
//!
//! `interop-quiche hash SIZE` prints the hash of what `/bytes/SIZE` has to be.

mod client;
mod server;

use boring::sha::Sha256;
use bytes::Bytes;
use peer_quiche::body::Body;
use peers_common::Failure;
use peers_common::command_line::TransportOptions;
use peers_common::settings;

type Result<T = ()> = std::result::Result<T, Failure>;

fn main() -> Result {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["server", certificate, key] => server::serve(certificate, key),
        ["client", root, address, size, count] => {
            client::ask(root, address, size.parse()?, count.parse()?)
        }
        ["fetch", root, address, method, path, count] => {
            client::fetch(root, address, method, path, count.parse()?)
        }
        ["hash", size] => {
            println!("{}", hash_of_pattern(size.parse()?));
            Ok(())
        }
        _ => Err(
            "usage: interop-quiche server CERTIFICATE KEY | client ROOT ADDRESS SIZE COUNT | \
                  fetch ROOT ADDRESS METHOD PATH COUNT | hash SIZE"
                .into(),
        ),
    }
}

/// The block that examples/interop_http3.rs repeats.
fn block() -> Bytes {
    (0..65_521u32).map(|n| (n * 7 + (n >> 8)) as u8).collect()
}

/// The first `count` bytes of its repetition.
fn pattern(count: u64) -> Body {
    Body::new(block(), count)
}

fn hash_of_pattern(count: u64) -> String {
    let (mut body, mut hash) = (pattern(count), Sha256::new());
    while body.left() > 0 {
        let chunk = body.chunk();
        hash.update(&chunk);
        body.advance(chunk.len());
    }
    hex(hash)
}

fn hex(hash: Sha256) -> String {
    let hash = hash.finish();
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Datagrams and windows as in the comparison of speeds.
fn transport() -> TransportOptions {
    TransportOptions {
        datagram: settings::PACKET_SIZE,
        own_settings: false,
    }
}
