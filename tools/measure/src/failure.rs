//! The error type of tools: one line for the user.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use courser::{ConnectionError, HandshakeFailure};

/// The reason why a tool fails, in one line.
///
/// The line names no flags. A program with flags adds those that help, according to the
/// [`cause`](Self::cause).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    message: String,
    cause: Option<Cause>,
}

/// A cause that a flag of the program may remove.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A TLS handshake failed.
    Handshake(Box<HandshakeFailure>),
    /// The server does not support the application protocol (ALPN).
    Protocol,
    /// No program listens on the TCP port of the server.
    Refused,
    /// The program cannot listen on an address.
    Listen(io::ErrorKind),
}

/// Replaces each control character and each override of the writing direction in text from a peer by `?`, so
/// that the peer can neither control the terminal nor change the order of what is displayed.
pub fn printable(text: &str) -> String {
    let visible = |c: char| if is_active(c) { '?' } else { c };
    text.chars().map(visible).collect()
}

/// Returns true for C0 and C1 controls, marks and overrides of the writing direction, and separators of lines.
fn is_active(c: char) -> bool {
    let is_direction = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    c.is_control() || is_direction || matches!(c, '\u{2028}' | '\u{2029}')
}

impl Failure {
    /// Creates a failure from a message. Joins several lines into one.
    pub fn new(message: impl Into<String>) -> Self {
        // Text of a peer or of a library may have several lines.
        let message: String = message.into();
        let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
        Self {
            message: printable(&line),
            cause: None,
        }
    }

    /// Creates a failure from a message and its cause.
    pub fn with_cause(message: impl Into<String>, cause: Cause) -> Self {
        Self {
            cause: Some(cause),
            ..Self::new(message)
        }
    }

    /// Creates the failure for a failed TLS handshake.
    pub fn of_handshake(failure: HandshakeFailure) -> Self {
        Self::with_cause(failure.to_string(), Cause::Handshake(Box::new(failure)))
    }

    /// Creates the failure for an address on which the program cannot listen.
    pub fn cannot_listen(address: SocketAddr, protocol: &str, error: &io::Error) -> Self {
        Self::with_cause(
            format!("cannot listen on {protocol} {address}: {error}"),
            Cause::Listen(error.kind()),
        )
    }

    /// Returns the cause, if a flag may remove it.
    pub fn cause(&self) -> Option<&Cause> {
        self.cause.as_ref()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Converts an error of a stream, which occurs when the connection is lost during a measurement.
macro_rules! lost {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::new(error.to_string())
            }
        }
    )*};
}

lost!(
    courser::WriteError,
    courser::ReadError,
    courser::ReadExactError,
    courser::ReadToEndError,
    courser::ClosedStream,
    courser::ConfigError,
    courser::SendDatagramError,
    courser::ConnectError
);

impl From<ConnectionError> for Failure {
    fn from(error: ConnectionError) -> Self {
        match HandshakeFailure::after_handshake(&error, LOST) {
            Some(failure) => Self::of_handshake(failure),
            None => Self::new(format!("{LOST}: {error}")),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match HandshakeFailure::after_handshake(&error, LOST) {
            Some(failure) => Self::of_handshake(failure),
            None => Self::new(error.to_string()),
        }
    }
}

const LOST: &str = "connection lost";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_several_lines_becomes_one() {
        assert_eq!(
            Failure::new("one\n  two\r\nthree").to_string(),
            "one two three"
        );
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let text = "a\u{1b}[2Jb\u{7f}c\u{9b}d\0é";
        assert_eq!(printable(text), "a?[2Jb?c?d?é");
        assert_eq!(
            printable("x\u{202e}gnp.exe\u{2069}\u{200f}\u{2028}y"),
            "x?gnp.exe???y"
        );
        assert_eq!(Failure::new(text).to_string(), "a?[2Jb?c?d?é");
    }
}
