//! A second attempt at a request whose connection has become silent.
//!
//! A pooled connection can outlive its path: a firewall starts to drop UDP, or a NAT discards its mapping. The
//! idle timeout detects that after half a minute. A request whose connection has probed its path several times
//! without an acknowledgement is sent on a second connection much earlier, and the first response is returned.

use std::pin::pin;
use std::task::Poll;

/// The outcome of an attempt.
pub(super) trait Answer {
    /// Returns true for a response, false for an error.
    fn is_response(&self) -> bool;
}

/// Waits for `first`, and starts `second` once `is_silent` returns true. Returns the first response. If there is
/// none, returns the error of the second attempt, or of the first if the second could not start.
///
/// The other attempt is dropped, which cancels it. The task must be woken when `is_silent` changes.
pub(super) async fn first_answer<A: Answer, S: Future<Output = Option<A>>>(
    is_silent: impl Fn() -> bool,
    first: impl Future<Output = A>,
    second: impl FnOnce() -> S,
) -> A {
    let mut first = pin!(first);
    let answered = std::future::poll_fn(|cx| match first.as_mut().poll(cx) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending if is_silent() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    if let Some(answer) = answered.await {
        return answer;
    }
    // Boxed, so that requests on working paths reserve no memory for it.
    let mut second = Box::pin(second());
    tokio::select! {
        answer = &mut first => match answer.is_response() {
            true => answer,
            false => second.await.unwrap_or(answer),
        },
        answer = &mut second => match answer {
            Some(answer) if answer.is_response() => answer,
            failed => {
                let late = first.await;
                match failed {
                    Some(failed) if !late.is_response() => failed,
                    _ => late,
                }
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, ready};

    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Outcome {
        Response(u8),
        Error(u8),
    }

    use Outcome::{Error, Response};

    impl Answer for Outcome {
        fn is_response(&self) -> bool {
            matches!(self, Response(_))
        }
    }

    /// Returns `outcome` after yielding to the runtime `turns` times.
    async fn after(turns: usize, outcome: Outcome) -> Outcome {
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        outcome
    }

    #[tokio::test]
    async fn no_second_attempt_starts_on_a_path_that_is_not_silent() {
        for outcome in [Response(1), Error(1)] {
            let second = || -> std::future::Pending<_> { panic!("the path is not silent") };
            assert_eq!(
                first_answer(|| false, after(3, outcome), second).await,
                outcome
            );
        }
    }

    #[tokio::test]
    async fn second_attempt_begins_when_the_path_becomes_silent() {
        let polls = Cell::new(0);
        let first = std::future::poll_fn(|cx| {
            polls.set(polls.get() + 1);
            cx.waker().wake_by_ref();
            Poll::<Outcome>::Pending
        });
        let is_silent = || polls.get() >= 5;
        let second = || {
            assert_eq!(polls.get(), 5);
            ready(Some(Response(2)))
        };
        assert_eq!(first_answer(is_silent, first, second).await, Response(2));
    }

    #[tokio::test]
    async fn first_response_is_returned_and_errors_wait_for_the_other_attempt() {
        for (first, second, expected) in [
            ((2, Response(1)), (9, Some(Response(2))), Response(1)),
            ((9, Response(1)), (2, Some(Response(2))), Response(2)),
            ((2, Error(1)), (9, Some(Response(2))), Response(2)),
            ((9, Response(1)), (2, Some(Error(2))), Response(1)),
            ((9, Response(1)), (2, None), Response(1)),
            ((2, Error(1)), (9, Some(Error(2))), Error(2)),
            ((9, Error(1)), (2, Some(Error(2))), Error(2)),
            ((2, Error(1)), (9, None), Error(1)),
            ((9, Error(1)), (2, None), Error(1)),
        ] {
            let lane = || async move {
                after(second.0, Response(0)).await;
                second.1
            };
            let answer = first_answer(|| true, after(first.0, first.1), lane).await;
            assert_eq!(answer, expected, "{first:?} {second:?}");
        }
    }

    #[tokio::test]
    async fn attempt_that_never_ends_does_not_delay_the_other() {
        let second = || ready(Some(Response(2)));
        assert_eq!(first_answer(|| true, pending(), second).await, Response(2));
        let second = || pending::<Option<Outcome>>();
        let first = after(2, Response(1));
        assert_eq!(first_answer(|| true, first, second).await, Response(1));
    }
}
