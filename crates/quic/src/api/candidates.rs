//! Direct paths between two ends behind NATs. draft-seemann-quic-nat-traversal-02, in the variant of the field.

use std::net::{IpAddr, SocketAddr};
use std::task::Poll;

use courser_transport::{CandidateStats, ConnectionError, DirectAddress};
use courser_wire::PathId;

use crate::api::connection::Connection;
use crate::error::OfferCandidateError;
use crate::shard::lock::Locked;
use crate::shard::wakers::Topic;

impl Connection {
    /// Offers an address at which this end may be reached directly, so that the connection can leave a relay.
    ///
    /// Both ends must set [`TransportConfig::max_candidates`](courser_transport::TransportConfig::max_candidates) and
    /// permit several paths. A server announces the address at once. A client starts rounds as soon as the server has
    /// announced one: both ends then send small probes to the addresses of the other, and the client opens a path to each
    /// address that answers. It is a backup path at first, and is preferred to the relay once its round trip is no longer.
    /// The path over the relay stays open as backup: give it up with [`Connection::close_path`].
    ///
    /// Only addresses that are named here are sent to the peer. They also decide which addresses of the peer are probed: see
    /// [`Candidates::offer`](courser_transport::Candidates::offer). Useful ones are those of interfaces, and
    /// [observed ones](Connection::observed_address) of a server that is trusted. Returns false if it was offered before.
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # use courser::Connection;
    /// # async fn leave_relay(relayed: Connection, observer: Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// if let Some(address) = observer.observed_address() {
    ///     relayed.offer_candidate(address)?;
    /// }
    /// let path = relayed.direct_path().await?;
    /// println!("path {path} is direct");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`OfferCandidateError`] if the ends have not agreed on candidates, or the peer accepts no more.
    pub fn offer_candidate(&self, address: SocketAddr) -> Result<bool, OfferCandidateError> {
        let now = self.0.shard.now();
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.handle)?;
        let is_new = connection.candidates().offer(now, address)?;
        locked.used(self.0.handle, 0);
        Ok(is_new)
    }

    /// Withdraws an address that was offered. Returns false if it was not.
    pub fn withdraw_candidate(&self, address: SocketAddr) -> bool {
        let mut locked = self.0.lock();
        let Ok(connection) = locked.open_connection(self.0.handle) else {
            return false;
        };
        let was_offered = connection.candidates().withdraw(address);
        locked.used(self.0.handle, 0);
        was_offered
    }

    /// Names a network of this machine, whose private addresses may be probed. Without it, the /24 or /64 around each
    /// private address that is offered counts.
    pub fn add_candidate_network(&self, network: IpAddr, prefix: u8) {
        let mut locked = self.0.lock();
        if let Ok(connection) = locked.open_connection(self.0.handle) {
            connection.candidates().add_network(network, prefix);
        }
    }

    /// Starts a round of probes on a client, at the earliest five seconds after the last one. Rounds also start by
    /// themselves.
    ///
    /// # Errors
    /// Returns [`OfferCandidateError`] on a server, or if the server has announced no address that may be probed.
    pub fn start_candidate_round(&self) -> Result<(), OfferCandidateError> {
        let now = self.0.shard.now();
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.handle)?;
        connection.candidates().start_round(now)?;
        locked.used(self.0.handle, 0);
        Ok(())
    }

    /// Returns the addresses that the server has announced to this client.
    pub fn announced_candidates(&self) -> Vec<SocketAddr> {
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.handle);
        connection.map_or_else(|_| Vec::new(), |it| it.candidates().announced())
    }

    /// Returns the addresses of the server that have answered probes of this client, and the paths to them.
    pub fn direct_addresses(&self) -> Vec<DirectAddress> {
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.handle);
        connection.map_or_else(|_| Vec::new(), |it| it.candidates().direct())
    }

    /// Returns the counters of the search for direct paths.
    pub fn candidate_stats(&self) -> CandidateStats {
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.handle);
        connection.map_or_else(|_| CandidateStats::default(), |it| it.candidates().stats())
    }

    /// Waits on a client until a direct path is open, which carries full datagrams, and returns its ID. If there is one
    /// already, returns at once.
    ///
    /// # Errors
    /// Returns [`ConnectionError`] if the connection ends first. Behind some pairs of NATs there is no direct path, so
    /// bound the wait.
    ///
    /// # Cancel safety
    /// Safe. The search goes on.
    pub async fn direct_path(&self) -> Result<PathId, ConnectionError> {
        let handle = self.0.handle;
        let check = move |locked: &mut Locked<'_>| {
            let connection = match locked.open_connection(handle) {
                Ok(connection) => connection,
                Err(error) => return Poll::Ready(Err(error)),
            };
            let direct = connection.candidates().direct();
            let paths = connection.several_paths().list();
            let mut open = paths.iter().filter(|it| it.is_validated && !it.is_closing);
            let found = open.find(|path| direct.iter().any(|it| it.path == Some(path.id)));
            found.map_or(Poll::Pending, |path| Poll::Ready(Ok(path.id)))
        };
        self.0.wait(Topic::Migration, check).await
    }
}
