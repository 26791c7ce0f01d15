//! TCP connections to the upstream server.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use crate::body::BoxError;
use crate::proxy::failure::NameNotFound;

/// Connects to the upstream server over TCP, either to the host of its URL or to a link-local address, because a
/// URL of [`http`] cannot have a zone.
#[derive(Clone, Debug)]
pub struct TcpConnector {
    by_url: HttpConnector<Resolver>,
    link_local: Option<SocketAddr>,
    timeout: Duration,
}

impl TcpConnector {
    pub(in crate::proxy) fn new(link_local: Option<SocketAddr>, timeout: Duration) -> Self {
        let mut by_url = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
        by_url.set_connect_timeout(Some(timeout));
        by_url.set_nodelay(true);
        by_url.set_keepalive(Some(KEEPALIVE));
        by_url.set_keepalive_interval(Some(KEEPALIVE));
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
                    let keepalive = socket2::TcpKeepalive::new()
                        .with_time(KEEPALIVE)
                        .with_interval(KEEPALIVE);
                    socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
                    Ok(TokioIo::new(stream))
                })
            }
        }
    }
}

/// Resolves names as the system does, and marks its errors, so that the cause of a failure is known.
#[derive(Clone, Debug)]
struct Resolver(GaiResolver);

impl Service<Name> for Resolver {
    type Response = <GaiResolver as Service<Name>>::Response;
    type Error = NameNotFound;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, NameNotFound>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), NameNotFound>> {
        self.0.poll_ready(cx).map_err(NameNotFound)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolving = self.0.call(name);
        Box::pin(async { resolving.await.map_err(NameNotFound) })
    }
}

/// Silence after which TCP probes whether the server still exists, and the interval of the probes, as in Go.
const KEEPALIVE: Duration = Duration::from_secs(15);
