//! The common parts of peer programs: the command line, the settings, the workloads and the lines that a
//! program prints, and the contract of the interop programs.
//!
//! A peer program is `peer-<stack> server|client` with the options of [`command_line`]. It
//! prints one line of JSON when it listens ([`Ready`], server) and one when it is done
//! ([`ServerResult`], [`ClientResult`]); the server ends when its standard input does.
//!
//! Wire: ALPN `perf`. Each bidirectional stream of the client begins with the length of the
//! wanted response, eight bytes big-endian, and goes on with the upload until FIN. Then the
//! server sends as many bytes as were wanted, and FIN.
//!
//! An interop program is `interop-<stack> server|client` with the variables of [`interop`].

mod children;
pub mod command_line;
#[cfg(feature = "rustls")]
pub mod identity;
pub mod interop;
#[cfg(feature = "rustls")]
pub mod interop_tls;
pub mod key_log;
pub mod latency;
pub mod namespace;
pub mod operations;
pub mod process;
pub mod settings;
pub mod sockets;
pub mod standard_input;
pub mod streams;
pub mod tally;
#[cfg(feature = "rustls")]
pub mod tls;
pub mod workloads;

mod result_line;

pub use result_line::{
    ClientResult, Datagrams, PathCounts, Ready, ServerResult, print, version_in,
};

/// Any error of a program; it is printed and ends the program.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The version of `package` in this workspace's lock file.
pub fn locked_version(package: &str) -> String {
    version_in(include_str!("../../Cargo.lock"), package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_the_stacks_are_known() {
        let version = locked_version("quinn");
        assert!(version.starts_with("0.11."), "{version}");
    }
}
