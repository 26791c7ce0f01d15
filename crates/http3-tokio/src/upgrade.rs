//! Streams that result from a CONNECT (RFC 9114 §4.4, RFC 9220).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use courser_base::foreign::ForeignWaker;
use courser_http3::{Code, data_header};
use courser_quic::StreamId;
use courser_quic::hooks::{SendStreamHooks, Write};
use http_body::Body as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::body::Body;
use super::datagrams::Datagrams;
use super::error::Error;
use super::handover::Handover;
use super::outgoing::Outgoing;
use super::shared::Guard;

/// Takes the stream of a CONNECT from its request, on a server that uses [`serve`](super::serve). Returns `None`
/// for requests with other methods, and at the second call.
///
/// Call it before the service responds. If the status of the response is 2xx, both ends may use the stream from
/// then on, and the body of the response is not sent.
///
/// ```
/// # mod courser { pub use courser_quic::*; pub use courser_http3_tokio as h3; }
/// # use courser::h3;
/// async fn service(mut request: http::Request<h3::Body>) -> http::Response<h3::Empty> {
///     if let Some(upgrade) = h3::upgrade(&mut request) {
///         tokio::spawn(async move {
///             let mut stream = upgrade.await?;
///             let (mut read, mut write) = tokio::io::split(stream);
///             tokio::io::copy(&mut read, &mut write).await?;
///             Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
///         });
///     }
///     http::Response::new(h3::Empty)
/// }
/// ```
pub fn upgrade<B>(request: &mut http::Request<B>) -> Option<OnUpgrade> {
    let Offer(handover) = request.extensions_mut().remove::<Offer>()?;
    let datagrams = request.extensions().get::<Datagrams>().cloned();
    let mut state = handover.lock();
    if state.is_requested {
        return None;
    }
    state.is_requested = true;
    drop(state);
    Some(OnUpgrade {
        handover,
        datagrams,
    })
}

/// Waits until the response to a CONNECT is sent. See [`upgrade`].
///
/// # Errors
/// Returns an error if the service refused the CONNECT, or the request has ended for another reason.
///
/// # Cancel safety
/// Dropping the future before it is ready resets the request.
#[derive(Debug)]
#[must_use = "the stream is reset when this is dropped"]
pub struct OnUpgrade {
    handover: Arc<Handover>,
    datagrams: Option<Datagrams>,
}

impl Future for OnUpgrade {
    type Output = Result<Upgraded, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = ForeignWaker::of(cx);
        let mut state = self.handover.lock();
        if let Some(outgoing) = state.outgoing.take() {
            let incoming = state.incoming.take();
            drop(state);
            let body = Body::of(incoming);
            let datagrams = self.datagrams.clone();
            let mut upgraded = Upgraded::new(body, outgoing).with_datagrams(datagrams);
            upgraded.end = Some(End(self.handover.clone()));
            return Poll::Ready(Ok(upgraded));
        }
        if state.has_ended {
            return Poll::Ready(Err(Error::closed()));
        }
        state.taker = Some(waker);
        Poll::Pending
    }
}

impl Drop for OnUpgrade {
    fn drop(&mut self) {
        let mut halves = self.handover.lock();
        // An upgrade that completes now has no owner.
        halves.is_requested = false;
        let unused = halves.outgoing.take();
        drop(halves);
        if unused.is_some() {
            drop(unused);
            self.handover.end();
        }
    }
}

/// The extension of a CONNECT from which its stream is taken.
#[derive(Clone, Debug)]
pub(super) struct Offer(pub(super) Arc<Handover>);

/// Notifies a task of the server that the stream is no longer used.
#[derive(Debug)]
pub(super) struct End(Arc<Handover>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The stream of an accepted CONNECT: bytes in both directions, as over TCP.
///
/// It implements tokio's [`AsyncRead`] and [`AsyncWrite`], so that protocols over TCP streams can use it, for
/// example through `tokio-tungstenite`. If the stream is full, written bytes wait for a flush. Shutting it down,
/// or dropping it, finishes the sending direction (FIN). Dropping it also stops the receiving direction.
///
/// # Cancel safety
/// Reads and writes that were not ready have had no effect.
#[derive(Debug)]
pub struct Upgraded {
    /// Dropped first, so that the end of the sending direction precedes the stop of the other.
    sending: SendingPart,
    receiving: ReceivingPart,
    end: Option<End>,
}

/// The sending direction of an accepted CONNECT. Dropping it finishes the direction.
#[derive(Debug)]
pub(super) struct SendingPart {
    outgoing: Outgoing,
    /// Bytes that were accepted and not written yet: the header of a frame, and its content.
    waiting: [Bytes; 2],
}

/// The receiving direction of an accepted CONNECT, with its datagrams.
#[derive(Debug)]
pub(super) struct ReceivingPart {
    incoming: Body,
    pub(super) datagrams: Option<Datagrams>,
    /// Bytes that were read from the stream and not returned yet.
    chunk: Bytes,
}

impl Upgraded {
    pub(super) fn new(incoming: Body, outgoing: Outgoing) -> Self {
        Self {
            sending: SendingPart {
                outgoing,
                waiting: [Bytes::new(), Bytes::new()],
            },
            receiving: ReceivingPart {
                incoming,
                datagrams: None,
                chunk: Bytes::new(),
            },
            end: None,
        }
    }

    pub(super) fn with_datagrams(mut self, datagrams: Option<Datagrams>) -> Self {
        self.receiving.datagrams = datagrams;
        self
    }

    pub(super) fn into_parts(self) -> (SendingPart, ReceivingPart, Option<End>) {
        (self.sending, self.receiving, self.end)
    }

    pub(super) const fn from_parts(
        sending: SendingPart,
        receiving: ReceivingPart,
        end: Option<End>,
    ) -> Self {
        Self {
            sending,
            receiving,
            end,
        }
    }

    /// Returns the datagrams of the request, or `None` unless [`Config::datagrams`](super::Config::datagrams) is
    /// on at this end.
    pub fn datagrams(&self) -> Option<&Datagrams> {
        self.receiving.datagrams.as_ref()
    }

    /// Returns the stream ID.
    pub fn stream(&self) -> StreamId {
        self.sending.stream()
    }

    /// Waits until the peer has acknowledged all that was sent so far. The future does not borrow the stream.
    ///
    /// # Errors
    /// Returns an error if the peer stops the stream or the connection is lost before.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub fn acknowledged(
        &self,
    ) -> impl Future<Output = Result<(), courser_quic::WriteError>> + Send + Sync + 'static {
        self.sending.outgoing.send.acknowledged()
    }

    /// Resets the stream in both directions. With [`Code::REQUEST_CANCELLED`] this corresponds to a TCP reset
    /// (RFC 9220 §3).
    pub fn reset(mut self, code: Code) {
        self.sending.reset(code);
    }

    /// Returns the next bytes without copying them, or `None` at the end.
    ///
    /// # Errors
    /// Returns an error if the peer has reset the stream or the connection is closed.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn read_chunk(&mut self) -> Result<Option<Bytes>, Error> {
        std::future::poll_fn(|cx| self.receiving.poll_chunk(cx)).await
    }

    /// Writes all of `data` without copying it.
    ///
    /// # Errors
    /// Returns an error if the peer has stopped reading or the connection is closed.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready writes nothing or, with the next write or flush, all of the data.
    pub async fn write_chunk(&mut self, data: Bytes) -> Result<(), Error> {
        self.sending.write_chunk(data).await
    }
}

impl ReceivingPart {
    pub(super) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Error>> {
        if !self.chunk.is_empty() {
            return Poll::Ready(Ok(Some(std::mem::take(&mut self.chunk))));
        }
        loop {
            match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if data.is_empty() => {}
                    Ok(data) => return Poll::Ready(Ok(Some(data))),
                    // Trailers have no meaning here.
                    Err(_) => {}
                },
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Ok(None)),
            }
        }
    }

    /// Ends the direction because of an error of the peer.
    pub(super) fn abort(&mut self, error: courser_http3::Error) -> Error {
        self.incoming.abort(error).into()
    }
}

impl SendingPart {
    pub(super) fn stream(&self) -> StreamId {
        self.outgoing.send.id()
    }

    pub(super) fn reset(&mut self, code: Code) {
        self.outgoing.reset(code);
    }

    pub(super) fn guard(&self) -> &Arc<Guard> {
        &self.outgoing.guard
    }

    /// Writes a chunk with the semantics of [`Upgraded::write_chunk`].
    pub(super) async fn write_chunk(&mut self, data: Bytes) -> Result<(), Error> {
        std::future::poll_fn(|cx| self.poll_written(cx)).await?;
        self.begin_frame(data);
        std::future::poll_fn(|cx| self.poll_written(cx)).await
    }

    /// Accepts a frame, after [`poll_written`](Self::poll_written) was ready.
    pub(super) fn begin_frame(&mut self, data: Bytes) {
        debug_assert!(
            self.waiting.iter().all(Bytes::is_empty),
            "a frame is being written"
        );
        self.outgoing.record_data(data.len());
        if !data.is_empty() {
            let header = data_header(data.len() as u64);
            self.waiting = [Bytes::copy_from_slice(header.as_ref()), data];
        }
    }

    /// Returns `Ready` when all accepted bytes are written.
    pub(super) fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        while self.waiting.iter().any(|bytes| !bytes.is_empty()) {
            let write = Write::chunks(&mut self.waiting);
            ready!(self.outgoing.send.poll_send(cx, write))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Ends the direction when all accepted bytes are written.
    pub(super) fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        ready!(self.poll_written(cx))?;
        self.outgoing.finish();
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut self.get_mut().receiving;
        if let Some(mut chunk) = ready!(this.poll_chunk(cx)).map_err(io_error)? {
            let len = chunk.len().min(buf.remaining());
            buf.put_slice(&chunk.split_to(len));
            this.chunk = chunk;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut self.get_mut().sending;
        ready!(this.poll_written(cx)).map_err(io_error)?;
        let len = buf.len().min(LONGEST_FRAME);
        this.begin_frame(Bytes::copy_from_slice(&buf[..len]));
        // Bytes that do not fit now are written by the next call, or by a flush.
        if let Poll::Ready(Err(error)) = this.poll_written(cx) {
            return Poll::Ready(Err(io_error(error)));
        }
        Poll::Ready(Ok(len))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().sending.poll_written(cx).map_err(io_error)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().sending.poll_finish(cx).map_err(io_error)
    }
}

impl Drop for SendingPart {
    fn drop(&mut self) {
        // A truncated frame must not look like the end.
        if self.waiting.iter().all(Bytes::is_empty) {
            self.outgoing.finish();
        } else {
            self.outgoing.reset(Code::REQUEST_CANCELLED);
        }
    }
}

fn io_error(error: Error) -> io::Error {
    let kind = match &error {
        Error::Http { .. } => io::ErrorKind::ConnectionReset,
        error if error.is_timeout() => io::ErrorKind::TimedOut,
        _ => io::ErrorKind::NotConnected,
    };
    io::Error::new(kind, error)
}

/// Largest number of bytes that one write accepts and copies.
const LONGEST_FRAME: usize = 64 * 1024;
