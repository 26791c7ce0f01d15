//! Times in which the upstream server refuses connections, such as a restart.

use std::time::Duration;

use courser_base::Mutex;
use tokio::time::Instant;

use crate::proxy::failure::Failure;

/// Repeats refused connections until an outage has lasted for some time. No request is lost then, because a refused
/// connection has carried none.
///
/// One request at a time probes the server while the others wait, so that a server that starts is not met by a
/// crowd. Once the outage has lasted too long, each request tries once and fails at once.
#[derive(Debug)]
pub(super) struct Outage {
    longest: Duration,
    /// The first refusal since a connection was last established.
    since: Mutex<Option<Instant>>,
    turn: tokio::sync::Mutex<()>,
}

impl Outage {
    pub(super) fn new(longest: Duration) -> Self {
        Self {
            longest,
            since: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Connects with `dial`, and again while `is_refused` is true of the failure and the outage is short.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the turn to the next request.
    pub(super) async fn outlast<T, F>(
        &self,
        dial: impl Fn() -> F,
        is_refused: impl Fn(&Failure) -> bool,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let first = dial().await;
        let mut failure = match first {
            Err(failure) if is_refused(&failure) => failure,
            other => return self.on_end(other),
        };
        let began = Instant::now();
        let ends = *self.since.lock().get_or_insert(began) + self.longest;
        if began >= ends {
            return Err(failure);
        }
        let Ok(turn) = tokio::time::timeout_at(ends, self.turn.lock()).await else {
            return Err(failure);
        };
        let mut pause = FIRST_PAUSE;
        while self.since.lock().is_some() {
            let now = Instant::now();
            if now >= ends {
                return Err(failure);
            }
            tokio::time::sleep_until(ends.min(now + pause)).await;
            pause = MAX_PAUSE.min(pause * 2);
            failure = match dial().await {
                Err(failure) if is_refused(&failure) => failure,
                other => return self.on_end(other),
            };
        }
        // Another request has found the server, so all may connect at the same time.
        drop(turn);
        dial().await
    }

    fn on_end<T>(&self, ended: Result<T, Failure>) -> Result<T, Failure> {
        if ended.is_ok() {
            *self.since.lock() = None;
        }
        ended
    }
}

/// Pause before the first repetition.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// Longest pause between repetitions: a restart is noticed this late at most.
const MAX_PAUSE: Duration = Duration::from_millis(160);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

    use courser::server::Cause;

    use super::*;

    const LONGEST: Duration = Duration::from_secs(3);

    /// A server that refuses connections while it is down.
    #[derive(Debug, Default)]
    struct Server {
        is_up: AtomicBool,
        attempts: AtomicUsize,
    }

    impl Server {
        async fn dial(&self) -> Result<(), Failure> {
            self.attempts.fetch_add(1, Relaxed);
            match self.is_up.load(Relaxed) {
                true => Ok(()),
                false => Err(Cause::UpstreamRefused.into()),
            }
        }

        async fn ask(&self, outage: &Outage) -> Result<(), Failure> {
            outage.outlast(|| self.dial(), |_| true).await
        }

        fn attempts(&self) -> usize {
            self.attempts.swap(0, Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_outage_is_outlasted_and_a_long_one_fails_at_once() {
        let (server, outage) = (Server::default(), Outage::new(LONGEST));
        let restarts = async {
            tokio::time::sleep(LONGEST / 2).await;
            server.is_up.store(true, Relaxed);
        };
        let began = Instant::now();
        let (asked, ()) = tokio::join!(server.ask(&outage), restarts);
        assert!(asked.is_ok());
        assert!(began.elapsed() < LONGEST / 2 + MAX_PAUSE * 2);

        // The next outage has a time of its own.
        server.is_up.store(false, Relaxed);
        let began = Instant::now();
        assert!(server.ask(&outage).await.is_err());
        assert_eq!(began.elapsed(), LONGEST);
        server.attempts();
        for _ in 0..3 {
            let began = Instant::now();
            assert!(server.ask(&outage).await.is_err());
            assert_eq!(began.elapsed(), Duration::ZERO);
            assert_eq!(server.attempts(), 1);
        }
        server.is_up.store(true, Relaxed);
        assert!(server.ask(&outage).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn one_request_at_a_time_probes_the_server() {
        let (server, outage) = (Server::default(), Outage::new(LONGEST));
        let began = Instant::now();
        let all = || futures_util::future::join_all((0..500).map(|_| server.ask(&outage)));
        assert!(all().await.iter().all(Result::is_err));
        assert_eq!(began.elapsed(), LONGEST);
        let probes = server.attempts() - 500;
        assert!((10..50).contains(&probes), "{probes}");

        let outage = Outage::new(LONGEST);
        let all = futures_util::future::join_all((0..500).map(|_| server.ask(&outage)));
        let restarts = async {
            tokio::time::sleep(LONGEST / 2).await;
            server.attempts();
            server.is_up.store(true, Relaxed);
        };
        let (asked, ()) = tokio::join!(all, restarts);
        assert!(asked.iter().all(Result::is_ok));
        assert_eq!(server.attempts(), 500);
    }

    /// The turn of a request that leaves goes to the next one.
    #[tokio::test(start_paused = true)]
    async fn turn_of_a_request_that_leaves_is_taken_over() {
        let (server, outage) = (Server::default(), Outage::new(LONGEST));
        let leaves = tokio::time::timeout(LONGEST / 4, server.ask(&outage));
        let restarts = async {
            tokio::time::sleep(LONGEST / 2).await;
            server.is_up.store(true, Relaxed);
        };
        let (left, asked, ()) = tokio::join!(leaves, server.ask(&outage), restarts);
        assert!(left.is_err());
        assert!(asked.is_ok());
    }
}
