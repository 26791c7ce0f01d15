//! Compression of content.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::header::ACCEPT_ENCODING;
use http::{Request, Response};
use http_body::Body as _;
use tower_http::compression::{Compression, CompressionBody};
use tower_service::Service;

use crate::body::Body;
use crate::coding::Coding;

/// Length in bytes below which compression does not make files smaller.
pub(crate) const MIN_LEN: u64 = 32;

/// Length in bytes of the largest content that is compressed on the thread of the request. 4 KiB take
/// about 50 us.
pub(crate) const MAX_INLINE_LEN: u64 = 4 * 1024;

/// Compresses a body while it is sent.
pub(crate) fn stream(body: Body, coding: Coding) -> Body {
    Body::boxed(compressor(body, coding))
}

/// Compresses all of `content`. Returns `None` if it does not get smaller.
pub(crate) fn whole(content: &Bytes, coding: Coding) -> Option<Bytes> {
    let mut compressed = pin!(compressor(Body::full(content.clone()), coding));
    let mut all = BytesMut::with_capacity(content.len() / 2);
    let mut cx = Context::from_waker(Waker::noop());
    // The content is complete, so polling never waits.
    while let Poll::Ready(frame) = compressed.as_mut().poll_frame(&mut cx) {
        let Some(frame) = frame else {
            return Some(all.freeze());
        };
        all.extend_from_slice(&frame.ok()?.into_data().ok()?);
        if all.len() >= content.len() {
            return None;
        }
    }
    None
}

/// Compresses a body with tower-http, as if a service had returned it.
fn compressor(body: Body, coding: Coding) -> CompressionBody<Body> {
    let mut service = Compression::new(Once(Some(body)));
    let mut request = Request::new(());
    let accept = coding.header_value();
    request.headers_mut().insert(ACCEPT_ENCODING, accept);
    let mut response = pin!(service.call(request));
    loop {
        let mut cx = Context::from_waker(Waker::noop());
        // The service responds at once, so polling never waits.
        if let Poll::Ready(Ok(response)) = response.as_mut().poll(&mut cx) {
            return response.into_body();
        }
    }
}

/// A service that responds once.
struct Once(Option<Body>);

impl Service<Request<()>> for Once {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        let body = self.0.take().unwrap_or_else(Body::empty);
        ready(Ok(Response::new(body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_gets_smaller_or_stays_as_it_is() {
        let text = Bytes::from("words and words ".repeat(1000));
        for coding in Coding::COMPRESSED_HERE {
            let compressed = whole(&text, *coding).expect("text gets smaller");
            assert!(compressed.len() < 1000, "{coding:?}: {}", compressed.len());
        }
        let mut state = 1_u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .take(1000)
        .collect();
        assert_eq!(whole(&noise.into(), Coding::Gzip), None);
    }
}
