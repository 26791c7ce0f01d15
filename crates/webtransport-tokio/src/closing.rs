//! The delivery of a close.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::shared::Shared;

/// A future that waits until the peer has acknowledged the end of the session, of
/// [`Session::close`](crate::Session::close).
///
/// It returns true if the peer has the code and the message, and false if that will not be known: because the connection
/// was lost, or the peer has closed or reset the session itself.
///
/// # Cancel safety
/// Dropping it changes nothing: the session is closed all the same.
pub struct Closing(Pin<Box<dyn Future<Output = bool> + Send + Sync>>);

impl Closing {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(Box::pin(async move { shared.delivered().await }))
    }
}

impl Future for Closing {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closing").finish_non_exhaustive()
    }
}
