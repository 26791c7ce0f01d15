//! The content of a response, with the connection on which it arrives.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;

use super::http2::StreamLease;
use super::pool::{Dial, Lease};
use crate::body::BoxError;

/// The content of a response.
pub struct Content<C: Dial> {
    inner: Inner<C>,
}

enum Inner<C: Dial> {
    Http1 {
        body: Incoming,
        lease: Option<Lease<C>>,
    },
    Http2(Received<C>),
}

/// The content of a response over HTTP/2.
struct Received<C: Dial> {
    stream: h2::RecvStream,
    /// The announced length, of which this much is left.
    left: Option<u64>,
    is_over: bool,
    lease: Option<StreamLease<C>>,
}

impl<C: Dial> Content<C> {
    pub(super) fn over_http1(body: Incoming, lease: Lease<C>) -> Self {
        // Without content the connection returns at once.
        let lease = Some(lease).filter(|_| !http_body::Body::is_end_stream(&body));
        Self {
            inner: Inner::Http1 { body, lease },
        }
    }

    /// Wraps the response that ends HTTP on its connection.
    pub(super) const fn upgraded(body: Incoming, lease: Lease<C>) -> Self {
        Self {
            inner: Inner::Http1 {
                body,
                lease: Some(lease),
            },
        }
    }

    pub(super) fn over_http2(
        stream: h2::RecvStream,
        length: Option<u64>,
        lease: StreamLease<C>,
    ) -> Self {
        let is_over = stream.is_end_stream();
        Self {
            inner: Inner::Http2(Received {
                stream,
                left: length,
                is_over,
                lease: Some(lease).filter(|_| !is_over),
            }),
        }
    }

    /// Takes what the connection must keep while it is used as a tunnel.
    pub(in crate::proxy) fn into_lease(self) -> Option<Lease<C>> {
        match self.inner {
            Inner::Http1 { lease, .. } => lease,
            Inner::Http2(_) => None,
        }
    }
}

impl<C: Dial> Received<C> {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let polled = ready!(self.poll_unfinished(cx));
        if !matches!(polled, Some(Ok(_))) || self.stream.is_end_stream() {
            self.is_over = true;
            self.lease = None;
        }
        Poll::Ready(polled.map(|frame| frame.map_err(Into::into)))
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

impl<C: Dial> http_body::Body for Content<C> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let (body, lease) = match &mut self.inner {
            Inner::Http1 { body, lease } => (body, lease),
            Inner::Http2(received) => return received.poll_frame(cx),
        };
        let polled = Pin::new(&mut *body).poll_frame(cx);
        let is_over = match &polled {
            Poll::Ready(Some(Ok(_))) => http_body::Body::is_end_stream(body),
            Poll::Ready(_) => true,
            Poll::Pending => false,
        };
        if is_over {
            *lease = None;
        }
        polled.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Http1 { body, .. } => body.is_end_stream(),
            Inner::Http2(received) => received.is_over,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Http1 { body, .. } => body.size_hint(),
            Inner::Http2(received) => match received.left {
                _ if received.is_over => SizeHint::with_exact(0),
                Some(left) => SizeHint::with_exact(left),
                None => SizeHint::default(),
            },
        }
    }
}
