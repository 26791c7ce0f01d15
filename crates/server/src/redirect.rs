//! Plain HTTP on a port of its own: it leads clients to https, and answers challenges of ACME servers.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser_quic::ConfigError;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, LOCATION};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use crate::cause::Cause;
use crate::certificates::Sources;
use crate::limits::Limits;
use crate::limits::shares::Shares;
#[cfg(unix)]
use crate::listen::Listener;
use crate::listen::OpenSockets;
use crate::own_response::OwnResponse;
use crate::phase::{Part, Phase};
use crate::site::Site;
use crate::tasks::{Task, keep_running};
use crate::tcp::listen::listen;
use crate::tcp::{concerns_one_connection, is_permanent};

/// The open listeners of plain HTTP.
#[derive(Debug)]
pub(crate) struct Redirects {
    sockets: Vec<OpenSockets>,
    answerer: Answerer,
}

/// What the listeners of plain HTTP share.
#[derive(Clone)]
struct Answerer {
    /// The port of https at which clients reach the server.
    port: u16,
    /// Returns the content for a token of HTTP-01 (RFC 8555 §8.3).
    challenges: Option<Arc<Challenges>>,
}

type Challenges = dyn Fn(&str) -> Option<String> + Send + Sync;

impl Redirects {
    /// Serves at these sockets. `port` is that of https at which clients reach the server.
    pub(crate) fn new(
        sockets: Vec<OpenSockets>,
        port: u16,
        sources: &Sources,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            answerer: Answerer {
                port,
                challenges: challenges(sources, !sockets.is_empty())?,
            },
            sockets,
        })
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().map(|it| it.address).collect()
    }

    #[cfg(unix)]
    pub(crate) fn listeners(&self) -> Vec<Arc<Listener>> {
        self.sockets.iter().map(OpenSockets::listener).collect()
    }

    /// Serves clients until the server drains.
    pub(crate) fn begin(self, site: &Arc<Site>) {
        for OpenSockets { address, tcp, .. } in self.sockets {
            let Some(listener) = tcp else {
                continue;
            };
            let task = site.tasks.task(format!("plain HTTP at {address}"));
            let acceptor = Acceptor {
                address,
                answerer: self.answerer.clone(),
                site: site.clone(),
                part: site.phases.part(),
            };
            tokio::spawn(acceptor.serve(listener, task));
        }
    }
}

/// Serves an address.
#[derive(Clone)]
struct Acceptor {
    address: SocketAddr,
    answerer: Answerer,
    site: Arc<Site>,
    part: Part,
}

impl Acceptor {
    /// Serves clients until the server stops accepting. If the socket fails permanently, opens another one.
    async fn serve(self, listener: Arc<TcpListener>, task: Arc<Task>) {
        let mut first = Some(listener);
        let retired = self.part.clone().will_reach(Phase::Retired);
        let this = &self;
        let begin = move || {
            let first = first.take();
            async move {
                let socket = match first {
                    Some(socket) => socket,
                    None => Arc::new(listen(this.address)?),
                };
                Err(this.accept(&socket).await.into())
            }
        };
        tokio::select! {
            biased;
            () = retired => {}
            () = keep_running(&task, &self.site.events, begin) => {}
        }
    }

    /// Accepts connections until the socket fails permanently. Returns its error.
    async fn accept(&self, listener: &TcpListener) -> io::Error {
        let site = &self.site;
        let limits = &site.limits;
        let shares = shares(limits);
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) if concerns_one_connection(&error) => continue,
                Err(error) if is_permanent(&error) => return error,
                Err(_) => {
                    // Descriptors are short; the listener of https reports it.
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let admitted = site.gate.admit(peer.ip());
            let share = match admitted.and_then(|()| shares.take(peer, true)) {
                Ok(share) => share,
                Err(refusal) => {
                    site.tally.on_refused(refusal);
                    continue;
                }
            };
            let (answerer, mut part) = (self.answerer.clone(), self.part.clone());
            let log = Log {
                site: site.clone(),
                client: peer,
            };
            let time = MAX_TIME.min(limits.header_read_timeout);
            tokio::spawn(async move {
                let _share = share;
                tokio::select! {
                    () = serve(stream, answerer, log, time) => {}
                    () = part.reached(Phase::Cut) => {}
                    () = tokio::time::sleep(time) => {}
                }
            });
        }
    }
}

impl fmt::Debug for Answerer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answerer")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// Returns the function that answers challenges over plain HTTP, if names are validated there.
fn challenges(
    sources: &Sources,
    has_plain_http: bool,
) -> Result<Option<Arc<Challenges>>, ConfigError> {
    #[cfg(feature = "acme")]
    if let Some(acme) = sources.acme().filter(|acme| acme.needs_plain_http()) {
        if !has_plain_http {
            return Err(ConfigError::Identity(
                "HTTP-01 requires a listener for plain HTTP: add one with Server::redirect_http"
                    .to_owned(),
            ));
        }
        let answers = acme.answers();
        return Ok(Some(Arc::new(move |token| answers.content(token))));
    }
    let _ = (sources, has_plain_http);
    Ok(None)
}

/// Reports the responses to a client.
#[derive(Clone)]
struct Log {
    site: Arc<Site>,
    client: SocketAddr,
}

impl Log {
    fn report(&self, cause: Cause, status: StatusCode, head: Option<&Parts>) {
        self.site.tally.own.report(&OwnResponse {
            cause,
            status,
            client: self.client,
            peer: None,
            head,
            first_line: &[],
        });
    }
}

/// Returns the shares of the connections of an address.
fn shares(limits: &Limits) -> Arc<Shares> {
    Shares::new(&Limits {
        max_connections: MAX_CONNECTIONS,
        ..limits.clone()
    })
}

/// Answers one request and closes the connection.
async fn serve(stream: TcpStream, answerer: Answerer, log: Log, time: Duration) {
    let failed = log.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let response = answerer.answer(&request);
        let (head, _) = request.into_parts();
        let status = response.status();
        log.report(cause_of(status), status, Some(&head));
        async move { Ok::<_, Infallible>(response) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .keep_alive(false)
        .timer(TokioTimer::new())
        .header_read_timeout(time)
        .max_buf_size(BUFFER);
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    // Other errors of clients need no report.
    if let Err(error) = serving.await
        && let Some(cause) = Cause::of_connection(&error)
    {
        match cause {
            // The client may have sent nothing.
            Cause::HeaderTimeout => {}
            Cause::FieldsTooLarge => {
                failed.report(cause, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, None);
            }
            _ => failed.report(cause, StatusCode::BAD_REQUEST, None),
        }
    }
}

/// Returns the cause of a response of [`Answerer`].
fn cause_of(status: StatusCode) -> Cause {
    match status {
        StatusCode::OK => Cause::AcmeChallenge,
        StatusCode::BAD_REQUEST => Cause::InvalidHost,
        _ => Cause::Redirected,
    }
}

impl Answerer {
    /// Returns the response to a request: the answer to a challenge, or a redirect to the same path over https.
    fn answer<B>(&self, request: &Request<B>) -> Response<Text> {
        let path = request.uri().path();
        if let Some(challenges) = &self.challenges
            && let Some(token) = path.strip_prefix("/.well-known/acme-challenge/")
            && let Some(content) = challenges(token)
        {
            let mut response = text(StatusCode::OK, content);
            let no_store = HeaderValue::from_static("no-store");
            response.headers_mut().insert(CACHE_CONTROL, no_store);
            return response;
        }
        match self.location(request) {
            Some(location) => {
                // Many old clients repeat a POST as GET after 301, and few of them know 308.
                let status = match *request.method() {
                    Method::GET | Method::HEAD => StatusCode::MOVED_PERMANENTLY,
                    _ => StatusCode::PERMANENT_REDIRECT,
                };
                let note = match location.to_str() {
                    Ok(location) => format!("This page has moved to {location}\n"),
                    Err(_) => String::new(),
                };
                let mut response = text(status, note);
                response.headers_mut().insert(LOCATION, location);
                response
            }
            None => text(
                StatusCode::BAD_REQUEST,
                "The request names no valid host.\n".to_owned(),
            ),
        }
    }

    /// Returns the URL of the request over https. `None` if the request has no valid host.
    fn location<B>(&self, request: &Request<B>) -> Option<HeaderValue> {
        let uri = request.uri();
        let mut fields = request.headers().get_all(HOST).iter();
        let field = match (fields.next(), fields.next()) {
            (field, None) => field,
            _ => return None,
        };
        let authority = match (uri.authority(), field) {
            (Some(authority), _) => authority.clone(),
            (None, Some(field)) => Authority::try_from(field.as_bytes()).ok()?,
            (None, None) => return None,
        };
        let host = authority.host();
        if host.is_empty() || authority.as_str().contains('@') {
            return None;
        }
        let path = match uri.path_and_query().map(PathAndQuery::as_str) {
            None | Some("*") => "/",
            Some(path) => path,
        };
        let location = match self.port {
            443 => format!("https://{host}{path}"),
            port => format!("https://{host}:{port}{path}"),
        };
        HeaderValue::try_from(location).ok()
    }
}

fn text(status: StatusCode, content: String) -> Response<Text> {
    let mut response = Response::new(Text(Some(content.into())));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A body that is there at once.
#[derive(Debug)]
struct Text(Option<Bytes>);

impl http_body::Body for Text {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let len = self.0.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(u64::try_from(len).unwrap_or(u64::MAX))
    }
}

/// The connections of plain HTTP at an address, the time of each, and the longest header section (limit K407).
const MAX_CONNECTIONS: usize = 1024;
const MAX_TIME: Duration = Duration::from_secs(10);
const BUFFER: usize = 8192;

/// Pause before accepting again when file descriptors ran out.
const PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use http::header::STRICT_TRANSPORT_SECURITY;

    use super::*;
    use crate::limits::refusals::Refusal;

    fn answer(answerer: &Answerer, method: &str, uri: &str, hosts: &[&str]) -> Response<Text> {
        let mut request = Request::builder().method(method).uri(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        answerer.answer(&request.body(()).expect("a request"))
    }

    fn location(response: &Response<Text>) -> Option<&str> {
        let location = response.headers().get(LOCATION)?;
        location.to_str().ok()
    }

    #[test]
    fn requests_are_led_to_the_same_path_over_https() {
        let answerer = |port| Answerer {
            port,
            challenges: None,
        };
        for (port, method, uri, host, status, expected) in [
            (443, "GET", "/a?b=c", "a.test", 301, "https://a.test/a?b=c"),
            (443, "HEAD", "/", "a.test:80", 301, "https://a.test/"),
            (443, "POST", "/x", "a.test", 308, "https://a.test/x"),
            (8443, "GET", "/", "a.test:8080", 301, "https://a.test:8443/"),
            (443, "GET", "/", "[::1]:80", 301, "https://[::1]/"),
            (443, "OPTIONS", "*", "a.test", 308, "https://a.test/"),
            (
                443,
                "GET",
                "http://b.test/x",
                "a.test",
                301,
                "https://b.test/x",
            ),
            (
                443,
                "GET",
                "//evil.test/",
                "a.test",
                301,
                "https://a.test//evil.test/",
            ),
        ] {
            let response = answer(&answerer(port), method, uri, &[host]);
            assert_eq!(response.status(), status, "{method} {uri}");
            assert_eq!(location(&response), Some(expected));
        }
    }

    /// RFC 6797 §7.2: the field has no meaning without TLS.
    #[test]
    fn redirects_name_no_policy() {
        let answerer = Answerer {
            port: 443,
            challenges: None,
        };
        let response = answer(&answerer, "GET", "/", &["a.test"]);
        let policy = response.headers().get(STRICT_TRANSPORT_SECURITY);
        assert_eq!(policy, None);
    }

    /// Limit K407.
    #[test]
    fn connection_above_the_maximum_is_refused() {
        let shares = shares(&Limits::default());
        // One client of each network, so that no share ends before the maximum.
        let address = |number: usize| -> IpAddr {
            let number = u32::try_from(number).expect("small");
            Ipv4Addr::from(0x0a00_0001 + (number << 16)).into()
        };
        let mut open: Vec<_> = (0..MAX_CONNECTIONS)
            .map(|number| shares.take(address(number), true).expect("a share"))
            .collect();
        let late = address(MAX_CONNECTIONS);
        let refusal = shares.take(late, true).expect_err("one above the maximum");
        assert!(matches!(refusal, Refusal::Full), "{refusal:?}");
        open.pop();
        assert!(shares.take(late, true).is_ok());
    }

    #[test]
    fn requests_without_a_valid_host_are_refused() {
        let answerer = Answerer {
            port: 443,
            challenges: None,
        };
        for hosts in [
            &[][..],
            &["a.test", "b.test"],
            &["a b"],
            &["me@a.test"],
            &[""],
        ] {
            let response = answer(&answerer, "GET", "/", hosts);
            assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{hosts:?}");
            assert_eq!(location(&response), None);
        }
    }

    #[test]
    fn challenges_are_answered_and_other_tokens_are_redirected() {
        let challenges: Arc<Challenges> = Arc::new(|token| (token == "t").then(|| "t.key".into()));
        let answerer = Answerer {
            port: 443,
            challenges: Some(challenges),
        };
        let path = |token| format!("/.well-known/acme-challenge/{token}");
        let response = answer(&answerer, "GET", &path("t"), &["a.test"]);
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.body().0.as_deref(), Some(&b"t.key"[..]));
        let response = answer(&answerer, "GET", &path("u"), &["a.test"]);
        assert_eq!(response.status(), StatusCode::MOVED_PERMANENTLY);
    }
}
