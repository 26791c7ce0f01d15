//! Connections to the upstream server.

mod pool;
mod tcp;

use std::sync::Arc;

use http::{Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::rt::{TokioExecutor, TokioTimer};

pub use self::pool::{Content, Dial};
use self::pool::{POOL_IDLE, Pool};
pub use self::tcp::TcpConnector;
use crate::body::{Body, BoxError};

/// The connections to an upstream server, shared by all requests.
#[derive(Clone, Debug)]
pub(super) enum Upstream<C> {
    /// Connections with one request at a time each.
    Http1(Arc<Pool<C>>),
    Http2(Box<Client<C, Body>>),
}

impl<C: Connect + Dial> Upstream<C> {
    pub(super) fn new(connector: C, server: Uri, is_http2: bool) -> Self {
        if !is_http2 {
            return Self::Http1(Arc::new(Pool::new(connector, server)));
        }
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .http2_only(true)
            .http2_adaptive_window(true)
            .build(connector);
        Self::Http2(Box::new(client))
    }

    /// Sends a request and returns the response, whose content may still be arriving. If the server has closed
    /// the connection before it took the request, the request is sent on another one.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection over HTTP/1.1 and resets the stream over HTTP/2.
    pub(super) async fn send(
        &self,
        request: Request<Body>,
    ) -> Result<Response<Content<C>>, BoxError> {
        match self {
            Self::Http1(pool) => pool.send(request).await,
            Self::Http2(client) => {
                let response = client.request(request).await?;
                Ok(response.map(Content::unpooled))
            }
        }
    }
}
