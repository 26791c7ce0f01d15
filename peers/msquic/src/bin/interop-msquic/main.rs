//! msquic as an end of `courser interop matrix`: `interop-msquic server|client`.

mod client;
mod keys;
mod server;

use std::process::ExitCode;

use msquic::ffi::{HQUIC, QUIC_VERSION_SETTINGS};
use msquic::{Settings, Status};
use peer_msquic::parameters;
use peers_common::interop::{Cases, Result, run};

/// msquic has no HTTP/3, and ignores preferred addresses.
const CASES: Cases = Cases {
    both: &[
        "handshake",
        "transfer",
        "multiconnect",
        "retry",
        "resumption",
        "zerortt",
        "chacha20",
        "keyupdate",
        "v2",
        "ecn",
    ],
    server: &[],
};

fn main() -> Result<ExitCode> {
    run(CASES, server::serve, client::fetch)
}

/// Settings of both ends, with windows that a transfer has to raise. The window of streams stays at the
/// library's default: msquic gives that one to streams that are opened before their connection starts,
/// whatever its transport parameters promise, and closes with FLOW_CONTROL_ERROR if a server uses the rest.
fn settings(case: &str) -> Settings {
    let settings = Settings::new()
        .set_IdleTimeoutMs(60_000)
        .set_HandshakeIdleTimeoutMs(60_000)
        .set_DisconnectTimeoutMs(60_000)
        .set_PeerBidiStreamCount(100)
        .set_ConnFlowControlWindow(1 << 20);
    match case {
        "ecn" => settings.set_EcnEnabled(),
        _ => settings,
    }
}

/// The versions of a connection, or of the library.
struct Versions<'a> {
    /// Those that are accepted and offered.
    accepted: &'a [u32],
    /// Those that a client begins with.
    begun: &'a [u32],
}

impl Versions<'_> {
    /// Gives them to an open connection, or to the library if `handle` is null.
    fn set(&self, handle: HQUIC, parameter: u32) -> std::result::Result<(), Status> {
        let count = |versions: &[u32]| u32::try_from(versions.len()).unwrap_or_default();
        let versions = QUIC_VERSION_SETTINGS {
            AcceptableVersions: self.accepted.as_ptr(),
            OfferedVersions: self.accepted.as_ptr(),
            FullyDeployedVersions: self.begun.as_ptr(),
            AcceptableVersionsLength: count(self.accepted),
            OfferedVersionsLength: count(self.accepted),
            FullyDeployedVersionsLength: count(self.begun),
        };
        // SAFETY: this is the type that msquic expects, and it copies the lists during the call.
        unsafe { parameters::set(handle, parameter, &versions) }
    }
}

const PROTOCOL: &[u8] = b"hq-interop";

const VERSION_1: u32 = 1;
const VERSION_2: u32 = 0x6b33_43cf;
