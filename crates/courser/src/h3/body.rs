//! Bodies.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use courser_http3::Step;
use http_body::{Frame, SizeHint};

use super::error::Error;
use super::incoming::Incoming;
use super::upgrade::Slot;

/// The body of a message that arrives: content as it comes, then trailers.
///
/// Nothing is received beyond the stream's window while nobody reads. Dropped before its end, a
/// request's body tells the client to send no more of it, a response's cancels the request.
///
/// # Cancel safety
/// A frame that was not handed out is handed out by the next poll.
#[derive(Debug)]
pub struct Body {
    /// None when there is nothing to come.
    incoming: Option<Box<Incoming>>,
    /// Where it is instead, until it is read: an upgrade may take it.
    offer: Option<Arc<Slot>>,
    /// What `content-length` leaves to come.
    left: Option<u64>,
}

impl Body {
    pub(super) fn new(incoming: Box<Incoming>, length: Option<u64>) -> Self {
        Self {
            incoming: Some(incoming).filter(|incoming| !incoming.message.is_over()),
            offer: None,
            left: length,
        }
    }

    /// The body of a CONNECT.
    pub(super) fn offered(offer: Arc<Slot>) -> Self {
        Self {
            incoming: None,
            offer: Some(offer),
            left: None,
        }
    }

    /// What is left of a message.
    pub(super) fn of(incoming: Option<Box<Incoming>>) -> Self {
        Self {
            incoming,
            offer: None,
            left: None,
        }
    }

    /// Ends the stream for a mistake of the peer's in what was read.
    pub(super) fn abort(&mut self, error: courser_http3::Error) -> Error {
        match &mut self.incoming {
            Some(incoming) => incoming.fail(error),
            None => error.into(),
        }
    }

    /// Nothing: the body of a request that was made here.
    pub const fn empty() -> Self {
        Self {
            incoming: None,
            offer: None,
            left: Some(0),
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(offer) = self.offer.take() {
            self.incoming = offer.take_incoming();
        }
        let Some(incoming) = &mut self.incoming else {
            return Poll::Ready(None);
        };
        let frame = match std::task::ready!(incoming.poll_step(cx)) {
            Ok(Step::Content(data)) => {
                let len = data.len() as u64;
                self.left = self.left.map(|left| left.saturating_sub(len));
                Some(Ok(Frame::data(data)))
            }
            Ok(Step::Trailers(trailers)) => Some(Ok(Frame::trailers(*trailers))),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        };
        if matches!(frame, None | Some(Err(_))) {
            self.incoming = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        let incoming = self.incoming.as_ref();
        self.offer.is_none() && incoming.is_none_or(|incoming| incoming.message.is_over())
    }

    fn size_hint(&self) -> SizeHint {
        match self.left {
            Some(left) => SizeHint::with_exact(left),
            None => SizeHint::default(),
        }
    }
}

/// A body without anything in it, for requests and responses that have none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Empty;

impl Empty {
    /// The same as `Empty`.
    pub const fn new() -> Self {
        Self
    }
}

impl http_body::Body for Empty {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(0)
    }
}
