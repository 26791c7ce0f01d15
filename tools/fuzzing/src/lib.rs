//! Fuzz targets: the code that each one runs, and the conditions that hold for every input.
//!
//! Each target is a function of bytes, so that its seeds, and inputs derived from them, also run as
//! plain tests. `fuzz/run TARGET SECONDS` runs the example `courser-fuzz`, which searches for inputs
//! that reach more of the code. Inputs that fail are added to `fuzz/seeds/TARGET` with the fix.
//!
//! The crate is for tests. No released crate depends on it.

mod cli_files;
mod endpoint;
mod frames;
mod http3;
mod http3_connection;
mod input;
mod ip;
mod masque;
mod pair;
mod proxy_request;
mod qpack;
#[cfg(test)]
mod seeds;
mod session;
mod template;
mod tls;
mod tun;
mod wire;

pub use cli_files::cli_files;
pub use endpoint::endpoint;
pub use http3::{capsules, http3_frames, http3_message};
pub use http3_connection::http3_connection;
pub use ip::{ip_packet, masque_capsules};
pub use masque::masque;
pub use pair::pair;
pub use proxy_request::proxy_request;
pub use qpack::{qpack_decoder, qpack_instructions};
pub use session::session;
pub use template::template;
pub use tun::tun;
pub use wire::{frames, header, transport_parameters};

/// A fuzz target, which processes one input at a time.
pub struct Target {
    /// The name of the folder with its seeds, and the value of `COURSER_FUZZ_TARGET`.
    pub name: &'static str,
    /// Runs one input and panics if a condition of the target is violated.
    pub run: fn(&[u8]),
    /// The number of inputs that a test run derives from the seeds.
    pub derived: usize,
}

const fn target(name: &'static str, run: fn(&[u8]), derived: usize) -> Target {
    Target { name, run, derived }
}

/// All fuzz targets, one for each folder of seeds.
pub const TARGETS: [Target; 19] = [
    target("header", header, PARSER),
    target("frames", frames, PARSER),
    target("transport_parameters", transport_parameters, PARSER),
    target("qpack_decoder", qpack_decoder, PARSER),
    target("qpack_instructions", qpack_instructions, PARSER),
    target("http3_frames", http3_frames, PARSER),
    target("http3_message", http3_message, PARSER),
    target("capsules", capsules, PARSER),
    target("http3_connection", http3_connection, PARSER),
    target("session", session, PARSER),
    target("masque", masque, PARSER),
    target("template", template, PARSER),
    target("tun", tun, PARSER),
    target("masque_capsules", masque_capsules, PARSER),
    target("ip_packet", ip_packet, PARSER),
    target("endpoint", endpoint, HANDSHAKE),
    target("pair", pair, HANDSHAKE),
    target("proxy_request", proxy_request, HANDSHAKE),
    target("cli_files", cli_files, HANDSHAKE),
];

/// Derived inputs for a target that only parses.
const PARSER: usize = 5000;

/// Derived inputs for a target that completes handshakes.
const HANDSHAKE: usize = 500;
