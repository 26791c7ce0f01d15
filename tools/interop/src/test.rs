//! The tests that an end can be asked to run.

/// A test, as the variable `TESTCASE` names it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Test {
    /// One handshake and a small file.
    Handshake,
    /// One connection and files in parallel.
    Transfer,
    /// The client offers TLS_CHACHA20_POLY1305_SHA256 only.
    ChaCha20,
    /// One connection for each file, one after another.
    MultiConnect,
    /// The server sends a Retry.
    Retry,
    /// A second connection resumes the TLS session of the first one.
    Resumption,
    /// Requests travel in 0-RTT packets of a second connection.
    ZeroRtt,
    /// Files travel over HTTP/3.
    Http3,
    /// The client updates its keys during the transfer.
    KeyUpdate,
    /// The server announces a preferred address, to which the client moves.
    Migration,
    /// The handshake changes to QUIC version 2.
    Version2,
    /// The client begins with a version that the server does not support.
    VersionNegotiation,
    /// Both ends mark and count ECN.
    Ecn,
}

impl Test {
    /// Returns the test with this name, or `None` if courser does not support it.
    ///
    /// Names of cases that run another test under special conditions stand for that test.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "handshake" | "longrtt" => Self::Handshake,
            "transfer" | "multiplexing" | "blackhole" | "amplificationlimit" | "transferloss"
            | "transfercorruption" | "ipv6" | "rebind-port" | "rebind-addr" | "goodput"
            | "crosstraffic" => Self::Transfer,
            "chacha20" => Self::ChaCha20,
            "multiconnect" | "handshakeloss" | "handshakecorruption" => Self::MultiConnect,
            "retry" => Self::Retry,
            "resumption" => Self::Resumption,
            "zerortt" => Self::ZeroRtt,
            "http3" => Self::Http3,
            "keyupdate" => Self::KeyUpdate,
            "connectionmigration" => Self::Migration,
            "v2" => Self::Version2,
            "versionnegotiation" => Self::VersionNegotiation,
            "ecn" => Self::Ecn,
            _ => return None,
        })
    }
}

/// The exit code of a program that does not support a test.
pub const UNSUPPORTED: u8 = 127;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_runner_are_supported() {
        let known = [
            "handshake",
            "transfer",
            "chacha20",
            "retry",
            "resumption",
            "zerortt",
            "http3",
            "multiconnect",
            "keyupdate",
            "connectionmigration",
            "v2",
            "versionnegotiation",
            "ecn",
        ];
        for name in known {
            assert!(Test::from_name(name).is_some(), "{name}");
        }
    }

    #[test]
    fn other_names_are_not_supported() {
        for name in ["", "zerortt2", "Handshake", "version2"] {
            assert_eq!(Test::from_name(name), None, "{name:?}");
        }
    }
}
