//! Several paths of one connection. RFC 10069.

use std::net::IpAddr;
use std::task::Poll;
use std::time::Duration;

use courser_base::ScopedIp;
use courser_transport::{ConnectionError, NewPath, PathInfo, PathPreference};
use courser_wire::{PathId, TransportErrorCode};

use crate::api::connection::Connection;
use crate::error::OpenPathError;
use crate::shard::lock::Locked;
use crate::shard::wakers::Topic;

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
        let (handle, socket, shard) = (self.0.handle, self.0.shard.socket(), &self.0.shard);
        let bound = socket.local_addr().map_err(|_| OpenPathError::Address)?;
        let is_there = bound.ip().is_unspecified() || bound.ip() == local;
        let in_zone = ScopedIp::in_zone_of(local, self.remote_address());
        if !is_there || !socket.has_address(in_zone) {
            return Err(OpenPathError::Address);
        }
        let since = shard.now();
        let open = |locked: &mut Locked<'_>| {
            let id = locked.outbox.sockets.newest_id();
            let connection = match locked.open_connection(handle) {
                Ok(connection) => connection,
                Err(error) => return Poll::Ready(Err(error.into())),
            };
            if connection.path().peer.is_ipv4() != local.to_canonical().is_ipv4() {
                return Poll::Ready(Err(OpenPathError::Address));
            }
            let path = NewPath {
                local: Some(local),
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
        connection.map_or_else(|_| Vec::new(), |it| it.several_paths().list())
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

/// The time for which an attempt to open a path waits for connection IDs of the server. The transport waits as long.
const ID_PATIENCE: Duration = Duration::from_secs(10);
