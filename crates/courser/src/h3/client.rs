//! Requests on one connection.

use std::sync::Arc;

use courser_http3::{self as http3, FieldsToSend};
use http::{Method, Request, Response};

use super::body::Body;
use super::error::Error;
use super::message::Incoming;
use super::outgoing::Outgoing;
use super::server::add_length;
use super::shared::{Guard, Shared};
use super::{OnInterim, Priority, driver, priority};
use crate::{Connection, Side, runtime};

/// The client's end of a connection. Clones share it; with the last of them, and of the bodies of
/// its responses, the connection is closed.
#[derive(Clone, Debug)]
pub struct Client(Arc<Guard>);

impl Client {
    /// Speaks HTTP/3 on a connection, with what suits a client.
    pub fn new(connection: Connection) -> Self {
        Self::with_config(connection, http3::Config::new(Side::Client))
    }

    /// Speaks HTTP/3 on a connection.
    pub fn with_config(connection: Connection, config: http3::Config) -> Self {
        let shared = Shared::new(connection, config);
        driver::start(&shared);
        Self(Arc::new(Guard(shared)))
    }

    /// Sends a request and waits for the head of its response. The body of the request is sent at
    /// the same time, and goes on after the response has come.
    ///
    /// The URI has to be whole. A `content-length` is added when the body knows it. Waits while
    /// the server allows no further request.
    ///
    /// # Errors
    /// [`Error::is_unprocessed`] tells whether it can be sent again.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, the request is cancelled.
    pub async fn send<B>(&self, request: Request<B>) -> Result<Response<Body>, Error>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut parts, body) = request.into_parts();
        // Fails before a stream is opened for it.
        FieldsToSend::request(&parts)?;
        self.check(&parts).await?;
        let method = parts.method.clone();
        let is_connect = method == Method::CONNECT;
        if !body.is_end_stream() && !is_connect {
            add_length(&mut parts.headers, &body);
        }
        let (send, receive) = self.0.quic.open_bi().await?;
        let stream = send.id();
        let mut outgoing = Outgoing::new(self.0.clone(), send);
        let mut incoming = Incoming::new(self.0.clone(), receive);
        let refused = self
            .0
            .with(|state| Ok(stream.value() >= state.first_refused))?;
        if refused || self.goes_away() {
            return Err(Error::GoingAway);
        }
        if let Some(priority) = parts.extensions.get::<Priority>() {
            let _ = outgoing
                .send
                .set_priority(priority::level(*priority, stream.index()));
            if !parts.headers.contains_key("priority")
                && let Ok(value) = http::HeaderValue::try_from(priority.to_string())
            {
                parts.headers.insert("priority", value);
            }
        }
        let head = outgoing.encode(&FieldsToSend::request(&parts)?)?;
        if body.is_end_stream() && !is_connect {
            ignore_stop(outgoing.send(head, super::Empty).await)?;
        } else {
            runtime::spawn(async move {
                // Whoever waits for the response learns what is wrong from there.
                let _ = outgoing.send(head, body).await;
            });
        }
        let on_interim = parts.extensions.get::<OnInterim>();
        loop {
            let (response, length) = match incoming.response(&method).await {
                Ok(head) => head,
                Err(error) => return Err(self.explain(error, stream.value())),
            };
            if response.status().is_informational() {
                if let Some(on_interim) = on_interim {
                    on_interim.call(response);
                }
                continue;
            }
            let length = if method == Method::HEAD {
                Some(0)
            } else {
                length
            };
            return Ok(response.map(|()| Body::new(incoming, length)));
        }
    }

    /// Asks the server to give the response of a request another priority (RFC 9218 §7). `stream`
    /// is what [`Response::extensions`] has as [`StreamId`](crate::StreamId).
    pub fn set_priority(&self, stream: crate::StreamId, priority: Priority) {
        let _ = self.0.with(|state| {
            state.http.update_priority(stream.value(), priority);
            Ok(())
        });
    }

    /// The server's settings, once they are here; `None` if the connection is over before.
    pub async fn settings(&self) -> Option<http3::Settings> {
        std::future::poll_fn(|cx| self.0.poll_settings(cx)).await
    }

    /// True when the server takes no more requests here.
    pub fn goes_away(&self) -> bool {
        let state = self.0.with(|state| Ok(state.http.peer_goes_away()));
        state.unwrap_or(true)
    }

    /// The QUIC connection, for its address and statistics.
    pub fn quic(&self) -> &Connection {
        &self.0.quic
    }

    /// Closes the connection at once; requests that are not over fail.
    pub fn close(&self) {
        self.0.close();
    }

    /// An extended CONNECT waits for the server's word, which is on its way.
    async fn check(&self, parts: &http::request::Parts) -> Result<(), Error> {
        if parts.extensions.get::<http3::Protocol>().is_some() {
            self.settings().await;
        }
        self.0.with(|state| Ok(state.http.check_request(parts)))??;
        Ok(())
    }

    /// A request that fails because the server has gone away was not processed.
    fn explain(&self, error: Error, stream: u64) -> Error {
        let refused = self.0.with(|state| Ok(stream >= state.first_refused));
        match refused {
            Ok(true) => Error::GoingAway,
            _ => error,
        }
    }
}

/// A server that can answer early stops reading (RFC 9114 §4.1), and its answer counts.
fn ignore_stop(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(Error::Http { .. }) => Ok(()),
        result => result,
    }
}
