//! The stream of a CONNECT, of any version of HTTP.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use courser::h3;
use courser::server::TunnelReset;
use http::{Request, Response, Version};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::plain_stream::PlainStream;

/// The stream of a request, once its response is sent.
pub(super) enum Offer {
    Http3(h3::OnUpgrade),
    /// With what resets a stream of HTTP/2; `None` over HTTP/1.1.
    Hyper(hyper::upgrade::OnUpgrade, Option<TunnelReset>),
}

impl Offer {
    /// Takes the stream of a request, or returns `None` if its server has no upgrades.
    pub(super) fn of<B>(request: &mut Request<B>) -> Option<Self> {
        if request.version() == Version::HTTP_3 {
            return h3::upgrade(request).map(Self::Http3);
        }
        let is_http2 = request.version() == Version::HTTP_2;
        let upgrade = request.extensions_mut().remove()?;
        Some(Self::Hyper(upgrade, is_http2.then(TunnelReset::default)))
    }

    /// Adds what the server needs to the response that accepts the request.
    pub(super) fn prepare<B>(&self, response: &mut Response<B>) {
        if let Self::Hyper(_, Some(reset)) = self {
            response.extensions_mut().insert(reset.clone());
        }
    }

    /// Waits for the stream. `None` means that the request has ended before its response.
    pub(super) async fn stream(self) -> Option<ClientStream> {
        match self {
            Self::Http3(upgrade) => upgrade.await.ok().map(Box::new).map(ClientStream::Http3),
            Self::Hyper(upgrade, reset) => {
                let stream = upgrade.await.ok().map(TokioIo::new)?;
                Some(ClientStream::Hyper(stream, reset))
            }
        }
    }
}

/// Both directions of the stream.
pub(super) enum ClientStream {
    Http3(Box<h3::Upgraded>),
    Hyper(TokioIo<hyper::upgrade::Upgraded>, Option<TunnelReset>),
}

impl ClientStream {
    /// Ends both directions because of the target, so that nobody takes what has arrived for all of it (RFC 9114 §4.4,
    /// RFC 9113 §8.5).
    pub(super) fn reset(self) {
        match self {
            Self::Http3(stream) => stream.reset(h3::Code::CONNECT_ERROR),
            Self::Hyper(stream, Some(reset)) => {
                reset.reset();
                drop(stream);
            }
            // TLS ends without close_notify. Without TLS the client receives a reset too.
            Self::Hyper(stream, None) => {
                if let Ok(parts) = stream.into_inner().downcast::<TokioIo<PlainStream>>() {
                    // If this fails, the client receives an end.
                    let _ = parts.io.inner().set_zero_linger();
                }
            }
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Http3(stream) => Pin::new(stream.as_mut()).poll_read(cx, buffer),
            Self::Hyper(stream, _) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Http3(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
            // hyper copies what it gets, and keeps up to three copies.
            Self::Hyper(stream, Some(_)) => {
                let len = bytes.len().min(WRITTEN);
                Pin::new(stream).poll_write(cx, &bytes[..len])
            }
            Self::Hyper(stream, None) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Http3(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
            Self::Hyper(stream, _) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Http3(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
            Self::Hyper(stream, _) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// Bytes that hyper gets at a time for a stream of HTTP/2 (limit K665): one frame.
const WRITTEN: usize = 16 * 1024;
