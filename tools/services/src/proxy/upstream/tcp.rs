//! Connections over TCP to an upstream server.

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

/// Connects to an upstream server over TCP: to the host of its URL, or to a link-local address, whose zone
/// no URL of [`http`] can have.
#[derive(Clone, Debug)]
pub struct TcpConnector {
    by_url: HttpConnector,
    in_zone: Option<SocketAddr>,
    timeout: Duration,
}

impl TcpConnector {
    pub(in crate::proxy) fn new(in_zone: Option<SocketAddr>, timeout: Duration) -> Self {
        let mut by_url = HttpConnector::new();
        by_url.set_connect_timeout(Some(timeout));
        by_url.set_nodelay(true);
        Self {
            by_url,
            in_zone,
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
        match self.in_zone {
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
