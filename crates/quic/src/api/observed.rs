//! Addresses of ours that peers report. draft-ietf-quic-address-discovery-00.

use std::net::SocketAddr;
use std::task::Poll;

use courser_transport::{ConnectionError, ObservedPath};

use crate::api::connection::Connection;
use crate::shard::lock::Locked;
use crate::shard::wakers::Topic;

impl Connection {
    /// Returns the address of this end as the peer sees it: the latest one that it has reported, or `None`.
    ///
    /// The peer reports it only if this end asks with
    /// [`TransportConfig::address_observations`](courser_transport::TransportConfig::address_observations), and the peer offers
    /// it. Behind a NAT, the address is that of the NAT. It is a claim: a peer can report any address. Trust it only
    /// if you trust the peer, or if independent peers agree (see [`agreed_address`]).
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # use courser::Connection;
    /// # fn show(connection: &Connection) {
    /// match connection.observed_address() {
    ///     Some(address) => println!("the server sees {address}"),
    ///     None => println!("the server reports no address"),
    /// }
    /// # }
    /// ```
    pub fn observed_address(&self) -> Option<SocketAddr> {
        self.observed_addresses().last().map(|it| it.address)
    }

    /// Returns the addresses of this end that the peer has reported, at most one for each path, the latest one last.
    pub fn observed_addresses(&self) -> Vec<ObservedPath> {
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.handle);
        connection.map_or_else(|_| Vec::new(), |it| it.observed_addresses().collect())
    }

    /// Waits until the peer reports an address of this end other than `known`, and returns it.
    ///
    /// # Errors
    /// Returns [`ConnectionError`] if the connection ends first. A peer that does not offer reports never sends one, so
    /// that only the end of the connection ends the wait.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn observed_address_changed(
        &self,
        known: Option<SocketAddr>,
    ) -> Result<SocketAddr, ConnectionError> {
        let handle = self.0.handle;
        let check = move |locked: &mut Locked<'_>| {
            let connection = match locked.open_connection(handle) {
                Ok(connection) => connection,
                Err(error) => return Poll::Ready(Err(error)),
            };
            let latest = connection.observed_addresses().last();
            match latest.map(|it| it.address) {
                Some(address) if Some(address) != known => Poll::Ready(Ok(address)),
                _ => Poll::Pending,
            }
        };
        self.0.wait(Topic::Migration, check).await
    }
}

/// Returns the address that at least `least` of the claims name, the most frequent one, or `None`.
///
/// Pass one claim of each independent peer, so that one of them cannot invent an address alone
/// (draft-ietf-quic-address-discovery-00 §6.1). A NAT that assigns another port for each peer makes all claims differ.
///
/// ```
/// # extern crate courser_quic as courser;
/// let claims = ["192.0.2.1:4433", "192.0.2.1:4433", "203.0.113.9:1"].map(|it| it.parse().unwrap());
/// assert_eq!(courser::agreed_address(claims, 2), Some(claims[0]));
/// assert_eq!(courser::agreed_address(claims, 3), None);
/// ```
pub fn agreed_address(
    claims: impl IntoIterator<Item = SocketAddr>,
    least: usize,
) -> Option<SocketAddr> {
    let mut counts: Vec<(SocketAddr, usize)> = Vec::new();
    for claim in claims {
        match counts.iter_mut().find(|(address, _)| *address == claim) {
            Some((_, count)) => *count += 1,
            None => counts.push((claim, 1)),
        }
    }
    let agreed = counts.into_iter().filter(|(_, count)| *count >= least);
    agreed
        .max_by_key(|(_, count)| *count)
        .map(|(address, _)| address)
}
