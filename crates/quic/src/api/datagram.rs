//! Datagrams: delivered once or never, in no order. RFC 9221.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser_base::Time;
use courser_base::foreign::{ForeignBytes, ForeignWaker};
use courser_transport::{ConnectionError, DatagramFate, DatagramId, SendOptions};

use crate::api::connection::Connection;
use crate::api::handles::ConnectionRef;
use crate::error::SendDatagramError;
use crate::shard::lock::Locked;
use crate::shard::wakers::Topic;

/// The options for sending a datagram, for [`Connection::send_datagram_with`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DatagramOptions {
    max_age: Option<Duration>,
}

impl DatagramOptions {
    /// Nothing special: the datagram waits for as long as it takes.
    pub fn new() -> Self {
        Self::default()
    }

    /// The datagram is of no use any more after this time. If it has not left by then, because
    /// congestion control keeps it or others were before it, it is dropped and counted in
    /// [`DatagramStats::expired`](crate::DatagramStats::expired).
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    fn for_transport(self, now: Time, is_tracked: bool) -> SendOptions {
        SendOptions {
            expires_at: self.max_age.map(|age| now + age),
            is_tracked,
        }
    }
}

/// A future of the fate of a datagram. See [`Connection::send_datagram_tracked`].
///
/// # Errors
/// When the connection is over before.
///
/// # Cancel safety
/// Safe. The datagram goes its way if this is dropped.
#[derive(Debug)]
#[must_use = "without an interest in its fate, send_datagram_with is cheaper"]
pub struct PendingFate {
    connection: Arc<ConnectionRef>,
    id: DatagramId,
}

impl Future for PendingFate {
    type Output = Result<DatagramFate, ConnectionError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let handle = self.connection.handle;
        let waker = ForeignWaker::of(cx);
        let mut locked = self.connection.lock();
        if let Some(fate) = locked.entry(handle).wakers.fate(self.id, waker) {
            return Poll::Ready(Ok(fate));
        }
        if let Some(error) = locked.end_of(handle) {
            return Poll::Ready(Err(error.clone()));
        }
        locked.about_to_wait();
        Poll::Pending
    }
}

impl Drop for PendingFate {
    fn drop(&mut self) {
        let id = self.id;
        self.connection.on_drop(move |locked, handle| {
            locked.entry(handle).wakers.forget_fate(id);
        });
    }
}

impl Connection {
    /// Sends a datagram: once, with no promise that it arrives.
    ///
    /// It goes before stream data that waits, as far as that is fair, but not before congestion
    /// control and the pacer allow it. If [`TransportConfig::datagram_send_buffer_size`] or
    /// [`TransportConfig::datagram_send_queue`] is used up, the datagram that waits longest is
    /// dropped, and counted in [`DatagramStats::unsent_dropped`]; see
    /// [`Connection::send_datagram_wait`] for another way. Owners of `data` are dropped as those of
    /// [`SendStream::write_chunk`](crate::SendStream::write_chunk) are.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// client.send_datagram(bytes::Bytes::from_static(b"at most once"))?;
    /// # assert_eq!(server.read_datagram().await?, b"at most once"[..]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`SendDatagramError`]: the peer takes no datagrams, or none of this size, or the connection is
    /// over.
    ///
    /// [`TransportConfig::datagram_send_buffer_size`]: crate::TransportConfig::datagram_send_buffer_size
    /// [`TransportConfig::datagram_send_queue`]: crate::TransportConfig::datagram_send_queue
    /// [`DatagramStats::unsent_dropped`]: crate::DatagramStats::unsent_dropped
    pub fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        self.send_datagram_with(data, DatagramOptions::default())
    }

    /// As [`Connection::send_datagram`], for a limited time.
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # use std::time::Duration;
    /// # use courser::DatagramOptions;
    /// # fn tick(connection: &courser::Connection, picture: bytes::Bytes) -> Result<(), courser::SendDatagramError> {
    /// let options = DatagramOptions::new().max_age(Duration::from_millis(50));
    /// connection.send_datagram_with(picture, options)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Connection::send_datagram`].
    pub fn send_datagram_with(
        &self,
        data: Bytes,
        options: DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        let options = options.for_transport(self.0.shard.now(), false);
        self.0.send(&mut self.0.lock(), data, options).map(drop)
    }

    /// As [`Connection::send_datagram_with`], and tells what became of it.
    ///
    /// Costs a few words of memory until that is known, for which it takes a round trip or more.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// use courser::{DatagramFate, DatagramOptions};
    ///
    /// let data = bytes::Bytes::from_static(b"position");
    /// let fate = client.send_datagram_tracked(data, DatagramOptions::new())?;
    /// if fate.await? != DatagramFate::Acked {
    ///     println!("it was lost, or had no time to leave");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Connection::send_datagram`].
    pub fn send_datagram_tracked(
        &self,
        data: Bytes,
        options: DatagramOptions,
    ) -> Result<PendingFate, SendDatagramError> {
        let options = options.for_transport(self.0.shard.now(), true);
        let mut locked = self.0.lock();
        let id = self.0.send(&mut locked, data, options)?;
        let id = id.ok_or(ConnectionError::LocallyClosed)?;
        Ok(PendingFate {
            connection: self.0.clone(),
            id,
        })
    }

    /// As [`Connection::send_datagram`], but waits for room instead of dropping an older datagram.
    ///
    /// # Errors
    /// As [`Connection::send_datagram`].
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has sent nothing.
    pub async fn send_datagram_wait(&self, data: Bytes) -> Result<(), SendDatagramError> {
        let connection = &self.0;
        let mut data = Some(data);
        let send = move |locked: &mut Locked<'_>| {
            let size = data.as_ref().map_or(0, Bytes::len);
            if !connection.make_room(locked, size) {
                return Poll::Pending;
            }
            let data = data.take().unwrap_or_default();
            let sent = connection.send(locked, data, SendOptions::default());
            Poll::Ready(sent.map(drop))
        };
        connection.wait(Topic::DatagramRoom, send).await
    }

    /// Takes the datagram that was received first and waits if there is none.
    ///
    /// Up to [`TransportConfig::datagram_receive_buffer_size`] bytes and
    /// [`TransportConfig::datagram_receive_queue`] datagrams wait to be read. When there are more,
    /// the oldest are dropped and counted in [`DatagramStats::unread_dropped`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # client.send_datagram(bytes::Bytes::from_static(b"tick"))?;
    /// # let closer = server.clone();
    /// while let Ok(datagram) = server.read_datagram().await {
    ///     println!("{} bytes", datagram.len());
    ///     # closer.close(0u32.into(), b"");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When the connection is over, and what came before that is read.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has taken nothing.
    ///
    /// [`TransportConfig::datagram_receive_buffer_size`]: crate::TransportConfig::datagram_receive_buffer_size
    /// [`TransportConfig::datagram_receive_queue`]: crate::TransportConfig::datagram_receive_queue
    /// [`DatagramStats::unread_dropped`]: crate::DatagramStats::unread_dropped
    pub async fn read_datagram(&self) -> Result<Bytes, ConnectionError> {
        let handle = self.0.handle;
        let read = move |locked: &mut Locked<'_>| {
            // Those that had come before the end are there after it.
            let connection = locked.connection(handle);
            match connection.and_then(|it| it.datagrams().receive()) {
                Some(datagram) => Poll::Ready(Ok(datagram)),
                None => locked.poll_open(handle),
            }
        };
        self.0.wait(Topic::Datagram, read).await
    }

    /// Bytes of the largest datagram that can be sent now; `None` when the peer takes none, or the
    /// connection is over.
    ///
    /// Changes with the datagram size of the path, mostly upwards in the first round trips; what was
    /// allowed when it was sent and does not fit when its turn comes is dropped. At least 1158
    /// while the path works, if neither the peer nor our own queue allows less.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// let size = client.max_datagram_size().expect("the peer accepts datagrams by default");
    /// assert!(size >= 1158);
    /// # Ok(()) }
    /// ```
    pub fn max_datagram_size(&self) -> Option<usize> {
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.handle).ok()?;
        connection.max_datagram_size()
    }

    /// Bytes of a datagram for which no other one would be dropped. 0 when as many wait as may, or
    /// the connection is over.
    pub fn datagram_send_buffer_space(&self) -> usize {
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.handle);
        connection.map_or(0, |connection| connection.datagrams().send_space())
    }
}

impl ConnectionRef {
    /// Queues a datagram, having sent others before it takes their place.
    fn send(
        &self,
        locked: &mut Locked<'_>,
        data: Bytes,
        options: SendOptions,
    ) -> Result<Option<DatagramId>, SendDatagramError> {
        let now = self.shard.now();
        let size = data.len();
        self.make_room(locked, size);
        let connection = match locked.open_connection(self.handle) {
            Ok(connection) => connection,
            Err(error) => {
                drop(ForeignBytes::new(data));
                return Err(error.into());
            }
        };
        let id = connection.send_datagram(now, data, options)?;
        if let Some(id) = id {
            locked.entry(self.handle).wakers.await_fate(id);
        }
        locked.used(self.handle, size);
        Ok(id)
    }

    /// Returns true when a datagram fits without dropping another, or waiting cannot make room.
    /// Queued datagrams that are held back for a fuller packet are sent to make room.
    fn make_room(&self, locked: &mut Locked<'_>, size: usize) -> bool {
        let has_room = |locked: &mut Locked<'_>| {
            let Ok(connection) = locked.open_connection(self.handle) else {
                return true;
            };
            let can_be_sent = connection
                .max_datagram_size()
                .is_some_and(|max| size <= max);
            !can_be_sent || connection.datagrams().has_room(size)
        };
        if has_room(locked) {
            return true;
        }
        if locked.outbox.timing.may_hold_back() {
            locked.send_now();
        }
        has_room(locked)
    }
}
