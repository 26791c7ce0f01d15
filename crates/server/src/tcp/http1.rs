//! What hyper's server does not support over HTTP/1.1: interim responses, versions other than 1.0 and 1.1, and some
//! targets.

use std::io::{self, IoSlice, Write as _};
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker, ready};

use courser_base::Mutex;
use courser_http3_tokio::hooks::{InterimSink, is_connection_specific};
use courser_http3_tokio::{InterimError, InterimOutcome};
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::heads::Heads;
use crate::exchange::interim::{InterimOfRequest, InterimSource};
use crate::exchange::marks::Marks;
use crate::own_response::{MAX_FIRST_LINE, first_line};

/// The stream of an HTTP/1.1 connection, between hyper and TLS.
pub(super) struct Http1Stream<S> {
    stream: S,
    /// True until the first bytes have arrived, which contain the version.
    is_first: bool,
    first: FirstRead,
    heads: Heads,
    /// Bytes that hyper has not read yet, and that differ from the received ones.
    waiting: Vec<u8>,
    /// `None` if services cannot send interim responses.
    interim: Option<InterimQueue>,
    /// True while hyper has written bytes of a message and may have more of it.
    is_inside_message: bool,
    /// The interim responses that are being written.
    writing: Vec<u8>,
    /// Number of bytes of `writing` that are written.
    written: usize,
}

/// What was read and written on a connection, as far as hyper does not report it. Clones share the values.
#[derive(Clone, Default, Debug)]
pub(super) struct FirstRead(Arc<FirstReadState>);

#[derive(Default, Debug)]
struct FirstReadState {
    /// True if the client uses another major version.
    is_version_unsupported: AtomicBool,
    /// The first line of the connection and its length.
    line: OnceLock<([u8; MAX_FIRST_LINE], usize)>,
    /// True if bytes were read since the last response.
    is_inside_request: AtomicBool,
    /// The status of the last response.
    status: AtomicU16,
}

impl FirstRead {
    pub(super) fn is_version_unsupported(&self) -> bool {
        self.0.is_version_unsupported.load(Relaxed)
    }

    /// Returns true if a part of a request was read that has no response yet.
    pub(super) fn is_inside_request(&self) -> bool {
        self.0.is_inside_request.load(Relaxed)
    }

    /// Returns the first line of the connection.
    pub(super) fn line(&self) -> &[u8] {
        self.0.line.get().map_or(&[], |(line, len)| &line[..*len])
    }

    /// Returns the status of the last response, if it refuses a request.
    pub(super) fn refusal(&self) -> Option<StatusCode> {
        let status = StatusCode::from_u16(self.0.status.load(Relaxed)).ok()?;
        status.is_client_error().then_some(status)
    }

    fn on_first_bytes(&self, bytes: &[u8]) {
        let line = first_line(bytes);
        let mut copy = [0; MAX_FIRST_LINE];
        copy[..line.len()].copy_from_slice(line);
        let _ = self.0.line.set((copy, line.len()));
    }

    /// Records the status of a response that begins with these bytes.
    fn on_response(&self, bytes: &[u8]) {
        let digits = bytes.get(STATUS).unwrap_or_default();
        let status = digits.iter().fold(0_u16, |status, digit| {
            status
                .wrapping_mul(10)
                .wrapping_add(u16::from(digit.wrapping_sub(b'0')))
        });
        self.0.status.store(status, Relaxed);
        self.0.is_inside_request.store(false, Relaxed);
    }
}

/// The position of the status in a response of HTTP/1.1 (RFC 9112 §4).
const STATUS: Range<usize> = 9..12;

impl<S> Http1Stream<S> {
    pub(super) fn new(
        stream: S,
        first: FirstRead,
        interim: Option<InterimQueue>,
        marks: Marks,
    ) -> Self {
        Self {
            stream,
            is_first: true,
            first,
            heads: Heads::new(marks),
            waiting: Vec::new(),
            interim,
            is_inside_message: false,
            writing: Vec::new(),
            written: 0,
        }
    }
}

impl<S: AsyncWrite + Unpin> Http1Stream<S> {
    /// Writes the interim responses that wait. Returns `Ready` when hyper may write.
    fn poll_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(queue) = &self.interim else {
            return Poll::Ready(Ok(()));
        };
        // A response must not be split by an interim one of the next request.
        if self.is_inside_message {
            return Poll::Ready(Ok(()));
        }
        loop {
            if self.written == self.writing.len() {
                (self.writing, self.written) = (queue.take(cx), 0);
                if self.writing.is_empty() {
                    return Poll::Ready(Ok(()));
                }
            }
            let left = &self.writing[self.written..];
            match ready!(Pin::new(&mut self.stream).poll_write(cx, left))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.written += written,
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Http1Stream<S> {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.waiting.is_empty() {
            this.pass_waiting(buffer);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let result = Pin::new(&mut this.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            this.first.0.is_inside_request.store(true, Relaxed);
            if this.is_first {
                this.is_first = false;
                let bytes = &mut buffer.filled_mut()[before..];
                this.first.on_first_bytes(bytes);
                if replace_version(bytes) == Some(Version::Unsupported) {
                    this.first.0.is_version_unsupported.store(true, Relaxed);
                }
            }
        }
        let received = &buffer.filled()[before..];
        if this.heads.read(received, &mut this.waiting) {
            buffer.set_filled(before);
            this.pass_waiting(buffer);
        }
        result
    }
}

impl<S> Http1Stream<S> {
    /// Moves waiting bytes to `buffer`.
    #[cold]
    fn pass_waiting(&mut self, buffer: &mut ReadBuf<'_>) {
        let len = self.waiting.len().min(buffer.remaining());
        buffer.put_slice(&self.waiting[..len]);
        self.waiting.drain(..len);
        if self.waiting.is_empty() {
            // Connections are idle most of the time, so the memory is released.
            self.waiting = Vec::new();
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    /// A later minor version of HTTP/1, which is processed as HTTP/1.1 (RFC 9110 §2.5).
    Later,
    /// Another major version, which is answered with 505 (RFC 9110 §15.6.6).
    Unsupported,
}

/// Replaces the version of the first request by 1.1 if hyper would not parse it. A client uses the same version for all
/// its requests. A request line that is split over several reads is not changed.
fn replace_version(bytes: &mut [u8]) -> Option<Version> {
    // An empty line may precede the request (RFC 9112 §2.2).
    let start = bytes.iter().position(|byte| !b"\r\n".contains(byte))?;
    let line = bytes[start..].iter().position(|&byte| byte == b'\n')?;
    let line = bytes[start..start + line].trim_ascii_end().len();
    let version = &mut bytes[start..start + line];
    let version = version.last_chunk_mut::<8>()?;
    let kind = match version {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'] => Version::Later,
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if *major != b'1' && major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Version::Unsupported
        }
        _ => return None,
    };
    *version = *b"HTTP/1.1";
    Some(kind)
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Http1Stream<S> {
    #[inline]
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_interim(cx))?;
        if !this.is_inside_message {
            this.first.on_response(bytes);
        }
        this.is_inside_message = true;
        Pin::new(&mut this.stream).poll_write(cx, bytes)
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_interim(cx))?;
        if !this.is_inside_message {
            this.first.on_response(slices.first().map_or(&[], |it| it));
        }
        this.is_inside_message = true;
        Pin::new(&mut this.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes when it has written all its bytes.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.is_inside_message = false;
        ready!(this.poll_interim(cx))?;
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

/// The interim responses of an HTTP/1.1 connection that wait to be written. Clones share the queue.
#[derive(Clone, Default, Debug)]
pub(super) struct InterimQueue(Arc<Mutex<QueueState>>);

#[derive(Default, Debug)]
struct QueueState {
    waiting: Vec<u8>,
    /// The number of the request that may send interim responses, or `None` if its final response has begun.
    open: Option<u64>,
    /// Number of requests so far.
    requests: u64,
    /// The task of the connection.
    connection: Option<Waker>,
}

impl InterimSource for InterimQueue {
    fn begin(&self, head: &mut Parts) -> Option<Arc<dyn InterimOfRequest>> {
        // RFC 9110 §15.2: clients of HTTP/1.0 do not know interim responses.
        (head.version == http::Version::HTTP_11).then(|| self.next() as _)
    }
}

impl InterimQueue {
    /// Begins a request and returns the handle of its service.
    fn next(&self) -> Arc<Http1Request> {
        let mut state = self.0.lock();
        state.requests += 1;
        state.open = Some(state.requests);
        Arc::new(Http1Request {
            request: state.requests,
            queue: self.clone(),
        })
    }

    /// Takes the waiting responses. The task of `cx` is woken when there are others.
    fn take(&self, cx: &Context<'_>) -> Vec<u8> {
        let mut state = self.0.lock();
        let waiting = std::mem::take(&mut state.waiting);
        let known = state.connection.as_ref();
        if known.is_some_and(|known| known.will_wake(cx.waker())) {
            return waiting;
        }
        let previous = state.connection.replace(cx.waker().clone());
        drop(state);
        // Dropped without the lock, because wakers are foreign code.
        drop(previous);
        waiting
    }
}

/// The interim responses of one request.
#[derive(Debug)]
struct Http1Request {
    request: u64,
    queue: InterimQueue,
}

impl InterimOfRequest for Http1Request {
    fn end(&self) {
        let mut state = self.queue.0.lock();
        if state.open == Some(self.request) {
            state.open = None;
        }
    }
}

impl InterimSink for Http1Request {
    fn send(&self, response: Response<()>) -> Result<InterimOutcome, InterimError> {
        let bytes = encode(&response);
        let mut state = self.queue.0.lock();
        if state.open != Some(self.request) {
            return Err(InterimError::Answered);
        }
        if state.waiting.len() + bytes.len() > MAX_WAITING {
            return Err(InterimError::TooManyUnread);
        }
        state.waiting.extend_from_slice(&bytes);
        let connection = state.connection.take();
        drop(state);
        if let Some(connection) = connection {
            connection.wake();
        }
        Ok(InterimOutcome::Sent)
    }
}

/// Encodes an interim response without fields that it must not have (RFC 9110 §8.6, RFC 9112 §6.1).
fn encode(response: &Response<()>) -> Vec<u8> {
    let status = response.status();
    let mut bytes = Vec::with_capacity(256);
    let reason = status.canonical_reason().unwrap_or_default();
    // Writing to memory does not fail.
    let _ = write!(bytes, "HTTP/1.1 {} {reason}\r\n", status.as_u16());
    for (name, value) in response.headers() {
        if *name == CONTENT_LENGTH || is_connection_specific(name.as_str()) {
            continue;
        }
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// Largest number of bytes of interim responses that wait to be written on a connection (limit K361).
const MAX_WAITING: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_minor_versions_become_1_1_and_other_major_versions_are_unsupported() {
        for (line, replaced, kind) in [
            ("GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\n", None),
            ("GET / HTTP/1.0\r\n", "GET / HTTP/1.0\r\n", None),
            (
                "\r\nGET / HTTP/1.2\r\nx",
                "\r\nGET / HTTP/1.1\r\nx",
                Some(Version::Later),
            ),
            ("GET / HTTP/1.9\n", "GET / HTTP/1.1\n", Some(Version::Later)),
            (
                "GET / HTTP/2.0\r\n",
                "GET / HTTP/1.1\r\n",
                Some(Version::Unsupported),
            ),
            (
                "GET / HTTP/0.9\r\n",
                "GET / HTTP/1.1\r\n",
                Some(Version::Unsupported),
            ),
            ("GET / HTTP/x.1\r\n", "GET / HTTP/x.1\r\n", None),
            ("GET / http/1.2\r\n", "GET / http/1.2\r\n", None),
            ("GET / HTTP/1.2", "GET / HTTP/1.2", None),
            ("GET\r\nx: HTTP/1.2\r\n", "GET\r\nx: HTTP/1.2\r\n", None),
            ("", "", None),
            ("\r\n\r\n", "\r\n\r\n", None),
        ] {
            let mut bytes = line.as_bytes().to_vec();
            assert_eq!(replace_version(&mut bytes), kind, "{line:?}");
            assert_eq!(String::from_utf8_lossy(&bytes), replaced);
        }
    }

    /// Limit K361.
    #[test]
    fn waiting_interim_responses_are_limited() {
        let queue = InterimQueue::default();
        let request = queue.next();
        let hint = || {
            let builder = Response::builder().status(103);
            let builder = builder.header("link", "l".repeat(10_000));
            builder
                .header("content-length", "1")
                .body(())
                .expect("valid")
        };
        let sent = (0..10).take_while(|_| request.send(hint()).is_ok()).count();
        assert_eq!(sent, 6);
        let waiting = queue.take(&Context::from_waker(Waker::noop()));
        assert!(waiting.starts_with(b"HTTP/1.1 103 Early Hints\r\nlink: lll"));
        assert!(!waiting.windows(14).any(|part| part == b"content-length"));
        assert!(request.send(hint()).is_ok());
        request.end();
        assert!(matches!(request.send(hint()), Err(InterimError::Answered)));
        let next = queue.next();
        assert!(matches!(request.send(hint()), Err(InterimError::Answered)));
        assert!(next.send(hint()).is_ok());
    }
}
