//! The life cycle of connections: creation, upkeep of routes and timers, and removal.

use std::fmt;
use std::net::SocketAddr;

use courser_base::{FourTuple, ScopedIp, Time};
use courser_crypto::TlsStartError;
use courser_wire::ConnectionId;

use super::{ConnectionHandle, Endpoint};
use crate::cid::ConnectionIdError;
use crate::config::{ClientConfig, ConfigError};
use crate::connection::{Connection, ConnectionError, FIRST_DESTINATION_LEN};
use crate::path::Place;

/// The reason why no connection could be started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectError {
    /// The peer's address is not a valid destination: port 0, or an unspecified address.
    InvalidAddress(SocketAddr),
    /// An error for a setting outside its range.
    Config(ConfigError),
    /// TLS cannot start: the server name is invalid, or the configuration is unusable.
    Tls(TlsStartError),
    /// Every connection ID is taken or, if no IDs are used, there is a connection to this address.
    NoFreeConnectionId,
    /// The generator of connection IDs is faulty.
    ConnectionIds(ConnectionIdError),
}

impl From<ConnectionIdError> for ConnectError {
    fn from(error: ConnectionIdError) -> Self {
        match error {
            ConnectionIdError::NoneFree => Self::NoFreeConnectionId,
            error => Self::ConnectionIds(error),
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidAddress(peer) => write!(f, "cannot connect to {peer}"),
            Self::Config(error) => write!(f, "{error}"),
            Self::Tls(error) => write!(f, "{error}"),
            Self::NoFreeConnectionId => write!(f, "no free connection id"),
            Self::ConnectionIds(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ConnectError {}

impl Endpoint {
    /// Starts a connection to `peer`, whose certificate must be valid for `server_name`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # fn main() -> Result {
    /// # let mut pair = Pair::new()?;
    /// # let (client, config) = (&mut pair.client, &pair.config);
    /// let now = Time::ZERO;
    /// let handle = client.connect(now, config, "192.0.2.2:4433".parse()?, "localhost")?;
    /// // Its first datagrams can be polled now.
    /// assert_eq!(client.next_ready(), Some(handle));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// See [`ConnectError`]; nothing was sent in that case.
    pub fn connect(
        &mut self,
        now: Time,
        config: &ClientConfig,
        peer: SocketAddr,
        server_name: &str,
    ) -> Result<ConnectionHandle, ConnectError> {
        if peer.port() == 0 || peer.ip().is_unspecified() {
            return Err(ConnectError::InvalidAddress(peer));
        }
        config.validate().map_err(ConnectError::Config)?;
        let local_source = self.router.new_id(&mut self.rng)?;
        let destination = self.first_destination(config)?;
        let path = FourTuple::to(peer);
        let place = Place {
            tuple: path,
            socket: self.socket(),
        };
        let origin = self
            .origins
            .origin(&self.config, now, place, local_source, &mut self.rng);
        let connection = Connection::client(origin, config, server_name, destination)
            .map_err(ConnectError::Tls)?;
        let handle = self.table.add(connection, None);
        if !self.route_new(handle, local_source, path) {
            return Err(ConnectError::NoFreeConnectionId);
        }
        self.stats.connected += 1;
        self.mark_ready(handle);
        Ok(handle)
    }

    /// Returns the Destination Connection ID of the first packet of a connection.
    fn first_destination(&mut self, config: &ClientConfig) -> Result<ConnectionId, ConnectError> {
        let random: [u8; FIRST_DESTINATION_LEN] = self.rng.array();
        let Some(make) = &config.initial_destination else {
            return Ok(ConnectionId::new(&random).expect("eight bytes are an ID"));
        };
        let id = make();
        match id.len() >= FIRST_DESTINATION_LEN {
            true => Ok(id),
            false => Err(ConnectError::Config(ConfigError {
                field: "initial_destination",
                message: format!(
                    "is {} bytes long, allowed is {FIRST_DESTINATION_LEN} to {}",
                    id.len(),
                    ConnectionId::MAX_LEN
                ),
            })),
        }
    }

    /// Routes a new connection by its ID, or by address if it has none. If that is impossible, removes the
    /// connection, whose handle was not returned, and returns false.
    pub(super) fn route_new(
        &mut self,
        handle: ConnectionHandle,
        local_source: ConnectionId,
        path: FourTuple,
    ) -> bool {
        let router = &mut self.router;
        let entry = self.table.entry_mut(handle);
        let is_routed = entry.is_some_and(|entry| {
            let is_routed = router.add(handle, &mut entry.routes, local_source, path);
            entry.is_released = !is_routed;
            is_routed
        });
        if !is_routed {
            self.drain(handle);
        }
        is_routed
    }

    /// Updates routes and timers after a connection was used.
    pub(super) fn settle(&mut self, now: Time, handle: ConnectionHandle) {
        let Some(connection) = self.connection_mut(handle) else {
            return;
        };
        if connection.is_drained() {
            return self.drain(handle);
        }
        if connection.has_finished_sending() {
            self.table.on_ended(handle);
        }
        self.settle_handshake(now, handle);
        self.settle_routes(handle);
        self.table.settle(now, handle);
    }

    fn settle_handshake(&mut self, now: Time, handle: ConnectionHandle) {
        let Some(entry) = self.table.entry_mut(handle) else {
            return;
        };
        let Some(connection) = entry.connection.as_deref_mut() else {
            return;
        };
        // Dropping the claim releases the capacity of the handshake.
        let ended = entry.claim.take_if(|_| !connection.is_handshaking());
        let created = ended.filter(|_| !connection.is_closed());
        let created = created.map(|claim| claim.claimant());
        let has_tls_task = connection.handshake_mut().list_tls_task();
        if connection.handshake_mut().take_token_request() {
            let ip = ScopedIp::of(connection.path().peer);
            let version = connection.handshake_mut().version().current();
            let count = entry.new_tokens;
            let issuer = self.admission.tokens();
            let tokens = issuer.validation(now, ip, version, count, &mut self.rng);
            connection.handshake_mut().queue_tokens(tokens);
            self.mark_ready(handle);
        }
        if let Some(claimant) = created {
            let server = self.server.as_deref();
            self.admission.on_created(now, server, claimant);
        }
        if has_tls_task {
            self.table.queue_tls_task(handle);
        }
    }

    pub(super) fn settle_routes(&mut self, handle: ConnectionHandle) {
        let Some(entry) = self.table.entry_mut(handle) else {
            return;
        };
        let Some(connection) = entry.connection.as_deref_mut() else {
            return;
        };
        let stateless = &self.stateless;
        let reset_token = |id: &ConnectionId| stateless.reset_token(id);
        let (routes, rng) = (&mut entry.routes, &mut self.rng);
        let router = &mut self.router;
        if router.update(handle, routes, connection, rng, reset_token) {
            // The new IDs are sent at the next opportunity.
            self.mark_ready(handle);
        }
    }
}

/// The end of a connection, which is drained and then released by its owner.
impl Endpoint {
    /// Releases a connection that its owner no longer needs.
    ///
    /// Release each handle from [`Endpoint::connect`] or [`Endpoint::accept`] once. A connection that is
    /// still closing is removed as soon as it is drained. Unread data is dropped. To end an open
    /// connection, close it first.
    pub fn release(&mut self, handle: ConnectionHandle) {
        self.guard(|endpoint| endpoint.table.release(handle));
    }

    /// Returns the reason why a connection is over; `None` while it is open.
    #[inline]
    pub fn close_error(&self, handle: ConnectionHandle) -> Option<&ConnectionError> {
        let entry = self.table.entry(handle)?;
        match &entry.connection {
            Some(connection) => connection.close_error(),
            None => entry.fault.as_deref(),
        }
    }

    /// Returns true if every connection has ended, and its peer has been notified or could have been.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.table.is_idle()
    }

    /// Removes all routes to a connection and frees the memory that it held for its peer. Its owner can
    /// still read data and statistics.
    pub(super) fn drain(&mut self, handle: ConnectionHandle) {
        let Some(entry) = self.table.begin_drain(handle) else {
            return;
        };
        if let Some(connection) = entry.connection.as_deref() {
            let ids = connection.active_ids();
            self.router.remove(handle, &mut entry.routes, ids);
        }
        self.table.end_drain(handle);
    }
}
