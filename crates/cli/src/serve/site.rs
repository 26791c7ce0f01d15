//! What answers requests: files, or a server behind; compressed, and noted.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use courser::files::{self, Files};
use courser::server;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use tower::util::BoxCloneSyncService;
use tower::{Layer as _, Service, service_fn};
use tower_http::compression::CompressionLayer;

use super::body::{Body, boxed};
use super::proxy::Proxy;
use super::record::Recorder;

/// Where answers come from.
#[derive(Clone, Debug)]
pub(super) enum Site {
    /// Compresses by itself.
    Files(Files),
    Proxy(Box<Proxy>),
}

impl Site {
    /// What is served, for humans.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Files(files) => files.root().display().to_string(),
            Self::Proxy(proxy) => proxy.backend().to_string(),
        }
    }

    /// The folder, if it is one.
    pub(super) fn files(&self) -> Option<Files> {
        match self {
            Self::Files(files) => Some(files.clone()),
            Self::Proxy(_) => None,
        }
    }

    /// All of it as one service. `compress` concerns the answers of a server behind.
    pub(super) fn into_service(self, compress: bool, recorder: Recorder) -> Answers {
        match self {
            Self::Files(files) if recorder.is_idle() => Answers::Files(files),
            Self::Files(files) => Answers::Boxed(recorded(recorder, files)),
            Self::Proxy(proxy) => Answers::Boxed(recorded(recorder, proxied(*proxy, compress))),
        }
    }
}

/// The service that answers all requests.
#[derive(Clone, Debug)]
pub(super) enum Answers {
    /// With nothing between: most files are answered in less time than a box takes.
    Files(Files),
    Boxed(Boxed),
}

type Boxed = BoxCloneSyncService<Request<server::Body>, Response<Body>, Infallible>;

/// Its answer to a request.
pub(super) enum Answering {
    File(files::Answering),
    Boxed(Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>),
}

impl Service<Request<server::Body>> for Answers {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match self {
            Self::Files(_) => Poll::Ready(Ok(())),
            Self::Boxed(service) => service.poll_ready(cx),
        }
    }

    fn call(&mut self, request: Request<server::Body>) -> Answering {
        match self {
            Self::Files(files) => Answering::File(files.call(request)),
            Self::Boxed(service) => Answering::Boxed(service.call(request)),
        }
    }
}

impl Future for Answering {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::File(answer) => Pin::new(answer).poll(cx),
            Self::Boxed(answer) => answer.as_mut().poll(cx),
        }
    }
}

fn recorded<S>(recorder: Recorder, service: S) -> Boxed
where
    S: Service<Request<server::Body>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
{
    BoxCloneSyncService::new(service_fn(move |request| {
        let answer = recorder.clone().answer(request, service.clone());
        async move { Ok(answer.await) }
    }))
}

fn proxied(proxy: Proxy, compress: bool) -> Boxed {
    let answers = service_fn(move |request: Request<server::Body>| {
        let proxy = proxy.clone();
        async move { Ok::<_, Infallible>(proxy.answer(request).await) }
    });
    if !compress {
        return BoxCloneSyncService::new(answers);
    }
    let compressed = CompressionLayer::new().layer(answers);
    BoxCloneSyncService::new(service_fn(move |request| {
        let answer = tower::ServiceExt::oneshot(compressed.clone(), request);
        async move {
            let response: Response<_> = answer.await?;
            Ok(weaken(response.map(boxed)))
        }
    }))
}

/// Content that was compressed on the way has not the bytes that a strong ETag stands for
/// (RFC 9110 §8.8.1). What was compressed before has a length.
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
