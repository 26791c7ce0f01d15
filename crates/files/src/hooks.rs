//! Operations for services that return the body and future types of this crate, without wrapping them
//! again.
//!
//! This module is not part of the public API. It changes without notice.

use std::pin::Pin;

use http::{Request, Response};

use crate::{Answering, Body, Files};

pub use crate::body::BodyObserver;

/// Responds to a request like the service [`Files`], and passes the response through `change`.
pub fn answer<B>(
    files: &Files,
    request: Request<B>,
    change: impl FnOnce(Response<Body>) -> Response<Body> + Send + 'static,
) -> Answering {
    files.answer(request, change)
}

/// Returns the future of a response that another service computes.
pub fn answer_later(answer: Pin<Box<dyn Future<Output = Response<Body>> + Send>>) -> Answering {
    Answering::later(answer)
}

/// Reports the content of `body` to `observer`, which is dropped with the body.
pub fn observe(body: Body, observer: Box<dyn BodyObserver>) -> Body {
    body.observed(observer)
}
