//! The content of a response, with the lease of its connection or stream. The lease is dropped at the end of the content.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;

use crate::body::BoxError;

/// The end of an HTTP/2 stream before the end of its content.
///
/// The h2 error is deliberately not a source. hyper resets the client's stream with the code of an h2 error that it
/// finds there, and a code means something else to the client: NO_ERROR that the response is complete (RFC 9113
/// §8.1), REFUSED_STREAM that the request may be repeated (§8.7), and others that the client has violated HTTP/2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Aborted(h2::Error);

/// The content of a response over HTTP/1.1.
pub(in crate::proxy) struct Http1Content<L> {
    body: Incoming,
    lease: Option<L>,
}

/// The content of a response over HTTP/2.
pub(in crate::proxy) struct Http2Content<L> {
    stream: h2::RecvStream,
    /// The part of the announced length that is left.
    left: Option<u64>,
    is_over: bool,
    lease: Option<L>,
}

impl<L: Unpin> Http1Content<L> {
    pub(super) fn new(body: Incoming, lease: L) -> Self {
        // Without content the connection returns at once.
        let lease = Some(lease).filter(|_| !body.is_end_stream());
        Self { body, lease }
    }

    /// Wraps the response that ends HTTP on its connection.
    pub(super) const fn upgraded(body: Incoming, lease: L) -> Self {
        Self {
            body,
            lease: Some(lease),
        }
    }

    /// Takes the lease, which the tunnel keeps after an upgrade.
    pub(super) fn into_lease(self) -> Option<L> {
        self.lease
    }
}

impl<L: Unpin> http_body::Body for Http1Content<L> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let is_over = match &polled {
            Poll::Ready(Some(Ok(_))) => self.body.is_end_stream(),
            Poll::Ready(_) => true,
            Poll::Pending => false,
        };
        if is_over {
            self.lease = None;
        }
        polled.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<L> Http2Content<L> {
    pub(super) fn new(stream: h2::RecvStream, length: Option<u64>, lease: L) -> Self {
        let is_over = stream.is_end_stream();
        Self {
            stream,
            left: length,
            is_over,
            lease: Some(lease).filter(|_| !is_over),
        }
    }

    fn poll_unfinished(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if let Some(data) = ready!(self.stream.poll_data(cx)) {
            let data = data?;
            if let Some(left) = &mut self.left {
                *left = left.saturating_sub(data.len() as u64);
            }
            // Fails if the stream is closed, and then needs no credit.
            let _ = self.stream.flow_control().release_capacity(data.len());
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        let trailers = ready!(self.stream.poll_trailers(cx))?;
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }
}

impl<L: Unpin> http_body::Body for Http2Content<L> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let polled = ready!(self.poll_unfinished(cx));
        if !matches!(polled, Some(Ok(_))) || self.stream.is_end_stream() {
            self.is_over = true;
            self.lease = None;
        }
        Poll::Ready(polled.map(|frame| frame.map_err(|error| Aborted(error).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }

    fn size_hint(&self) -> SizeHint {
        match self.left {
            _ if self.is_over => SizeHint::with_exact(0),
            Some(left) => SizeHint::with_exact(left),
            None => SizeHint::default(),
        }
    }
}
