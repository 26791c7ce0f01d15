//! The executor of an HTTP/2 connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::first_poll::{First, FirstPolls};

/// Runs the answers of an HTTP/2 connection: those that can be given at once on the task of the
/// connection, others in tasks of their own.
///
/// Clones belong to the same connection.
#[derive(Clone, Default, Debug)]
pub(super) struct Executor(Arc<Mutex<FirstPolls>>);

impl Executor {
    /// The connection has nothing to do for now.
    pub(super) fn pause(&self) {
        self.lock().pause();
    }

    fn lock(&self) -> MutexGuard<'_, FirstPolls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> hyper::rt::Executor<F> for Executor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, answer: F) {
        let answer = Box::pin(answer);
        // An answer may begin others: the lock is not held while it is polled.
        let mut first = *self.lock();
        if first.is_careful() {
            *self.lock() = first;
            tokio::spawn(answer);
            return;
        }
        let polled = first.poll(answer);
        *self.lock() = first;
        if let First::Waits(answer) = polled {
            tokio::spawn(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use hyper::rt::Executor as _;

    use super::*;

    #[tokio::test]
    async fn an_answer_that_is_ready_needs_no_task() {
        // A thread that is stopped in the midst of one makes it a long one: a busy machine may try again.
        let all_at_once = (0..20).any(|_| {
            let (executor, done) = (Executor::default(), Arc::new(AtomicUsize::new(0)));
            for _ in 0..100 {
                let done = done.clone();
                executor.execute(async move {
                    done.fetch_add(1, SeqCst);
                });
            }
            done.load(SeqCst) == 100
        });
        assert!(all_at_once);
    }

    #[tokio::test]
    async fn an_answer_that_waits_becomes_a_task() {
        let (executor, done) = (Executor::default(), Arc::new(AtomicUsize::new(0)));
        let (other, inner) = (done.clone(), executor.clone());
        executor.execute(async move {
            tokio::task::yield_now().await;
            // As an upgrade does.
            inner.execute(async move {
                other.fetch_add(1, SeqCst);
            });
        });
        assert_eq!(done.load(SeqCst), 0);
        while done.load(SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_panic_stays_with_its_answer() {
        let (executor, done) = (Executor::default(), Arc::new(AtomicUsize::new(0)));
        executor.execute(async { panic!("a service that fails") });
        for _ in 0..3 {
            let done = done.clone();
            executor.execute(async move {
                done.fetch_add(1, SeqCst);
            });
        }
        while done.load(SeqCst) < 3 {
            tokio::task::yield_now().await;
        }
    }
}
