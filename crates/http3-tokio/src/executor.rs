//! Execution of the response futures of a connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use courser_base::Mutex;
use courser_base::foreign::ForeignWaker;
use courser_quic::runtime;

use crate::error::Error;
use crate::first_poll::{First, FirstPolls};
use crate::waiting::{Unpolled, WaitingResponses};

/// A future that sends a response.
///
/// A response that may have to wait for its client is sent by a future of its own, which takes less memory than
/// the future that has received the request and called the service.
pub(super) type Sending = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// Runs the response futures of one connection: those that are ready at the first poll in the task that reads
/// the connection, and all others in tasks of their own.
#[derive(Debug)]
pub(super) struct Executor<F> {
    active: Arc<ActiveRequests>,
    waiting: Arc<WaitingResponses>,
    first: FirstPolls,
    /// The memory of the previous future, recycled for the next one.
    recycled: Option<Pin<Box<F>>>,
    /// Number of responses since the task that reads the connection last yielded.
    consecutive: u32,
}

/// Number of responses after which other tasks of the thread may run.
const MAX_CONSECUTIVE: u32 = 64;

impl<F: Future<Output = Option<Sending>> + Send + 'static> Executor<F> {
    pub(super) fn new(active: Arc<ActiveRequests>, waiting: Arc<WaitingResponses>) -> Self {
        Self {
            active,
            waiting,
            first: FirstPolls::default(),
            recycled: None,
            consecutive: 0,
        }
    }

    /// Responds to a request at once, or in a task.
    pub(super) fn begin(&mut self, answer: F) {
        if self.first.is_careful() {
            self.spawn_unpolled(Answering::Service(Box::pin(answer)));
            return;
        }
        let answer = match self.recycled.take() {
            Some(mut recycled) => {
                recycled.set(answer);
                recycled
            }
            None => Box::pin(answer),
        };
        self.consecutive += 1;
        let before = self.first;
        let sending = match self.first.poll(answer) {
            First::Done(answer, sending) => {
                self.recycled = Some(answer);
                sending
            }
            First::Waits(answer) => return self.spawn(Answering::Service(answer)),
            First::Panicked => None,
        };
        if let Some(sending) = sending {
            self.first.keep_penalty(before);
            if let First::Waits(sending) = self.first.poll(sending) {
                self.spawn(Answering::Sending(sending));
            }
        }
    }

    /// Releases the recycled memory, because the next request has not arrived yet.
    pub(super) fn pause(&mut self) {
        self.recycled = None;
        self.first.pause();
    }

    /// Lets other tasks of the thread run after many consecutive responses.
    pub(super) async fn yield_if_due(&mut self) {
        if self.consecutive >= MAX_CONSECUTIVE {
            self.consecutive = 0;
            self.pause();
            yield_now().await;
        }
    }

    /// Runs a future that was not polled yet. Until then the connection does not know whether its response has to
    /// wait for the client.
    fn spawn_unpolled(&self, mut answering: Answering<F>) {
        let active = ActiveRequest::new(&self.active);
        let mut unpolled = Some(Unpolled::new(&self.waiting));
        runtime::spawn(async move {
            std::future::poll_fn(|cx| {
                let polled = answering.poll(cx);
                unpolled = None;
                polled
            })
            .await;
            drop(active);
        });
    }

    fn spawn(&self, mut answering: Answering<F>) {
        let active = ActiveRequest::new(&self.active);
        runtime::spawn(async move {
            std::future::poll_fn(|cx| answering.poll(cx)).await;
            drop(active);
        });
    }
}

/// A response that is answered in a task.
enum Answering<F> {
    /// The service has not answered yet, or its response is sent at the same time.
    Service(Pin<Box<F>>),
    Sending(Sending),
}

impl<F: Future<Output = Option<Sending>>> Answering<F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Self::Service(answer) = self {
            match ready!(answer.as_mut().poll(cx)) {
                // Frees the memory of the first future.
                Some(sending) => *self = Self::Sending(sending),
                None => return Poll::Ready(()),
            }
        }
        match self {
            Self::Sending(sending) => sending.as_mut().poll(cx).map(drop),
            Self::Service(_) => Poll::Ready(()),
        }
    }
}

/// Lets other tasks run.
pub(super) async fn yield_now() {
    let mut has_yielded = false;
    std::future::poll_fn(|cx| {
        if has_yielded {
            return Poll::Ready(());
        }
        has_yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Counts the requests of a connection whose response futures run in tasks of their own.
#[derive(Debug, Default)]
pub(super) struct ActiveRequests(Mutex<ActiveCount>);

#[derive(Debug, Default)]
struct ActiveCount {
    requests: usize,
    /// The task that waits until there are none.
    waiting: Option<ForeignWaker>,
}

impl ActiveRequests {
    /// Returns `Ready` if there are none.
    pub(super) fn poll_none(&self, cx: &Context<'_>) -> Poll<()> {
        let waker = ForeignWaker::of(cx);
        let mut count = self.0.hold();
        if count.requests == 0 {
            return Poll::Ready(());
        }
        count.waiting = Some(waker);
        Poll::Pending
    }
}

/// A request that counts as active until this is dropped.
struct ActiveRequest(Arc<ActiveRequests>);

impl ActiveRequest {
    fn new(active: &Arc<ActiveRequests>) -> Self {
        active.0.hold().requests += 1;
        Self(active.clone())
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut count = self.0.0.hold();
        count.requests -= 1;
        let woken = match count.requests {
            0 => count.waiting.take(),
            _ => None,
        };
        drop(count);
        woken.into_iter().for_each(ForeignWaker::wake);
    }
}

#[cfg(test)]
mod tests;
