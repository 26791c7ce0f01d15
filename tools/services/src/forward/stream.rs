//! The stream of a CONNECT, of any version of HTTP.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use courser::h3;
use http::{Request, Version};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The stream of a request, once its response is sent.
pub(super) enum Offer {
    Http3(h3::OnUpgrade),
    Hyper(hyper::upgrade::OnUpgrade),
}

impl Offer {
    /// Takes the stream of a request, or returns `None` if its server has no upgrades.
    pub(super) fn of<B>(request: &mut Request<B>) -> Option<Self> {
        if request.version() == Version::HTTP_3 {
            return h3::upgrade(request).map(Self::Http3);
        }
        let upgrade = request.extensions_mut().remove();
        upgrade.map(Self::Hyper)
    }

    /// Waits for the stream. `None` means that the request has ended before its response.
    pub(super) async fn stream(self) -> Option<ClientStream> {
        match self {
            Self::Http3(upgrade) => upgrade.await.ok().map(Box::new).map(ClientStream::Http3),
            Self::Hyper(upgrade) => upgrade
                .await
                .ok()
                .map(TokioIo::new)
                .map(ClientStream::Hyper),
        }
    }
}

/// Both directions of the stream.
pub(super) enum ClientStream {
    Http3(Box<h3::Upgraded>),
    Hyper(TokioIo<hyper::upgrade::Upgraded>),
}

impl ClientStream {
    /// Ends both directions because of the target (RFC 9114 §4.4).
    pub(super) fn reset(self) {
        match self {
            Self::Http3(stream) => stream.reset(h3::Code::CONNECT_ERROR),
            // hyper resets a stream of HTTP/2 that is dropped. A connection of HTTP/1.1 is closed.
            Self::Hyper(stream) => drop(stream),
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
            Self::Hyper(stream) => Pin::new(stream).poll_read(cx, buffer),
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
            Self::Hyper(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Http3(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
            Self::Hyper(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Http3(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
            Self::Hyper(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
