//! msquic as a peer of `courser interop matrix`: `peer-msquic server|client`, with the variables of the
//! QUIC interop runner and LISTEN, WWW, CERTS and DOWNLOADS.

mod client;
mod exchange;
mod keys;
mod server;

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::ptr;

use msquic::ffi::{HQUIC, QUIC_VERSION_SETTINGS};
use msquic::{Api, Settings, Status};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// msquic has no HTTP/3, and ignores preferred addresses.
const SUPPORTED: [&str; 10] = [
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
];

fn main() -> Result<ExitCode> {
    let test = env::var("TESTCASE")?;
    if !SUPPORTED.contains(&test.as_str()) {
        return Ok(ExitCode::from(127));
    }
    if env::args().nth(1).as_deref() == Some("server") {
        server::serve(&test)?;
    } else {
        client::fetch(&test)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Settings of both ends, with windows that a transfer has to raise. The window of streams stays at the
/// library's default: msquic gives that one to streams that are opened before their connection starts,
/// whatever its transport parameters promise, and closes with FLOW_CONTROL_ERROR if a server uses the rest.
fn settings(test: &str) -> Settings {
    let settings = Settings::new()
        .set_IdleTimeoutMs(60_000)
        .set_HandshakeIdleTimeoutMs(60_000)
        .set_DisconnectTimeoutMs(60_000)
        .set_PeerBidiStreamCount(100)
        .set_ConnFlowControlWindow(1 << 20);
    match test {
        "ecn" => settings.set_EcnEnabled(),
        _ => settings,
    }
}

fn folder(variable: &str) -> Result<PathBuf> {
    Ok(env::var(variable)?.into())
}

/// Sets the versions of a connection, or of the library if `handle` is null: those that are accepted and
/// offered, and those that a client begins with.
fn set_versions(handle: HQUIC, parameter: u32, accepted: &[u32], begun: &[u32]) -> Result {
    let count = |versions: &[u32]| u32::try_from(versions.len());
    let versions = QUIC_VERSION_SETTINGS {
        AcceptableVersions: accepted.as_ptr(),
        OfferedVersions: accepted.as_ptr(),
        FullyDeployedVersions: begun.as_ptr(),
        AcceptableVersionsLength: count(accepted)?,
        OfferedVersionsLength: count(accepted)?,
        FullyDeployedVersionsLength: count(begun)?,
    };
    let len = u32::try_from(size_of_val(&versions))?;
    // SAFETY: msquic copies the settings and the lists during the call.
    unsafe { Api::set_param(handle, parameter, len, ptr::from_ref(&versions).cast()) }?;
    Ok(())
}

/// Returns an error for a callback without a status of msquic.
fn failed() -> Status {
    msquic::StatusCode::QUIC_STATUS_INTERNAL_ERROR.into()
}

const PROTOCOL: &str = "hq-interop";

const VERSION_1: u32 = 1;
const VERSION_2: u32 = 0x6b33_43cf;
