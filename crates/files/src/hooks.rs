//! Operations for services that respond with the types of this crate, and for which these should not
//! need another future and another body.
//!
//! None of this is part of the public API, and it changes without notice.

use std::pin::Pin;

use http::{Request, Response};

use crate::{Answering, Body, Files};

pub use crate::body::BodyObserver;

/// Answers a request like the service [`Files`], and passes the response through `change`.
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
