//! Futures of rare events.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};

use courser_base::Mutex;

/// A future that is polled at first and then only after it has woken its task.
///
/// A task that waits for several events polls the futures of all of them whenever one occurs. Connections wait for
/// events that most of them never see: the end of the server, a blocked address, a lack of memory. Asking for these
/// at each read and write was a twentieth of the cost of a proxied request.
pub(crate) struct Rare<F: ?Sized> {
    future: Pin<Box<F>>,
    event: Arc<Event>,
    /// Records in `event` that the future is to be polled.
    recorder: Waker,
    /// The task that `event` wakes, kept here so that most polls take no lock.
    task: Option<Waker>,
}

struct Event {
    is_due: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl<F: ?Sized> Rare<F> {
    pub(crate) fn new(future: Pin<Box<F>>) -> Self {
        let event = Arc::new(Event {
            is_due: AtomicBool::new(true),
            task: Mutex::new(None),
        });
        Self {
            future,
            recorder: Waker::from(event.clone()),
            event,
            task: None,
        }
    }
}

impl<F: Future + ?Sized> Future for Rare<F> {
    type Output = F::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let is_known = |task: &Waker| task.will_wake(cx.waker());
        if !this.task.as_ref().is_some_and(is_known) {
            this.task = Some(cx.waker().clone());
            let previous = this.event.task.lock().replace(cx.waker().clone());
            // Dropped without the lock, because wakers are foreign code.
            drop(previous);
        }
        // An event that is recorded after this wakes the task. The lock above and that in `wake_by_ref` order both
        // accesses if the task has just changed.
        if !this.event.is_due.load(Relaxed) {
            return Poll::Pending;
        }
        this.event.is_due.store(false, Relaxed);
        let mut cx = Context::from_waker(&this.recorder);
        this.future.as_mut().poll(&mut cx)
    }
}

impl Wake for Event {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_due.store(true, Relaxed);
        let task = self.task.lock().clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl<F: ?Sized> fmt::Debug for Rare<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rare").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::Notify;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    fn task() -> (Arc<Count>, Waker) {
        let count = Arc::<Count>::default();
        (count.clone(), Waker::from(count))
    }

    #[test]
    fn future_is_polled_only_after_it_was_woken() {
        let (event, polls) = (Notify::new(), AtomicUsize::new(0));
        let mut notified = Box::pin(event.notified());
        let counted = poll_fn(|cx| {
            polls.fetch_add(1, Relaxed);
            notified.as_mut().poll(cx)
        });
        let mut rare = pin!(Rare::new(Box::pin(counted)));
        let (first, second) = (task(), task());
        let mut poll = |task: &Waker| rare.as_mut().poll(&mut Context::from_waker(task));
        for _ in 0..3 {
            assert!(poll(&first.1).is_pending());
        }
        assert_eq!(polls.load(Relaxed), 1);
        // The task that polled last is woken.
        assert!(poll(&second.1).is_pending());
        event.notify_waiters();
        assert_eq!((first.0.0.load(Relaxed), second.0.0.load(Relaxed)), (0, 1));
        assert!(poll(&second.1).is_ready());
        assert_eq!(polls.load(Relaxed), 2);
    }

    #[test]
    fn wake_before_the_future_is_pending_is_not_lost() {
        let mut is_first = true;
        let yielding = poll_fn(|cx| {
            if std::mem::take(&mut is_first) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(())
        });
        let mut rare = pin!(Rare::new(Box::pin(yielding)));
        let (count, waker) = task();
        let mut cx = Context::from_waker(&waker);
        assert!(rare.as_mut().poll(&mut cx).is_pending());
        assert_eq!(count.0.load(Relaxed), 1);
        assert!(rare.as_mut().poll(&mut cx).is_ready());
    }
}
