//! The executor of the responses of an HTTP/2 connection.

use std::sync::{Arc, MutexGuard};

use courser_base::Mutex;
use courser_http3_tokio::hooks::{First, FirstPolls};

use super::tunnel;

/// Runs the response futures of an HTTP/2 connection: those that are ready at the first poll in the task of the
/// connection, others in tasks of their own.
///
/// Clones belong to the same connection.
#[derive(Clone, Default, Debug)]
pub(crate) struct Executor(Arc<Mutex<ExecutorState>>);

#[derive(Clone, Copy, Default, Debug)]
struct ExecutorState {
    first: FirstPolls,
    /// Number of responses since the last pause.
    consecutive: u32,
}

impl Executor {
    /// Returns true if other tasks of the thread should run before more requests are read.
    pub(crate) fn needs_pause(&self) -> bool {
        self.lock().consecutive >= MAX_CONSECUTIVE
    }

    /// Records that other tasks may run now.
    pub(crate) fn pause(&self) {
        let mut state = self.lock();
        state.first.pause();
        state.consecutive = 0;
    }

    fn lock(&self) -> MutexGuard<'_, ExecutorState> {
        self.0.lock()
    }
}

impl<F> hyper::rt::Executor<F> for Executor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, answer: F) {
        if let Some((request, reset)) = tunnel::begin() {
            tokio::spawn(async move {
                reset.bound(answer).await;
                drop(request);
            });
            return;
        }
        let answer = Box::pin(answer);
        // A response may start others, so the lock is not held while it is polled.
        let mut state = *self.lock();
        if state.first.is_careful() {
            *self.lock() = state;
            tokio::spawn(answer);
            return;
        }
        let polled = state.first.poll(answer);
        state.consecutive += 1;
        *self.lock() = state;
        if let First::Waits(answer) = polled {
            tokio::spawn(answer);
        }
    }
}

/// Number of responses after which other tasks of the thread may run, as over HTTP/3.
const MAX_CONSECUTIVE: u32 = 64;

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::SocketAddr;
    use std::panic::Location;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::Instant;

    use courser_quic::runtime::{self, Runtime, Task, Timer, UdpSocket};
    use hyper::rt::Executor as _;

    use super::*;

    /// A runtime whose clock stands still, so that no response takes long, and which spawns no tasks.
    #[derive(Debug)]
    struct Stopped(Instant);

    impl Runtime for Stopped {
        fn now(&self) -> Instant {
            self.0
        }
        fn spawn(&self, _: Task, _: &'static Location<'static>) {
            unreachable!("no answer waits");
        }
        fn timer(&self) -> Box<dyn Timer> {
            unreachable!("no answer sleeps");
        }
        fn bind(&self, _: SocketAddr) -> io::Result<Box<dyn UdpSocket>> {
            Err(io::ErrorKind::AddrNotAvailable.into())
        }
    }

    #[test]
    fn response_that_is_ready_needs_no_task() {
        let _entered = runtime::enter(Arc::new(Stopped(runtime::now())));
        let (executor, done) = (Executor::default(), Arc::new(AtomicUsize::new(0)));
        for _ in 0..100 {
            let done = done.clone();
            executor.execute(async move {
                done.fetch_add(1, SeqCst);
            });
        }
        assert_eq!(done.load(SeqCst), 100);
    }

    #[tokio::test]
    async fn response_that_waits_becomes_a_task() {
        let (executor, done) = (Executor::default(), Arc::new(AtomicUsize::new(0)));
        let (other, inner) = (done.clone(), executor.clone());
        executor.execute(async move {
            tokio::task::yield_now().await;
            // As in an upgrade.
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
    async fn panic_ends_only_its_response() {
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

    #[tokio::test]
    async fn other_tasks_run_after_many_consecutive_responses() {
        let executor = Executor::default();
        for _ in 0..MAX_CONSECUTIVE {
            assert!(!executor.needs_pause());
            // After a slow response, later ones start in tasks, which do not count as consecutive.
            executor.lock().first = FirstPolls::default();
            executor.execute(async {});
        }
        assert!(executor.needs_pause());
        executor.pause();
        assert!(!executor.needs_pause());
    }
}
