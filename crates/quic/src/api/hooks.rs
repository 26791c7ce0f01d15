//! Operations for the crates of courser that implement HTTP on connections and streams.
//!
//! None of this is part of the public API. `courser` does not re-export it, and it changes without
//! notice. Each method forwards to the one of the same name, which has the explanation.
//!
//! HTTP/3 needs steps that take the lock of an endpoint once instead of several times, and flow
//! control that depends on what is read. The server and the client need a share of the memory budget,
//! the amount of unacknowledged data, and session tickets for each server.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};

use bytes::Bytes;
use courser_base::Time;
use courser_telemetry::Tap;
use courser_transport::{ConnectionHandle, Undelivered};
use courser_wire::StreamId;

pub use crate::api::opening::Opened;
pub use crate::api::write::Write;
pub use crate::shard::lock::Afterwards;
pub use crate::shard::wakers::{Ticket, Waiters};
pub use courser_udp::parse_ip;

use crate::shard::lock::Locked;
use crate::{
    ClientConfig, ConfigError, Connection, ConnectionError, Endpoint, Identity, ReadError,
    RecvStream, SendStream, VarInt, WriteError, Written,
};

/// Returns true if tasks can be spawned and timers set here.
pub fn has_runtime() -> bool {
    crate::runtime::Current::require().is_ok()
}

/// Operations on a [`Connection`].
pub trait ConnectionHooks {
    /// Accepts a stream for both directions with a priority by its index. Calls `before_wait` if it
    /// has to wait.
    ///
    /// # Errors
    /// Returns an error when the connection is over.
    fn accept_bi_at(
        &self,
        priority: fn(u64) -> i32,
        before_wait: impl FnOnce() + Send,
    ) -> impl Future<Output = Result<(SendStream, RecvStream), ConnectionError>> + Send;

    /// Opens a stream for both directions and writes a message on it under one lock. Returns `None` if
    /// the peer allows no stream now or the connection is over.
    fn open_bi_with<'m>(
        &self,
        cx: &Context<'_>,
        message: impl FnOnce(StreamId, &mut LockedStreams<'_, '_>) -> &'m [u8],
    ) -> Option<Opened<'_>>;

    /// Returns the number of bidirectional streams that the peer may have opened so far.
    fn granted_requests(&self) -> u64;

    /// Returns true while the peer has not acknowledged everything that was written.
    fn has_undelivered(&self) -> bool;

    /// Returns the amount of written data that the peer has not acknowledged yet.
    fn undelivered(&self) -> Undelivered;

    /// Sets the priority of a stream whose handle is elsewhere.
    fn set_stream_priority(&self, id: StreamId, priority: i32);

    /// Resets and stops a stream whose handles are elsewhere.
    fn abort_stream(&self, id: StreamId, code: VarInt);

    /// Calls `run` with the point where sinks are attached and the time for records, under the lock of
    /// the endpoint. `None` if the connection is gone.
    fn with_tap<T>(&self, run: impl FnOnce(&mut Tap, Time) -> T) -> Option<T>;
}

/// Operations on a [`SendStream`].
pub trait SendStreamHooks {
    /// Takes the stream out of a handle, which is over afterwards.
    #[must_use]
    fn take(&mut self) -> SendStream;

    /// Takes bytes, as many as there is room for. Bytes of an urgent write leave at once.
    ///
    /// # Errors
    /// As [`SendStream::write`].
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        write: Write<'_>,
    ) -> Poll<Result<Written, WriteError>>;

    /// Waits until bytes written behind `ahead` further ones could leave.
    ///
    /// # Errors
    /// As [`SendStream::write`].
    fn poll_worth_writing(
        &mut self,
        cx: &mut Context<'_>,
        ahead: u64,
    ) -> Poll<Result<(), WriteError>>;

    /// Writes bytes under a lock that the caller holds.
    ///
    /// # Errors
    /// As [`SendStream::write`].
    fn poll_send_locked(
        &mut self,
        locked: &mut LockedStreams<'_, '_>,
        cx: &mut Context<'_>,
        write: Write<'_>,
    ) -> Poll<Result<Written, WriteError>>;

    /// Returns how many more bytes may be written so that the peer's credit for the stream and for the
    /// connection covers all of them.
    fn credit(&self) -> u64;

    /// Returns the [`credit`](Self::credit) under a lock that the caller holds.
    fn credit_locked(&self, locked: &mut LockedStreams<'_, '_>) -> u64;
}

/// Operations on a [`RecvStream`].
pub trait RecvStreamHooks {
    /// Takes the stream out of a handle, which is over afterwards.
    #[must_use]
    fn take(&mut self) -> RecvStream;

    /// Waits for a reset without reading.
    fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<ReadError>;

    /// Keeps bytes that were read charged to the peer.
    fn hold_credit(&self, len: u64);

    /// Grants credit for bytes that were held.
    fn release_credit(&self, len: u64);

    /// Reads a chunk, and the end of the stream if it follows at once.
    ///
    /// # Errors
    /// As [`RecvStream::read`].
    fn poll_read_chunk_and_end(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ReadError>>;

    /// Returns true if the end was read.
    fn has_ended(&self) -> bool;
}

/// Operations on an [`Endpoint`].
pub trait EndpointHooks {
    /// Makes `bytes`, which the application holds for its clients, count for the memory budget.
    fn share_memory(&self, bytes: Arc<AtomicU64>);

    /// Returns the number of shards that have stopped, because their sockets are of no use any more, and the
    /// reason of the first.
    fn stopped_shards(&self) -> (usize, Option<ConnectionError>);
}

/// Operations on an [`Identity`].
pub trait IdentityHooks {
    /// Returns the certificate chain and the key.
    fn into_tls(self) -> courser_tls::Identity;

    /// Checks that certificate and key match, and adds the OCSP response.
    ///
    /// # Errors
    /// Returns an error if they do not match.
    fn certified_key(&self) -> Result<courser_tls::rustls::sign::CertifiedKey, ConfigError>;
}

/// Operations on a [`ClientConfig`].
pub trait ClientConfigHooks {
    /// Checks what a connection with this configuration would be refused for.
    ///
    /// # Errors
    /// Returns the first unusable setting.
    fn check(self) -> Result<(), ConfigError>;

    /// Reports rejections of ECH to `ech`, which is part of a custom TLS configuration.
    #[must_use]
    fn reporting_ech(self, ech: Option<courser_tls::Ech>) -> Self;

    /// Keeps session tickets in memory by name and port, and not in the store of a custom TLS
    /// configuration.
    #[must_use]
    fn tickets_by_port(self) -> Self;
}

impl ConnectionHooks for Connection {
    fn accept_bi_at(
        &self,
        priority: fn(u64) -> i32,
        before_wait: impl FnOnce() + Send,
    ) -> impl Future<Output = Result<(SendStream, RecvStream), ConnectionError>> + Send {
        Connection::accept_bi_at(self, priority, before_wait)
    }

    fn open_bi_with<'m>(
        &self,
        cx: &Context<'_>,
        message: impl FnOnce(StreamId, &mut LockedStreams<'_, '_>) -> &'m [u8],
    ) -> Option<Opened<'_>> {
        let handle = self.0.handle;
        Connection::open_bi_with(self, cx, |id, locked| {
            message(id, &mut LockedStreams { locked, handle })
        })
    }

    fn granted_requests(&self) -> u64 {
        Connection::granted_requests(self)
    }

    fn has_undelivered(&self) -> bool {
        Connection::has_undelivered(self)
    }

    fn undelivered(&self) -> Undelivered {
        Connection::undelivered(self)
    }

    fn set_stream_priority(&self, id: StreamId, priority: i32) {
        Connection::set_stream_priority(self, id, priority);
    }

    fn abort_stream(&self, id: StreamId, code: VarInt) {
        Connection::abort_stream(self, id, code);
    }

    fn with_tap<T>(&self, run: impl FnOnce(&mut Tap, Time) -> T) -> Option<T> {
        let now = self.0.shard.now();
        let mut locked = self.0.lock();
        Some(run(locked.connection(self.0.handle)?.tap(), now))
    }
}

impl SendStreamHooks for SendStream {
    fn take(&mut self) -> SendStream {
        SendStream::take(self)
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        write: Write<'_>,
    ) -> Poll<Result<Written, WriteError>> {
        SendStream::poll_send(self, cx, write)
    }

    fn poll_worth_writing(
        &mut self,
        cx: &mut Context<'_>,
        ahead: u64,
    ) -> Poll<Result<(), WriteError>> {
        SendStream::poll_worth_writing(self, cx, ahead)
    }

    fn poll_send_locked(
        &mut self,
        locked: &mut LockedStreams<'_, '_>,
        cx: &mut Context<'_>,
        write: Write<'_>,
    ) -> Poll<Result<Written, WriteError>> {
        SendStream::poll_send_locked(self, locked.locked, cx, write)
    }

    fn credit(&self) -> u64 {
        SendStream::credit(self)
    }

    fn credit_locked(&self, locked: &mut LockedStreams<'_, '_>) -> u64 {
        SendStream::credit_locked(self, locked.locked)
    }
}

impl RecvStreamHooks for RecvStream {
    fn take(&mut self) -> RecvStream {
        RecvStream::take(self)
    }

    fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<ReadError> {
        RecvStream::poll_reset(self, cx)
    }

    fn hold_credit(&self, len: u64) {
        RecvStream::hold_credit(self, len);
    }

    fn release_credit(&self, len: u64) {
        RecvStream::release_credit(self, len);
    }

    fn poll_read_chunk_and_end(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        RecvStream::poll_read_chunk_and_end(self, cx)
    }

    fn has_ended(&self) -> bool {
        RecvStream::has_ended(self)
    }
}

impl EndpointHooks for Endpoint {
    fn share_memory(&self, bytes: Arc<AtomicU64>) {
        Endpoint::share_memory(self, bytes);
    }

    fn stopped_shards(&self) -> (usize, Option<ConnectionError>) {
        Endpoint::stopped_shards(self)
    }
}

impl IdentityHooks for Identity {
    fn into_tls(self) -> courser_tls::Identity {
        Identity::into_tls(self)
    }

    fn certified_key(&self) -> Result<courser_tls::rustls::sign::CertifiedKey, ConfigError> {
        Identity::certified_key(self)
    }
}

impl ClientConfigHooks for ClientConfig {
    fn check(self) -> Result<(), ConfigError> {
        self.build().map(drop)
    }

    fn reporting_ech(self, ech: Option<courser_tls::Ech>) -> Self {
        ClientConfig::reporting_ech(self, ech)
    }

    fn tickets_by_port(self) -> Self {
        ClientConfig::tickets_by_port(self)
    }
}

impl<'a> Opened<'a> {
    /// Returns the number of bytes of the message that were written.
    pub fn written(&self) -> usize {
        self.written
    }

    /// Returns both halves of the stream, and the rest of the work. The sending half is `None` if all
    /// of the message and the end of the stream are written.
    pub fn into_parts(self) -> (Option<SendStream>, RecvStream, Afterwards<'a>) {
        (self.send, self.receive, self.afterwards)
    }
}

/// The streams of one connection, with the lock of their endpoint held.
#[derive(Debug)]
pub struct LockedStreams<'l, 's> {
    locked: &'l mut Locked<'s>,
    handle: ConnectionHandle,
}

impl LockedStreams<'_, '_> {
    /// Sets the priority of a stream. Does nothing if the stream is over.
    pub fn set_priority(&mut self, id: StreamId, priority: i32) {
        if let Some(streams) = self.locked.streams(self.handle) {
            let _ = streams.set_priority(id, priority);
        }
    }
}
