//! The client end of a connection.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use courser_http3::{self as http3, FieldsToSend, ResponseHead};
use courser_quic::hooks::SendStreamHooks as _;
use courser_quic::{Connection, ConnectionError, EarlyData, RecvStream, Side, runtime};
use http::{Method, Request, Response};

use super::body::Body;
use super::datagrams::Datagrams;
use super::error::Error;
use super::extension::{Extension, LeadingFrames};
use super::failure::Failure;
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::shared::{Guard, SentHead, SharedConnection};
use super::upgrade::Upgraded;
use super::upload_guard::UploadGuard;
use super::{OnInterim, Priority, driver, priority};

/// The client end of a connection. Clones share the connection. It is closed when the last clone and the last
/// response body are dropped.
#[derive(Clone, Debug)]
pub struct Client(Arc<Guard>);

impl Client {
    /// Starts HTTP/3 on a connection with the default settings of a client.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (near, far) = pair().await?;
    /// # let app = axum::Router::new().fallback(|| async { "hello" });
    /// # tokio::spawn(h3::serve(far, app).into_future());
    ///
    /// # let connection = near;
    /// let client = h3::Client::new(connection);
    /// let request = http::Request::get("https://localhost/").body(h3::Empty)?;
    /// let response = client.send(request).await?;
    /// assert_eq!(response.status(), 200);
    /// # Ok(()) }
    /// ```
    pub fn new(connection: Connection) -> Self {
        Self::with_config(connection, http3::Config::new(Side::Client))
    }

    /// Starts HTTP/3 on a connection.
    pub fn with_config(connection: Connection, config: http3::Config) -> Self {
        // RFC 9114 §5.1: a response may take longer than the idle timeout.
        connection.keep_alive_while_busy(true);
        let shared = SharedConnection::new(connection, config);
        driver::start(&shared, driver::SETTINGS_TIMEOUT);
        Self(Arc::new(Guard(shared)))
    }

    /// Starts HTTP/3 on a connection from [`Connecting::early`](courser_quic::Connecting::early). `remembered`
    /// are the [settings](Self::settings) that the server sent on the connection whose session is resumed (RFC
    /// 9114 §7.2.4.2). They apply only if the connection sends early data, because the server may have other
    /// settings otherwise. Requests are sent before the handshake completes, and an attacker may replay them:
    /// send only requests with safe methods (RFC 8470 §4).
    ///
    /// If the server rejects early data, it has processed no request: requests fail with
    /// [`Error::EarlyDataRejected`], and the connection is closed. The server may also respond with `425 Too
    /// Early`; such a request should be repeated after
    /// [`Connection::authenticated`](courser_quic::Connection::authenticated).
    pub fn resume(
        connection: Connection,
        config: http3::Config,
        remembered: http3::Settings,
    ) -> Self {
        connection.keep_alive_while_busy(true);
        let shared = SharedConnection::new(connection, config);
        // Without early data, the server may have changed its settings.
        if matches!(
            shared.quic.early_data(),
            EarlyData::Offered | EarlyData::Accepted
        ) {
            shared.remember(remembered);
        }
        driver::start(&shared, driver::SETTINGS_TIMEOUT);
        Self(Arc::new(Guard(shared)))
    }

    /// Sends a request and waits for the header section of its response. The request body is sent meanwhile, and
    /// may continue after the response has arrived.
    ///
    /// The URI must be absolute. Adds a `content-length` if the body reports its exact size. Waits while the
    /// server allows no further request. Complete content of less than 64 KiB is held for a millisecond or two
    /// until the body reports its end.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (near, far) = pair().await?;
    /// # let app = axum::Router::new().fallback(|| async { "hello" });
    /// # tokio::spawn(h3::serve(far, app).into_future());
    /// # let client = h3::Client::new(near);
    /// use bytes::Bytes;
    /// use http_body_util::{BodyExt, Full};
    ///
    /// let body = Full::new(Bytes::from_static(b"name=value"));
    /// let request = http::Request::post("https://localhost/form").body(body)?;
    /// let response = client.send(request).await?;
    /// let content = response.into_body().collect().await?.to_bytes();
    /// assert_eq!(content, "hello");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unprocessed`] is true if the request can be repeated.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready cancels the request.
    pub async fn send<B>(&self, request: Request<B>) -> Result<Response<Body>, Error>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut parts, body) = request.into_parts();
        if body.is_end_stream()
            && parts.method != Method::CONNECT
            && let Some(incoming) = self.send_head(&mut parts).await?
        {
            let (response, incoming) = self.response(incoming, &parts).await?;
            return Ok(into_body(response, incoming, &parts.method));
        }
        // Boxed, so that requests that need one step reserve no memory for the others.
        Box::pin(self.send_in_steps(parts, body)).await
    }

    /// Opens a stream, then writes the request step by step.
    async fn send_in_steps<B>(
        &self,
        mut parts: http::request::Parts,
        body: B,
    ) -> Result<Response<Body>, Error>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let is_connect = parts.method == Method::CONNECT;
        let has_content = !body.is_end_stream() && !is_connect;
        let length = body.size_hint().exact().filter(|_| has_content);
        let Exchange {
            mut outgoing,
            incoming,
            head,
            datagrams,
        } = self.begin(&mut parts, length).await?;
        let upload_guard = UploadGuard::default();
        if body.is_end_stream() && !is_connect {
            let sent = ignore_stop(outgoing.send(head, pin!(super::Empty), None).await);
            if let Err(error) = sent {
                return Err(self.convert_error(error, incoming.stream()).await);
            }
        } else {
            runtime::spawn(upload_guard.unless_cancelled(async move {
                // The task that waits for the response receives the error.
                let _ = outgoing.send(head, pin!(body), length).await;
            }));
        }
        let (mut response, incoming) = self.response(incoming, &parts).await?;
        upload_guard.on_response();
        if let Some(datagrams) = datagrams {
            response.0.extensions_mut().insert(datagrams);
        }
        Ok(into_body(response, incoming, &parts.method))
    }

    /// Sends a CONNECT and returns its stream once the server has accepted it. An extended CONNECT (RFC 9220)
    /// has a [`Protocol`](super::Protocol) in its extensions. The method of the request is ignored.
    ///
    /// ```no_run
    /// # mod courser { pub use courser_quic::*; pub use courser_http3_tokio as h3; }
    /// # async fn chat(client: courser::h3::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use courser::h3::Protocol;
    /// let request = http::Request::connect("https://example.org/chat")
    ///     .header("sec-websocket-version", 13)
    ///     .extension(Protocol::WEBSOCKET)
    ///     .body(())?;
    /// let stream = client.connect(request).await?.into_body();
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Refused`] with the server's response if its status is not 2xx, and the errors of
    /// [`Client::send`].
    ///
    /// # Cancel safety
    /// The same as for [`Client::send`].
    pub async fn connect(&self, request: Request<()>) -> Result<Response<Upgraded>, Error> {
        let (mut parts, ()) = request.into_parts();
        parts.method = Method::CONNECT;
        let Exchange {
            mut outgoing,
            incoming,
            head,
            datagrams,
        } = self.begin(&mut parts, None).await?;
        let asked = Asked::new(&self.0, incoming.stream());
        if let Err(error) = outgoing.write(head).await {
            return Err(self.convert_error(error, incoming.stream()).await);
        }
        let (response, incoming) = self.response(incoming, &parts).await?;
        if !response.0.status().is_success() {
            outgoing.finish();
            let response = into_body(response, incoming, &parts.method);
            return Err(Error::Refused(Box::new(response)));
        }
        asked.on_accepted();
        let body = Body::new(incoming, None);
        let upgraded = Upgraded::new(body, outgoing).with_datagrams(datagrams);
        Ok(response.0.map(|()| upgraded))
    }

    /// Sends a request without content in one step if possible. Returns `None` if several steps are needed.
    async fn send_head(
        &self,
        parts: &mut http::request::Parts,
    ) -> Result<Option<Box<Incoming>>, Error> {
        if self.0.datagrams.is_enabled()
            || parts.extensions.get::<http3::Protocol>().is_some()
            || parts.extensions.get::<LeadingFrames>().is_some()
        {
            return Ok(None);
        }
        let priority = add_priority(parts);
        let fields = FieldsToSend::request(parts)?;
        let sent = poll_fn(|cx| Poll::Ready(self.0.send_head(cx, &fields, priority))).await?;
        match sent {
            None => Ok(None),
            Some(SentHead::Whole(receive)) => {
                let incoming = self.incoming(receive, parts);
                // The task is woken when data arrives; reading before that is useless.
                let mut has_waited = false;
                poll_fn(|_| match std::mem::replace(&mut has_waited, true) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                })
                .await;
                Ok(Some(incoming))
            }
            Some(SentHead::Part(send, receive, rest)) => {
                let incoming = self.incoming(receive, parts);
                let mut outgoing = Outgoing::new(self.0.clone(), send);
                let sent =
                    ignore_stop(Box::pin(outgoing.send(rest, pin!(super::Empty), None)).await);
                match sent {
                    Ok(()) => Ok(Some(incoming)),
                    Err(error) => Err(self.convert_error(error, incoming.stream()).await),
                }
            }
        }
    }

    /// Creates the receiver of the response to this request.
    fn incoming(&self, receive: RecvStream, parts: &http::request::Parts) -> Box<Incoming> {
        Box::new(Incoming::response(self.0.clone(), receive, &parts.method))
    }

    /// Opens a stream for a request whose content has this length, if the request may be sent.
    async fn begin(
        &self,
        parts: &mut http::request::Parts,
        length: Option<u64>,
    ) -> Result<Exchange, Error> {
        let priority = add_priority(parts);
        // Reports errors before a stream is opened.
        let mut fields = FieldsToSend::request(parts)?;
        if let Some(length) = length {
            fields.set_content_length(length);
        }
        self.check(parts).await?;
        // RFC 9114 §5.2: no stream may be opened after GOAWAY, not even one that is reset at once.
        if self.0.has_goaway() {
            return Err(Error::GoingAway);
        }
        let (send, receive) = match self.0.quic.open_bi().await {
            Ok(streams) => streams,
            Err(error) => {
                // The server has closed the connection, so no part of the request was sent.
                let is_gone = matches!(&error, ConnectionError::ApplicationClosed { .. });
                let error = self.unsent(Failure::from(error));
                return Err(match is_gone && error.is_clean_close() {
                    true => Error::GoingAway,
                    false => error,
                });
            }
        };
        let stream = send.id();
        let outgoing = Outgoing::new(self.0.clone(), send);
        let incoming = self.incoming(receive, parts);
        if let Some(priority) = priority {
            let level = priority::level(priority, stream.index());
            outgoing.send.set_level(level);
        }
        let mut head = Vec::with_capacity(256);
        let encoded = self.0.drive(|state| {
            if state.http.peer_goes_away() {
                return Ok(Err(Error::GoingAway));
            }
            let encoded = state.encode(stream.value(), &fields, &mut head);
            Ok(encoded.map_err(Into::into))
        });
        encoded.map_err(|error| self.unsent(self.0.failure_of(error)))??;
        if let Some(frames) = parts.extensions.get::<LeadingFrames>() {
            head = frames.prepend_to(&head);
        }
        let registry = &self.0.datagrams;
        let datagrams = registry.is_enabled().then(|| {
            registry.open(self.0.now(), stream.value());
            Datagrams::new(self.0.clone(), stream.value())
        });
        Ok(Exchange {
            outgoing,
            incoming,
            head,
            datagrams,
        })
    }

    /// Waits for the final response, and reports interim responses.
    async fn response(
        &self,
        mut incoming: Box<Incoming>,
        parts: &http::request::Parts,
    ) -> Result<(ResponseHead, Box<Incoming>), Error> {
        let on_interim = parts.extensions.get::<OnInterim>();
        loop {
            let (response, length) = match incoming.next_response().await {
                Ok(head) => head,
                Err(error) => return Err(self.convert_error(error, incoming.stream()).await),
            };
            if !response.status().is_informational() {
                return Ok(((response, length), incoming));
            }
            if let Some(on_interim) = on_interim {
                on_interim.call(response);
            }
        }
    }

    /// Requests that the server changes the priority of a response (RFC 9218 §7). `stream` is the
    /// [`StreamId`](courser_quic::StreamId) in [`Response::extensions`].
    ///
    /// After 250 calls in a short time, the latest update of each response is sent, one every 50 ms, because a
    /// server may treat more as an attack.
    pub fn set_priority(&self, stream: courser_quic::StreamId, priority: Priority) {
        self.0.update_priority(stream.value(), priority);
    }

    /// Returns the server's settings, or `None` if the connection is closed before they arrive.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (near, far) = pair().await?;
    /// # let app = axum::Router::new().fallback(|| async { "hello" });
    /// # tokio::spawn(h3::serve(far, app).into_future());
    /// # let client = h3::Client::new(near);
    /// if let Some(settings) = client.settings().await {
    ///     println!("{settings:?}");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn settings(&self) -> Option<http3::Settings> {
        self.0.peer_settings().await
    }

    /// Returns the extension whose streams and frames [`Config::extensions`](super::Config::extensions) claims.
    pub fn extension(&self) -> Extension {
        Extension::new(self.0.0.clone())
    }

    /// Returns the origins that the server claims for this connection (RFC 9412), such as `https://example.org`
    /// or `https://example.org:8443`, at most 256. `None` until it has sent an ORIGIN frame; then the connection
    /// serves only its own origin.
    ///
    /// They are not verified: the server's certificate must be valid for the name of an origin before a request
    /// for it is sent (RFC 8336 §2.4).
    pub fn origins(&self) -> Option<Vec<String>> {
        self.0.origins()
    }

    /// Returns true if the server accepts no more requests on this connection.
    pub fn goes_away(&self) -> bool {
        self.0.goes_away()
    }

    /// Returns the QUIC connection for access to its addresses and statistics.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (near, far) = pair().await?;
    /// # let app = axum::Router::new().fallback(|| async { "hello" });
    /// # tokio::spawn(h3::serve(far, app).into_future());
    /// # let client = h3::Client::new(near);
    /// println!("round trip {:?}", client.quic().rtt());
    /// # Ok(()) }
    /// ```
    pub fn quic(&self) -> &Connection {
        &self.0.quic
    }

    /// Closes the connection at once. Requests in progress fail.
    pub fn close(&self) {
        self.0.close();
    }

    /// Checks that the server accepts the request. For an extended CONNECT, waits for its settings.
    async fn check(&self, parts: &http::request::Parts) -> Result<(), Error> {
        if parts.extensions.get::<http3::Protocol>().is_some() {
            self.settings().await;
            self.0
                .drive(|state| Ok(state.http.check_request(parts)))??;
        }
        Ok(())
    }

    /// Returns the error of a request on a connection that ended before any part of it was sent. If early data
    /// is rejected, the HTTP/3 connection ends.
    fn unsent(&self, failure: Failure) -> Error {
        match self.0.quic.early_data() {
            EarlyData::Rejected => Error::EarlyDataRejected,
            _ => self.0.cause_of(failure).into(),
        }
    }

    /// Converts the error of a request that a GOAWAY excludes to `GoingAway`, because it was not processed.
    async fn convert_error(&self, failure: Failure, stream: u64) -> Error {
        if matches!(failure, Failure::Connection(_)) {
            // A GOAWAY that was sent before the end of the connection may be read after it.
            self.0.all_read().await;
        }
        match self.0.is_refused(stream) {
            true => Error::GoingAway,
            false => self.0.cause_of(failure).into(),
        }
    }
}

/// A CONNECT that the server has not accepted yet. If it is dropped before, or refused, streams of the server that name it
/// are those of a session that is over: the server has opened them without fault.
struct Asked<'a> {
    shared: &'a SharedConnection,
    stream: u64,
    is_accepted: bool,
}

impl<'a> Asked<'a> {
    const fn new(shared: &'a SharedConnection, stream: u64) -> Self {
        Self {
            shared,
            stream,
            is_accepted: false,
        }
    }

    fn on_accepted(mut self) {
        self.is_accepted = true;
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if !self.is_accepted {
            self.shared.end_sessions_of(self.stream);
        }
    }
}

/// A request whose stream is open and whose header section is encoded.
struct Exchange {
    outgoing: Outgoing,
    incoming: Box<Incoming>,
    head: Vec<u8>,
    datagrams: Option<Datagrams>,
}

/// Returns the requested priority, and adds it as a field unless the request has one.
fn add_priority(parts: &mut http::request::Parts) -> Option<Priority> {
    let priority = parts.extensions.get::<Priority>().copied();
    if let Some(priority) = priority
        && !parts.headers.contains_key("priority")
        && let Ok(value) = http::HeaderValue::try_from(priority.to_string())
    {
        parts.headers.insert("priority", value);
    }
    priority
}

fn into_body(
    (response, length): ResponseHead,
    incoming: Box<Incoming>,
    method: &Method,
) -> Response<Body> {
    let length = if *method == Method::HEAD {
        Some(0)
    } else {
        length
    };
    response.map(|()| Body::new(incoming, length))
}

/// Ignores STOP_SENDING for the request: a server that responds early stops reading (RFC 9114 §4.1), and its
/// response is valid.
fn ignore_stop(result: Result<(), Failure>) -> Result<(), Failure> {
    match result {
        Err(Failure::Http { .. }) => Ok(()),
        result => result,
    }
}
