//! Handles that wait for the results of tasks.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};

use courser_base::Mutex;

use super::traits::{Task, Work};

/// Waits for the result of a task. Dropping it lets the task continue.
pub struct JoinHandle<T>(Inner<T>);

enum Inner<T> {
    Tokio(tokio::task::JoinHandle<T>),
    Runtime(Arc<Shared<T>>),
}

impl<T> JoinHandle<T> {
    pub(super) fn of_tokio(handle: tokio::task::JoinHandle<T>) -> Self {
        Self(Inner::Tokio(handle))
    }

    /// Returns a handle, and the task that it belongs to.
    pub(super) fn of_task<F>(future: F) -> (Self, Task)
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let shared = Arc::new(Shared(Mutex::new(Join::default())));
        let task = Joined {
            future: Some(Box::pin(future)),
            shared: shared.clone(),
        };
        (Self(Inner::Runtime(shared)), Box::pin(task))
    }

    /// Returns a handle, and the work that it belongs to.
    pub(super) fn of_work(work: impl FnOnce() -> T + Send + 'static) -> (Self, Work)
    where
        T: Send + 'static,
    {
        let shared = Arc::new(Shared(Mutex::new(Join::default())));
        let unfinished = Unfinished(shared.clone());
        let work = move || {
            let unfinished = unfinished;
            unfinished.0.finish(Ok(work()));
        };
        (Self(Inner::Runtime(shared)), Box::new(work))
    }

    /// Ends the task at its next wait. The handle resolves to [`Cancelled`](JoinError::Cancelled),
    /// unless the task was already over.
    pub fn abort(&self) {
        match &self.0 {
            Inner::Tokio(handle) => handle.abort(),
            Inner::Runtime(shared) => shared.abort(),
        }
    }

    /// Returns true if the task is over.
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Inner::Tokio(handle) => handle.is_finished(),
            Inner::Runtime(shared) => shared.lock().is_over,
        }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    /// # Panics
    /// Panics if polled after it has resolved.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Inner::Tokio(handle) => Pin::new(handle)
                .poll(cx)
                .map(|result| result.map_err(JoinError::from)),
            Inner::Runtime(shared) => shared.lock().poll(cx),
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("is_finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

/// The reason why a task ended without a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JoinError {
    /// The task was aborted, or its runtime is gone.
    Cancelled,
    /// The task panicked with this message. In a world a panic ends the run instead.
    Panicked(String),
}

impl JoinError {
    /// Returns true if the task was aborted or its runtime is gone.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled)
    }

    /// Returns true if the task panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self, Self::Panicked(_))
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("the task was cancelled"),
            Self::Panicked(message) => write!(f, "the task panicked: {message}"),
        }
    }
}

impl std::error::Error for JoinError {}

impl From<tokio::task::JoinError> for JoinError {
    fn from(error: tokio::task::JoinError) -> Self {
        match error.try_into_panic() {
            Ok(payload) => Self::Panicked(message_of(&*payload)),
            Err(_) => Self::Cancelled,
        }
    }
}

/// Returns the message of a panic, if it is a string.
fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no text)")
        .to_owned()
}

/// The shared state of a task and its handle.
struct Shared<T>(Mutex<Join<T>>);

struct Join<T> {
    result: Option<Result<T, JoinError>>,
    is_over: bool,
    is_aborted: bool,
    /// The waker of the handle's task.
    waiter: Option<Waker>,
    /// The waker of the task itself, once it has waited.
    task: Option<Waker>,
}

impl<T> Default for Join<T> {
    fn default() -> Self {
        Self {
            result: None,
            is_over: false,
            is_aborted: false,
            waiter: None,
            task: None,
        }
    }
}

impl<T> Join<T> {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<Result<T, JoinError>> {
        if let Some(result) = self.result.take() {
            return Poll::Ready(result);
        }
        assert!(!self.is_over, "polled after it has resolved");
        self.waiter = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Join<T>> {
        self.0.lock()
    }

    fn abort(&self) {
        let mut join = self.lock();
        join.is_aborted = true;
        let task = join.task.take();
        drop(join);
        task.into_iter().for_each(Waker::wake);
    }

    fn finish(&self, result: Result<T, JoinError>) {
        let mut join = self.lock();
        if std::mem::replace(&mut join.is_over, true) {
            return;
        }
        join.result = Some(result);
        let waiter = join.waiter.take();
        drop(join);
        waiter.into_iter().for_each(Waker::wake);
    }
}

/// Work of a handle. If it is dropped before its end, or panics, the handle gets an error.
struct Unfinished<T>(Arc<Shared<T>>);

impl<T> Drop for Unfinished<T> {
    fn drop(&mut self) {
        let error = match std::thread::panicking() {
            true => JoinError::Panicked("(no text)".to_owned()),
            false => JoinError::Cancelled,
        };
        self.0.finish(Err(error));
    }
}

/// A future that passes its result to a handle.
struct Joined<F: Future> {
    /// `None` when it is over.
    future: Option<Pin<Box<F>>>,
    shared: Arc<Shared<F::Output>>,
}

impl<F: Future> Future for Joined<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut join = self.shared.lock();
        let is_aborted = join.is_aborted;
        join.task = Some(cx.waker().clone());
        drop(join);
        let Some(future) = self.future.as_mut().filter(|_| !is_aborted) else {
            self.future = None;
            self.shared.finish(Err(JoinError::Cancelled));
            return Poll::Ready(());
        };
        let Poll::Ready(output) = future.as_mut().poll(cx) else {
            return Poll::Pending;
        };
        // The contents of the future are dropped before its result is visible.
        self.future = None;
        self.shared.finish(Ok(output));
        Poll::Ready(())
    }
}

impl<F: Future> Drop for Joined<F> {
    fn drop(&mut self) {
        self.future = None;
        self.shared.finish(Err(JoinError::Cancelled));
    }
}
