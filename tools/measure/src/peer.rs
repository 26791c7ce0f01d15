//! Failures of connections to a server.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use courser::{ConnectionError, HandshakeFailure, HandshakeOffer};

use crate::failure::{Cause, Failure};

/// A server that a client connects to, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Peer<'a> {
    /// The address that the client connects to.
    pub address: SocketAddr,
    /// The name that the server's certificate has to be for.
    pub name: &'a str,
}

impl Peer<'_> {
    /// Returns the failure of a port on which no program listens.
    pub fn is_absent(&self, protocol: &str) -> Failure {
        Failure::new(self.absence(protocol))
    }

    /// Returns the failure of a server that did not answer in time.
    pub fn is_silent(&self, protocol: &str, waited: Duration) -> Failure {
        let (address, seconds) = (self.address, waited.as_secs_f64());
        Failure::new(format!(
            "no answer from {protocol} {address} within {seconds} s: is a server running there, \
             and does a firewall let its port through?"
        ))
    }

    /// Returns the failure of a connection over QUIC.
    pub fn quic_failure(
        &self,
        error: &ConnectionError,
        offer: &HandshakeOffer,
        waited: Duration,
    ) -> Failure {
        if error.is_timeout() {
            return self.is_silent("udp", waited);
        }
        let place = self.address.to_string();
        match HandshakeFailure::of_quic(error, &place, self.name, offer) {
            Some(failure) => Failure::of_handshake(failure),
            None => Failure::new(format!("cannot connect to {place}: {error}")),
        }
    }

    /// Returns the failure of a connection over TCP.
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
                Failure::with_cause(self.absence("tcp"), Cause::Refused)
            }
            (io::ErrorKind::TimedOut, _) => self.is_silent("tcp", waited),
            _ => Failure::new(format!("cannot connect to tcp {place}: {error}")),
        }
    }

    fn absence(&self, protocol: &str) -> String {
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
        let failure = peer.is_silent("udp", Duration::from_secs(10));
        assert!(
            failure
                .to_string()
                .starts_with("no answer from udp 127.0.0.1:4433 within 10 s"),
            "{failure}"
        );
    }
}
