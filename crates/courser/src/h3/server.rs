//! Requests of a connection, one by one.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use courser_http3::{self as http3, Code, FieldsError, FieldsToSend, RequestHead, Step};
use http::header::{CONTENT_LENGTH, EXPECT};
use http::{HeaderMap, Method, Request, Response, StatusCode};

use super::body::{Body, Empty};
use super::datagrams::Datagrams;
use super::error::{Error, var_int};
use super::interim::is_interim;
use super::message::Incoming;
use super::outgoing::Outgoing;
use super::shared::{Guard, Shared};
use super::upgrade::{Offer, Slot, Upgraded};
use super::{Protocol, driver, priority};
use crate::{Connection, StoppedError, VarInt, runtime};

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
            let accepted = self
                .0
                .quic
                .accept_bi_at(level_of_new, || self.0.write_answers());
            let (send, mut receive) = accepted.await?;
            let stream = send.id();
            // Before its datagrams are told from early ones.
            let datagrams = self.datagrams(stream.value());
            let (is_served, update) = self.0.drive(|state| {
                let update = state.http.on_request_opened(stream.value());
                Ok((state.http.is_served(stream.value()), update))
            })?;
            let mut outgoing = Outgoing::new(self.0.clone(), send);
            if !is_served {
                outgoing.reset(Code::REQUEST_REJECTED);
                let _ = receive.stop(var_int(Code::REQUEST_REJECTED));
                self.0.datagrams.on_receiving_over(stream.value());
                continue;
            }
            if let Some(update) = update {
                let level = priority::level(update, stream.index());
                let _ = outgoing.send.set_priority(level);
            }
            return Ok(Unresolved {
                datagrams,
                has_priority: update.is_some(),
                head_timeout: None,
                outgoing,
                incoming: Box::new(Incoming::request(self.0.clone(), receive)),
            });
        }
    }

    fn datagrams(&self, stream: u64) -> Option<Datagrams> {
        let registry = &self.0.datagrams;
        registry.is_enabled().then(|| {
            registry.open(self.0.now(), stream);
            Datagrams::new(self.0.clone(), stream)
        })
    }

    /// Tells the client that the server will go away, and still serves what it sends: the first
    /// step (RFC 9114 §5.2), a round trip or more before [`go_away`](Self::go_away).
    pub fn announce_going_away(&self) {
        let _ = self.0.drive(|state| {
            state.http.announce_going_away();
            Ok(())
        });
    }

    /// Tells the client that requests from the next one on are not served: the second step.
    pub fn go_away(&self) {
        let _ = self.0.drive(|state| {
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
    outgoing: Outgoing,
    incoming: Box<Incoming>,
    has_priority: bool,
    head_timeout: Option<Duration>,
    datagrams: Option<Datagrams>,
}

impl Unresolved {
    /// How long [`resolve`](Self::resolve) may take; for ever unless this is said.
    pub fn head_timeout(mut self, limit: Duration) -> Self {
        self.head_timeout = Some(limit);
        self
    }

    /// Reads the head of the request. Requests with too many fields are answered with 431 in
    /// here and are an error.
    ///
    /// # Errors
    /// When the request is malformed, was given up by the client, does not come in time, or the
    /// connection is over.
    ///
    /// # Cancel safety
    /// Not safe: the request is given up.
    pub async fn resolve(self) -> Result<(Request<Body>, Respond), Error> {
        let (head, respond) = self.arrive().await?;
        Ok((head.into_request(), respond))
    }

    /// As [`resolve`](Self::resolve), with the request left where it was decoded.
    pub(super) async fn arrive(mut self) -> Result<(Arrived, Respond), Error> {
        // Most header sections are there at once, and need neither a timer nor room for what else
        // waits.
        let poll = |cx: &mut Context<'_>| Poll::Ready(self.incoming.poll_step(cx));
        let step = match std::future::poll_fn(poll).await {
            Poll::Ready(Ok(step)) => step,
            Poll::Ready(Err(error)) => {
                self.outgoing.reset(code_of(&error));
                return Err(error);
            }
            Poll::Pending => Box::pin(self.wait_for_headers()).await?,
        };
        match step {
            Step::Headers => Ok(self.begin()),
            Step::TooLarge(reason) => Err(Box::pin(self.refuse(reason)).await),
            _ => Err(Error::closed()),
        }
    }

    /// Waits for the rest of the header section.
    async fn wait_for_headers(&mut self) -> Result<Step, Error> {
        let stopped = self.outgoing.send.stopped();
        let step = std::future::poll_fn(|cx| self.incoming.poll_step(cx));
        let code = match unless(step, stopped, self.head_timeout).await {
            Ok(Ok(step)) => return Ok(step),
            Ok(Err(error)) => {
                self.outgoing.reset(code_of(&error));
                return Err(error);
            }
            Err(code) => code,
        };
        self.outgoing.reset(code);
        Err(self.incoming.give_up(code))
    }

    /// Answers a request whose header section is too large.
    async fn refuse(self, reason: &'static str) -> Error {
        let mut response = Response::new(Empty);
        *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let respond = Respond::new(self.outgoing, Method::GET, None);
        match respond.send(response).await {
            Ok(()) => Error::Fields(FieldsError::TooLarge(reason)),
            Err(error) => error,
        }
    }

    /// Hands the request over, whose head is here.
    fn begin(self) -> (Arrived, Respond) {
        let Self {
            mut outgoing,
            mut incoming,
            has_priority,
            datagrams,
            head_timeout: _,
        } = self;
        let mut method = Method::GET;
        if let Some((request, _)) = incoming.message.request_mut() {
            if !has_priority && let Some(priority) = priority::of_request(request.headers()) {
                let level = priority::level(priority, outgoing.send.id().index());
                let _ = outgoing.send.set_priority(level);
            }
            if let Some(datagrams) = datagrams {
                request.extensions_mut().insert(datagrams);
            }
            method = request.method().clone();
        }
        outgoing.on_processing();
        if method != Method::CONNECT {
            let respond = Respond::new(outgoing, method, None);
            return (Arrived::Message(incoming), respond);
        }
        let (mut request, _) = take_head(&mut incoming);
        let slot = Slot::new(incoming);
        request.extensions_mut().insert(Offer(slot.clone()));
        let respond = Respond::new(outgoing, method, Some(slot.clone()));
        let request = request.map(|()| Body::offered(slot));
        (Arrived::Connect(Box::new(request)), respond)
    }
}

/// A request whose head is here.
#[derive(Debug)]
pub(super) enum Arrived {
    /// The head is with what follows it.
    Message(Box<Incoming>),
    /// Its stream may become something else.
    Connect(Box<Request<Body>>),
}

impl Arrived {
    pub(super) fn into_request(self) -> Request<Body> {
        match self {
            Self::Message(mut incoming) => {
                let (request, length) = take_head(&mut incoming);
                request.map(|()| Body::new(incoming, length))
            }
            Self::Connect(request) => *request,
        }
    }

    /// True when the client waits for a word before it sends the body (RFC 9110 §10.1.1).
    pub(super) fn expects_continue(&mut self) -> bool {
        let headers = match self {
            Self::Message(incoming) => {
                let head = incoming.message.request_mut();
                head.map(|(request, _)| request.headers())
            }
            Self::Connect(request) => Some(request.headers()),
        };
        let expect = headers.and_then(|headers| headers.get(EXPECT));
        expect.is_some_and(|expect| expect.as_bytes().eq_ignore_ascii_case(b"100-continue"))
    }

    /// Of an extended CONNECT (RFC 9220).
    pub(super) fn protocol(&self) -> Option<&Protocol> {
        match self {
            Self::Message(_) => None,
            Self::Connect(request) => request.extensions().get(),
        }
    }
}

/// Takes the header section of a request, which has arrived.
fn take_head(incoming: &mut Incoming) -> RequestHead {
    let head = incoming.message.take_request();
    head.unwrap_or_else(|| (Request::new(()), None))
}

/// Where a response stands until its request or the client says otherwise.
fn level_of_new(index: u64) -> i32 {
    priority::level(http3::Priority::default(), index)
}

/// The output of `future`, or why it is not waited for: the client has `stopped` to want an answer,
/// or it takes longer than `limit`.
async fn unless<F: Future>(
    future: F,
    stopped: impl Future<Output = Result<Option<VarInt>, StoppedError>> + Send,
    limit: Option<Duration>,
) -> Result<F::Output, Code> {
    let (mut future, mut stopped) = (pin!(future), pin!(stopped));
    // Most heads are there at once and need no timer.
    let mut late = None;
    std::future::poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Ok(output));
        }
        if let Poll::Ready(Ok(Some(_))) = stopped.as_mut().poll(cx) {
            return Poll::Ready(Err(Code::REQUEST_CANCELLED));
        }
        let Some(limit) = limit else {
            return Poll::Pending;
        };
        let late = late.get_or_insert_with(|| Box::pin(runtime::sleep(limit)));
        late.as_mut().poll(cx).map(|()| Err(Code::REQUEST_REJECTED))
    })
    .await
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
    offer: Offered,
}

/// Where an upgrade waits, of a CONNECT. When it is dropped, it waits in vain.
#[derive(Debug)]
struct Offered(Option<Arc<Slot>>);

impl Drop for Offered {
    fn drop(&mut self) {
        if let Some(offer) = self.0.take() {
            offer.end();
        }
    }
}

impl Respond {
    fn new(outgoing: Outgoing, method: Method, offer: Option<Arc<Slot>>) -> Self {
        Self {
            outgoing,
            method,
            offer: Offered(offer),
        }
    }

    /// Sends an interim response, without the `content-length` that none may have.
    ///
    /// # Errors
    /// When the client wants no answer any more or the connection is over.
    ///
    /// # Panics
    /// For a status that is not 1xx, and for 101, which HTTP/3 does not have.
    pub async fn interim(&mut self, response: Response<()>) -> Result<(), Error> {
        let status = response.status();
        assert!(
            is_interim(status),
            "{status} is no interim response of HTTP/3"
        );
        let head = self.encode_interim(response)?;
        self.outgoing.write(head).await
    }

    /// A HEADERS frame. None of these responses may have a `content-length` (RFC 9110 §8.6).
    pub(super) fn encode_interim(&self, mut response: Response<()>) -> Result<Vec<u8>, Error> {
        response.headers_mut().remove(CONTENT_LENGTH);
        let status = response.status();
        let fields = FieldsToSend::response(&status, response.headers());
        self.outgoing.encode(&fields)
    }

    /// Ready when all of `bytes`, which were encoded before, is written; they hold what is not.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Bytes,
    ) -> Poll<Result<(), Error>> {
        while !bytes.is_empty() {
            let chunks = std::slice::from_mut(bytes);
            ready!(self.outgoing.send.poll_write_chunks(cx, chunks))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Has what was written leave at once.
    pub(super) fn flush(&mut self) {
        self.outgoing.send.flush_now();
    }

    /// Sends the response: its head, content as the body makes it, trailers, the end. A
    /// `content-length` is added when the body knows it.
    ///
    /// Returns when all is written; it may take longer until the client has it. Content that is as
    /// long as was said, and shorter than 64 KiB, waits a millisecond or two for the body to say that
    /// it has ended, so that both leave in one packet.
    ///
    /// # Errors
    /// When the body fails, which resets the stream; when the client wants no answer any more;
    /// when the connection is over.
    ///
    /// # Panics
    /// Where it has to wait and there is no runtime, neither tokio's with its time enabled nor an
    /// [entered](crate::runtime::enter) one.
    ///
    /// # Cancel safety
    /// Not safe: the stream is reset.
    pub fn send<B>(self, response: Response<B>) -> impl Future<Output = Result<(), Error>>
    where
        B: http_body::Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let Self {
            mut outgoing,
            method,
            offer: _,
        } = self;
        // Done before the first wait, so that the future does not hold what only this needs.
        let (parts, body) = response.into_parts();
        let has_content = method != Method::HEAD && may_have_content(parts.status);
        let mut fields = FieldsToSend::response(&parts.status, &parts.headers);
        let mut length = None;
        if has_content && method != Method::CONNECT {
            length = body.size_hint().exact();
            match length {
                Some(length) => fields.set_content_length(length),
                None => length = said_length(&parts.headers),
            }
        }
        let head = outgoing.encode(&fields);
        async move {
            let head = head?;
            if has_content {
                outgoing.send(head, body, length).await
            } else {
                outgoing.send(head, Empty, None).await
            }
        }
    }

    /// Accepts a CONNECT and hands its stream over. `body` is that of the request.
    ///
    /// # Errors
    /// When the client wants no answer any more, or the connection is over.
    ///
    /// # Panics
    /// For a status that is not 2xx.
    pub async fn upgrade(self, response: Response<()>, body: Body) -> Result<Upgraded, Error> {
        let (parts, ()) = response.into_parts();
        let outgoing = self.accept(&parts).await?;
        Ok(Upgraded::new(body, outgoing))
    }

    /// Sends the head of a success and leaves the stream open.
    async fn accept(mut self, response: &http::response::Parts) -> Result<Outgoing, Error> {
        let status = response.status;
        assert!(status.is_success(), "{status} does not accept a CONNECT");
        let fields = FieldsToSend::response(&status, &response.headers);
        let head = self.outgoing.encode(&fields)?;
        self.outgoing.write(head).await?;
        Ok(self.outgoing)
    }

    /// True when the service has taken the stream of the request.
    pub(super) fn is_upgrade<B>(&self, response: &Response<B>) -> bool {
        let is_wanted = self.offer.0.as_ref().is_some_and(|offer| offer.is_wanted());
        is_wanted && response.status().is_success()
    }

    /// Accepts a CONNECT for whoever has taken its stream, and waits until that is over.
    pub(super) async fn hand_over<B>(mut self, response: Response<B>) -> Result<(), Error> {
        let Some(offer) = self.offer.0.take() else {
            return Ok(());
        };
        let (parts, _) = response.into_parts();
        match self.accept(&parts).await {
            Ok(outgoing) => offer.fulfil(outgoing),
            Err(error) => {
                offer.end();
                return Err(error);
            }
        }
        std::future::poll_fn(|cx| offer.poll_end(cx)).await;
        Ok(())
    }

    /// Waits until the client wants no answer any more, or the connection is over.
    pub(super) fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let stopped = self.outgoing.send.stopped();
        Box::pin(async move {
            let _ = stopped.await;
        })
    }

    /// Ends a request that the client has given up.
    pub(super) fn give_up(mut self) {
        // Its error has closed the connection.
        let _ = self.outgoing.on_given_up();
        self.outgoing.reset(Code::REQUEST_CANCELLED);
    }

    /// Gives the request up with this code.
    pub fn reset(mut self, code: Code) {
        self.outgoing.reset(code);
    }
}

/// What the service says of a body that does not know its length.
fn said_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// RFC 9110 §6.4.1.
fn may_have_content(status: StatusCode) -> bool {
    status != StatusCode::NO_CONTENT && status != StatusCode::NOT_MODIFIED
}
