//! Request bodies that can be sent again.

use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use courser_base::Mutex;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;

use super::error::BoxError;

/// A body that keeps its beginning, so that a request can be sent again after it was not processed or was
/// redirected.
pub struct RequestBody {
    source: Arc<Mutex<Source>>,
    /// Index of the next kept frame to return.
    next: usize,
    generation: u64,
    /// Completes when the content may be sent. `None` if nothing holds it back.
    permission: Option<BoxPermission>,
}

/// The permission to send content, or the reason why it is not sent.
type BoxPermission = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;

struct Source {
    /// The remaining body, or `None` for requests without one.
    inner: Option<UnsyncBoxBody<Bytes, BoxError>>,
    kept: Vec<Kept>,
    kept_bytes: usize,
    /// True if frames were discarded because of the limits.
    is_incomplete: bool,
    has_ended: bool,
    /// Number of restarts. Bodies of earlier generations may still be polled.
    generation: u64,
}

#[derive(Clone, Debug)]
enum Kept {
    Data(Bytes),
    Trailers(HeaderMap),
}

impl RequestBody {
    /// Creates a request body from the body of a user.
    pub fn new<B>(body: B) -> Self
    where
        B: Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self::streamed((!body.is_end_stream()).then(|| boxed(body)))
    }

    /// Creates a body from content in memory. It needs no boxes, and can be sent any number of times.
    pub(super) fn in_memory(data: Option<Bytes>) -> Self {
        Self::of(Source {
            inner: None,
            kept_bytes: data.as_ref().map_or(0, Bytes::len),
            kept: data.map(Kept::Data).into_iter().collect(),
            is_incomplete: false,
            has_ended: true,
            generation: 0,
        })
    }

    fn streamed(inner: Option<UnsyncBoxBody<Bytes, BoxError>>) -> Self {
        Self::of(Source {
            has_ended: inner.is_none(),
            inner,
            kept: Vec::new(),
            kept_bytes: 0,
            is_incomplete: false,
            generation: 0,
        })
    }

    fn of(source: Source) -> Self {
        Self {
            source: Arc::new(Mutex::new(source)),
            next: 0,
            generation: 0,
            permission: None,
        }
    }

    /// Holds back the content until `permission` completes.
    pub(super) fn hold(
        &mut self,
        permission: impl Future<Output = Result<(), BoxError>> + Send + 'static,
    ) {
        self.permission = Some(Box::pin(permission));
    }

    pub(super) fn empty() -> Self {
        Self::new(courser_http3_tokio::Empty)
    }

    /// Returns a handle that can recreate the body.
    pub fn handle(&self) -> Replay {
        Replay(self.source.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Source> {
        lock(&self.source)
    }
}

/// Returns any body as one type.
pub(super) fn boxed<B>(body: B) -> UnsyncBoxBody<Bytes, BoxError>
where
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    Converted(Box::pin(body)).boxed_unsync()
}

/// Recreates a request body from its kept frames.
pub struct Replay(Arc<Mutex<Source>>);

impl Replay {
    /// Returns true if all frames so far were kept.
    pub(super) fn is_possible(&self) -> bool {
        !lock(&self.0).is_incomplete
    }

    /// Returns the body from its beginning, or `None` if that was not kept. Earlier bodies then return an error.
    pub fn restart(&self) -> Option<RequestBody> {
        let mut source = lock(&self.0);
        if source.is_incomplete {
            return None;
        }
        source.generation += 1;
        Some(RequestBody {
            source: self.0.clone(),
            next: 0,
            generation: source.generation,
            permission: None,
        })
    }
}

fn lock(source: &Mutex<Source>) -> MutexGuard<'_, Source> {
    // If the user's body panics, the state remains consistent.
    source.lock()
}

impl Source {
    fn keep(&mut self, kept: Kept) {
        if self.is_incomplete {
            return;
        }
        let size = match &kept {
            Kept::Data(data) => data.len(),
            Kept::Trailers(_) => 0,
        };
        if self.kept_bytes + size > MAX_KEPT || self.kept.len() >= MAX_KEPT_FRAMES {
            self.is_incomplete = true;
            self.kept = Vec::new();
            return;
        }
        self.kept_bytes += size;
        self.kept.push(kept);
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Some(permission) = &mut this.permission {
            let granted = ready!(permission.as_mut().poll(cx));
            this.permission = None;
            granted?;
        }
        let mut source = lock(&this.source);
        let source = &mut *source;
        if source.generation != this.generation {
            return Poll::Ready(Some(Err("the request was sent again".into())));
        }
        if let Some(kept) = source.kept.get(this.next) {
            this.next += 1;
            return Poll::Ready(Some(Ok(match kept.clone() {
                Kept::Data(data) => Frame::data(data),
                Kept::Trailers(trailers) => Frame::trailers(trailers),
            })));
        }
        let Some(inner) = source.inner.as_mut().filter(|_| !source.has_ended) else {
            return Poll::Ready(None);
        };
        let frame = match ready!(Pin::new(inner).poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                // A body must not be polled after an error.
                source.is_incomplete = true;
                return Poll::Ready(Some(Err(error)));
            }
            None => {
                source.has_ended = true;
                return Poll::Ready(None);
            }
        };
        if let Some(data) = frame.data_ref() {
            source.keep(Kept::Data(data.clone()));
        } else if let Some(trailers) = frame.trailers_ref() {
            source.keep(Kept::Trailers(trailers.clone()));
        }
        this.next = source.kept.len();
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        let source = self.lock();
        let has_ended = source.has_ended || source.inner.as_ref().is_none_or(Body::is_end_stream);
        has_ended && self.next >= source.kept.len()
    }

    fn size_hint(&self) -> SizeHint {
        let source = self.lock();
        let kept: usize = source
            .kept
            .iter()
            .skip(self.next)
            .map(|kept| match kept {
                Kept::Data(data) => data.len(),
                Kept::Trailers(_) => 0,
            })
            .sum();
        let rest = match &source.inner {
            Some(inner) if !source.has_ended => inner.size_hint(),
            _ => SizeHint::with_exact(0),
        };
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + kept as u64);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + kept as u64);
        }
        hint
    }
}

/// The user's body with its data as `Bytes` and its errors as one type.
struct Converted<B>(Pin<Box<B>>);

impl<B> Body for Converted<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let convert = |mut data: B::Data| data.copy_to_bytes(data.remaining());
        let frame = ready!(self.0.as_mut().poll_frame(cx));
        let frame = frame.map(|frame| match frame {
            Ok(frame) => Ok(frame.map_data(convert)),
            Err(error) => Err(error.into()),
        });
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// Largest number of kept bytes; a larger body can be sent only once. Data is shared with the sender, not
/// copied.
const MAX_KEPT: usize = 1 << 20;
/// Largest number of kept frames, for bodies with very small frames.
const MAX_KEPT_FRAMES: usize = 1024;

#[cfg(test)]
mod tests;
