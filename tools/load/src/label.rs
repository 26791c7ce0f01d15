//! Labels under which reports count errors. Similar errors have the same label.

use std::io;

use courser::HandshakeFailure;

/// Returns the label for an error of a TCP stream.
pub(crate) fn of_io(error: &io::Error) -> String {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, TimedOut, UnexpectedEof,
    };
    if let Some(failure) = HandshakeFailure::after_handshake(error, "TLS") {
        return failure.seen().to_owned();
    }
    if let Some(error) = tls_error(error) {
        return format!("TLS: {error}");
    }
    match error.kind() {
        ConnectionRefused => REFUSED.to_owned(),
        ConnectionReset | ConnectionAborted => "connection reset".to_owned(),
        BrokenPipe | UnexpectedEof => "connection closed by the server".to_owned(),
        TimedOut => TIMED_OUT.to_owned(),
        _ => error.to_string(),
    }
}

/// Returns the TLS error inside an error of a TLS stream.
fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// Returns the label for a QUIC connection that could not be opened.
pub(crate) fn of_quic(error: &courser::ConnectionError) -> String {
    if error.is_timeout() {
        TIMED_OUT.to_owned()
    } else if error.is_protocol_mismatch() {
        "no common protocol (ALPN)".to_owned()
    } else {
        error.to_string()
    }
}

pub(crate) const REFUSED: &str = "connection refused";
pub(crate) const TIMED_OUT: &str = "connection timed out";
