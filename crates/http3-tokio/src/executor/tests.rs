use std::io;
use std::net::SocketAddr;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use courser_quic::runtime::{Runtime, Task, Timer, UdpSocket};

use super::*;
use crate::first_poll::{CAREFUL, LONG};

type Work = Pin<Box<dyn Future<Output = Option<Sending>> + Send>>;

/// Starts a response that first does `work`. Returns true if it was complete when `begin` returned.
fn is_complete_at_once(
    executor: &mut Executor<Work>,
    work: impl Future<Output = ()> + Send + 'static,
) -> bool {
    let is_complete = Arc::new(AtomicBool::new(false));
    let over = is_complete.clone();
    executor.begin(Box::pin(async move {
        work.await;
        over.store(true, Ordering::SeqCst);
        None
    }));
    is_complete.load(Ordering::SeqCst)
}

/// Counts the responses that start in tasks before one is polled at once.
fn in_tasks(executor: &mut Executor<Work>) -> u32 {
    let mut count = 0;
    while !is_complete_at_once(executor, async {}) {
        count += 1;
        assert!(count < 100, "none is tried again");
    }
    count
}

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
    let mut executor = Executor::new(Arc::default(), Arc::default());
    for number in 0..100 {
        assert!(is_complete_at_once(&mut executor, async {}), "{number}");
    }
}

#[tokio::test]
async fn response_that_waits_continues_in_a_task() {
    let active = Arc::new(ActiveRequests::default());
    let mut executor = Executor::new(active.clone(), Arc::default());
    assert!(!is_complete_at_once(&mut executor, yield_now()));
    assert_eq!(in_tasks(&mut executor), 1);
    std::future::poll_fn(|cx| active.poll_none(cx)).await;
}

/// The first future of a request is freed before the response is sent, which may take a long time.
#[tokio::test]
async fn large_responses_are_sent_by_a_future_of_their_own() {
    let active = Arc::new(ActiveRequests::default());
    let mut executor = Executor::new(active.clone(), Arc::default());
    let answer = |held: Arc<()>| -> Work {
        Box::pin(async move {
            drop(held);
            let sending: Sending = Box::pin(async {
                yield_now().await;
                Ok(())
            });
            Some(sending)
        })
    };
    for is_careful in [false, true] {
        executor.first = FirstPolls::default();
        if is_careful {
            assert!(!is_complete_at_once(&mut executor, yield_now()));
        }
        let held = Arc::new(());
        executor.begin(answer(held.clone()));
        let is_freed = Arc::strong_count(&held) == 1;
        assert_eq!(is_freed, !is_careful);
        std::future::poll_fn(|cx| active.poll_none(cx)).await;
        assert_eq!(Arc::strong_count(&held), 1);
    }
}

#[tokio::test]
async fn responses_start_in_tasks_after_a_long_one() {
    let mut executor = Executor::new(Arc::default(), Arc::default());
    let began = runtime::now();
    let long = async move { while runtime::now() - began <= 2 * LONG {} };
    assert!(is_complete_at_once(&mut executor, long));
    assert!(in_tasks(&mut executor) >= 1);
}

/// One response that waits is a weak hint about the next; many are a strong one.
#[tokio::test]
async fn responses_that_always_wait_are_rarely_polled_at_once() {
    let mut executor = Executor::new(Arc::default(), Arc::default());
    let polled = Arc::new(Mutex::new(Vec::new()));
    for number in 0..60 {
        let polled = polled.clone();
        let answer: Work = Box::pin(async move {
            polled.lock().push(number);
            yield_now().await;
            None
        });
        executor.begin(answer);
    }
    // Tasks do not run before this test waits, so only the responses that were polled at once have run.
    let tried = polled.lock().clone();
    assert_eq!(tried, [0, 2, 6, 14, 30, 46]);
    assert_eq!(in_tasks(&mut executor), CAREFUL - (59 - 46));
}

/// That the service of a large response is ready says nothing about the response.
#[tokio::test]
async fn large_responses_that_always_wait_are_rarely_sent_at_once() {
    let mut executor = Executor::new(Arc::default(), Arc::default());
    let polled = Arc::new(Mutex::new(Vec::new()));
    for number in 0..60 {
        let polled = polled.clone();
        let answer: Work = Box::pin(async move {
            let sending: Sending = Box::pin(async move {
                polled.lock().push(number);
                yield_now().await;
                Ok(())
            });
            Some(sending)
        });
        executor.begin(answer);
    }
    let tried = polled.lock().clone();
    assert_eq!(tried, [0, 2, 6, 14, 30, 46]);
}

#[tokio::test]
async fn panic_ends_only_its_response() {
    let mut executor = Executor::new(Arc::default(), Arc::default());
    let fails = async { panic!("a service that fails") };
    assert!(!is_complete_at_once(&mut executor, fails));
    in_tasks(&mut executor);
}

#[tokio::test]
async fn other_tasks_run_after_many_consecutive_responses() {
    let mut executor = Executor::new(Arc::default(), Arc::default());
    let has_run = Arc::new(AtomicBool::new(false));
    let other = has_run.clone();
    runtime::spawn(async move { other.store(true, Ordering::SeqCst) });
    for _ in 0..MAX_CONSECUTIVE {
        assert!(!has_run.load(Ordering::SeqCst));
        executor.yield_if_due().await;
        // After a slow response, later ones start in tasks, which do not count as consecutive.
        executor.first = FirstPolls::default();
        executor.begin(Box::pin(async { None }));
    }
    executor.yield_if_due().await;
    assert!(has_run.load(Ordering::SeqCst));
}
