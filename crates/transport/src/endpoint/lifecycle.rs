//! The life cycle of connections: creation, upkeep of routes and timers, and removal.

use std::cmp::Reverse;
use std::fmt;
use std::net::SocketAddr;

use courser_base::{FourTuple, ScopedIp, Time};
use courser_crypto::TlsStartError;
use courser_wire::ConnectionId;

use super::admission::claim::Claim;
use super::shrink::shrink_heap;
use super::table::in_use::{drop_connection, note_use};
use super::table::memory::Held;
use super::table::stage::Stage;
use super::{ConnectionHandle, Endpoint, LOOK_INTERVAL};
use crate::cid::ConnectionIdError;
use crate::config::{ClientConfig, ConfigError};
use crate::connection::{Connection, ConnectionError, FIRST_DESTINATION_LEN, Origin, Timer};
use crate::error::TransportError;
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

/// Number of outdated deadlines that are not worth a search.
const SPARE_DEADLINES: usize = 64;

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
    /// assert_eq!(client.next_touched(), Some(handle));
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
        let destination: [u8; FIRST_DESTINATION_LEN] = self.rng.array();
        let destination = ConnectionId::new(&destination).expect("eight bytes are an ID");
        let path = FourTuple::to(peer);
        let place = Place {
            tuple: path,
            socket: self.socket,
        };
        let origin = self.origin(now, place, local_source);
        let connection = Connection::client(origin, config, server_name, destination)
            .map_err(ConnectError::Tls)?;
        let handle = self.add(connection, None);
        if !self.route_new(handle, local_source, path) {
            self.undo_add(handle);
            return Err(ConnectError::NoFreeConnectionId);
        }
        self.stats.connected += 1;
        self.touched(handle);
        Ok(handle)
    }

    pub(super) fn origin(&mut self, now: Time, place: Place, local_source: ConnectionId) -> Origin {
        Origin {
            now,
            place,
            local_source,
            pool: self.pool.clone(),
            budget: self.memory.windows().clone(),
            experience: self.experience.clone(),
            rng: self.rng.fork(),
            max_udp_payload_size: self.config.max_udp_payload_size,
            grease: self.config.grease,
            grease_quic_bit: self.config.grease_quic_bit,
            id_rotation: self.router.ids().rotation(),
        }
    }

    /// Adds a connection; a client's connection counts as half-open for it.
    pub(super) fn add(
        &mut self,
        connection: Connection,
        half_open: Option<Claim>,
    ) -> ConnectionHandle {
        let handle = self.slots.take();
        let slot = &mut self.slots[handle.index()];
        slot.connection = Some(Box::new(connection));
        slot.half_open = half_open.map(Box::new);
        self.busy += 1;
        handle
    }

    /// Routes a new connection by its ID, or by address if it has none.
    pub(super) fn route_new(
        &mut self,
        handle: ConnectionHandle,
        local_source: ConnectionId,
        path: FourTuple,
    ) -> bool {
        let Self { router, slots, .. } = self;
        slots
            .get_mut(handle.index())
            .is_some_and(|slot| router.add(handle, &mut slot.routes, local_source, path))
    }

    /// Updates routes and timers after a connection was used.
    pub(super) fn settle(&mut self, now: Time, handle: ConnectionHandle) {
        let Some(connection) = self.connection(handle) else {
            return;
        };
        if connection.is_drained() {
            return self.drain(handle);
        }
        if connection.is_quiet() {
            self.on_quiet(handle);
        }
        self.settle_handshake(now, handle);
        self.settle_routes(handle);
        self.settle_memory(now, handle);
        self.schedule(now, handle);
    }

    fn settle_handshake(&mut self, now: Time, handle: ConnectionHandle) {
        let Some(slot) = self.slots.get_mut(handle.index()) else {
            return;
        };
        let Some(connection) = slot.connection.as_deref_mut() else {
            return;
        };
        // The handshake gives back its room here.
        let ended = slot.half_open.take_if(|_| !connection.is_handshaking());
        let created = ended.filter(|_| !connection.is_closed());
        let created = created.map(|claim| claim.claimant());
        let asks_for_tls = connection.handshake_mut().list_tls_task();
        if connection.handshake_mut().take_wants_tokens() {
            let ip = ScopedIp::of(connection.path().peer);
            let version = connection.handshake_mut().version().current();
            let (issuer, rng) = (self.admission.tokens(), &mut self.rng);
            let tokens = issuer.validation(now, ip, version, slot.new_tokens, rng);
            connection.handshake_mut().queue_tokens(tokens);
            self.touched(handle);
        }
        if let Some(claimant) = created {
            let server = self.server.as_deref();
            self.admission.on_created(now, server, claimant);
        }
        if asks_for_tls {
            self.list_tls_task(handle);
        }
    }

    /// Counts the memory that a connection holds, and reports the memory left to it.
    pub(super) fn settle_memory(&mut self, now: Time, handle: ConnectionHandle) {
        let Some(slot) = self.slots.get_mut(handle.index()) else {
            return;
        };
        let Some(connection) = slot.connection.as_deref_mut() else {
            return;
        };
        self.memory.set(&mut slot.held, connection.memory());
        connection.set_memory_left(self.memory.left());
        self.memory.windows().freeze(self.memory.is_tight());
        if self.memory.is_over() && self.memory.may_shed(now) {
            self.shed(now);
        }
    }

    /// Closes the connection that holds most for the least progress. Examines all connections, so
    /// it must run rarely.
    #[cold]
    fn shed(&mut self, now: Time) {
        let open = self.slots.iter_mut().enumerate();
        let open = open.filter_map(|(index, slot)| {
            let connection = slot.connection.as_deref_mut()?;
            let burden = slot.held.burden(connection.streams().moved());
            (!connection.is_closed()).then_some((burden, index))
        });
        let Some((_, index)) = open.max() else {
            return;
        };
        for slot in self.slots.iter_mut() {
            if let Some(connection) = slot.connection.as_deref_mut() {
                slot.held.look(connection.streams().moved());
            }
        }
        let slot = &mut self.slots[index];
        let handle = ConnectionHandle {
            index: u32::try_from(index).expect("slots have 32-bit indices"),
            generation: slot.generation,
        };
        note_use(&mut self.in_use, handle);
        let Some(connection) = slot.connection.as_deref_mut() else {
            return;
        };
        let reason = "memory is short, and this connection holds most of it";
        connection.end(now, TransportError::internal(reason));
        self.memory.set(&mut slot.held, connection.memory());
        self.stats.closed_for_memory += 1;
        self.touched(handle);
    }

    fn settle_routes(&mut self, handle: ConnectionHandle) {
        note_use(&mut self.in_use, handle);
        let Some(slot) = self.slots.get_mut(handle.index()) else {
            return;
        };
        let Some(connection) = slot.connection.as_deref_mut() else {
            return;
        };
        let stateless = &self.stateless;
        let reset_token = |id: &ConnectionId| stateless.reset_token(id);
        let (routes, rng) = (&mut slot.routes, &mut self.rng);
        let router = &mut self.router;
        if router.update(handle, routes, connection, rng, reset_token) {
            // The new IDs are sent at the next opportunity.
            self.touched(handle);
        }
    }

    /// Adds a deadline to the heap if it is earlier than the one in the heap. Later deadlines are
    /// considered when that one fires. A connection that may be idle is looked at after a while, to
    /// [give back](Connection::give_back) memory.
    pub(super) fn schedule(&mut self, now: Time, handle: ConnectionHandle) {
        let Some(slot) = self.slots.get_mut(handle.index()) else {
            return;
        };
        let Some(connection) = slot.connection.as_deref() else {
            return;
        };
        let next = connection.next_timeout();
        let is_idle = next.is_none_or(|(_, timer)| matches!(timer, Timer::Idle | Timer::KeepAlive));
        let look = connection.keys_until().filter(|_| is_idle);
        let look = look.map(|look| look.max(now + LOOK_INTERVAL));
        let Some(at) = next.map(|(due, _)| due).into_iter().chain(look).min() else {
            return;
        };
        if slot.scheduled.is_none_or(|scheduled| at < scheduled) {
            slot.scheduled = Some(at);
            self.timers.push(Reverse((at, handle)));
            self.forget_old_deadlines();
        }
    }

    /// Removes entries that were overtaken by an earlier deadline. They stay in the heap until
    /// their time, or until they are in the majority, so that removal costs one step for each entry
    /// that was added.
    fn forget_old_deadlines(&mut self) {
        if self.timers.len() <= 2 * self.slots.len() + SPARE_DEADLINES {
            return;
        }
        let slots = &self.slots;
        self.timers.retain(|Reverse((at, handle))| {
            slots.get(handle.index()).is_some_and(|slot| {
                slot.generation == handle.generation && slot.scheduled == Some(*at)
            })
        });
        shrink_heap(&mut self.timers);
    }
}

/// The end of a connection: drained first, released by its owner in the end.
impl Endpoint {
    /// Gives a connection up that its owner has no more use for.
    ///
    /// Each handle that [`Endpoint::connect`] or [`Endpoint::accept`] has returned is to be
    /// released once. A connection that is still closing is forgotten as soon as it is drained. Data
    /// that was not read by now is dropped. To end an open connection, close it before.
    pub fn release(&mut self, handle: ConnectionHandle) {
        self.guard(|endpoint| {
            let Some(slot) = endpoint.slot_mut(handle) else {
                return;
            };
            slot.is_released = true;
            if slot.stage == Stage::Drained {
                note_use(&mut endpoint.in_use, handle);
                endpoint.forget(handle);
            } else if let Some(connection) = endpoint.connection_mut(handle)
                && connection.is_closed()
            {
                connection.forget_unread();
            }
        });
    }

    /// The reason why a connection is over; `None` while it is not.
    #[inline]
    pub fn close_error(&self, handle: ConnectionHandle) -> Option<&ConnectionError> {
        let slot = self.slot(handle)?;
        match &slot.connection {
            Some(connection) => connection.close_error(),
            None => slot.fault.as_deref(),
        }
    }

    /// True when the peers of all connections know of their end, or had time to learn of it.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.busy == 0
    }

    /// The peer of a connection knows of its end.
    pub(super) fn on_quiet(&mut self, handle: ConnectionHandle) {
        if let Some(slot) = self.slot_mut(handle)
            && slot.stage == Stage::Busy
        {
            slot.stage = Stage::Quiet;
            self.busy -= 1;
        }
    }

    /// Removes all routes to a connection and frees what it held for its peer. Its owner can still
    /// read from it and ask for its statistics.
    pub(super) fn drain(&mut self, handle: ConnectionHandle) {
        self.on_quiet(handle);
        let Some(slot) = self.slots.get_mut(handle.index()) else {
            return;
        };
        let Some(connection) = slot.connection.as_deref_mut() else {
            return;
        };
        if slot.stage == Stage::Drained {
            return;
        }
        slot.stage = Stage::Drained;
        self.drained += 1;
        slot.scheduled = None;
        self.memory.set(&mut slot.held, 0);
        slot.held = Held::default();
        let ids = connection.ids().active();
        self.router.remove(handle, &mut slot.routes, ids);
        slot.half_open = None;
        if slot.is_released {
            return self.forget(handle);
        }
        // Last, since hooks of users are dropped, and may panic.
        connection.give_back(Time::ZERO);
    }

    /// Takes back a connection that could not be routed, and whose handle was not given out.
    pub(super) fn undo_add(&mut self, handle: ConnectionHandle) {
        if let Some(slot) = self.slot_mut(handle) {
            slot.is_released = true;
        }
        self.drain(handle);
    }

    /// Ends the life of a connection that has panicked and whose routes are gone.
    pub(super) fn on_faulty(&mut self, handle: ConnectionHandle, fault: ConnectionError) {
        self.on_quiet(handle);
        let Some(slot) = self.slot_mut(handle) else {
            return;
        };
        slot.fault = Some(Box::new(fault));
        let was_drained = std::mem::replace(&mut slot.stage, Stage::Drained) == Stage::Drained;
        let is_released = slot.is_released;
        self.drained += usize::from(!was_drained);
        match is_released {
            true => self.forget(handle),
            false => self.touched(handle),
        }
    }

    /// Frees the slot of a drained connection.
    fn forget(&mut self, handle: ConnectionHandle) {
        let Some(slot) = self.slots.get_mut(handle.index()) else {
            return;
        };
        let connection = slot.connection.take();
        self.drained -= 1;
        self.slots.free(handle.index);
        if let Some(connection) = connection {
            drop_connection(connection);
        }
    }
}
