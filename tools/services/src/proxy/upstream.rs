//! Connections to the upstream server.

mod http2;
mod pool;
mod tcp;

use std::sync::Arc;

use http::{Request, Response, Uri};

use self::http2::Http2;
use self::pool::Pool;
pub use self::pool::{Content, Dial};
pub use self::tcp::TcpConnector;
use crate::body::{Body, BoxError};

/// The connections to an upstream server, shared by all requests.
#[derive(Clone, Debug)]
pub(super) enum Upstream<C> {
    /// Connections with one request at a time each.
    Http1(Arc<Pool<C>>),
    /// One connection with all requests.
    Http2(Arc<Http2<C>>),
}

impl<C: Dial> Upstream<C> {
    pub(super) fn new(connector: C, server: Uri, is_http2: bool) -> Self {
        if !is_http2 {
            return Self::Http1(Arc::new(Pool::new(connector, server)));
        }
        Self::Http2(Arc::new(Http2::new(connector, server)))
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
            Self::Http2(connection) => {
                let response = connection.send(request).await?;
                Ok(response.map(Content::unpooled))
            }
        }
    }
}
