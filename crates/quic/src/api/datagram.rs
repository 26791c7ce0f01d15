//! Datagrams, which arrive at most once and in any order. RFC 9221.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser_base::foreign::{ForeignBytes, ForeignWaker};
use courser_base::{Side, Time};
use courser_transport::{ConnectionError, DatagramFate, DatagramId, DatagramPrefix, SendOptions};
use courser_wire::{Direction, StreamId};

use crate::api::connection::Connection;
use crate::api::handles::ConnectionRef;
use crate::error::SendDatagramError;
use crate::shard::lock::Locked;
use crate::shard::wakers::Topic;

/// The options for sending a datagram, for [`Connection::send_datagram_with`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DatagramOptions {
    max_age: Option<Duration>,
    order: Option<i64>,
}

impl DatagramOptions {
    /// Returns the default options: the datagram may wait for any time.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time after which the datagram is useless. If it was not sent by then, because of congestion
    /// control or other datagrams in the queue, it is dropped and counted in
    /// [`DatagramStats::expired`](crate::DatagramStats::expired).
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// Sets the order beside streams: the datagram waits while streams that have a higher
    /// [order](crate::SendStream::set_order) have data to send, and datagrams of lower orders wait for it. `sendOrder` of
    /// W3C is the same.
    ///
    /// Only streams of the same connection without a session, or of the same session, count, and of these the ones without
    /// a group. A datagram without an order, the default, precedes stream data. If the queue is full, the newest datagram
    /// of the lowest order is dropped instead of the oldest one.
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # use courser::DatagramOptions;
    /// # fn tick(connection: &courser::Connection, hint: bytes::Bytes) -> Result<(), courser::SendDatagramError> {
    /// // After streams of the order 0, such as those without one.
    /// connection.send_datagram_with(hint, DatagramOptions::new().order(-1))?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn order(mut self, order: i64) -> Self {
        self.order = Some(order);
        self
    }

    /// Returns the options for a datagram of the request with this index.
    pub(super) fn for_session(self, index: u64, now: Time) -> SendOptions {
        let request = StreamId::new(Side::Client, Direction::Bidirectional, index);
        SendOptions {
            session: Some(request),
            ..self.for_transport(now, false)
        }
    }

    pub(super) fn for_transport(self, now: Time, is_tracked: bool) -> SendOptions {
        SendOptions {
            expires_at: self.max_age.map(|age| now + age),
            is_tracked,
            session: None,
            order: self.order,
        }
    }
}

/// A future that resolves to the fate of a datagram. See [`Connection::send_datagram_tracked`].
///
/// # Errors
/// Returns an error when the connection is over before the fate is known.
///
/// # Cancel safety
/// Safe. The datagram is sent even if this is dropped.
#[derive(Debug)]
#[must_use = "send_datagram_with is cheaper if the fate is of no interest"]
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
    /// Sends a datagram once, without a guarantee that it arrives.
    ///
    /// It precedes waiting stream data, within the limits of fairness, but congestion control and the pacer
    /// apply to it. If [`TransportConfig::datagram_send_buffer_size`] or
    /// [`TransportConfig::datagram_send_queue`] is used up, the datagram that has waited longest is
    /// dropped and counted in [`DatagramStats::unsent_dropped`].
    /// [`Connection::send_datagram_wait`] waits instead. Owners of `data` are dropped as those of
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
    /// Returns [`SendDatagramError`] if the peer accepts no datagrams, or none of this size, or if the
    /// connection is over.
    ///
    /// [`TransportConfig::datagram_send_buffer_size`]: crate::TransportConfig::datagram_send_buffer_size
    /// [`TransportConfig::datagram_send_queue`]: crate::TransportConfig::datagram_send_queue
    /// [`DatagramStats::unsent_dropped`]: crate::DatagramStats::unsent_dropped
    pub fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        self.send_datagram_with(data, DatagramOptions::default())
    }

    /// Sends a datagram like [`Connection::send_datagram`], with options such as a maximum age.
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
    /// Returns the errors of [`Connection::send_datagram`].
    pub fn send_datagram_with(
        &self,
        data: Bytes,
        options: DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        let options = options.for_transport(self.0.shard.now(), false);
        self.0.send(&mut self.0.lock(), data, options).map(drop)
    }

    /// Sends a datagram like [`Connection::send_datagram_with`], and returns a future of its fate.
    ///
    /// This costs a few words of memory until the fate is known, usually for a round trip.
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
    /// Returns the errors of [`Connection::send_datagram`].
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

    /// Sends a datagram like [`Connection::send_datagram`], but waits for room in the queue instead of dropping
    /// an older one.
    ///
    /// # Errors
    /// Returns the errors of [`Connection::send_datagram`].
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has sent nothing.
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

    /// Returns the oldest received datagram, and waits if there is none.
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
    /// Returns an error when the connection is over and all datagrams that arrived before are read.
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has taken nothing.
    ///
    /// [`TransportConfig::datagram_receive_buffer_size`]: crate::TransportConfig::datagram_receive_buffer_size
    /// [`TransportConfig::datagram_receive_queue`]: crate::TransportConfig::datagram_receive_queue
    /// [`DatagramStats::unread_dropped`]: crate::DatagramStats::unread_dropped
    pub async fn read_datagram(&self) -> Result<Bytes, ConnectionError> {
        let handle = self.0.handle;
        let read = move |locked: &mut Locked<'_>| {
            // Datagrams that arrived before the end can be read after it.
            let connection = locked.connection(handle);
            match connection.and_then(|it| it.datagrams().receive()) {
                Some(datagram) => Poll::Ready(Ok(datagram)),
                None => locked.poll_open(handle),
            }
        };
        self.0.wait(Topic::Datagram, read).await
    }

    /// Returns the largest size of a datagram that can be sent now, in bytes. `None` if the peer accepts none, or
    /// the connection is over.
    ///
    /// The size changes with the MTU of the path, and mostly grows in the first round trips. A queued datagram
    /// that no longer fits when its turn comes is dropped. The size is at least 1158 while the path works,
    /// unless the peer or the queue of this end allows less.
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

    /// Returns the largest size of a datagram for which no other one would be dropped, in bytes. 0 if the queue
    /// is full, or the connection is over.
    pub fn datagram_send_buffer_space(&self) -> usize {
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.handle);
        connection.map_or(0, |connection| connection.datagrams().send_space())
    }
}

impl ConnectionRef {
    /// Queues a datagram, and sends others first if it would replace them.
    fn send(
        &self,
        locked: &mut Locked<'_>,
        data: Bytes,
        options: SendOptions,
    ) -> Result<Option<DatagramId>, SendDatagramError> {
        self.send_after(locked, DatagramPrefix::NONE, data, options)
    }

    pub(super) fn send_after(
        &self,
        locked: &mut Locked<'_>,
        prefix: DatagramPrefix,
        data: Bytes,
        options: SendOptions,
    ) -> Result<Option<DatagramId>, SendDatagramError> {
        let now = self.shard.now();
        let size = prefix.as_bytes().len() + data.len();
        self.make_room(locked, size);
        let connection = match locked.open_connection(self.handle) {
            Ok(connection) => connection,
            Err(error) => {
                drop(ForeignBytes::new(data));
                return Err(error.into());
            }
        };
        let sent = connection.send_datagram_after(now, prefix, data, options);
        if sent.is_err() {
            self.on_refused(locked);
        }
        let id = sent?;
        if let Some(id) = id {
            locked.entry(self.handle).wakers.await_fate(id);
        }
        locked.used(self.handle, size);
        Ok(id)
    }

    /// Queues datagrams, and removes those that were queued from `payloads`. They are sent together, in full batches: a TUN
    /// device delivers 64 KiB at a time, which would be three batches if each 32 KiB were sent at once.
    pub(super) fn send_all_after(
        &self,
        locked: &mut Locked<'_>,
        prefix: DatagramPrefix,
        payloads: &mut VecDeque<Bytes>,
        options: SendOptions,
    ) -> Result<(), SendDatagramError> {
        let now = self.shard.now();
        let mut queued = 0;
        let mut outcome = Ok(());
        while let Some(payload) = payloads.front() {
            let size = prefix.as_bytes().len() + payload.len();
            if !self.has_room(locked, size) && queued > 0 {
                locked.used(self.handle, std::mem::take(&mut queued));
            }
            self.make_room(locked, size);
            // A clone shares the bytes, so that they remain if they are too large.
            let payload = payload.clone();
            let sent = match locked.open_connection(self.handle) {
                Ok(connection) => connection
                    .send_datagram_after(now, prefix, payload, options)
                    .map_err(SendDatagramError::from),
                Err(error) => Err(error.into()),
            };
            if let Err(error) = sent {
                self.on_refused(locked);
                outcome = Err(error);
                break;
            }
            payloads.pop_front();
            queued += size;
        }
        if queued > 0 {
            locked.used(self.handle, queued);
        }
        outcome
    }

    /// Sends the probe of a search for larger packets, which a datagram that was too large may have begun. Nothing else may
    /// be sent: a connection inside of this one would stand still.
    fn on_refused(&self, locked: &mut Locked<'_>) {
        let connection = locked.open_connection(self.handle);
        if connection.is_ok_and(|it| it.awaits_size_probe()) {
            locked.used(self.handle, 0);
        }
    }

    /// Returns true when a datagram fits without dropping another, or waiting cannot make room.
    /// Queued datagrams that are held back for a fuller packet are sent to make room.
    fn make_room(&self, locked: &mut Locked<'_>, size: usize) -> bool {
        if self.has_room(locked, size) {
            return true;
        }
        // A sender that is faster than its path asks for each datagram. The window and the pacer permit more only
        // after a turn of the driver.
        let turn = locked.driver.turn();
        let is_full = locked.entry(self.handle).full_in_turn == turn;
        if !locked.outbox.timing.may_hold_back() || is_full {
            return false;
        }
        locked.send_now();
        let made = self.has_room(locked, size);
        if !made {
            locked.entry(self.handle).full_in_turn = turn;
        }
        made
    }

    /// Returns true when a datagram fits without dropping another, or waiting cannot make room.
    fn has_room(&self, locked: &mut Locked<'_>, size: usize) -> bool {
        let Ok(connection) = locked.open_connection(self.handle) else {
            return true;
        };
        let can_be_sent = connection
            .max_datagram_size()
            .is_some_and(|max| size <= max);
        !can_be_sent || connection.datagrams().has_send_space(size)
    }
}
