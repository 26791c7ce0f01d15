//! Values of a tunnel that change.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use tokio::sync::watch::Receiver;

use super::core::Core;
use crate::tunnel::Ended;

/// A value of an [`IpTunnel`](crate::IpTunnel) that the other end may change, such as its addresses.
#[derive(Clone)]
pub struct Watch<T> {
    receiver: Receiver<T>,
    /// Has the sender, so that it outlives the receiver.
    core: Core,
}

impl<T: Clone> Watch<T> {
    pub(crate) const fn new(receiver: Receiver<T>, core: Core) -> Self {
        Self { receiver, core }
    }

    /// Returns the present value, which [`changed`](Self::changed) has seen then.
    pub fn get(&mut self) -> T {
        self.receiver.borrow_and_update().clone()
    }

    /// Waits until the value has changed since it was seen last, and returns it. A new watch has seen the value that it
    /// began with. Values between two calls are not reported.
    ///
    /// # Errors
    /// Returns the end of the tunnel.
    ///
    /// # Cancel safety
    /// Safe: a future that is dropped before it is ready has seen nothing.
    pub async fn changed(&mut self) -> Result<T, Ended> {
        {
            let mut changed = pin!(self.receiver.changed());
            let mut closed = pin!(self.core.tunnel.closed());
            poll_fn(|cx| match changed.as_mut().poll(cx) {
                Poll::Ready(_) => Poll::Ready(Ok(())),
                Poll::Pending => closed.as_mut().poll(cx).map(Err),
            })
            .await?;
        }
        Ok(self.get())
    }
}

impl<T: fmt::Debug> fmt::Debug for Watch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch")
            .field(&*self.receiver.borrow())
            .finish()
    }
}
