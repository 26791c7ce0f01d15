//! What answers requests: files, or a server behind; compressed, and noted.

use std::convert::Infallible;

use courser::server;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use tower::util::BoxCloneSyncService;
use tower::{Layer as _, service_fn};
use tower_http::compression::CompressionLayer;

use super::body::{Body, boxed};
use super::files::Files;
use super::proxy::Proxy;
use super::record::Recorder;

/// Where answers come from.
#[derive(Clone, Debug)]
pub(super) enum Site {
    Files(Box<Files>),
    Proxy(Box<Proxy>),
}

pub(super) type Service = BoxCloneSyncService<Request<server::Body>, Response<Body>, Infallible>;

impl Site {
    /// What is served, for humans.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Files(files) => files.root().display().to_string(),
            Self::Proxy(proxy) => proxy.backend().to_string(),
        }
    }

    /// All of it as one service.
    pub(super) fn into_service(self, compress: bool, recorder: Recorder) -> Service {
        let answers = service_fn(move |request: Request<server::Body>| {
            let site = self.clone();
            async move {
                Ok::<_, Infallible>(match site {
                    Self::Files(files) => files.answer(request).await,
                    Self::Proxy(proxy) => proxy.answer(request).await,
                })
            }
        });
        let inner = if compress {
            let compressed = CompressionLayer::new().layer(answers);
            BoxCloneSyncService::new(service_fn(move |request| {
                let answer = tower::ServiceExt::oneshot(compressed.clone(), request);
                async move {
                    let response: Response<_> = answer.await?;
                    Ok(weaken(response.map(boxed)))
                }
            }))
        } else {
            BoxCloneSyncService::new(answers)
        };
        BoxCloneSyncService::new(service_fn(move |request| {
            let answer = recorder.clone().answer(request, inner.clone());
            async move { Ok(answer.await) }
        }))
    }
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
