//! A site as one service: files or an upstream server, compressed and recorded.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use courser::files::{self, Files, hooks};
use courser::{server, webtransport};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use tower::{Layer as _, Service, ServiceExt as _, service_fn};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate as _};

use crate::body::{Body, boxed};
use crate::proxy::{Proxy, SessionProxy, UpstreamFacts};
use crate::record::{Record, Recorder};
use crate::webtransport::Echo;

/// The source of the responses of a server.
#[derive(Clone, Debug)]
pub enum Site {
    /// A folder. [`Files`] compresses the content itself.
    Files(Files),
    /// An upstream server; boxed because it is much larger than the other variant.
    Proxy(Box<Proxy>),
}

impl Site {
    /// Returns the path of the folder or the URL of the upstream server for messages.
    pub fn name(&self) -> String {
        match self {
            Self::Files(files) => files.root().display().to_string(),
            Self::Proxy(proxy) => proxy.backend().to_string(),
        }
    }

    /// Returns the proxy, or `None` for a folder.
    pub fn proxy(&self) -> Option<Proxy> {
        match self {
            Self::Files(_) => None,
            Self::Proxy(proxy) => Some(Proxy::clone(proxy)),
        }
    }

    /// Returns the folder, or `None` for an upstream server.
    pub fn files(&self) -> Option<Files> {
        match self {
            Self::Files(files) => Some(files.clone()),
            Self::Proxy(_) => None,
        }
    }

    /// Converts the site into one service. `compress` determines whether responses of an upstream server are
    /// compressed; files are not affected.
    pub fn into_service(self, compress: bool, recorder: Recorder) -> SiteService {
        let source = match self {
            Self::Files(files) => Source::Files(files),
            Self::Proxy(proxy) if compress => Source::Compressed(compressed(*proxy)),
            Self::Proxy(proxy) => Source::Proxy(Arc::new(*proxy)),
        };
        SiteService {
            source,
            echo: None,
            sessions: None,
            refusals: Refusals(None),
            recorder: Arc::new(recorder),
        }
    }
}

/// The service of a [`Site`].
#[derive(Clone, Debug)]
pub struct SiteService {
    source: Source,
    /// Resources that take precedence over those of the source.
    echo: Option<Echo>,
    /// The upstream server of sessions at all other paths.
    sessions: Option<SessionProxy>,
    refusals: Refusals,
    recorder: Arc<Recorder>,
}

/// Receives the reasons why sessions were refused.
#[derive(Clone)]
struct Refusals(Option<Report>);

type Report = Arc<dyn Fn(&str) + Send + Sync>;

impl fmt::Debug for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Refusals")
    }
}

impl Refusals {
    fn on_response(&self, response: &Response<Body>) {
        if let (Some(report), Some(refused)) = (
            &self.0,
            response.extensions().get::<webtransport::Refused>(),
        ) {
            report(&refused.0);
        }
    }
}

impl SiteService {
    /// Adds an echo of WebTransport sessions, whose paths take precedence over those of the site.
    #[must_use]
    pub fn with_echo(mut self, echo: Option<Echo>) -> Self {
        self.echo = echo;
        self
    }

    /// Forwards sessions of WebTransport to an upstream server, except those of the echo.
    #[must_use]
    pub fn with_sessions(mut self, sessions: Option<SessionProxy>) -> Self {
        self.sessions = sessions;
        self
    }

    /// Calls `report` with the reason of each session that is refused here, such as its origin: browsers tell a page nothing
    /// of it. It must not block.
    #[must_use]
    pub fn on_refused_session(mut self, report: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.refusals = Refusals(Some(Arc::new(report)));
        self
    }
}

#[derive(Clone, Debug)]
enum Source {
    /// Called directly, because most files are served in less time than a boxed future costs.
    Files(Files),
    /// Shared, because each request holds a clone.
    Proxy(Arc<Proxy>),
    Compressed(Compressed),
}

/// An upstream server whose responses are compressed. A closure, because the type of the layers cannot be named.
#[derive(Clone)]
struct Compressed(Arc<dyn Fn(Request<server::Body>, Record) -> ResponseFuture + Send + Sync>);

type ResponseFuture = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

impl fmt::Debug for Compressed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compressed")
    }
}

impl Service<Request<server::Body>> for SiteService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = files::Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<server::Body>) -> files::Answering {
        let mut record = self.recorder.begin(&mut request);
        if let Some(echo) = &self.echo
            && let Some(resource) = echo.resource(request.uri().path())
        {
            let (echo, refusals) = (echo.clone(), self.refusals.clone());
            return hooks::answer_later(Box::pin(async move {
                let response = echo.answer(resource, request).await;
                refusals.on_response(&response);
                record.answered(response)
            }));
        }
        if let Some(sessions) = &self.sessions
            && webtransport::is_session_request(&request)
        {
            let (sessions, refusals) = (sessions.clone(), self.refusals.clone());
            return hooks::answer_later(Box::pin(async move {
                let mut unrecorded = UpstreamFacts::default();
                let facts = record.upstream().unwrap_or(&mut unrecorded);
                let response = sessions.answer(request, facts).await;
                refusals.on_response(&response);
                record.answered(response)
            }));
        }
        match &self.source {
            Source::Files(files) => {
                hooks::answer(files, request, move |response| record.answered(response))
            }
            Source::Proxy(proxy) => {
                let proxy = proxy.clone();
                hooks::answer_later(Box::pin(async move {
                    let response = match record.upstream() {
                        Some(facts) => proxy.answer_recorded(request, facts).await,
                        None => proxy.answer(request).await,
                    };
                    record.answered(response)
                }))
            }
            Source::Compressed(answer) => hooks::answer_later((answer.0)(request, record)),
        }
    }
}

fn compressed(proxy: Proxy) -> Compressed {
    let answers = service_fn(move |request: Request<server::Body>| {
        let proxy = proxy.clone();
        async move {
            let is_forbidden = forbids_transformation(request.headers());
            let mut facts = UpstreamFacts::default();
            let mut response = proxy.answer_recorded(request, &mut facts).await;
            let is_unchanged = is_forbidden || must_stay(response.headers());
            let extensions = response.extensions_mut();
            if is_unchanged {
                extensions.insert(Unchanged);
            }
            // The layer hides the facts otherwise.
            extensions.insert(facts);
            Ok::<_, Infallible>(response)
        }
    });
    let may_change = |_, _, _: &HeaderMap, extensions: &Extensions| !is_unchanged(extensions);
    let layer = CompressionLayer::new().compress_when(DefaultPredicate::new().and(may_change));
    let compressed = layer.layer(answers);
    Compressed(Arc::new(move |request, mut record| {
        let answer = compressed.clone().oneshot(request);
        Box::pin(async move {
            let Ok(mut response) = answer.await;
            let facts = response.extensions_mut().remove();
            if let (Some(record), Some(facts)) = (record.upstream(), facts) {
                *record = facts;
            }
            record.answered(weaken(response.map(boxed)))
        })
    }))
}

/// An extension of responses whose content is forwarded as it was received.
#[derive(Clone, Copy, Debug)]
struct Unchanged;

fn is_unchanged(extensions: &Extensions) -> bool {
    extensions.get::<Unchanged>().is_some()
}

/// Returns true if the content of a response must not be compressed: it has a coding already, its server forbids it,
/// or a digest describes its bytes (RFC 9530).
fn must_stay(headers: &HeaderMap) -> bool {
    let is_digest = |name: &str| DIGESTS.iter().any(|it| it.eq_ignore_ascii_case(name));
    let mut announced = list(headers, &header::TRAILER);
    headers.contains_key(header::CONTENT_ENCODING)
        || forbids_transformation(headers)
        || DIGESTS.iter().any(|name| headers.contains_key(*name))
        || announced.any(is_digest)
}

/// Returns true if Cache-Control has the directive no-transform, in a request or a response (RFC 9110 §7.7, RFC 9111
/// §5.2.1.6, §5.2.2.6).
fn forbids_transformation(headers: &HeaderMap) -> bool {
    let mut directives = list(headers, &header::CACHE_CONTROL);
    directives.any(|directive| directive.eq_ignore_ascii_case("no-transform"))
}

/// Returns the elements of a list in all lines of a field. Lines with bytes beyond ASCII are left out.
fn list<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

/// The fields whose values depend on the bytes of the content.
const DIGESTS: [&str; 4] = ["content-digest", "repr-digest", "digest", "content-md5"];

/// Makes the ETag of content that was compressed here weak, because its bytes are not those that a strong ETag
/// identifies (RFC 9110 §8.8.1).
fn weaken(mut response: Response<Body>) -> Response<Body> {
    let is_compressed_here = !is_unchanged(response.extensions())
        && response.headers().contains_key(header::CONTENT_ENCODING);
    let headers = response.headers_mut();
    if is_compressed_here
        && let Some(tag) = headers.get(header::ETAG)
        && !tag.as_bytes().starts_with(b"W/")
        && let Ok(weak) = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat())
    {
        headers.insert(header::ETAG, weak);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_that_may_not_change_is_recognized() {
        for (name, value, is_kept) in [
            ("cache-control", "max-age=1", false),
            ("cache-control", "max-age=1, No-Transform", true),
            ("cache-control", "x=\"no-transform\"", false),
            ("content-encoding", "gzip", true),
            ("content-digest", "sha-256=:AA==:", true),
            ("repr-digest", "sha-256=:AA==:", true),
            ("digest", "sha-256=AA==", true),
            ("content-md5", "AA==", true),
            ("trailer", "x-sum, Content-Digest", true),
            ("trailer", "x-sum", false),
            ("etag", "\"1\"", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            assert_eq!(must_stay(&headers), is_kept, "{name}: {value}");
        }
    }
}
