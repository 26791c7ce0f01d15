//! Several paths of one connection. RFC 10069.

use std::net::IpAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use courser_base::ScopedIp;
use courser_transport::{ConnectionError, NewPath, PathInfo, PathPreference, SocketId};
use courser_wire::{PathId, TransportErrorCode};

use crate::api::connection::Connection;
use crate::error::OpenPathError;
use crate::runtime::{Current, Socket};
use crate::shard::lock::Locked;
use crate::shard::wakers::Topic;
use crate::via::Via;

impl Connection {
    /// Opens a further path to the server from another address of this machine, and waits until both ends have validated it.
    /// Data then takes both paths (RFC 10069). The call may be made at once after connecting: it waits for the confirmation
    /// of the handshake, and for the connection IDs that the server issues for the path.
    ///
    /// A path that does not answer carries no data while others do. If it is silent for five seconds, it is given up, and
    /// tried again from the same address: [`Connection::paths`] has its new ID.
    ///
    /// Both ends must permit several paths with
    /// [`TransportConfig::max_paths`](courser_transport::TransportConfig::max_paths). The socket must be bound to a
    /// wildcard address, and the system must send packets from `local` through the interface that has it.
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # use courser::Connection;
    /// # async fn on_cellular(connection: Connection, address: std::net::IpAddr) {
    /// match connection.open_path(address).await {
    ///     Ok(path) => println!("path {path} is open beside {}", connection.paths().len() - 1),
    ///     Err(error) => println!("one path, as before: {error}"),
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`OpenPathError`]. The paths that are open stay so. A server that issues no connection ID for another path
    /// within ten seconds is reported as
    /// [`NoConnectionId`](courser_transport::OpenPathError::NoConnectionId).
    ///
    /// # Cancel safety
    /// Safe. The path opens all the same if the future is dropped.
    pub async fn open_path(&self, local: IpAddr) -> Result<PathId, OpenPathError> {
        let socket = self.0.shard.socket();
        let bound = socket.local_addr().map_err(|_| OpenPathError::Address)?;
        let is_there = bound.ip().is_unspecified() || bound.ip() == local;
        let in_zone = ScopedIp::in_zone_of(local, self.remote_address());
        if !is_there || !socket.has_address(in_zone) {
            return Err(OpenPathError::Address);
        }
        self.open_path_from(Some(local), None).await
    }

    /// Opens a further path like [`open_path`](Self::open_path), with a socket of its own that sends through an interface, or
    /// from an address, of this machine. An interface needs no other rules for its routes than it has for itself: this is the
    /// way to use Wi-Fi and a mobile network at the same time.
    ///
    /// Paths of other connections of the endpoint through the same interface share the socket. An endpoint has eight such
    /// sockets at most (limit K161).
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # use courser::{Connection, PathPreference, Via};
    /// # async fn on_cellular(connection: Connection) -> Result<(), courser::OpenPathError> {
    /// let mobile = Via::Interface("wwan0".to_owned());
    /// let path = connection.open_path_via(&mobile).await?;
    /// // Used only while the other paths do not answer.
    /// connection.set_path_preference(path, PathPreference::Backup)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`OpenPathError`]; [`Socket`](OpenPathError::Socket) if there is no such interface or address.
    ///
    /// # Cancel safety
    /// Safe. The path may open all the same if the future is dropped.
    pub async fn open_path_via(&self, via: &Via) -> Result<PathId, OpenPathError> {
        let refused = |error: std::io::Error| OpenPathError::Socket {
            via: via.clone(),
            reason: error.to_string(),
        };
        let runtime = Current::require().map_err(refused)?;
        let socket = via.open(&runtime, self.remote_address());
        let socket = Arc::new(socket.map_err(refused)?);
        self.open_path_from(None, Some((via, socket))).await
    }

    async fn open_path_from(
        &self,
        local: Option<IpAddr>,
        own: Option<(&Via, Arc<Socket>)>,
    ) -> Result<PathId, OpenPathError> {
        let (handle, shard) = (self.0.handle, &self.0.shard);
        let is_ipv4 = self.remote_address().is_ipv4();
        let since = shard.now();
        let open = |locked: &mut Locked<'_>| {
            let id = match &own {
                None => locked.outbox.sockets.newest_id(),
                Some((via, socket)) => socket_beside(locked, via, is_ipv4, socket)?,
            };
            let connection = match locked.open_connection(handle) {
                Ok(connection) => connection,
                Err(error) => return Poll::Ready(Err(error.into())),
            };
            if local.is_some_and(|local| local.to_canonical().is_ipv4() != is_ipv4) {
                return Poll::Ready(Err(OpenPathError::Address));
            }
            let path = NewPath {
                local,
                socket: id,
                is_same_address: false,
                is_at_once: false,
            };
            match connection.several_paths().open(shard.now(), &path) {
                Ok(path) => {
                    locked.used(handle, 0);
                    Poll::Ready(Ok(path))
                }
                Err(courser_transport::OpenPathError::NotConfirmed) => Poll::Pending,
                Err(courser_transport::OpenPathError::NoConnectionId)
                    if shard.now() < since + ID_PATIENCE =>
                {
                    // The request for IDs is sent, and an event follows.
                    locked.used(handle, 0);
                    Poll::Pending
                }
                Err(refused) => Poll::Ready(Err(refused.into())),
            }
        };
        let path = self.0.wait(Topic::Migration, open).await?;
        let check = move |locked: &mut Locked<'_>| {
            let connection = match locked.open_connection(handle) {
                Ok(connection) => connection,
                Err(error) => return Poll::Ready(Err(error.into())),
            };
            let all = connection.several_paths().list();
            match all.iter().find(|info| info.id == path) {
                Some(info) if info.is_closing => Poll::Ready(Err(OpenPathError::NoAnswer)),
                Some(info) if info.is_validated => Poll::Ready(Ok(path)),
                Some(_) => Poll::Pending,
                None => Poll::Ready(Err(OpenPathError::NoAnswer)),
            }
        };
        self.0.wait(Topic::Migration, check).await
    }

    /// Returns the paths of the connection, in the order of their IDs. The list is empty unless both ends permit several
    /// paths; [`Connection::stats`] has the only path then.
    pub fn paths(&self) -> Vec<PathInfo> {
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.handle);
        let mut paths = connection.map_or_else(|_| Vec::new(), |it| it.several_paths().list());
        // Datagrams do not tell the address of a socket that has one only.
        for path in paths.iter_mut().filter(|it| it.addresses.local.is_none()) {
            let socket = locked.outbox.sockets.get(path.socket);
            let bound = socket.and_then(|socket| socket.local_addr().ok());
            let bound = bound.map(|bound| bound.ip().to_canonical());
            path.addresses.local = bound.filter(|ip| !ip.is_unspecified());
        }
        paths
    }

    /// Gives a path up. What was in flight on it is sent on other paths. Returns false if it is not open, or is the last one.
    ///
    /// # Errors
    /// Returns [`ConnectionError`] if the connection is over.
    pub fn close_path(&self, path: PathId) -> Result<bool, ConnectionError> {
        let (now, handle) = (self.0.shard.now(), self.0.handle);
        let mut locked = self.0.lock();
        let code = TransportErrorCode::APPLICATION_ABANDON_PATH;
        let connection = locked.open_connection(handle)?;
        let is_closed = connection.several_paths().close(now, path, code);
        locked.used(handle, 0);
        Ok(is_closed)
    }

    /// Announces whether a path is for data, or for the case that no other one works. Returns false if it is not open.
    ///
    /// # Errors
    /// Returns [`ConnectionError`] if the connection is over.
    pub fn set_path_preference(
        &self,
        path: PathId,
        preference: PathPreference,
    ) -> Result<bool, ConnectionError> {
        let handle = self.0.handle;
        let mut locked = self.0.lock();
        let connection = locked.open_connection(handle)?;
        let is_open = connection.several_paths().set_status(path, preference);
        locked.used(handle, 0);
        Ok(is_open)
    }
}

/// Returns the socket of an endpoint that sends from there. The endpoint closes it while no path uses it, and this adds it
/// again.
fn socket_beside(
    locked: &mut Locked<'_>,
    via: &Via,
    is_ipv4: bool,
    socket: &Arc<Socket>,
) -> Result<SocketId, OpenPathError> {
    if let Some(id) = locked.outbox.sockets.beside(via, is_ipv4) {
        return Ok(id);
    }
    let added = locked.outbox.add_socket_beside(via.clone(), socket.clone());
    let id = added.ok_or_else(|| OpenPathError::Socket {
        via: via.clone(),
        reason: "the endpoint has sockets for eight others".to_owned(),
    })?;
    // It receives from the new socket too.
    locked.driver.call();
    Ok(id)
}

/// The time for which an attempt to open a path waits for connection IDs of the server. The transport waits as long.
const ID_PATIENCE: Duration = Duration::from_secs(10);
