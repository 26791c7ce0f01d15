//! The requests of every HTTP peer: `GET /N` is answered with N bytes.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

use crate::settings::CHUNK_SIZE;
use crate::tally::Tally;

/// The name of HTTP/3 in ALPN.
pub const ALPN_H3: &[u8] = b"h3";

/// The name of HTTP/2 in ALPN.
pub const ALPN_H2: &[u8] = b"h2";

/// Returns the number of bytes that a path requests, or `None` for other paths.
pub fn wanted(path: &str) -> Option<u64> {
    path.strip_prefix('/')?.parse().ok()
}

/// Returns the path that requests a number of bytes.
pub fn path(size: u64) -> String {
    format!("/{size}")
}

/// Answers a request without looking at its body, and counts it.
pub fn answer<B>(request: &Request<B>, tally: &Tally) -> Response<Filler> {
    let size = wanted(request.uri().path());
    tally.answered(0, size.unwrap_or(0));
    let mut response = Response::new(Filler::new(size.unwrap_or(0)));
    if size.is_none() {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}

/// So many bytes that mean nothing, in chunks that share their memory.
#[derive(Clone, Debug)]
pub struct Filler {
    left: u64,
}

impl Filler {
    /// A body of `size` bytes.
    pub const fn new(size: u64) -> Self {
        Self { left: size }
    }

    /// The next chunk; `None` at the end.
    pub fn chunk(&mut self) -> Option<Bytes> {
        let size = usize::try_from(self.left)
            .unwrap_or(CHUNK_SIZE)
            .min(CHUNK_SIZE);
        if size == 0 {
            return None;
        }
        self.left -= size as u64;
        Some(Bytes::from_static(&ZEROS[..size]))
    }
}

impl Body for Filler {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.chunk().map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

static ZEROS: [u8; CHUNK_SIZE] = [0; CHUNK_SIZE];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_say_how_much() {
        assert_eq!(wanted(&path(100_000_000)), Some(100_000_000));
        assert_eq!(wanted("/"), None);
        assert_eq!(wanted("/x"), None);
    }

    #[test]
    fn fillers_have_their_size() {
        for size in [0, 1, CHUNK_SIZE as u64, CHUNK_SIZE as u64 * 3 + 7] {
            let mut filler = Filler::new(size);
            let mut sum = 0;
            while let Some(chunk) = filler.chunk() {
                sum += chunk.len() as u64;
            }
            assert_eq!(sum, size);
            assert!(filler.is_end_stream());
        }
    }
}
