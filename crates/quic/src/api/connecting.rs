//! Handshakes in progress.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use courser_base::{Side, Unreachable};
use courser_crypto::HandshakeData;
use courser_transport::{ConnectionError, EarlyData};

use crate::api::connection::Connection;
use crate::api::handles::ConnectionRef;
use crate::shard::lock::Locked;
use crate::shard::wakers::{List, Ticket, Topic};

/// A handshake in progress. Resolves to the connection.
///
/// Dropping it abandons the connection.
#[derive(Debug)]
#[must_use = "the connection is abandoned when this is dropped"]
pub struct Connecting {
    connection: Option<Arc<ConnectionRef>>,
    ticket: Ticket,
}

impl Connecting {
    pub(crate) fn new(connection: Arc<ConnectionRef>) -> Self {
        Self {
            connection: Some(connection),
            ticket: None,
        }
    }

    fn connection(&self) -> &Arc<ConnectionRef> {
        self.connection
            .as_ref()
            .expect("it is not used after it has resolved")
    }

    /// Waits until the protocol and, on a server, the requested name are known, which is before
    /// the handshake is complete.
    ///
    /// # Errors
    /// Returns an error when the handshake fails.
    ///
    /// # Cancel safety
    /// Safe. The method can be called again.
    pub async fn handshake_data(&mut self) -> Result<HandshakeData, ConnectionError> {
        let connection = self.connection();
        let handle = connection.handle;
        let check = move |locked: &mut Locked<'_>| match locked.open_connection(handle) {
            Ok(connection) => match connection.handshake_data() {
                Some(data) => Poll::Ready(Ok(data)),
                None => Poll::Pending,
            },
            Err(error) => Poll::Ready(Err(error)),
        };
        connection.wait(Topic::Handshake, check).await
    }

    /// Waits for a report that the server cannot be reached: nothing listens on its port, or there is no route
    /// to it. Does not resolve without such a report.
    ///
    /// The system reports its own errors, such as a missing route, and on Linux the ICMP messages that quote
    /// the first packet. The handshake continues, because the condition may be temporary and ICMP messages
    /// are not authenticated. A program with another address should try that.
    ///
    /// The future does not borrow this value, and keeps the attempt until it is dropped.
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # async fn connect(endpoint: courser::Endpoint) -> Result<(), Box<dyn std::error::Error>> {
    /// let connecting = endpoint.connect("[2001:db8::1]:443".parse()?, "example.com")?;
    /// let unreachable = connecting.unreachable();
    /// tokio::select! {
    ///     connection = connecting => println!("connected: {:?}", connection?.rtt()),
    ///     cause = unreachable => println!("try IPv4: {cause}"),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// Panics after the future has resolved.
    pub fn unreachable(&self) -> impl Future<Output = Unreachable> + Send + 'static {
        let connection = self.connection().clone();
        async move {
            let handle = connection.handle;
            let check = move |locked: &mut Locked<'_>| match locked.entry(handle).unreachable {
                Some(cause) => Poll::Ready(cause),
                None => Poll::Pending,
            };
            connection.wait(Topic::Handshake, check).await
        }
    }

    /// Waits until streams can be used, and returns the connection, whose handshake may continue.
    ///
    /// On a client with [`ClientConfig::early_data`](crate::ClientConfig::early_data) that resumes a
    /// session with the server, streams can be used at once, and their data leaves in the first flight (0-RTT).
    /// [`Connection::authenticated`] returns its fate. A server that refuses early data has read
    /// none of it: all streams that were opened before fail with `EarlyDataRejected`, datagrams are
    /// dropped, and the application starts over on the same connection. Without a session that
    /// permits early data, this waits for the handshake.
    ///
    /// On a server, streams can be used once the client's first messages are read: early data can be received if
    /// [`ServerConfig::early_data`](crate::ServerConfig::early_data) accepts it, and answers leave
    /// before the handshake is complete (0.5-RTT), to the client or to an attacker who replays what it has sent.
    /// [`SendStream::is_early`](crate::SendStream::is_early) and [`RecvStream::is_early`](crate::RecvStream::is_early)
    /// mark the streams on which that is possible, until [`Connection::authenticated`] returns. **Until then the
    /// client's address may be forged**, unless [`crate::Incoming::remote_address_validated`] returned true.
    ///
    /// **Early data can be replayed, and its secrecy depends on the ticket alone** (RFC 9001 §9.2,
    /// RFC 8446 §8): send only what may be processed twice.
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # async fn ask(endpoint: courser::Endpoint) -> Result<(), Box<dyn std::error::Error>> {
    /// use courser::EarlyData;
    ///
    /// let connection = endpoint.connect("192.0.2.1:4433".parse()?, "example.com")?.early().await?;
    /// let (mut send, mut receive) = connection.open_bi().await?;
    /// send.write_all(b"what time is it?").await?;
    /// send.finish()?;
    /// if connection.authenticated().await? == EarlyData::Rejected {
    ///     // Ask again, on another stream.
    /// }
    /// # let _ = receive.read_to_end(100).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error when the handshake fails before streams can be used.
    ///
    /// # Cancel safety
    /// Not safe. Dropping the future before it is ready abandons the connection.
    pub async fn early(self) -> Result<Connection, ConnectionError> {
        let connection = self.connection().clone();
        let handle = connection.handle;
        let check = move |locked: &mut Locked<'_>| {
            let is_usable =
                locked
                    .connection(handle)
                    .is_some_and(|connection| match connection.side() {
                        Side::Client => connection.stats().early_data == EarlyData::Offered,
                        Side::Server => connection.handshake_data().is_some(),
                    });
            match locked.poll_connected(handle) {
                Poll::Pending if is_usable => Poll::Ready(Ok(())),
                connected => connected,
            }
        };
        connection.wait(Topic::Handshake, check).await?;
        Ok(Connection(connection))
    }

    /// Returns the connection at once if streams can be used already, and this handshake otherwise.
    ///
    /// This is [`Connecting::early`] for programs that do not wait. A client gets the connection if it
    /// resumes a session that permits early data. A server always gets it: calls that need the messages of
    /// the client, such as opening a stream, wait for them.
    ///
    /// # Errors
    /// Returns this value on a client without a session that permits early data.
    ///
    /// # Panics
    /// Panics after the future has resolved.
    pub fn early_now(mut self) -> Result<Connection, Self> {
        let connection = self.connection();
        let is_usable = match connection.side {
            Side::Server => true,
            Side::Client => {
                let mut locked = connection.lock();
                let early_data = locked
                    .connection(connection.handle)
                    .map(|connection| connection.stats().early_data);
                matches!(early_data, Some(EarlyData::Offered | EarlyData::Accepted))
            }
        };
        match self.connection.take_if(|_| is_usable) {
            Some(connection) => Ok(Connection(connection)),
            None => Err(self),
        }
    }

    /// Returns the address of the peer.
    ///
    /// # Panics
    /// Panics after the future has resolved.
    pub fn remote_address(&self) -> SocketAddr {
        Connection(self.connection().clone()).remote_address()
    }

    /// Returns the local address, if the system reports it.
    ///
    /// # Panics
    /// Panics after the future has resolved.
    pub fn local_ip(&self) -> Option<IpAddr> {
        Connection(self.connection().clone()).local_ip()
    }
}

impl Future for Connecting {
    type Output = Result<Connection, ConnectionError>;

    /// # Panics
    /// Panics if polled after it has resolved.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let connection = this
            .connection
            .take()
            .expect("it is not polled after it has resolved");
        let handle = connection.handle;
        let list = List::Connection(handle, Topic::Handshake);
        let poll = connection
            .shard
            .poll_list(list, &mut this.ticket, cx, |locked| {
                locked.poll_connected(handle)
            });
        match poll {
            Poll::Ready(result) => Poll::Ready(result.map(|()| Connection(connection))),
            Poll::Pending => {
                this.connection = Some(connection);
                Poll::Pending
            }
        }
    }
}
