//! Cancellation of an upload whose request is cancelled before its response.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use courser_base::Mutex;
use courser_base::foreign::ForeignWaker;

/// Held by the owner of a request whose content is sent by another task. If it is dropped before the response
/// has arrived, that task ends, and its stream is reset (RFC 9114 §4.1.1).
#[derive(Debug, Default)]
pub(super) struct UploadGuard {
    state: Arc<Mutex<UploadState>>,
    is_answered: bool,
}

#[derive(Debug, Default)]
struct UploadState {
    is_cancelled: bool,
    /// The task that sends the content.
    sender: Option<ForeignWaker>,
}

impl UploadGuard {
    /// Runs `sending` until it completes or the request is cancelled.
    pub(super) fn unless_cancelled<F: Future>(
        &self,
        sending: F,
    ) -> impl Future<Output = ()> + use<F> {
        let state = Arc::clone(&self.state);
        async move {
            let mut sending = pin!(sending);
            std::future::poll_fn(|cx| {
                let is_known = {
                    let state = state.hold();
                    let sender = state.sender.as_ref();
                    sender.is_some_and(|it| it.as_waker().will_wake(cx.waker()))
                };
                let waker = (!is_known).then(|| ForeignWaker::of(cx));
                let mut state = state.hold();
                if state.is_cancelled {
                    return Poll::Ready(());
                }
                if waker.is_some() {
                    state.sender = waker;
                }
                drop(state);
                sending.as_mut().poll(cx).map(drop)
            })
            .await;
        }
    }

    /// Lets the content continue, because the response has arrived.
    pub(super) fn on_response(mut self) {
        self.is_answered = true;
    }
}

impl Drop for UploadGuard {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let mut state = self.state.hold();
        state.is_cancelled = true;
        let sender = state.sender.take();
        drop(state);
        if let Some(sender) = sender {
            sender.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::task::{Context, Waker};

    use super::*;

    /// Polls an endless upload before and after `end`. Returns whether it was complete each time.
    fn is_complete_after(end: impl FnOnce(UploadGuard)) -> (bool, bool) {
        let guard = UploadGuard::default();
        let mut sending = pin!(guard.unless_cancelled(pending::<()>()));
        let mut cx = Context::from_waker(Waker::noop());
        let before = sending.as_mut().poll(&mut cx).is_ready();
        end(guard);
        (before, sending.as_mut().poll(&mut cx).is_ready())
    }

    #[test]
    fn upload_ends_with_its_request_but_not_with_its_response() {
        assert_eq!(is_complete_after(drop), (false, true));
        assert_eq!(is_complete_after(UploadGuard::on_response), (false, false));
    }
}
