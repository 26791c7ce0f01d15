//! The threads that wait for a disk, of which each client has a share (limit K436).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use courser_base::{Mutex, ScopedIp};
use tokio::sync::oneshot;

use crate::fair_shares::{FairShares, Place, Unit};
use crate::serve_error::ServeError;

/// The threads of a service. A disk that stalls for the files of one client occupies only that client's share, so that
/// others are served meanwhile.
#[derive(Debug)]
pub(crate) struct Threads {
    queue: Mutex<FairShares<oneshot::Sender<Permit>>>,
    longest_wait: Duration,
    refused: AtomicU64,
}

/// The use of the threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadUse {
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    /// Number of requests that got no thread.
    pub(crate) refused: u64,
}

/// The right of one client to use the threads.
#[derive(Clone, Debug)]
pub(crate) struct ThreadShare {
    threads: Arc<Threads>,
    /// `None` if the client is unknown, which has no share.
    client: Option<ScopedIp>,
}

/// A thread in use. It is free again when this is dropped.
struct Permit {
    threads: Arc<Threads>,
    unit: Option<Unit>,
}

/// A place in the queue for a thread, which is left when this is dropped.
struct Waiting<'a> {
    threads: &'a Threads,
    place: Place,
}

impl Threads {
    pub(crate) fn new(threads: usize, longest_wait: Duration) -> Arc<Self> {
        let threads = threads.max(1);
        let places = threads.saturating_mul(PLACES_PER_THREAD);
        Arc::new(Self {
            queue: Mutex::new(FairShares::new(threads, places)),
            longest_wait,
            refused: AtomicU64::new(0),
        })
    }

    pub(crate) fn share_of(self: &Arc<Self>, client: Option<ScopedIp>) -> ThreadShare {
        ThreadShare {
            threads: self.clone(),
            client,
        }
    }

    pub(crate) fn in_use(&self) -> ThreadUse {
        let queue = self.queue.lock();
        ThreadUse {
            running: queue.used(),
            waiting: queue.waiting(),
            refused: self.refused.load(Relaxed),
        }
    }

    async fn permit(
        self: &Arc<Self>,
        client: Option<ScopedIp>,
        longest_wait: Duration,
    ) -> Option<Permit> {
        let (granted, waiting) = {
            let mut queue = self.queue.lock();
            if let Some(unit) = queue.take(client) {
                return Some(self.clone().with(unit));
            }
            let (grant, granted) = oneshot::channel();
            let place = queue.wait(client, grant)?;
            let threads = self.as_ref();
            (granted, Waiting { threads, place })
        };
        let granted = tokio::time::timeout(longest_wait, granted).await;
        drop(waiting);
        granted.ok()?.ok()
    }

    const fn with(self: Arc<Self>, unit: Unit) -> Permit {
        Permit {
            threads: self,
            unit: Some(unit),
        }
    }

    /// Gives free threads to those who wait.
    fn grant(self: &Arc<Self>) {
        loop {
            let Some((grant, unit)) = self.queue.lock().next_waiter() else {
                return;
            };
            // Without the lock: the permit of a request that has just left is returned at once.
            let _ = grant.send(self.clone().with(unit));
        }
    }
}

impl ThreadShare {
    /// Runs `work` on a thread that may block.
    ///
    /// # Errors
    /// [`ServeError::Busy`] if no thread became free in time, and [`ServeError::Failed`] if `work` panicked.
    ///
    /// # Cancel safety
    /// If the future is dropped, `work` continues if it has begun, and the thread counts as in use until it ends.
    pub(crate) async fn run<R: Send + 'static>(
        self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, ServeError> {
        let longest_wait = self.threads.longest_wait;
        self.run_within(longest_wait, work).await
    }

    /// Like [`run`](Self::run), for the content of a response that has begun: it cannot be refused any more, only aborted.
    pub(crate) async fn run_for_content<R: Send + 'static>(
        self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, ServeError> {
        let longest_wait = self.threads.longest_wait * CONTENT_FACTOR;
        self.run_within(longest_wait, work).await
    }

    async fn run_within<R: Send + 'static>(
        self,
        longest_wait: Duration,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, ServeError> {
        let permit = self.threads.permit(self.client, longest_wait).await;
        let Some(permit) = permit else {
            self.threads.refused.fetch_add(1, Relaxed);
            return Err(ServeError::Busy);
        };
        let working = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        working
            .await
            .map_err(|error| ServeError::Failed(error.into()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut queue = self.threads.queue.lock();
        if let Some(unit) = self.unit.take() {
            queue.release(unit);
        }
        let is_awaited = queue.waiting() > 0;
        drop(queue);
        if is_awaited {
            self.threads.grant();
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.threads.queue.lock().leave(self.place);
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("unit", &self.unit)
            .finish_non_exhaustive()
    }
}

/// The number of threads if none is set (limit K436): three quarters of the threads that tokio has for blocking work, so that
/// the others are left for TLS and name resolution.
pub(crate) const DEFAULT_THREADS: usize = 384;
/// Time limit for a request to get a thread, if none is set (limit K431).
pub(crate) const DEFAULT_WAIT: Duration = Duration::from_secs(10);
/// Places in the queue for each thread (limit K431). A disk on which more wait for each thread takes longer than the wait
/// allows, unless it needs less than 80 ms for each.
const PLACES_PER_THREAD: usize = 128;
/// How much longer the content of a response that has begun waits for a thread than a request (limit K431).
const CONTENT_FACTOR: u32 = 6;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::mpsc;

    use super::*;

    fn share(threads: &Arc<Threads>, address: [u8; 4]) -> ThreadShare {
        threads.share_of(Some(Ipv4Addr::from(address).into()))
    }

    /// Occupies a thread until the sender is dropped.
    async fn occupy(share: ThreadShare) -> mpsc::Sender<()> {
        let (end, ended) = mpsc::channel();
        let (begin, begun) = oneshot::channel();
        tokio::spawn(share.run(move || {
            let _ = begin.send(());
            let _ = ended.recv();
        }));
        begun.await.expect("a thread is free");
        end
    }

    const GREEDY: [u8; 4] = [192, 0, 2, 1];
    const HONEST: [u8; 4] = [198, 51, 100, 1];

    #[tokio::test]
    async fn client_that_occupies_its_share_delays_no_other() {
        let threads = Threads::new(4, Duration::from_secs(60));
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(occupy(share(&threads, GREEDY)).await);
        }
        let waiting = tokio::spawn(share(&threads, GREEDY).run(|| ()));
        for _ in 0..100 {
            assert!(matches!(share(&threads, HONEST).run(|| 7).await, Ok(7)));
        }
        assert!(!waiting.is_finished());
        assert_eq!(threads.in_use().waiting, 1);
        held.pop();
        assert!(waiting.await.expect("no panic").is_ok());
    }

    /// Limit K431.
    #[tokio::test(start_paused = true)]
    async fn wait_for_a_thread_is_limited_and_refusals_are_counted() {
        let threads = Threads::new(1, Duration::from_secs(10));
        // A thread that runs would stop the paused clock.
        let held = threads.permit(None, Duration::ZERO).await.expect("free");
        let began = tokio::time::Instant::now();
        assert!(matches!(
            share(&threads, HONEST).run(|| ()).await,
            Err(ServeError::Busy)
        ));
        assert_eq!(began.elapsed().as_secs(), 10);
        assert!(matches!(
            share(&threads, HONEST).run_for_content(|| ()).await,
            Err(ServeError::Busy)
        ));
        assert_eq!(began.elapsed().as_secs(), 70);
        let now = threads.in_use();
        assert_eq!((now.running, now.waiting, now.refused), (1, 0, 2));
        drop(held);
        assert_eq!(threads.in_use().running, 0);
    }

    /// Limit K431.
    #[tokio::test(start_paused = true)]
    async fn queue_that_is_full_refuses_at_once() {
        let threads = Threads::new(1, Duration::from_secs(10));
        let held = threads.permit(None, Duration::ZERO).await.expect("free");
        let waiting: Vec<_> = (0..PLACES_PER_THREAD)
            .map(|_| tokio::spawn(threads.share_of(None).run(|| ())))
            .collect();
        while threads.in_use().waiting < PLACES_PER_THREAD {
            tokio::task::yield_now().await;
        }
        let began = tokio::time::Instant::now();
        assert!(matches!(
            threads.share_of(None).run(|| ()).await,
            Err(ServeError::Busy)
        ));
        assert!(began.elapsed().is_zero());
        drop(waiting);
        drop(held);
    }

    #[tokio::test]
    async fn requests_that_leave_free_their_places_and_unfinished_work_keeps_its_thread() {
        let threads = Threads::new(1, Duration::from_secs(60));
        let (end, ended) = mpsc::channel::<()>();
        let (begin, begun) = oneshot::channel();
        let first = tokio::spawn(threads.share_of(None).run(move || {
            let _ = begin.send(());
            let _ = ended.recv();
        }));
        begun.await.expect("a thread is free");
        let second = tokio::spawn(threads.share_of(None).run(|| ()));
        while threads.in_use().waiting < 1 {
            tokio::task::yield_now().await;
        }
        second.abort();
        first.abort();
        assert!(second.await.is_err() && first.await.is_err());
        let now = threads.in_use();
        assert_eq!((now.running, now.waiting), (1, 0));
        drop(end);
        assert!(matches!(threads.share_of(None).run(|| 1).await, Ok(1)));
    }
}
