//! The HTTP/2 connection to an upstream server.

use std::sync::Arc;

use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::pool::{Dial, POOL_IDLE};
use crate::body::{Body, BoxError};

/// The connection that all requests to a server share. It is opened for the first request, and again after it has
/// ended or was idle.
///
/// hyper-util's client connects to the authority of each request, which is that of the client here (RFC 9113
/// §8.3.1).
#[derive(Debug)]
pub(in crate::proxy) struct Http2<C> {
    connector: C,
    server: Uri,
    current: Mutex<Option<Current>>,
}

#[derive(Debug)]
struct Current {
    sender: SendRequest<Body>,
    last_used: Instant,
}

impl<C: Dial> Http2<C> {
    pub(super) fn new(connector: C, server: Uri) -> Self {
        Self {
            connector,
            server,
            current: Mutex::new(None),
        }
    }

    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, BoxError> {
        loop {
            let (mut sender, is_fresh) = self.sender().await?;
            let mut failure = match sender.try_send_request(request).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            match failure.take_message() {
                // The connection ended before it took the request.
                Some(unsent) if !is_fresh => request = unsent,
                _ => return Err(failure.into_error().into()),
            }
        }
    }

    /// Returns the connection, and true if it was opened for this request.
    async fn sender(&self) -> Result<(SendRequest<Body>, bool), BoxError> {
        let mut current = self.current.lock().await;
        let now = Instant::now();
        if let Some(open) = &mut *current
            && !open.sender.is_closed()
            && now - open.last_used < POOL_IDLE
        {
            open.last_used = now;
            return Ok((open.sender.clone(), false));
        }
        *current = None;
        let io = self.connector.dial(self.server.clone()).await?;
        let mut settings = Builder::new(TokioExecutor::new());
        settings.timer(TokioTimer::new()).adaptive_window(true);
        let (sender, connection) = settings.handshake(io).await?;
        // Its errors are reported to its requests.
        tokio::spawn(async move { drop(connection.await) });
        *current = Some(Current {
            sender: sender.clone(),
            last_used: now,
        });
        Ok((sender, true))
    }
}
