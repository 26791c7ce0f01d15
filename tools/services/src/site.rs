//! A whole site as one service: files, or an upstream server; compressed and recorded.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use courser::files::{self, Files};
use courser::server;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use tower::util::BoxCloneSyncService;
use tower::{Layer as _, Service, service_fn};
use tower_http::compression::CompressionLayer;

use crate::body::{Body, boxed};
use crate::proxy::Proxy;
use crate::record::{Record, RecordedBody, Recorder};

/// The source of responses.
#[derive(Clone, Debug)]
pub enum Site {
    /// A folder; [`Files`] compresses on its own.
    Files(Files),
    /// An upstream server.
    Proxy(Box<Proxy>),
}

impl Site {
    /// Returns the folder or the upstream server, for humans.
    pub fn name(&self) -> String {
        match self {
            Self::Files(files) => files.root().display().to_string(),
            Self::Proxy(proxy) => proxy.backend().to_string(),
        }
    }

    /// Returns the folder, if it is one.
    pub fn files(&self) -> Option<Files> {
        match self {
            Self::Files(files) => Some(files.clone()),
            Self::Proxy(_) => None,
        }
    }

    /// Makes one service of it. `compress` compresses the responses of an upstream server.
    pub fn into_service(self, compress: bool, recorder: Recorder) -> Answers {
        let source = match self {
            Self::Files(files) => Source::Files(files),
            Self::Proxy(proxy) if compress => Source::Boxed(compressed(*proxy)),
            Self::Proxy(proxy) => Source::Proxy(Arc::new(*proxy)),
        };
        Answers {
            source,
            recorder: Arc::new(recorder),
        }
    }
}

/// The service of a [`Site`].
#[derive(Clone, Debug)]
pub struct Answers {
    source: Source,
    recorder: Arc<Recorder>,
}

#[derive(Clone, Debug)]
enum Source {
    /// Answers directly: most files are answered in less time than a box takes.
    Files(Files),
    /// Shared, since each request has a clone.
    Proxy(Arc<Proxy>),
    Boxed(Boxed),
}

type Boxed = BoxCloneSyncService<Request<server::Body>, Response<Body>, Infallible>;

/// The response of a [`Site`] to a request, as a future.
#[must_use = "futures do nothing unless polled"]
pub struct Answering {
    source: AnsweringSource,
    /// Taken with the response.
    record: Option<Record>,
}

enum AnsweringSource {
    File(files::Answering),
    Boxed(Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>),
}

impl Service<Request<server::Body>> for Answers {
    type Response = Response<RecordedBody>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match &mut self.source {
            Source::Files(_) | Source::Proxy(_) => Poll::Ready(Ok(())),
            Source::Boxed(service) => service.poll_ready(cx),
        }
    }

    fn call(&mut self, request: Request<server::Body>) -> Answering {
        let record = self.recorder.begin(&request);
        let source = match &mut self.source {
            Source::Files(files) => AnsweringSource::File(files.call(request)),
            Source::Proxy(proxy) => {
                let proxy = proxy.clone();
                let answer = async move { Ok(proxy.answer(request).await) };
                AnsweringSource::Boxed(Box::pin(answer))
            }
            Source::Boxed(service) => AnsweringSource::Boxed(service.call(request)),
        };
        Answering {
            source,
            record: Some(record),
        }
    }
}

impl Future for Answering {
    type Output = Result<Response<RecordedBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = match &mut self.source {
            AnsweringSource::File(answer) => Pin::new(answer).poll(cx),
            AnsweringSource::Boxed(answer) => answer.as_mut().poll(cx),
        };
        let Ok(response) = ready!(polled);
        let record = self.record.take().unwrap_or_default();
        Poll::Ready(Ok(record.answered(response)))
    }
}

fn compressed(proxy: Proxy) -> Boxed {
    let answers = service_fn(move |request: Request<server::Body>| {
        let proxy = proxy.clone();
        async move { Ok::<_, Infallible>(proxy.answer(request).await) }
    });
    let compressed = CompressionLayer::new().layer(answers);
    BoxCloneSyncService::new(service_fn(move |request| {
        let answer = tower::ServiceExt::oneshot(compressed.clone(), request);
        async move {
            let response: Response<_> = answer.await?;
            Ok(weaken(response.map(boxed)))
        }
    }))
}

/// Makes the ETag of compressed content weak: its bytes are not those that a strong ETag identifies (RFC
/// 9110 §8.8.1). Content that was compressed by the upstream server has a length.
fn weaken(mut response: Response<Body>) -> Response<Body> {
    let headers: &mut HeaderMap = response.headers_mut();
    let is_on_the_fly = headers.contains_key(header::CONTENT_ENCODING)
        && !headers.contains_key(header::CONTENT_LENGTH);
    if is_on_the_fly
        && let Some(tag) = headers.get(header::ETAG)
        && !tag.as_bytes().starts_with(b"W/")
        && let Ok(weak) = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat())
    {
        headers.insert(header::ETAG, weak);
    }
    response
}
