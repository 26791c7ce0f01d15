//! A connection of a client, with a socket of its own.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use nix::poll::PollFlags;
use peers_common::Failure;
use quiche::ConnectionId;

use crate::body::{Buffers, Quic};
use crate::event_loop;
use crate::ids::{self, Id};
use crate::socket::{Left, Socket};

/// A connection and its socket.
pub struct Dialed {
    /// The connection. [`Dialed::mark`] has its packets sent.
    pub quic: Quic,
    socket: Socket,
    deadline: Option<Instant>,
    is_marked: bool,
}

impl Dialed {
    /// Begins a connection from the address `local` to the server `name` at `address`. Nothing is sent yet.
    ///
    /// # Errors
    /// When there is no socket, or the configuration is wrong.
    pub fn begin(
        config: &mut quiche::Config,
        name: &str,
        local: SocketAddr,
        address: SocketAddr,
    ) -> Result<Self, Failure> {
        let socket = Socket::bind(local)?;
        let id: Id = ids::random()?;
        let quic = quiche::connect_with_buffer_factory::<Buffers>(
            Some(name),
            &ConnectionId::from_ref(&id),
            socket.local_address(),
            address,
            config,
        )?;
        Ok(Self {
            quic,
            socket,
            deadline: None,
            is_marked: true,
        })
    }

    /// Makes the next [`turn`] send what the connection has to send.
    pub const fn mark(&mut self) {
        self.is_marked = true;
    }

    /// Returns true if something has happened since the last [`turn`] that called for packets.
    pub(crate) const fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// Gives the server as many connection IDs as it takes.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn offer_ids(&mut self) -> Result<(), Failure> {
        ids::offer(&mut self.quic, ids::random, |_| ())
    }

    /// Returns an error if the connection has ended.
    ///
    /// # Errors
    /// With the reason.
    pub fn check(&self) -> Result<(), Failure> {
        if !self.quic.is_closed() && !self.quic.is_draining() {
            return Ok(());
        }
        let cause = if self.quic.is_timed_out() {
            "no answer in time".to_owned()
        } else if let Some(error) = self.quic.peer_error() {
            format!("the server closed it: {error:?}")
        } else {
            format!("closed: {:?}", self.quic.local_error())
        };
        Err(format!("connection: {cause}").into())
    }

    /// Sends what the connection has to send.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn send(&mut self) -> io::Result<()> {
        let left = self.socket.send(&mut self.quic)?;
        self.is_marked = left != Left::Nothing;
        self.deadline = if left == Left::More {
            Some(Instant::now())
        } else {
            self.quic.timeout_instant()
        };
        Ok(())
    }

    /// Closes the connection with an error code of its application.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn close(&mut self, code: u64) -> io::Result<()> {
        // The only error is that the connection is closed already.
        let _ = self.quic.close(true, code, b"");
        self.send()
    }

    fn on_wake(&mut self, events: PollFlags, now: Instant) -> io::Result<()> {
        if !events.is_empty() {
            let quic = &mut self.quic;
            // Unread datagrams wake the loop again. quiche ignores datagrams that it cannot decrypt,
            // and closes connections that break a rule.
            self.socket.receive(|datagram, info| {
                let _ = quic.recv(datagram, info);
            })?;
            self.is_marked = true;
        }
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.quic.on_timeout();
            self.is_marked = true;
        }
        Ok(())
    }
}

/// Sends what is pending on marked connections, and waits for an event of any of them, for `patience` at
/// most.
///
/// # Errors
/// When a socket fails.
pub fn turn(connections: &mut [Dialed], patience: Option<Duration>) -> io::Result<()> {
    let mut deadline = patience.map(|patience| Instant::now() + patience);
    for connection in connections.iter_mut() {
        if connection.is_marked {
            connection.send()?;
        }
        deadline = deadline.into_iter().chain(connection.deadline).min();
    }
    let mut waited: Vec<_> = connections.iter().map(|it| it.socket.to_poll()).collect();
    event_loop::wait(&mut waited, deadline)?;
    let events: Vec<_> = waited.iter().map(|one| one.revents()).collect();
    let now = Instant::now();
    for (connection, events) in connections.iter_mut().zip(events) {
        connection.on_wake(events.unwrap_or(PollFlags::empty()), now)?;
    }
    Ok(())
}
