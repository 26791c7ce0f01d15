//! TCP connections to the upstream server.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use crate::body::BoxError;

/// Connects to the upstream server over TCP, either to the host of its URL or to a link-local address, because a
/// URL of [`http`] cannot have a zone.
#[derive(Clone, Debug)]
pub struct TcpConnector {
    by_url: HttpConnector,
    link_local: Option<SocketAddr>,
    timeout: Duration,
}

impl TcpConnector {
    pub(in crate::proxy) fn new(link_local: Option<SocketAddr>, timeout: Duration) -> Self {
        let mut by_url = HttpConnector::new();
        by_url.set_connect_timeout(Some(timeout));
        by_url.set_nodelay(true);
        Self {
            by_url,
            link_local,
            timeout,
        }
    }
}

impl Service<Uri> for TcpConnector {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.by_url.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        match self.link_local {
            None => {
                let connecting = self.by_url.call(server);
                Box::pin(async { connecting.await.map_err(Into::into) })
            }
            Some(address) => {
                let connecting = tokio::time::timeout(self.timeout, TcpStream::connect(address));
                Box::pin(async {
                    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
                    let stream = connecting.await.map_err(late)??;
                    stream.set_nodelay(true)?;
                    Ok(TokioIo::new(stream))
                })
            }
        }
    }
}
