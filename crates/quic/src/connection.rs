//! Handles of a connection.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use courser_base::Side;
use courser_crypto::HandshakeData;
use courser_recovery::Algorithm;
use courser_tls::rustls::pki_types::CertificateDer;
use courser_transport::{ConnectionError, ConnectionStats, KeyUpdateBlocked};
use courser_wire::{Direction, StreamId};

use crate::error::ExportKeyingMaterialError;
use crate::handles::ConnectionRef;
use crate::shard::Locked;
use crate::wakers::{List, Ticket, Topic};
use crate::{RecvStream, SendStream, VarInt};

/// A connection to a peer.
///
/// Cloning makes another handle to the same connection. When the last handle is gone, streams
/// included, the connection is closed with code 0 and no reason, which gives up what the peer
/// has not received yet.
#[derive(Clone, Debug)]
pub struct Connection(pub(crate) Arc<ConnectionRef>);

impl Connection {
    /// Opens a stream to send on.
    ///
    /// Costs nothing on the wire: the peer learns of the stream when something is sent on it.
    /// Waits while the peer allows no further stream.
    ///
    /// # Errors
    /// When the connection is over.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has opened nothing.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        let id = self.open(Direction::Unidirectional).await?;
        Ok(SendStream::new(self.0.clone(), id))
    }

    /// Opens a stream to send and receive on.
    ///
    /// As with [`Connection::open_uni`], the peer learns of it when something is sent: waiting
    /// for an answer before writing waits for ever.
    ///
    /// # Errors
    /// When the connection is over.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has opened nothing.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.open(Direction::Bidirectional).await?;
        Ok((
            SendStream::new(self.0.clone(), id),
            RecvStream::new(self.0.clone(), id),
        ))
    }

    /// Accepts the next stream that the peer sends on, in the order of their opening.
    ///
    /// # Errors
    /// When the connection is over, and all streams that came before that are accepted.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has taken nothing.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        let id = self.accept(Direction::Unidirectional).await?;
        Ok(RecvStream::new(self.0.clone(), id))
    }

    /// Accepts the next stream for both directions, in the order of their opening.
    ///
    /// # Errors
    /// When the connection is over, and all streams that came before that are accepted.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has taken nothing.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.accept(Direction::Bidirectional).await?;
        Ok((
            SendStream::new(self.0.clone(), id),
            RecvStream::new(self.0.clone(), id),
        ))
    }

    /// As [`accept_bi`](Connection::accept_bi), with a priority by the index of the stream. Before
    /// it waits, `before_wait` is called, which may still write.
    pub(crate) async fn accept_bi_at(
        &self,
        priority: fn(u64) -> i32,
        before_wait: impl FnOnce(),
    ) -> Result<(SendStream, RecvStream), ConnectionError> {
        let key = self.0.key;
        let accept = move |locked: &mut Locked<'_>| {
            let streams = locked.streams(key)?;
            let id = streams.accept(Direction::Bidirectional)?;
            // It is open: it was just accepted.
            let _ = streams.set_priority(id, priority(id.index()));
            Some(id)
        };
        let there = accept(&mut self.0.lock());
        let id = match there {
            Some(id) => id,
            None => {
                before_wait();
                let accept = move |locked: &mut Locked<'_>| match accept(locked) {
                    Some(id) => Poll::Ready(Ok(id)),
                    None => locked.poll_open(key),
                };
                let topic = Topic::Accept(Direction::Bidirectional);
                self.0.wait(topic, accept).await?
            }
        };
        Ok((
            SendStream::new(self.0.clone(), id),
            RecvStream::new(self.0.clone(), id),
        ))
    }

    async fn open(&self, direction: Direction) -> Result<StreamId, ConnectionError> {
        let key = self.0.key;
        let open = move |locked: &mut Locked<'_>| {
            let opened = match locked.open_connection(key) {
                Ok(connection) => connection.streams().open(direction),
                Err(error) => return Poll::Ready(Err(error)),
            };
            match opened {
                Some(id) => Poll::Ready(Ok(id)),
                None => {
                    // The peer is told that its limit is in the way (RFC 9000 §4.6).
                    locked.on_used(key, 0);
                    Poll::Pending
                }
            }
        };
        self.0.wait(Topic::Open(direction), open).await
    }

    async fn accept(&self, direction: Direction) -> Result<StreamId, ConnectionError> {
        let key = self.0.key;
        // Those that had come before the end are there after it.
        let accept = move |locked: &mut Locked<'_>| {
            let streams = locked.streams(key);
            match streams.and_then(|streams| streams.accept(direction)) {
                Some(id) => Poll::Ready(Ok(id)),
                None => locked.poll_open(key),
            }
        };
        self.0.wait(Topic::Accept(direction), accept).await
    }

    /// Waits until the connection is over, and tells why.
    ///
    /// That is no failure by itself: see [`ConnectionError::LocallyClosed`] and
    /// [`ConnectionError::ApplicationClosed`].
    ///
    /// # Cancel safety
    /// Safe; the reason can be asked for again.
    pub async fn closed(&self) -> ConnectionError {
        let key = self.0.key;
        let check = move |locked: &mut Locked<'_>| match &locked.slot(key).error {
            Some(error) => Poll::Ready(error.clone()),
            None => Poll::Pending,
        };
        self.0.wait(Topic::Closed, check).await
    }

    /// Why the connection is over; `None` while it is not.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.0.lock().slot(self.0.key).error.clone()
    }

    /// Closes the connection at once.
    ///
    /// Everything that waits on it fails with [`ConnectionError::LocallyClosed`], what was not read
    /// is dropped, and nothing is repeated any more: the peer's application can read what has
    /// arrived there, and what was lost on the way never does. To lose nothing, let the end that
    /// receives last close, or wait for [`stopped`](SendStream::stopped). A second call does
    /// nothing.
    ///
    /// The peer's application gets `code` and the first 512 bytes of `reason`.
    /// [`Endpoint::wait_idle`](crate::Endpoint::wait_idle) waits until the peer knows.
    pub fn close(&self, code: VarInt, reason: &[u8]) {
        let mut locked = self.0.lock();
        if locked.slot(self.0.key).error.is_none() {
            locked.close(self.0.key, code, reason);
        }
    }

    /// Which end this is.
    pub fn side(&self) -> Side {
        self.0.side
    }

    /// The peer's address; may change while the connection lives.
    ///
    /// A peer that moves is believed when it has answered from where it is: until then this is
    /// the address before, so that nobody passes for somebody else with a forged one.
    pub fn remote_address(&self) -> SocketAddr {
        self.0.lock().view(
            self.0.key,
            |alive| alive.proven_path().peer,
            |over| over.path.peer,
        )
    }

    /// Our address on the path in use, where the system tells.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.0.lock().view(
            self.0.key,
            |alive| alive.path().local,
            |over| over.path.local,
        )
    }

    /// The smoothed round-trip time.
    pub fn rtt(&self) -> Duration {
        self.0
            .lock()
            .view(self.0.key, |alive| alive.rtt(), |over| over.rtt)
    }

    /// Counters and the state of the path. They stay after the end of the connection.
    pub fn stats(&self) -> ConnectionStats {
        self.0
            .lock()
            .view(self.0.key, |alive| alive.stats(), |over| over.stats)
    }

    /// Returns the results of the handshake: protocol, server name, cipher suite.
    pub fn handshake_data(&self) -> Option<HandshakeData> {
        let mut locked = self.0.lock();
        locked.view(
            self.0.key,
            |alive| alive.handshake_data(),
            |over| over.handshake_data.clone(),
        )
    }

    /// The peer's certificate chain, its own certificate first; `None` if it sent none.
    pub fn peer_identity(&self) -> Option<Vec<CertificateDer<'static>>> {
        let mut locked = self.0.lock();
        let chain = locked.view(
            self.0.key,
            |alive| alive.peer_certificates(),
            |over| over.certificates.clone(),
        );
        Some(chain?.into_iter().map(CertificateDer::from).collect())
    }

    /// Fills `output` with keying material that both ends derive alike from the same `label` and
    /// `context` (RFC 8446 §7.5).
    ///
    /// # Errors
    /// When the connection is over, or label or output are too long.
    pub fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let mut locked = self.0.lock();
        let connection = locked
            .open_connection(self.0.key)
            .map_err(|error| ExportKeyingMaterialError(error.to_string()))?;
        connection
            .export_keying_material(output, label, Some(context))
            .map_err(|error| ExportKeyingMaterialError(error.to_string()))
    }

    /// Begins a key update. Updates also come by themselves, long before keys wear out.
    ///
    /// # Errors
    /// When the last update is not finished, or the handshake is not confirmed; nothing is
    /// wrong then (RFC 9001 §6.1).
    pub fn force_key_update(&self) -> Result<(), KeyUpdateBlocked> {
        let now = self.0.shard.now();
        let mut locked = self.0.lock();
        let updated = match locked.open_connection(self.0.key) {
            Ok(connection) => connection.initiate_key_update(now),
            // Nothing is sent any more: no keys are needed.
            Err(_) => Ok(()),
        };
        locked.on_used(self.0.key, 0);
        updated
    }

    /// Goes on with another congestion controller than that of
    /// [`TransportConfig::congestion`](crate::TransportConfig::congestion): with the window as it
    /// is, past slow start if that is over, and without a burst. A controller of your own, from
    /// a factory, is given up. Does nothing when it is in use already or the connection is over.
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # fn on_far_network(connection: &courser::Connection) {
    /// connection.set_congestion_controller(courser::Algorithm::Bbr);
    /// # }
    /// ```
    pub fn set_congestion_controller(&self, algorithm: Algorithm) {
        let now = self.0.shard.now();
        let mut locked = self.0.lock();
        if let Ok(connection) = locked.open_connection(self.0.key) {
            connection.set_congestion_controller(now, algorithm);
        }
        locked.on_used(self.0.key, 0);
    }

    /// Keeps the connection alive while an answer is waited for: while a stream for both directions
    /// is open that this end has opened, a PING leaves after a third of the idle timeout of silence.
    /// Off at first; `courser::h3::Client` switches it on (RFC 9114 §5.1). For all of
    /// the time there is
    /// [`TransportConfig::keep_alive_interval`](crate::TransportConfig::keep_alive_interval).
    pub fn keep_alive_while_busy(&self, is_on: bool) {
        let mut locked = self.0.lock();
        if let Ok(connection) = locked.open_connection(self.0.key) {
            connection.keep_alive_while_busy(is_on);
        }
        locked.on_used(self.0.key, 0);
    }

    /// Has everything that happens on the connection recorded from now on, or nothing any more.
    ///
    /// Records are typed; see [`crate::telemetry`]. The sink is called under the endpoint's lock
    /// while packets move: it must not block, and must not use the endpoint. Without a sink
    /// recording costs a branch.
    pub fn set_sink(&self, sink: Option<Box<dyn crate::telemetry::Sink>>) {
        let mut locked = self.0.lock();
        if let Ok(connection) = locked.open_connection(self.0.key) {
            connection.set_sink(sink);
        }
    }

    /// Returns the number of bidirectional streams that the peer may have opened so far.
    pub(crate) fn granted_requests(&self) -> u64 {
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.key);
        connection.map_or(0, |connection| {
            connection.streams().granted(Direction::Bidirectional)
        })
    }

    /// True while the peer has not acknowledged all that was written.
    pub(crate) fn has_undelivered(&self) -> bool {
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.key);
        connection.is_ok_and(|connection| connection.streams().unacked_or_unsent())
    }

    /// Returns the amount of written data that the peer has not acknowledged yet.
    pub(crate) fn undelivered(&self) -> courser_transport::Undelivered {
        let mut locked = self.0.lock();
        let connection = locked.open_connection(self.0.key);
        connection.map_or_else(
            |_| courser_transport::Undelivered::default(),
            |connection| connection.streams().undelivered(),
        )
    }

    /// As [`SendStream::set_priority`], of a stream whose handle is elsewhere.
    pub(crate) fn set_stream_priority(&self, id: StreamId, priority: i32) {
        let mut locked = self.0.lock();
        if let Ok(connection) = locked.open_connection(self.0.key) {
            // A stream that is over has none.
            let _ = connection.streams().set_priority(id, priority);
        }
    }

    /// Gives both halves of a stream up whose handles are elsewhere, and wakes who waits there.
    pub(crate) fn abort_stream(&self, id: StreamId, code: VarInt) {
        let mut locked = self.0.lock();
        let key = self.0.key;
        if let Ok(connection) = locked.open_connection(key) {
            // Either half may be over already.
            let _ = connection.streams().reset(id, code.into_inner());
            let _ = connection.streams().stop(id, code.into_inner());
        }
        let mut woken = Vec::new();
        locked.slot(key).wakers.wake_reader(id, &mut woken);
        locked.slot(key).wakers.wake_writer(id, &mut woken);
        locked.woken.append(&mut woken);
        locked.on_used(key, 0);
    }

    /// A number that no other connection of this process has while a handle exists.
    pub fn stable_id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

/// A handshake under way; resolves to the connection.
///
/// Dropping it gives the connection up.
#[derive(Debug)]
#[must_use = "the connection is given up when this is dropped"]
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
            .expect("not asked after it resolved")
    }

    /// Waits until the protocol and, on a server, the wanted name are known, which is before
    /// the handshake is complete.
    ///
    /// # Errors
    /// When the handshake fails.
    ///
    /// # Cancel safety
    /// Safe; can be asked again.
    pub async fn handshake_data(&mut self) -> Result<HandshakeData, ConnectionError> {
        let connection = self.connection();
        let key = connection.key;
        let check = move |locked: &mut Locked<'_>| match locked.open_connection(key) {
            Ok(connection) => match connection.handshake_data() {
                Some(data) => Poll::Ready(Ok(data)),
                None => Poll::Pending,
            },
            Err(error) => Poll::Ready(Err(error)),
        };
        connection.wait(Topic::Handshake, check).await
    }

    /// The peer's address.
    ///
    /// # Panics
    /// After the future has resolved.
    pub fn remote_address(&self) -> SocketAddr {
        Connection(self.connection().clone()).remote_address()
    }

    /// Our address, where the system tells.
    ///
    /// # Panics
    /// After the future has resolved.
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
            .expect("not polled after it resolved");
        let key = connection.key;
        let list = List::Connection(key, Topic::Handshake);
        let poll = connection
            .shard
            .poll_list((list, &mut this.ticket), cx, |locked| {
                let slot = locked.slot(key);
                match &slot.error {
                    // A handshake that was completed counts, even if the peer has left since.
                    _ if slot.is_connected => Poll::Ready(Ok(())),
                    Some(error) => Poll::Ready(Err(error.clone())),
                    None => Poll::Pending,
                }
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
