//! Requests of a connection, one by one.

use std::sync::Arc;

use courser_http3::{self as http3, Code, FieldsError, FieldsToSend};
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Method, Request, Response, StatusCode};

use super::body::{Body, Empty};
use super::error::{Error, var_int};
use super::message::Incoming;
use super::outgoing::Outgoing;
use super::shared::{Guard, Shared};
use super::{driver, priority};
use crate::{Connection, SendStream};

/// The server's end of a connection.
#[derive(Clone, Debug)]
pub struct ServerConnection(Arc<Guard>);

impl ServerConnection {
    /// Speaks HTTP/3 on a connection that was accepted.
    pub fn new(connection: Connection, config: http3::Config) -> Self {
        let shared = Shared::new(connection, config);
        driver::start(&shared);
        Self(Arc::new(Guard(shared)))
    }

    /// The next request, of which nothing has been read. Requests that a GOAWAY of ours refuses
    /// are refused in here.
    ///
    /// # Errors
    /// When the connection is over; [`Error::is_clean_close`] tells whether anything is wrong.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has taken nothing.
    pub async fn accept(&self) -> Result<Unresolved, Error> {
        loop {
            let (mut send, mut receive) = self.0.quic.accept_bi().await?;
            let stream = send.id();
            let (is_served, update) = self.0.with(|state| {
                let update = state.http.on_request_opened(stream.value());
                Ok((state.http.is_served(stream.value()), update))
            })?;
            if !is_served {
                let _ = send.reset(var_int(Code::REQUEST_REJECTED));
                let _ = receive.stop(var_int(Code::REQUEST_REJECTED));
                continue;
            }
            if let Some(update) = update {
                let _ = send.set_priority(priority::level(update, stream.index()));
            }
            return Ok(Unresolved {
                has_priority: update.is_some(),
                send,
                incoming: Incoming::new(self.0.clone(), receive),
            });
        }
    }

    /// Tells the client that the server will go away, and still serves what it sends: the first
    /// step (RFC 9114 §5.2), a round trip or more before [`go_away`](Self::go_away).
    pub fn announce_going_away(&self) {
        let _ = self.0.with(|state| {
            state.http.announce_going_away();
            Ok(())
        });
    }

    /// Tells the client that requests from the next one on are not served: the second step.
    pub fn go_away(&self) {
        let _ = self.0.with(|state| {
            state.http.go_away_after_last();
            Ok(())
        });
    }

    /// Closes the connection at once; requests that are not over fail.
    pub fn close(&self) {
        self.0.close();
    }

    /// The QUIC connection, for its address and statistics.
    pub fn quic(&self) -> &Connection {
        &self.0.quic
    }
}

/// A request that has begun to arrive.
///
/// Dropped, it is reset as not processed, so that the client may send it again.
#[derive(Debug)]
pub struct Unresolved {
    send: SendStream,
    incoming: Incoming,
    has_priority: bool,
}

impl Unresolved {
    /// Reads the head of the request. Requests with too many fields are answered with 431 in
    /// here and are an error.
    ///
    /// # Errors
    /// When the request is malformed, was given up by the client, or the connection is over.
    ///
    /// # Cancel safety
    /// Not safe: the request is given up.
    pub async fn resolve(self) -> Result<(Request<Body>, Respond), Error> {
        let Self {
            send,
            mut incoming,
            has_priority,
        } = self;
        let stream = send.id();
        let guard = incoming.guard.clone();
        let mut outgoing = Outgoing::new(guard, send);
        let head = match incoming.request().await {
            Ok(head) => head,
            Err(error) => {
                outgoing.reset(code_of(&error));
                return Err(error);
            }
        };
        let (request, length) = match head {
            Ok(head) => head,
            Err(error @ FieldsError::TooLarge(_)) => {
                let mut response = Response::new(Empty);
                *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                Respond::new(outgoing, Method::GET).send(response).await?;
                return Err(Error::Fields(error));
            }
            Err(FieldsError::Malformed(reason)) => {
                outgoing.reset(Code::MESSAGE_ERROR);
                return Err(incoming.malformed(reason));
            }
        };
        if !has_priority {
            let priority = priority::of_request(request.headers());
            let level = priority::level(priority, stream.index());
            let _ = outgoing.send.set_priority(level);
        }
        let respond = Respond::new(outgoing, request.method().clone());
        Ok((request.map(|()| Body::new(incoming, length)), respond))
    }
}

/// What the other half of a stream is reset with, when one of them has failed.
fn code_of(error: &Error) -> Code {
    match error {
        Error::Http { code, .. } => *code,
        _ => Code::REQUEST_CANCELLED,
    }
}

/// Answers one request. Dropped without an answer, it resets the stream with
/// `H3_INTERNAL_ERROR`.
#[derive(Debug)]
pub struct Respond {
    outgoing: Outgoing,
    /// Of the request.
    method: Method,
}

impl Respond {
    fn new(outgoing: Outgoing, method: Method) -> Self {
        Self { outgoing, method }
    }

    /// Sends an interim response.
    ///
    /// # Errors
    /// When the client wants no answer any more or the connection is over.
    ///
    /// # Panics
    /// For a status that is not 1xx, and for 101, which HTTP/3 does not have.
    pub async fn interim(&mut self, response: Response<()>) -> Result<(), Error> {
        let status = response.status();
        assert!(
            status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS,
            "{status} is no interim response of HTTP/3"
        );
        let fields = FieldsToSend::response(&status, response.headers());
        let head = self.outgoing.encode(&fields)?;
        self.outgoing.write(head).await
    }

    /// Sends the response: its head, content as the body makes it, trailers, the end. A
    /// `content-length` is added when the body knows it.
    ///
    /// Returns when all is written; it may take longer until the client has it.
    ///
    /// # Errors
    /// When the body fails, which resets the stream; when the client wants no answer any more;
    /// when the connection is over.
    ///
    /// # Cancel safety
    /// Not safe: the stream is reset.
    pub async fn send<B>(mut self, response: Response<B>) -> Result<(), Error>
    where
        B: http_body::Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut parts, body) = response.into_parts();
        let has_content = self.method != Method::HEAD && may_have_content(parts.status);
        if has_content && self.method != Method::CONNECT {
            add_length(&mut parts.headers, &body);
        }
        let fields = FieldsToSend::response(&parts.status, &parts.headers);
        let head = self.outgoing.encode(&fields)?;
        if has_content {
            self.outgoing.send(head, body).await
        } else {
            self.outgoing.send(head, Empty).await
        }
    }

    /// Waits until the client wants no answer any more, or the connection is over.
    pub(super) fn cancelled(&self) -> impl Future<Output = ()> + Send + 'static {
        let stopped = self.outgoing.send.stopped();
        async move {
            let _ = stopped.await;
        }
    }

    /// Gives the request up with this code.
    pub fn reset(mut self, code: Code) {
        self.outgoing.reset(code);
    }
}

/// RFC 9110 §6.4.1.
fn may_have_content(status: StatusCode) -> bool {
    status != StatusCode::NO_CONTENT && status != StatusCode::NOT_MODIFIED
}

pub(super) fn add_length<B: http_body::Body>(headers: &mut http::HeaderMap, body: &B) {
    if let Some(length) = body.size_hint().exact()
        && !headers.contains_key(CONTENT_LENGTH)
    {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
}
