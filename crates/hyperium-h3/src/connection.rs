//! Connections: opening and accepting streams.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use courser::ConnectionError;
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming};

use crate::error::{connection_error, lost, var_int};
use crate::{BidiStream, RecvStream, SendStream};

/// A QUIC connection for `h3`, of a client or a server.
///
/// With the last handle to the connection it is closed, streams included; see
/// [`courser::Connection`].
#[derive(Debug)]
pub struct Connection {
    open: OpenStreams,
    accepting_bi: Call<Both>,
    accepting_uni: Call<courser::RecvStream>,
}

/// Opens streams on a connection. Clones wait for themselves.
#[derive(Debug)]
pub struct OpenStreams {
    connection: courser::Connection,
    opening_bi: Call<Both>,
    opening_uni: Call<courser::SendStream>,
}

type Both = (courser::SendStream, courser::RecvStream);

impl Connection {
    /// Takes an established connection.
    pub fn new(connection: courser::Connection) -> Self {
        Self {
            open: OpenStreams::new(connection),
            accepting_bi: Call::default(),
            accepting_uni: Call::default(),
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
            opening_bi: Call::default(),
            opening_uni: Call::default(),
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
        Poll::Ready(ready!(opened).map(BidiStream::new).map_err(lost))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        let open = |connection: courser::Connection| async move { connection.open_uni().await };
        let opened = self.opening_uni.poll(cx, || open(self.connection.clone()));
        Poll::Ready(ready!(opened).map(SendStream::new).map_err(lost))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.connection.close(var_int(code.value()), reason);
    }
}

/// What was asked of a connection and is not answered: the traits poll, and the connection knows
/// who waits by the future that waits.
pub(crate) struct Call<T>(Option<Pin<Box<dyn Waiting<T>>>>);

pub(crate) trait Waiting<T>:
    Future<Output = Result<T, ConnectionError>> + Send + Sync
{
}

impl<T, F: Future<Output = Result<T, ConnectionError>> + Send + Sync> Waiting<T> for F {}

impl<T> Call<T> {
    /// Goes on with the call, or begins one.
    pub(crate) fn poll<F: Waiting<T> + 'static>(
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

impl<T> Default for Call<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Waiting" } else { "Idle" })
    }
}
