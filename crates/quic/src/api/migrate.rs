//! Migration of clients to another socket, local address or network.
//! RFC 9000 §9.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;

use courser_base::{ScopedIp, is_same_host};
use courser_transport::{MigrationState, NewPath};

use crate::api::connection::Connection;
use crate::api::endpoint::Endpoint;
use crate::error::{BindError, MigrateError};
use crate::runtime::{Current, Socket, UdpSocket};
use crate::shard::lock::Locked;
use crate::shard::shard_sockets::ShardSockets;
use crate::shard::wakers::Topic;

impl Endpoint {
    /// Replaces the socket of open connections, and moves the connections that this endpoint has started to it.
    /// Later connections use it too.
    ///
    /// A connection moves at once with a fresh connection ID, and validates the path from the new socket
    /// meanwhile (RFC 9000 §9.2). If it gets no answer, it returns to the previous socket. Round-trip time and
    /// congestion window are reset, unless both sockets are bound to the same IP address (§9.4). Connections
    /// stay on the previous socket if their handshake is not confirmed, if the server has disabled migration or
    /// issued no spare connection ID, or if one of the ends uses no connection IDs. Connections that this
    /// endpoint has accepted stay as well. A socket is closed when no connection needs it. An endpoint has at
    /// most 4: if all are needed, the next one replaces the oldest.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be used, there is no runtime, or the runtime has its own sockets. An
    /// endpoint with several [shards](crate::EndpointBuilder::shards) returns an error too and has
    /// [`Endpoint::rebind_to`]. Nothing changes after an error.
    pub fn rebind(&self, socket: std::net::UdpSocket) -> Result<(), BindError> {
        let socket = Current::require()?.adopt(socket)?;
        self.replace_sockets(vec![socket])
    }

    /// Binds a socket to `addr` and moves to it, like [`Endpoint::rebind`]. Port 0 lets the system
    /// choose.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = endpoints()?;
    /// # let connecting = client.connect(server.local_addr()?, "localhost")?;
    /// # let (incoming, connection) = tokio::join!(async { server.accept().await.expect("the endpoint is open").await }, connecting);
    /// # let (connection, accepted) = (connection?, incoming?);
    /// client.rebind_to("127.0.0.1:0".parse()?)?;
    /// connection.ping().await?; // from the new socket
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the address cannot be bound, or there is no runtime. Nothing changes then.
    pub fn rebind_to(&self, addr: SocketAddr) -> Result<(), BindError> {
        let (shards, count) = (self.shards(), self.shard_count());
        let sockets = ShardSockets::bind(&Current::require()?, addr, count, shards.rule())?;
        self.replace_sockets(sockets.each)
    }

    /// Moves to a custom transport, like [`Endpoint::rebind`]: from the network to a relay, or from one relay to
    /// another.
    ///
    /// # Errors
    /// Returns an error if the transport has no local address, there is no runtime, or the endpoint has several
    /// [shards](crate::EndpointBuilder::shards). Nothing changes then.
    pub fn rebind_transport(&self, transport: impl UdpSocket) -> Result<(), BindError> {
        Current::require()?;
        self.replace_sockets(vec![Socket::of_runtime(Box::new(transport))])
    }

    /// Gives each shard its socket.
    fn replace_sockets(&self, sockets: Vec<Socket>) -> Result<(), BindError> {
        if sockets.len() != self.shard_count() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, NEEDS_MORE).into());
        }
        let new = sockets[0].local_addr()?;
        for (shard, socket) in self.shards().all().iter().zip(sockets) {
            replace_socket(&mut shard.lock(), new, socket);
        }
        Ok(())
    }

    /// Reports that the network has changed, so that connections that this endpoint has started send from another
    /// address, for example after a switch from Wi-Fi to a mobile network.
    ///
    /// Connections move at once, as with [`Endpoint::rebind`], but to the same socket. Those that
    /// cannot take a fresh connection ID send a PING, from which the server learns of the change. After 16
    /// changes in a short time, connections follow the last one a quarter of a second later.
    pub fn network_changed(&self) {
        self.shards().each(|locked| {
            locked.change(|state, now| {
                let id = state.outbox.sockets.newest_id();
                state.move_clients(now, id, false);
            });
        });
    }
}

const NEEDS_MORE: &str = "each shard of the endpoint needs a socket: use Endpoint::rebind_to";

/// Moves a shard to a socket that is bound to `new`.
fn replace_socket(locked: &mut Locked<'_>, new: SocketAddr, socket: Socket) {
    let old = locked.outbox.sockets.newest().local_addr();
    let is_same_ip = old.is_ok_and(|old| is_same_host(old, new) && !new.ip().is_unspecified());
    locked.change(|state, now| {
        let endpoint = &mut state.endpoint;
        let is_needed = |id| endpoint.uses_socket(id);
        let id = state.outbox.add_socket(Arc::new(socket), is_needed);
        state.endpoint.set_socket(id);
        state.move_clients(now, id, is_same_ip);
    });
    // It receives from the new socket too.
    locked.driver.call();
}

impl Connection {
    /// Moves to another address of this machine, and waits until the path from there is validated.
    ///
    /// The socket must be bound to a wildcard address, or to `local`. The path from there is validated with a
    /// fresh connection ID, and data stays on the path in use meanwhile (RFC 9000 §9.1, §9.5). Round-trip time,
    /// congestion window and datagram size are reset. An unfinished earlier move is abandoned. After 16 moves in
    /// a short time, further ones are refused for a quarter of a second ([`MigrateError::TooSoon`](courser_transport::MigrateError)).
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # use courser::Connection;
    /// # async fn on_wifi(connection: Connection, address: std::net::IpAddr) {
    /// match connection.migrate(address).await {
    ///     Ok(()) => println!("the server sends to {address} now"),
    ///     Err(error) => println!("still on the earlier path: {error}"),
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`MigrateError`]. The connection then stays on its path.
    ///
    /// # Cancel safety
    /// Safe. The move continues if the future is dropped.
    pub async fn migrate(&self, local: IpAddr) -> Result<(), MigrateError> {
        let now = self.0.shard.now();
        let (handle, socket) = (self.0.handle, self.0.shard.socket());
        let bound = socket.local_addr().map_err(|_| MigrateError::Address)?;
        let is_there = bound.ip().is_unspecified() || bound.ip() == local;
        let is_reachable = !bound.is_ipv4() || local.is_ipv4();
        let in_zone = ScopedIp::in_zone_of(local, self.remote_address());
        if !is_there || !is_reachable || !socket.has_address(in_zone) {
            return Err(MigrateError::Address);
        }
        let number = {
            let mut locked = self.0.lock();
            let id = locked.outbox.sockets.newest_id();
            let connection = locked.open_connection(handle)?;
            if connection.path().peer.is_ipv4() != local.to_canonical().is_ipv4() {
                return Err(MigrateError::Address);
            }
            let path = NewPath {
                local: Some(local),
                socket: id,
                is_same_address: false,
                is_at_once: false,
            };
            let mut migrations = connection.migrations();
            migrations.begin(now, &path)?;
            let (number, _) = migrations.latest();
            locked.used(handle, 0);
            number
        };
        let check = move |locked: &mut Locked<'_>| {
            let connection = match locked.open_connection(handle) {
                Ok(connection) => connection,
                Err(error) => return Poll::Ready(Err(error.into())),
            };
            match connection.migrations().latest() {
                (latest, _) if latest != number => Poll::Ready(Err(MigrateError::Replaced)),
                (_, MigrationState::Done) => Poll::Ready(Ok(())),
                (_, MigrationState::Failed) => Poll::Ready(Err(MigrateError::NoAnswer)),
                (_, MigrationState::None | MigrationState::Validating) => Poll::Pending,
            }
        };
        self.0.wait(Topic::Migration, check).await
    }

    /// Reports that the network has changed, like [`Endpoint::network_changed`] for one connection.
    /// Does nothing on a connection that was accepted.
    pub fn network_changed(&self) {
        let (now, handle) = (self.0.shard.now(), self.0.handle);
        let mut locked = self.0.lock();
        let id = locked.outbox.sockets.newest_id();
        locked.move_client(now, handle, id, false);
        locked.used(handle, 0);
    }
}
