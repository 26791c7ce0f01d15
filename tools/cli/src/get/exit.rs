//! Failures and the exit codes of curl.

use std::fmt;

use courser::HandshakeFailureKind;
use courser::client::{Error, ErrorKind, HttpVersion};

use courser_measure::{ech, printable};

use crate::handshake::{self, Tool};

/// The reason why a transfer failed, and its exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) code: u8,
    pub(crate) text: String,
    /// The result of the verification of the certificate, as a code of OpenSSL.
    pub(crate) verify_result: u8,
}

impl Failed {
    pub(crate) fn new(code: u8, text: impl Into<String>) -> Self {
        // Text from a peer or a library may have several lines.
        let text: String = text.into();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = printable(&text);
        Self {
            code,
            text,
            verify_result: 0,
        }
    }

    pub(crate) fn of(error: &Error) -> Self {
        if error.is_pin_mismatch() {
            let text = "the public key of the server is none of those of --pinnedpubkey";
            return Self::new(PINNED_KEY, text);
        }
        let text = match error.handshake_failure() {
            Some(failure) if failure.kind() == HandshakeFailureKind::EchRejected => {
                return Self::new(ECH_REJECTED, failure.with_remedy(&ech::remedy()));
            }
            Some(failure) if error.is_of_proxy() => handshake::explain_proxy(failure),
            Some(failure) => handshake::explain(failure, Tool::Get),
            None => error.to_string(),
        };
        let failure = error.handshake_failure();
        Self {
            verify_result: failure.map_or(0, |failure| verify_result(failure.kind())),
            ..Self::new(code_of(error), text)
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}) {}", self.code, self.text)
    }
}

/// Returns the code of OpenSSL for a certificate that cannot be verified.
fn verify_result(kind: HandshakeFailureKind) -> u8 {
    use HandshakeFailureKind as Kind;
    match kind {
        Kind::CertificateNotValidYet => 9,
        Kind::CertificateExpired => 10,
        Kind::CertificateUntrusted => 20,
        Kind::CertificateForOtherName
        | Kind::CertificateOfAuthority
        | Kind::CertificateUnusable => 1,
        _ => 0,
    }
}

/// Returns the exit code of curl for the same error.
fn code_of(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::Unsupported => UNSUPPORTED_PROTOCOL,
        ErrorKind::Url => URL_MALFORMED,
        ErrorKind::Config => FAILED_INIT,
        ErrorKind::ResolveProxy => NO_PROXY_NAME,
        ErrorKind::Resolve => NO_NAME,
        ErrorKind::Connect => NO_CONNECTION,
        ErrorKind::Bind => NO_INTERFACE,
        ErrorKind::Partial => PARTIAL_FILE,
        ErrorKind::RequestBody => READ_ERROR,
        ErrorKind::Timeout => TIMED_OUT,
        // An alert after the handshake interrupts the response, as for curl.
        ErrorKind::Tls if !error.is_connect() => RECEIVE_ERROR,
        ErrorKind::Tls => TLS,
        ErrorKind::Redirect => TOO_MANY_REDIRECTS,
        ErrorKind::Empty => NO_ANSWER,
        ErrorKind::Send => SEND_ERROR,
        ErrorKind::Certificate => CERTIFICATE,
        ErrorKind::Decode => BAD_CODING,
        ErrorKind::Http2 => HTTP2_STREAM,
        ErrorKind::Http3 => HTTP3,
        ErrorKind::ConnectQuic => QUIC,
        ErrorKind::Socks => PROXY_HANDSHAKE,
        ErrorKind::NotHttp => NOT_HTTP,
        ErrorKind::Protocol => WEIRD_ANSWER,
        // ErrorKind::Proxy, ErrorKind::Receive, and future kinds.
        _ => RECEIVE_ERROR,
    }
}

/// Returns a version in the format of curl's output.
pub(crate) const fn version_number(version: Option<http::Version>) -> &'static str {
    match version {
        Some(http::Version::HTTP_3) => "3",
        Some(http::Version::HTTP_2) => "2",
        Some(http::Version::HTTP_11) => "1.1",
        Some(http::Version::HTTP_10) => "1.0",
        _ => "0",
    }
}

/// Returns the version that flags choose: `--http3`, `--http3-only`, `--http2`, `--http1.1`.
pub(crate) const fn chosen_version(flags: [bool; 4]) -> HttpVersion {
    match flags {
        [true, ..] => HttpVersion::Http3,
        [_, true, ..] => HttpVersion::Http3Only,
        [_, _, true, _] => HttpVersion::Http2,
        [.., true] => HttpVersion::Http1,
        _ => HttpVersion::Auto,
    }
}

pub(crate) const UNSUPPORTED_PROTOCOL: u8 = 1;
pub(crate) const FAILED_INIT: u8 = 2;
pub(crate) const URL_MALFORMED: u8 = 3;
#[cfg(not(feature = "dns"))]
pub(crate) const NOT_BUILT_IN: u8 = 4;
pub(crate) const NO_PROXY_NAME: u8 = 5;
pub(crate) const NO_NAME: u8 = 6;
pub(crate) const NO_CONNECTION: u8 = 7;
/// The code of curl for a response of HTTP/0.9, which any text may be.
pub(crate) const NOT_HTTP: u8 = 1;
pub(crate) const WEIRD_ANSWER: u8 = 8;
pub(crate) const PARTIAL_FILE: u8 = 18;
pub(crate) const HTTP_STATUS: u8 = 22;
pub(crate) const WRITE_ERROR: u8 = 23;
pub(crate) const READ_ERROR: u8 = 26;
pub(crate) const TIMED_OUT: u8 = 28;
pub(crate) const RANGE_ERROR: u8 = 33;
pub(crate) const TLS: u8 = 35;
pub(crate) const NO_INTERFACE: u8 = 45;
pub(crate) const TOO_MANY_REDIRECTS: u8 = 47;
pub(crate) const BAD_OPTION_VALUE: u8 = 49;
pub(crate) const NO_ANSWER: u8 = 52;
pub(crate) const SEND_ERROR: u8 = 55;
pub(crate) const RECEIVE_ERROR: u8 = 56;
pub(crate) const CLIENT_CERTIFICATE: u8 = 58;
pub(crate) const UNUSABLE_CIPHER: u8 = 59;
pub(crate) const CERTIFICATE: u8 = 60;
pub(crate) const BAD_CODING: u8 = 61;
pub(crate) const TOO_LARGE: u8 = 63;
pub(crate) const CA_FILE: u8 = 77;
pub(crate) const PINNED_KEY: u8 = 90;
pub(crate) const HTTP2_STREAM: u8 = 92;
pub(crate) const HTTP3: u8 = 95;
pub(crate) const QUIC: u8 = 96;
pub(crate) const PROXY_HANDSHAKE: u8 = 97;
pub(crate) const ECH_REJECTED: u8 = 101;
