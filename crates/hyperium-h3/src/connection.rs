//! Connections, which open and accept streams.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use courser::ConnectionError;
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming};

use crate::error::{connection_error, connection_lost, saturating_var_int};
use crate::{BidiStream, RecvStream, SendStream};

/// A QUIC connection of a client or a server, for use with `h3`.
///
/// Dropping the last handle, including those of streams, closes the connection. See
/// [`courser::Connection`].
#[derive(Debug)]
pub struct Connection {
    open: OpenStreams,
    accepting_bi: PendingCall<StreamPair>,
    accepting_uni: PendingCall<courser::RecvStream>,
}

/// Opens streams on a connection. Each clone waits independently until the peer allows a stream.
#[derive(Debug)]
pub struct OpenStreams {
    connection: courser::Connection,
    opening_bi: PendingCall<StreamPair>,
    opening_uni: PendingCall<courser::SendStream>,
}

type StreamPair = (courser::SendStream, courser::RecvStream);

impl Connection {
    /// Wraps an established connection.
    pub fn new(connection: courser::Connection) -> Self {
        Self {
            open: OpenStreams::new(connection),
            accepting_bi: PendingCall::default(),
            accepting_uni: PendingCall::default(),
        }
    }

    #[cfg(feature = "datagram")]
    pub(crate) fn transport(&self) -> &courser::Connection {
        &self.open.connection
    }
}

impl OpenStreams {
    fn new(connection: courser::Connection) -> Self {
        Self {
            connection,
            opening_bi: PendingCall::default(),
            opening_uni: PendingCall::default(),
        }
    }
}

impl Clone for OpenStreams {
    fn clone(&self) -> Self {
        Self::new(self.connection.clone())
    }
}

impl<B: Buf> quic::Connection<B> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = OpenStreams;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        let accept = |connection: courser::Connection| async move { connection.accept_uni().await };
        let accepted = self
            .accepting_uni
            .poll(cx, || accept(self.open.connection.clone()));
        accepted.map(|accepted| accepted.map(RecvStream::new).map_err(connection_error))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, ConnectionErrorIncoming>> {
        let accept = |connection: courser::Connection| async move { connection.accept_bi().await };
        let accepted = self
            .accepting_bi
            .poll(cx, || accept(self.open.connection.clone()));
        accepted.map(|accepted| accepted.map(BidiStream::new).map_err(connection_error))
    }

    fn opener(&self) -> OpenStreams {
        self.open.clone()
    }
}

impl<B: Buf> quic::OpenStreams<B> for Connection {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        self.open.poll_open_bidi(cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        self.open.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        quic::OpenStreams::<B>::close(&mut self.open, code, reason);
    }
}

impl<B: Buf> quic::OpenStreams<B> for OpenStreams {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        let open = |connection: courser::Connection| async move { connection.open_bi().await };
        let opened = self.opening_bi.poll(cx, || open(self.connection.clone()));
        Poll::Ready(ready!(opened).map(BidiStream::new).map_err(connection_lost))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        let open = |connection: courser::Connection| async move { connection.open_uni().await };
        let opened = self.opening_uni.poll(cx, || open(self.connection.clone()));
        Poll::Ready(ready!(opened).map(SendStream::new).map_err(connection_lost))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.connection
            .close(saturating_var_int(code.value()), reason);
    }
}

/// An asynchronous call that is still in progress, if any.
///
/// The traits of `h3` poll, while courser registers wakers in futures. The future is therefore kept
/// between polls.
pub(crate) struct PendingCall<T>(Option<Pin<Box<dyn CallFuture<T>>>>);

/// A future with the result of a call.
pub(crate) trait CallFuture<T>:
    Future<Output = Result<T, ConnectionError>> + Send + Sync
{
}

impl<T, F: Future<Output = Result<T, ConnectionError>> + Send + Sync> CallFuture<T> for F {}

impl<T> PendingCall<T> {
    /// Polls the call in progress, or begins one.
    pub(crate) fn poll<F: CallFuture<T> + 'static>(
        &mut self,
        cx: &mut Context<'_>,
        begin: impl FnOnce() -> F,
    ) -> Poll<Result<T, ConnectionError>> {
        let call = self.0.get_or_insert_with(|| Box::pin(begin()));
        let answer = ready!(call.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(answer)
    }
}

impl<T> Default for PendingCall<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> fmt::Debug for PendingCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Pending" } else { "Idle" })
    }
}
