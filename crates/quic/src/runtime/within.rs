//! Futures that run inside a runtime.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::current::enter;
use super::traits::Runtime;

/// Runs `future` inside `runtime`: enters it around every poll, and while the future is dropped.
///
/// Endpoints that the future creates, tasks that it spawns and timers that it sets belong to
/// `runtime`. The future itself may be polled by any executor, so that this is how a program and the
/// tasks of a [`Runtime`] are started:
///
/// ```
/// # extern crate courser_quic as courser;
/// # use std::sync::Arc;
/// use courser::runtime::{self, Runtime};
///
/// fn run<F: Future>(runtime: Arc<dyn Runtime>, main: F) -> F::Output {
///     // Any executor's block_on.
/// #   let block_on = |future| tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future);
///     block_on(runtime::within(runtime, main))
/// }
/// ```
///
/// Several runtimes can be used in one process, and even on one thread. Each endpoint belongs to
/// the one that was entered when it was created, or to tokio. Its handles, connections and streams may be
/// used from tasks of any of them.
///
/// # Cancel safety
/// The same as for `future`.
///
/// # Panics
/// The result panics if it is polled after it was ready.
pub fn within<F: Future>(runtime: Arc<dyn Runtime>, future: F) -> Within<F> {
    Within {
        future: Some(Box::pin(future)),
        runtime,
    }
}

/// The future of [`within`].
#[must_use = "nothing runs until it is awaited"]
pub struct Within<F: Future> {
    // None once it is over. Dropped inside the runtime.
    future: Option<Pin<Box<F>>>,
    runtime: Arc<dyn Runtime>,
}

impl<F: Future> Future for Within<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let _entered = enter(this.runtime.clone());
        let future = this.future.as_mut().expect("polled after it was ready");
        let poll = future.as_mut().poll(cx);
        if poll.is_ready() {
            this.future = None;
        }
        poll
    }
}

impl<F: Future> Drop for Within<F> {
    fn drop(&mut self) {
        if self.future.is_some() {
            let _entered = enter(self.runtime.clone());
            self.future = None;
        }
    }
}

impl<F: Future> fmt::Debug for Within<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Within")
            .field("runtime", &self.runtime)
            .finish_non_exhaustive()
    }
}
