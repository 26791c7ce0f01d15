use std::future::{pending, ready};
use std::net::SocketAddr;
use std::sync::Arc;

use super::*;

const SHORT: Duration = Duration::from_millis(2);

#[tokio::test]
async fn join_handle_returns_the_result_or_the_reason_of_the_end() {
    assert_eq!(spawn(async { 7 }).await, Ok(7));

    let endless = spawn(pending::<()>());
    assert!(!endless.is_finished());
    endless.abort();
    assert_eq!(endless.await, Err(JoinError::Cancelled));

    let failing = spawn(async { panic!("at {}", 7) });
    assert_eq!(failing.await, Err(JoinError::Panicked("at 7".to_owned())));
}

#[tokio::test]
async fn sleep_ends_at_its_deadline_and_not_before() {
    let deadline = now() + SHORT;
    let sleep = sleep_until(deadline);
    assert_eq!(sleep.deadline(), deadline);
    sleep.await;
    assert!(now() >= deadline);

    let begin = now();
    super::sleep(SHORT).await;
    assert!(now() - begin >= SHORT);
}

#[tokio::test]
async fn sleep_of_the_longest_duration_does_not_overflow() {
    assert_eq!(timeout(SHORT, sleep(Duration::MAX)).await, Err(Elapsed));
}

#[tokio::test]
async fn timeout_cancels_only_futures_that_take_too_long() {
    assert_eq!(timeout(SHORT, pending::<()>()).await, Err(Elapsed));
    assert_eq!(timeout(Duration::ZERO, ready(5)).await, Ok(5));
}

#[test]
fn random_seeds_differ() {
    let draw = || random_seed().expect("the system provides random numbers");
    assert_ne!(draw(), draw());
}

/// A runtime that is identified by its calendar; nothing runs on it.
#[derive(Debug)]
struct Named(u64);

impl Runtime for Named {
    fn now(&self) -> Instant {
        Instant::now()
    }
    fn unix_time(&self) -> Duration {
        Duration::from_secs(self.0)
    }
    fn spawn(&self, task: Task, _: &'static Location<'static>) {
        drop(task);
    }
    fn timer(&self) -> Box<dyn Timer> {
        unreachable!("no test sets a timer of this runtime")
    }
    fn bind(&self, _: SocketAddr) -> io::Result<Box<dyn UdpSocket>> {
        Err(io::ErrorKind::AddrNotAvailable.into())
    }
    fn random_seed(&self) -> io::Result<[u8; 32]> {
        Ok([0; 32])
    }
}

#[test]
fn entered_runtimes_nest_and_are_left_in_turn() {
    let outer = enter(Arc::new(Named(1)));
    assert_eq!(unix_time().as_secs(), 1);
    {
        let _inner = enter(Arc::new(Named(2)));
        assert_eq!(unix_time().as_secs(), 2);
    }
    assert_eq!(unix_time().as_secs(), 1);
    drop(outer);
    assert!(unix_time().as_secs() > 1_000_000, "the system's calendar");
}

#[tokio::test]
async fn task_that_its_runtime_drops_is_cancelled() {
    let handle = {
        let _entered = enter(Arc::new(Named(1)));
        spawn(async { 1 })
    };
    assert!(handle.is_finished());
    assert_eq!(handle.await, Err(JoinError::Cancelled));
}

#[test]
fn endpoint_uses_the_entered_runtime_and_refuses_system_sockets() {
    let _entered = enter(Arc::new(Named(1)));
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let error = crate::Endpoint::client(address).expect_err("the runtime has no sockets");
    assert!(error.to_string().contains("not available"), "{error}");

    let own = std::net::UdpSocket::bind(address).expect("the socket is bound");
    let config = crate::EndpointConfig::from_seed([1; 32]);
    let error = crate::Endpoint::new(config, None, own).expect_err("a system socket is refused");
    assert!(error.to_string().contains("use Endpoint::bind"), "{error}");
}

#[test]
fn endpoint_without_a_runtime_fails_with_the_reason() {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let error = crate::Endpoint::client(address).expect_err("there is no runtime");
    assert!(error.to_string().contains("needs tokio"), "{error}");
}
