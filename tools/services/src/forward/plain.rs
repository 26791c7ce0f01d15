//! Requests for `http` URLs, which clients send to a proxy in absolute form (RFC 9112 §3.2.2).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use courser::h3::Interim;
use courser::masque::{Gate, Permit, ProxyError, Refusal, Target};
use courser_base::Mutex;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, Version};
use http_body::{Frame, SizeHint};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use super::dial::dial;
use super::record::Record;
use super::refusals::USER_IN_TARGET;
use crate::body::{Body, BoxError, boxed};
use crate::proxy::framing::{FilteredTrailers, Framing, adjust_length, check_codings};
use crate::proxy::hops;
use crate::proxy::interim::{self, Relay};

/// Returns the target of a request.
pub(super) fn target(parts: &Parts) -> Result<Target, Refusal> {
    let authority = match parts.uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => parts.headers.get(HOST).and_then(|it| it.to_str().ok()),
    };
    let malformed =
        |text: &str| Refusal::new(StatusCode::BAD_REQUEST, &format!("no target: {text}"));
    let authority = authority.ok_or_else(|| malformed("the request has no host"))?;
    if authority.contains('@') {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, USER_IN_TARGET));
    }
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit()));
    let text = match has_port {
        true => authority.to_owned(),
        false => format!("{}:80", authority.trim_end_matches(':')),
    };
    text.parse()
        .map_err(|error: courser::masque::InvalidTarget| malformed(&error.to_string()))
}

/// The limits of an exchange with a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) connect: Duration,
    pub(super) idle: Duration,
}

/// What an exchange needs beside its request.
pub(super) struct Exchange<'a> {
    pub(super) gate: &'a Gate,
    pub(super) times: Times,
    /// Sends interim responses to the client, if its version has them.
    pub(super) interim: Option<Interim>,
}

/// Sends a request to its target on a connection of its own, and returns the response. The content has the record and the
/// permit until it ends.
pub(super) async fn forward(
    request: Request<Body>,
    exchange: Exchange<'_>,
    mut record: Record,
    permit: Permit,
) -> Result<Response<Body>, (Refusal, Record)> {
    let Exchange {
        gate,
        times,
        interim,
    } = exchange;
    let version = request.version();
    let activity = Activity::begin();
    let sent = async {
        let (parts, body) = request.into_parts();
        let target = target(&parts)?;
        if let Some(client) = interim.as_ref()
            && interim::is_awaited(&parts)
        {
            interim::proceed(client).await;
        }
        let request = prepared(parts, body, &target, times.idle).await?;
        let mut candidates = gate.candidates(permit.client(), &target).await?;
        let another = || gate.another(&permit);
        let dialled = dial(candidates.by_ref(), times.connect, another).await;
        let (stream, address) = dialled.map_err(|failure| match failure {
            Some((error, reason)) => gate.refuse(error, &reason),
            None => candidates.refusal(),
        })?;
        let mut request = request.map(|body| {
            let activity = activity.clone();
            boxed(Uploaded { body, activity })
        });
        let (relay, sender) = interim.map(|client| Relay::new(client, version)).unzip();
        if let Some(sender) = sender {
            sender.receive(&mut request);
        }
        let sending = send(stream, request, (gate, &activity), times.idle);
        let sending = std::pin::pin!(sending);
        let response = match relay {
            Some(relay) => relay.until(sending).await?,
            None => sending.await?,
        };
        Ok::<_, Refusal>((response, address))
    };
    let (response, address) = match sent.await {
        Ok(answered) => answered,
        Err(refusal) => {
            record.on_bytes(activity.take_uploaded(), 0);
            return Err((refusal, record));
        }
    };
    let (mut parts, body) = response.into_parts();
    remove_hop_fields(&mut parts.headers);
    parts.headers.append(VIA, hops::via(parts.version));
    adjust_length(&mut parts);
    parts.version = version;
    parts.extensions.clear();
    record.on_opened(parts.status, Some(address));
    // A client that leaves drops the content.
    let is_whole = http_body::Body::is_end_stream(&body);
    record.on_end(if is_whole { "finished" } else { "client" });
    let body = Downloaded {
        body: FilteredTrailers::new(body, true),
        idle: Box::pin(sleep_until(Instant::now() + times.idle)),
        longest_idle: times.idle,
        activity,
        record,
        _permit: permit,
    };
    Ok(Response::from_parts(parts, boxed(body)))
}

/// Sends a request, and waits for the header section of its response while bytes of the request pass.
async fn send(
    stream: TcpStream,
    request: Request<Body>,
    (gate, activity): (&Gate, &Activity),
    idle: Duration,
) -> Result<Response<hyper::body::Incoming>, Refusal> {
    let failed = |error: hyper::Error| {
        if error.is_user() {
            return Refusal::new(StatusCode::BAD_REQUEST, INCOMPLETE);
        }
        let reason = format!("the server has failed: {error}");
        gate.refuse(ProxyError::ConnectionTerminated, &reason)
    };
    let mut builder = http1::Builder::new();
    builder.max_buf_size(BUFFER);
    let connecting = builder.handshake(TokioIo::new(stream));
    let (mut sender, connection) = connecting.await.map_err(failed)?;
    // It ends with the response, or with its content if that is dropped.
    tokio::spawn(connection);
    let mut sending = std::pin::pin!(sender.send_request(request));
    loop {
        let due = activity.last() + idle;
        tokio::select! {
            response = &mut sending => {
                let response = response.map_err(failed)?;
                let checked = check_response(&response);
                checked.map_err(|reason| gate.refuse(ProxyError::HttpProtocolError, reason))?;
                return Ok(response);
            }
            () = sleep_until(due) => if activity.last() + idle <= Instant::now() {
                let reason = format!("no byte has passed for {} s", idle.as_secs_f64());
                return Err(gate.refuse(ProxyError::ConnectionTimeout, &reason));
            },
        }
    }
}

/// Checks that a response can be passed on.
fn check_response<B>(response: &Response<B>) -> Result<(), &'static str> {
    // Over HTTP/2 and HTTP/3 it would be a malformed response, for which some clients end their connection.
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err("the response switches protocols, which the request does not ask for");
    }
    if !has_valid_names(response.headers()) {
        return Err("the response has an invalid field name");
    }
    check_codings(response.headers())
}

/// Returns a request in the form for a server, without fields for the proxy, and with framing of its own.
async fn prepared(
    mut parts: Parts,
    body: Body,
    target: &Target,
    idle: Duration,
) -> Result<Request<Body>, Refusal> {
    let version = parts.version;
    let malformed = |reason: &str| Refusal::new(StatusCode::BAD_REQUEST, reason);
    if !has_valid_names(&parts.headers) {
        return Err(malformed("the request has an invalid field name"));
    }
    // RFC 9112 §6.1.
    check_codings(&parts.headers)
        .map_err(|reason| Refusal::new(StatusCode::NOT_IMPLEMENTED, reason))?;
    hops::count(&mut parts);
    prepare_head(&mut parts, target)?;
    let framing = Framing::of(&mut parts.headers, version).map_err(malformed)?;
    let body = timeout(idle, framing.body(&mut parts, body, true)).await;
    let body = body.map_err(|_| {
        let reason = "the end of the request has not arrived";
        Refusal::new(StatusCode::REQUEST_TIMEOUT, reason)
    })?;
    let body = body.map_err(|_| malformed(INCOMPLETE))?;
    Ok(Request::from_parts(parts, body))
}

/// Converts the head of a request to the form for a server, without fields for the proxy.
fn prepare_head(parts: &mut Parts, target: &Target) -> Result<(), Refusal> {
    let path = parts.uri.path_and_query().map_or("/", |it| it.as_str());
    let path = match path.starts_with('?') {
        true => format!("/{path}"),
        false => path.to_owned(),
    };
    parts.uri = path.parse::<Uri>().map_err(|error| {
        Refusal::new(StatusCode::BAD_REQUEST, &format!("invalid path: {error}"))
    })?;
    let host = match target.port().get() {
        80 => target.to_string().trim_end_matches(":80").to_owned(),
        _ => target.to_string(),
    };
    let host = HeaderValue::try_from(host)
        .map_err(|_| Refusal::new(StatusCode::BAD_REQUEST, "the host is no field value"))?;
    remove_hop_fields(&mut parts.headers);
    // The server of the proxy has answered it, and the credentials are for the proxy.
    parts.headers.remove(EXPECT);
    parts.headers.insert(HOST, host);
    parts.headers.append(VIA, hops::via(parts.version));
    parts.version = Version::HTTP_11;
    Ok(())
}

/// Returns false for a name that the `http` crate accepts and HTTP does not (RFC 9110 §5.6.2).
fn has_valid_names(headers: &HeaderMap) -> bool {
    headers.keys().all(|name| !name.as_str().contains('"'))
}

/// Removes the fields of one connection (RFC 9110 §7.6.1), and those between the client and the proxy.
fn remove_hop_fields(headers: &mut HeaderMap) {
    if headers.contains_key(TRANSFER_ENCODING) {
        // It overrides Content-Length (RFC 9112 §6.3).
        headers.remove(CONTENT_LENGTH);
    }
    let listed: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .filter(|name| *name != CONTENT_LENGTH && *name != HOST)
        .collect();
    for name in listed {
        headers.remove(name);
    }
    for name in HOP_FIELDS {
        headers.remove(name);
    }
}

const HOP_FIELDS: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// What has passed of an exchange. Clones share it.
#[derive(Clone)]
struct Activity(Arc<Passed>);

struct Passed {
    /// The time at which content last passed.
    last: Mutex<Instant>,
    /// Bytes of the request that the record does not have yet.
    uploaded: AtomicU64,
}

impl Activity {
    fn begin() -> Self {
        Self(Arc::new(Passed {
            last: Mutex::new(Instant::now()),
            uploaded: AtomicU64::new(0),
        }))
    }

    fn last(&self) -> Instant {
        *self.0.last.lock()
    }

    fn on_bytes(&self) {
        *self.0.last.lock() = Instant::now();
    }

    fn on_uploaded(&self, bytes: usize) {
        self.0.uploaded.fetch_add(bytes as u64, Relaxed);
    }

    fn take_uploaded(&self) -> u64 {
        self.0.uploaded.swap(0, Relaxed)
    }
}

/// The content of a request.
struct Uploaded {
    body: Body,
    activity: Activity,
}

impl http_body::Body for Uploaded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        self.activity.on_bytes();
        if let Some(Ok(frame)) = &frame {
            self.activity
                .on_uploaded(frame.data_ref().map_or(0, Bytes::len));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The content of a response, whose end is the end of the record.
struct Downloaded {
    body: FilteredTrailers<hyper::body::Incoming>,
    idle: Pin<Box<Sleep>>,
    longest_idle: Duration,
    activity: Activity,
    record: Record,
    _permit: Permit,
}

impl http_body::Body for Downloaded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                this.activity.on_bytes();
                let len = frame.data_ref().map_or(0, Bytes::len);
                let uploaded = this.activity.take_uploaded();
                this.record.on_bytes(uploaded, len as u64);
                if this.body.is_end_stream() {
                    this.record.on_end("finished");
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                this.record.on_end("target");
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Ready(None) => {
                this.record.on_end("finished");
                Poll::Ready(None)
            }
            Poll::Pending => this.poll_idle(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Downloaded {
    fn drop(&mut self) {
        self.record.on_bytes(self.activity.take_uploaded(), 0);
    }
}

impl Downloaded {
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        while self.idle.as_mut().poll(cx).is_ready() {
            let due = self.activity.last() + self.longest_idle;
            if due <= Instant::now() {
                self.record.on_end("idle");
                let text = "the server was idle for too long";
                return Poll::Ready(Some(Err(text.into())));
            }
            self.idle.as_mut().reset(due);
        }
        Poll::Pending
    }
}

/// The reason to refuse a request whose content ends before its end.
const INCOMPLETE: &str = "the content of the request is incomplete";

/// Largest header section of a response, and the most that is read ahead of a client, in bytes (limit K664).
const BUFFER: usize = 128 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(uri: &str, fields: &[(&str, &str)]) -> Parts {
        let mut request = Request::get(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    #[test]
    fn targets_are_those_of_the_url() {
        for (uri, host, expected) in [
            ("/", "a.test", Some("a.test:80")),
            ("/", "a.test:8080", Some("a.test:8080")),
            ("/", "a.test:", Some("a.test:80")),
            ("/", "[::1]", Some("[::1]:80")),
            ("/", "[::1]:81", Some("[::1]:81")),
            ("http://b.test/", "a.test", Some("b.test:80")),
            ("/", "user@a.test", None),
            ("/", "2130706433", None),
            ("/", "a.test:0", None),
        ] {
            let found = target(&parts(uri, &[("host", host)]));
            let found = found.ok().map(|it| it.to_string());
            assert_eq!(found.as_deref(), expected, "{uri} {host}");
        }
    }

    /// Attack A380.
    #[test]
    fn fields_for_the_proxy_are_not_passed_on() {
        let mut it = parts(
            "http://a.test/x?y",
            &[
                ("host", "a.test"),
                ("proxy-authorization", "Basic x"),
                ("proxy-connection", "keep-alive"),
                ("connection", "close, X-Mine, content-length"),
                ("x-mine", "1"),
                ("content-length", "3"),
                ("transfer-encoding", "chunked"),
                ("te", "trailers"),
                ("upgrade", "h2c"),
                ("expect", "100-continue"),
                ("accept", "*/*"),
            ],
        );
        prepare_head(&mut it, &"a.test:8080".parse().expect("a target")).expect("valid");
        let mut names: Vec<_> = it.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "host", "via"]);
        assert_eq!(it.headers[HOST], "a.test:8080");
        assert_eq!(it.uri, "/x?y");
    }
}
