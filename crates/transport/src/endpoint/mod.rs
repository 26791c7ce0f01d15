//! An endpoint: routes datagrams to connections, and answers those that belong to none.
//! RFC 9000 §5.2.

mod admission;
mod arrived;
mod clients;
mod fault;
mod handle;
mod lifecycle;
mod memory;
mod origins;
mod packet_too_big;
mod receive;
mod router;
mod secrets;
mod sharding;
mod shards;
mod shared;
mod shrink;
mod sockets;
mod stateless;
mod stats;
mod table;
mod tls_tasks;
mod unreachable;

use std::sync::Arc;

use courser_base::{Time, foreign};
use courser_wire::TransportErrorCode;

pub use self::admission::address_filter::{AddressFilter, AddressListError, AddressPrefix};
pub use self::admission::creation_limiter::CreationLimiter;
pub use self::admission::incoming::Incoming;
pub use self::handle::ConnectionHandle;
pub use self::lifecycle::ConnectError;
pub use self::packet_too_big::PacketTooBig;
pub use self::receive::ReceiveMeta;
pub use self::shards::MAX_SHARDS;
pub use self::shards::outbox::MisroutedBatch;
pub use self::shards::place::ShardPlace;
pub use self::stats::EndpointStats;
pub use self::unreachable::UnreachableReport;

use self::admission::Admission;
use self::admission::handshakes::limits_of;
use self::memory::Memory;
use self::origins::Origins;
use self::router::Router;
use self::secrets::Secrets;
use self::shards::{Shard, ShardId};
use self::shared::Shared;
use self::stateless::Stateless;
use self::table::Table;
use crate::build::transmit::{Transmit, TransmitBuffer};
use crate::config::{EndpointConfig, ServerConfig};
use crate::connection::Connection;
use crate::error::TransportError;
use crate::nat::EndpointPermits;
use crate::rng::Rng;

/// Connections behind one socket. It has no clock and no socket: the driver passes in datagrams and
/// the time.
pub struct Endpoint {
    config: EndpointConfig,
    server: Option<Arc<ServerConfig>>,
    rng: Rng,
    shard: Shard,
    router: Router,
    admission: Admission,
    stateless: Stateless,
    origins: Origins,
    table: Table,
    /// The counters that no part counts.
    stats: EndpointStats,
    /// True if a connection has many unread datagrams.
    is_crowded: bool,
    probe_permits: EndpointPermits,
}

impl Endpoint {
    /// Creates an endpoint. `server` is needed to accept connections, and `seed` must come from a
    /// cryptographic random source: all IDs, keys and challenges are derived from it.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # fn main() -> Result {
    /// // In production both seeds are random numbers of the system.
    /// let config = EndpointConfig::from_seed([1; 32]);
    /// let client = Endpoint::new(config, None, [2; 32]);
    /// assert_eq!(client.connections(), 0);
    /// # Ok(()) }
    /// ```
    pub fn new(config: EndpointConfig, server: Option<Arc<ServerConfig>>, seed: [u8; 32]) -> Self {
        let mut shards = Self::shards(config, server, seed, 1);
        shards.pop().expect("one shard was requested")
    }

    fn of_shard(
        id: ShardId,
        config: EndpointConfig,
        server: Option<Arc<ServerConfig>>,
        secrets: Secrets,
        shared: Arc<Shared>,
    ) -> Self {
        let router = Router::new(&config, id, secrets.routes, shared.clone());
        let mut admission = Admission::new(&config, id, &secrets, shared.clone());
        admission.set_tokens(&config, server.as_deref());
        Self {
            origins: Origins::new(id, &shared, router.ids().rotation()),
            router,
            shard: Shard::new(id),
            is_crowded: false,
            probe_permits: EndpointPermits::default(),
            admission,
            stateless: Stateless::new(&config, shared.clone()),
            table: Table::new(Memory::new(config.memory_budget, id, shared)),
            stats: EndpointStats::default(),
            config,
            server,
            rng: secrets.rng,
        }
    }

    /// Starts or stops accepting connections, or changes the settings of later ones.
    pub fn set_server_config(&mut self, server: Option<Arc<ServerConfig>>) {
        if server.is_some() {
            let limits = limits_of(&self.config, server.as_deref());
            self.admission.set_limits(limits);
            self.admission.set_tokens(&self.config, server.as_deref());
        }
        // Dropping the last reference may run code of the user.
        foreign::defer(std::mem::replace(&mut self.server, server));
    }

    /// Replaces the list of blocked addresses, and closes connections with peers that are blocked now
    /// (CONNECTION_REFUSED).
    ///
    /// Datagrams from blocked addresses are dropped before any other processing, including those of
    /// connections that this endpoint has started.
    pub fn set_address_filter(&mut self, now: Time, filter: Arc<AddressFilter>) {
        self.admission.set_address_filter(filter.clone());
        if filter.is_empty() {
            return;
        }
        let handles: Vec<_> = self.handles().collect();
        for handle in handles {
            self.guard(|endpoint| endpoint.close_if_blocked(now, handle, &filter));
        }
    }

    fn close_if_blocked(&mut self, now: Time, handle: ConnectionHandle, filter: &AddressFilter) {
        let Some(connection) = self.connection_mut(handle) else {
            return;
        };
        if connection.is_closed() || !filter.is_blocked(connection.path().peer.ip()) {
            return;
        }
        let code = TransportErrorCode::CONNECTION_REFUSED;
        connection.end(now, TransportError::new(code, "the address is blocked"));
        self.stats.closed_for_block += 1;
        self.mark_ready(handle);
    }

    /// Returns the connection until it is [released](Endpoint::release). A drained connection keeps its
    /// events, its statistics and its unread data.
    pub fn connection(&self, handle: ConnectionHandle) -> Option<&Connection> {
        self.table.get(handle)
    }

    /// Returns the connection. Call [`Endpoint::mark_ready`] after using it.
    pub fn connection_mut(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.table.get_mut(handle)
    }

    /// Queues a connection for [`Endpoint::next_ready`] after it was used.
    #[inline]
    pub fn mark_ready(&mut self, handle: ConnectionHandle) {
        self.table.mark_ready(handle);
    }

    /// Returns the next connection that may have events and datagrams. Read its events, then call
    /// [`Endpoint::poll_transmit`] until it returns `None`, or [`Endpoint::queue_sender`] to do that
    /// later.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # fn main() -> Result {
    /// # let mut pair = Pair::new()?;
    /// # let now = pair.now;
    /// # pair.client.connect(now, &pair.config, SERVER, "localhost")?;
    /// # let endpoint = &mut pair.client;
    /// let mut buffer = TransmitBuffer::new(1);
    /// while let Some(handle) = endpoint.next_ready() {
    ///     let Some(connection) = endpoint.connection_mut(handle) else {
    ///         continue;
    ///     };
    ///     while let Some(event) = connection.poll_event() {
    ///         println!("{event:?}");
    ///     }
    ///     while let Some(transmit) = endpoint.poll_transmit(now, handle, &mut buffer) {
    ///         println!("{} bytes to {}", buffer.bytes().len(), transmit.destination);
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn next_ready(&mut self) -> Option<ConnectionHandle> {
        self.table.next_ready()
    }

    /// Queues a connection whose events were read for [`Endpoint::next_sender`].
    pub fn queue_sender(&mut self, handle: ConnectionHandle) {
        self.table.queue_sender(handle);
    }

    /// Returns the next connection that may send. Queue it again if it has more than it may send in one
    /// turn.
    pub fn next_sender(&mut self) -> Option<ConnectionHandle> {
        self.table.next_sender()
    }

    /// Returns the number of connections in the queue of [`Endpoint::next_sender`]. Some may be over.
    #[inline]
    pub fn senders(&self) -> usize {
        self.table.senders().len()
    }

    /// Builds the next batch of a connection. When it returns `None`, the connection's timers are
    /// set. When the connection is drained, all routes to it are removed.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # fn main() -> Result {
    /// # let mut pair = Pair::new()?;
    /// # let now = pair.now;
    /// # let handle = pair.client.connect(now, &pair.config, SERVER, "localhost")?;
    /// # let endpoint = &mut pair.client;
    /// // Up to ten datagrams of equal size in a call, for a socket with segmentation offload.
    /// let mut buffer = TransmitBuffer::new(10);
    /// let transmit = endpoint.poll_transmit(now, handle, &mut buffer).expect("a first flight");
    /// assert_eq!(transmit.destination, SERVER);
    /// assert!(buffer.bytes().len() >= 1200); // RFC 9000 §14.1
    /// # Ok(()) }
    /// ```
    pub fn poll_transmit(
        &mut self,
        now: Time,
        handle: ConnectionHandle,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        self.guard(|endpoint| endpoint.transmit(now, handle, buffer))?
    }

    fn transmit(
        &mut self,
        now: Time,
        handle: ConnectionHandle,
        buffer: &mut TransmitBuffer,
    ) -> Option<Transmit> {
        // Peers open further paths as soon as they may, and need IDs for them before: those are not sent after other data.
        let connection = self.table.get_mut(handle)?;
        if connection.has_several_paths() && connection.missing_ids() > 0 {
            self.settle_routes(handle);
        }
        let connection = self.table.get_mut(handle)?;
        let was_closed = connection.is_closed();
        let probe = connection.transmit_due_probe(now, &mut self.probe_permits, buffer);
        if probe.is_some() {
            return probe;
        }
        let transmit = connection.poll_transmit(now, buffer);
        if connection.is_closed() && !was_closed {
            // It ran out of packet numbers or keys, and the application has not received the event yet.
            self.mark_ready(handle);
        }
        if transmit.is_none() {
            self.settle(now, handle);
        }
        transmit
    }

    /// Returns the next datagram that belongs to no connection: Version Negotiation, Retry,
    /// refusals, stateless resets.
    pub fn poll_stateless_transmit(&mut self, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        self.stateless.poll_transmit(buffer)
    }

    /// Returns true if [`Endpoint::poll_stateless_transmit`] has a datagram to return.
    pub fn has_replies(&self) -> bool {
        self.stateless.queued() > 0
    }

    /// Returns the time for the next call of [`Endpoint::handle_timeout`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # fn main() -> Result {
    /// # let mut pair = Pair::new()?;
    /// # let now = pair.now;
    /// # let handle = pair.client.connect(now, &pair.config, SERVER, "localhost")?;
    /// # let mut buffer = TransmitBuffer::new(1);
    /// # while pair.client.poll_transmit(now, handle, &mut buffer).is_some() {}
    /// # let endpoint = &mut pair.client;
    /// // The first flight has been sent and is not answered.
    /// let at = endpoint.next_timeout().expect("a probe timeout");
    /// endpoint.handle_timeout(at);
    /// assert_eq!(endpoint.next_ready(), Some(handle)); // it has a probe to send
    /// # Ok(()) }
    /// ```
    pub fn next_timeout(&self) -> Option<Time> {
        self.table.next_timeout()
    }

    /// Runs the timers that are due and marks their connections ready.
    pub fn handle_timeout(&mut self, now: Time) {
        // Each deadline is removed before it runs, so one that panics does not run again.
        while self.guard(|endpoint| endpoint.run_timers(now)).is_none() {}
    }

    fn run_timers(&mut self, now: Time) {
        let mut checked = 0;
        while let Some(handle) = self.table.next_due(now) {
            let Some(connection) = self.connection_mut(handle) else {
                continue;
            };
            if connection.next_timeout().is_some_and(|(due, _)| due <= now) {
                connection.handle_timeout(now);
                self.mark_ready(handle);
            } else {
                // The deadline had moved to a later time, which the table receives only now. Or it is time
                // to check an idle connection.
                self.table.check_idle(now, handle, checked);
                checked += 1;
            }
        }
    }

    /// Returns the number of connections that are not drained.
    pub fn connections(&self) -> usize {
        self.table.connections()
    }

    /// Returns the handles of all connections that are not released, drained ones included.
    pub fn handles(&self) -> impl Iterator<Item = ConnectionHandle> + '_ {
        self.table.handles()
    }

    /// Counts a pause of the driver because receiving fails repeatedly.
    pub fn on_receive_pause(&mut self) {
        self.stats.receive_pauses += 1;
    }

    /// Returns the counters of the endpoint.
    pub fn stats(&self) -> EndpointStats {
        let mut stats = EndpointStats {
            connection_ids_failed: self.router.failures(),
            fallbacks: self.origins.fallbacks(),
            ..self.stats
        };
        self.table.count(&mut stats);
        self.admission.count(&mut stats);
        self.stateless.count(&mut stats);
        self.shard.count(&mut stats);
        stats
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
