//! What a user is told when something does not work: one line that says what to do.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use courser::{ConnectionError, HandshakeFailure, HandshakeFailureKind, HandshakeOffer};

use crate::handshake::{self, Tool};

/// Why the program ends without success. One line, for humans.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        // Text of a peer or of a library may have several lines.
        Self(
            message
                .into()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
        )
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// Losses in the middle of a measurement, as the calls on streams report them.
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
    courser::ConnectError
);

impl From<ConnectionError> for Failure {
    fn from(error: ConnectionError) -> Self {
        Self::new(match HandshakeFailure::after_handshake(&error, LOST) {
            Some(failure) => handshake::explain(&failure, Tool::Perf),
            None => format!("{LOST}: {error}"),
        })
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(match HandshakeFailure::after_handshake(&error, LOST) {
            Some(failure) => handshake::explain(&failure, Tool::Perf),
            None => error.to_string(),
        })
    }
}

const LOST: &str = "connection lost";

/// An address could not be listened on.
pub(crate) fn cannot_listen(address: SocketAddr, protocol: &str, error: &io::Error) -> Failure {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => ": the port is taken, choose another with --listen",
        io::ErrorKind::AddrNotAvailable => ": no interface here has this address",
        io::ErrorKind::PermissionDenied => ": ports below 1024 need privileges",
        _ => "",
    };
    Failure::new(format!(
        "cannot listen on {protocol} {address}: {error}{remedy}"
    ))
}

/// Who was to be connected to, for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) name: &'a str,
    /// Whose flags messages name.
    pub(crate) tool: Tool,
}

impl Peer<'_> {
    pub(crate) fn is_absent(&self, protocol: &str) -> Failure {
        let address = self.address;
        Failure::new(format!(
            "nothing is listening on {protocol} {address}: is the server running?"
        ))
    }

    pub(crate) fn is_silent(&self, protocol: &str, waited: Duration) -> Failure {
        let (address, seconds) = (self.address, waited.as_secs_f64());
        Failure::new(format!(
            "no answer from {protocol} {address} within {seconds} s: is a server running there, \
             and does a firewall let its port through?"
        ))
    }

    pub(crate) fn speaks_otherwise(&self) -> Failure {
        Failure::new(format!(
            "{} does not speak the protocol 'perf' (ALPN): is it a perf server?",
            self.address
        ))
    }

    /// The handshake over QUIC failed.
    pub(crate) fn quic_failure(
        &self,
        error: &ConnectionError,
        offer: &HandshakeOffer,
        waited: Duration,
    ) -> Failure {
        if error.is_timeout() {
            return self.is_silent("udp", waited);
        }
        if error.is_protocol_mismatch() {
            return self.speaks_otherwise();
        }
        let place = self.address.to_string();
        match HandshakeFailure::of_quic(error, &place, self.name, offer) {
            Some(failure) => Failure::new(handshake::explain(&failure, self.tool)),
            None => Failure::new(format!("cannot connect to {place}: {error}")),
        }
    }

    /// The handshake over TCP failed.
    pub(crate) fn tcp_failure(
        &self,
        error: &io::Error,
        offer: &HandshakeOffer,
        waited: Duration,
    ) -> Failure {
        let place = self.address.to_string();
        let failure = HandshakeFailure::of_io(error, &place, self.name, offer);
        match (error.kind(), failure) {
            (_, Some(failure)) if self.is_protocol_of_perf(&failure) => self.speaks_otherwise(),
            (_, Some(failure)) => Failure::new(handshake::explain(&failure, self.tool)),
            (io::ErrorKind::ConnectionRefused, _) => {
                let absent = self.is_absent("tcp");
                Failure::new(format!("{absent} It serves TCP with --tcp only."))
            }
            (io::ErrorKind::TimedOut, _) => self.is_silent("tcp", waited),
            _ => Failure::new(format!("cannot connect to tcp {place}: {error}")),
        }
    }

    fn is_protocol_of_perf(&self, failure: &HandshakeFailure) -> bool {
        self.tool == Tool::Perf && failure.kind() == HandshakeFailureKind::Protocol
    }
}

/// The TLS error inside an error of a TLS stream.
pub(crate) fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

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
    fn timeout_names_address_and_time() {
        let peer = Peer {
            address: SocketAddr::from(([127, 0, 0, 1], 4433)),
            name: "localhost",
            tool: Tool::Perf,
        };
        let failure = peer.is_silent("udp", Duration::from_secs(10));
        assert!(
            failure
                .to_string()
                .starts_with("no answer from udp 127.0.0.1:4433 within 10 s"),
            "{failure}"
        );
    }
}
