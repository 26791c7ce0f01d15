//! The frames of a received body.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use courser_http3::Step;
use http_body::{Frame, SizeHint};

use super::Body;
use crate::error::Error;

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
            Err(failure) => Some(Err(failure.into())),
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
