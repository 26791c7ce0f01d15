//! Describes failures of connections to a server.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use courser::{ConnectionError, HandshakeFailure, HandshakeOffer};

use crate::failure::{Cause, Failure};

/// The server of a failed connection, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Peer<'a> {
    /// The address that the client connects to.
    pub address: SocketAddr,
    /// The name that the server's certificate must contain.
    pub name: &'a str,
}

impl Peer<'_> {
    /// Returns the failure for a port on which no program listens.
    pub fn not_listening(&self, protocol: &str) -> Failure {
        Failure::new(self.not_listening_text(protocol))
    }

    /// Returns the failure for a server that did not answer within `waited`.
    pub fn no_answer(&self, protocol: &str, waited: Duration) -> Failure {
        let (address, seconds) = (self.address, waited.as_secs_f64());
        Failure::new(format!(
            "no answer from {protocol} {address} within {seconds} s: is a server running there, \
             and does a firewall let its port through?"
        ))
    }

    /// Returns the failure for a connection over QUIC.
    pub fn quic_failure(
        &self,
        error: &ConnectionError,
        offer: &HandshakeOffer,
        waited: Duration,
    ) -> Failure {
        if error.is_timeout() {
            return self.no_answer("udp", waited);
        }
        let place = self.address.to_string();
        match HandshakeFailure::of_quic(error, &place, self.name, offer) {
            Some(failure) => Failure::of_handshake(failure),
            None => Failure::new(format!("cannot connect to {place}: {error}")),
        }
    }

    /// Returns the failure for a connection over TCP.
    pub fn tcp_failure(
        &self,
        error: &io::Error,
        offer: &HandshakeOffer,
        waited: Duration,
    ) -> Failure {
        let place = self.address.to_string();
        let failure = HandshakeFailure::of_io(error, &place, self.name, offer);
        match (error.kind(), failure) {
            (_, Some(failure)) => Failure::of_handshake(failure),
            (io::ErrorKind::ConnectionRefused, _) => {
                Failure::with_cause(self.not_listening_text("tcp"), Cause::Refused)
            }
            (io::ErrorKind::TimedOut, _) => self.no_answer("tcp", waited),
            _ => Failure::new(format!("cannot connect to tcp {place}: {error}")),
        }
    }

    fn not_listening_text(&self, protocol: &str) -> String {
        let address = self.address;
        format!("nothing is listening on {protocol} {address}: is the server running?")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout_names_address_and_time() {
        let peer = Peer {
            address: SocketAddr::from(([127, 0, 0, 1], 4433)),
            name: "localhost",
        };
        let failure = peer.no_answer("udp", Duration::from_secs(10));
        assert!(
            failure
                .to_string()
                .starts_with("no answer from udp 127.0.0.1:4433 within 10 s"),
            "{failure}"
        );
    }
}
