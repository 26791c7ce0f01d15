//! Sessions and connections of courser as transports of moq-net, by the traits of web-transport-trait.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use courser::webtransport::{
    ApplicationCode, Closed, ReadError, ReceiveHalf, SendHalf, SessionEnded, Transport, WriteError,
};
use web_transport_trait::{Error as ErrorTrait, Stats as StatsTrait, poll};

type Waiting<T> = Option<Pin<Box<dyn Future<Output = T> + Send + Sync>>>;
type Halves<T> = (
    Sending<<T as Transport>::SendStream>,
    Receiving<<T as Transport>::RecvStream>,
);

/// A transport with the futures that wait on this handle. A clone has its own.
pub struct Link<T: Transport> {
    transport: T,
    protocol: Option<String>,
    accept_uni: Pending<Result<T::RecvStream, SessionEnded>>,
    accept_bi: Pending<Result<(T::SendStream, T::RecvStream), SessionEnded>>,
    open_uni: Pending<Result<T::SendStream, SessionEnded>>,
    open_bi: Pending<Result<(T::SendStream, T::RecvStream), SessionEnded>>,
    datagram: Pending<Result<Bytes, SessionEnded>>,
    closed: Pending<Closed>,
}

/// A future that is created when it is first polled, and again after its result.
struct Pending<T>(Waiting<T>);

impl<T> Pending<T> {
    fn poll<F>(&mut self, cx: &mut Context<'_>, begin: impl FnOnce() -> F) -> Poll<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let future = self.0.get_or_insert_with(|| sync(begin()));
        let result = ready!(future.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(result)
    }
}

impl<T: Transport> Link<T> {
    pub fn new(transport: T) -> Self {
        Self {
            protocol: transport.protocol(),
            transport,
            accept_uni: Pending(None),
            accept_bi: Pending(None),
            open_uni: Pending(None),
            open_bi: Pending(None),
            datagram: Pending(None),
            closed: Pending(None),
        }
    }
}

impl<T: Transport> Clone for Link<T> {
    fn clone(&self) -> Self {
        Self::new(self.transport.clone())
    }
}

impl<T: Transport> poll::Session for Link<T> {
    type SendStream = Sending<T::SendStream>;
    type RecvStream = Receiving<T::RecvStream>;
    type Error = LinkError;

    fn poll_accept_uni(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::RecvStream, LinkError>> {
        let transport = &self.transport;
        let accepted = self.accept_uni.poll(cx, || {
            let transport = transport.clone();
            async move { transport.accept_uni().await }
        });
        accepted.map_ok(Receiving::new).map_err(LinkError::of)
    }

    fn poll_accept_bi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Halves<T>, LinkError>> {
        let transport = &self.transport;
        let accepted = self.accept_bi.poll(cx, || {
            let transport = transport.clone();
            async move { transport.accept_bi().await }
        });
        let halves =
            accepted.map_ok(|(send, receive)| (Sending::new(send), Receiving::new(receive)));
        halves.map_err(LinkError::of)
    }

    fn poll_open_uni(&mut self, cx: &mut Context<'_>) -> Poll<Result<Self::SendStream, LinkError>> {
        let transport = &self.transport;
        let opened = self.open_uni.poll(cx, || {
            let transport = transport.clone();
            async move { transport.open_uni().await }
        });
        opened.map_ok(Sending::new).map_err(LinkError::of)
    }

    fn poll_open_bi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Halves<T>, LinkError>> {
        let transport = &self.transport;
        let opened = self.open_bi.poll(cx, || {
            let transport = transport.clone();
            async move { transport.open_bi().await }
        });
        let halves = opened.map_ok(|(send, receive)| (Sending::new(send), Receiving::new(receive)));
        halves.map_err(LinkError::of)
    }

    fn poll_send_datagram(
        &mut self,
        _: &mut Context<'_>,
        payload: &[u8],
    ) -> Poll<Result<(), LinkError>> {
        let sent = self
            .transport
            .send_datagram(Bytes::copy_from_slice(payload));
        Poll::Ready(sent.map_err(|error| LinkError::Other(error.to_string())))
    }

    fn poll_recv_datagram(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, LinkError>> {
        let transport = &self.transport;
        let received = self.datagram.poll(cx, || {
            let transport = transport.clone();
            async move { transport.receive_datagram().await }
        });
        received.map_err(LinkError::of)
    }

    fn max_datagram_size(&self) -> usize {
        self.transport.max_datagram_size().unwrap_or(0)
    }

    fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    fn close(&mut self, code: u32, reason: &str) {
        self.transport.close(code, reason);
    }

    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        let transport = &self.transport;
        let closed = self.closed.poll(cx, || {
            let transport = transport.clone();
            async move { transport.closed().await }
        });
        closed.map(LinkError::Closed)
    }

    fn stats(&self) -> impl StatsTrait {
        let rate = self.transport.send_rate();
        Stats {
            counters: self.transport.stats(),
            bits: rate.map(|rate| 8 * rate.rate.as_bytes_per_second()),
        }
    }
}

struct Stats {
    counters: courser::ConnectionStats,
    bits: Option<u64>,
}

impl StatsTrait for Stats {
    fn bytes_sent(&self) -> Option<u64> {
        Some(self.counters.udp_sent.bytes)
    }

    fn bytes_received(&self) -> Option<u64> {
        Some(self.counters.udp_received.bytes)
    }

    fn packets_sent(&self) -> Option<u64> {
        Some(self.counters.packets_sent)
    }

    fn packets_received(&self) -> Option<u64> {
        Some(self.counters.packets_received)
    }

    fn packets_lost(&self) -> Option<u64> {
        Some(self.counters.packets_lost)
    }

    fn rtt(&self) -> Option<std::time::Duration> {
        Some(self.counters.path.rtt)
    }

    fn estimated_send_rate(&self) -> Option<u64> {
        self.bits
    }
}

/// The sending half of a stream.
pub struct Sending<S> {
    stream: S,
    closed: Waiting<Result<Option<ApplicationCode>, WriteError>>,
}

impl<S: SendHalf> Sending<S> {
    fn new(stream: S) -> Self {
        Self {
            stream,
            closed: None,
        }
    }
}

impl<S: SendHalf> poll::SendStream for Sending<S> {
    type Error = LinkError;

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<Result<usize, LinkError>> {
        self.stream.poll_send(cx, buf).map_err(LinkError::Write)
    }

    fn set_priority(&mut self, order: u8) {
        // A stream that is over needs none.
        let _ = self.stream.set_order(order.into());
    }

    fn finish(&mut self) -> Result<(), LinkError> {
        self.stream.finish().map_err(LinkError::Write)
    }

    fn reset(&mut self, code: u32) {
        // Fails if everything was delivered.
        let _ = self.stream.reset(code);
    }

    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let stream = &self.stream;
        let closed = self.closed.get_or_insert_with(|| sync(stream.stopped()));
        let stopped = ready!(closed.as_mut().poll(cx));
        self.closed = None;
        Poll::Ready(match stopped {
            Ok(None) => Ok(()),
            Ok(code) => Err(LinkError::Write(WriteError::Stopped(code))),
            Err(error) => Err(LinkError::Write(error)),
        })
    }
}

/// Makes a future shareable: nothing but `poll` uses it.
fn sync<F>(future: F) -> Pin<Box<dyn Future<Output = F::Output> + Send + Sync>>
where
    F: Future + Send + 'static,
{
    struct Exclusive<F>(std::sync::Mutex<Pin<Box<F>>>);

    impl<F: Future> Future for Exclusive<F> {
        type Output = F::Output;

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
            let future = self.0.get_mut().unwrap_or_else(|error| error.into_inner());
            future.as_mut().poll(cx)
        }
    }

    Box::pin(Exclusive(std::sync::Mutex::new(Box::pin(future))))
}

/// The receiving half of a stream.
pub struct Receiving<R> {
    stream: R,
    /// A chunk that arrived while the end was awaited.
    next: Bytes,
    has_ended: bool,
}

impl<R: ReceiveHalf> Receiving<R> {
    fn new(stream: R) -> Self {
        Self {
            stream,
            next: Bytes::new(),
            has_ended: false,
        }
    }
}

impl<R: ReceiveHalf> poll::RecvStream for Receiving<R> {
    type Error = LinkError;

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        dst: &mut [u8],
    ) -> Poll<Result<Option<usize>, LinkError>> {
        let chunk = ready!(self.poll_read_chunk(cx, dst.len()))?;
        Poll::Ready(Ok(chunk.map(|chunk| {
            dst[..chunk.len()].copy_from_slice(&chunk);
            chunk.len()
        })))
    }

    fn poll_read_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, LinkError>> {
        if !self.next.is_empty() {
            let len = self.next.len().min(max);
            return Poll::Ready(Ok(Some(self.next.split_to(len))));
        }
        if self.has_ended {
            return Poll::Ready(Ok(None));
        }
        let chunk = ready!(self.stream.poll_chunk(cx, max)).map_err(LinkError::Read)?;
        self.has_ended = chunk.is_none();
        Poll::Ready(Ok(chunk))
    }

    fn stop(&mut self, code: u32) {
        // Fails if it has ended.
        let _ = self.stream.stop(code);
    }

    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        if self.has_ended {
            return Poll::Ready(Ok(()));
        }
        if !self.next.is_empty() {
            return Poll::Pending;
        }
        match ready!(self.stream.poll_chunk(cx, usize::MAX)).map_err(LinkError::Read)? {
            Some(chunk) => {
                self.next = chunk;
                Poll::Pending
            }
            None => {
                self.has_ended = true;
                Poll::Ready(Ok(()))
            }
        }
    }
}

/// The reason why a call failed.
#[derive(Clone, Debug)]
pub enum LinkError {
    Closed(Closed),
    Read(ReadError),
    Write(WriteError),
    Other(String),
}

impl LinkError {
    fn of(SessionEnded(closed): SessionEnded) -> Self {
        Self::Closed(closed)
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(error) => error.fmt(f),
            Self::Read(error) => error.fmt(f),
            Self::Write(error) => error.fmt(f),
            Self::Other(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LinkError {}

impl ErrorTrait for LinkError {
    fn session_error(&self) -> Option<(u32, String)> {
        let closed = match self {
            Self::Closed(closed)
            | Self::Read(ReadError::SessionEnded(closed))
            | Self::Write(WriteError::SessionEnded(closed)) => closed,
            _ => return None,
        };
        let reason = closed.reason()?;
        Some((reason.code.0, reason.message.clone()))
    }

    fn stream_error(&self) -> Option<u32> {
        match self {
            Self::Read(ReadError::Reset(code)) | Self::Write(WriteError::Stopped(code)) => {
                code.map(|ApplicationCode(code)| code)
            }
            _ => None,
        }
    }
}
