//! The end of a stream, as its sender learns of it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use courser_base::foreign::TaskWaker;
use courser_wire::VarInt;

use crate::api::handles::ConnectionRef;
use crate::error::StoppedError;
use crate::shard::stream::Stream;

/// Waits until the peer has stopped a stream or received all of it.
pub(super) struct Stopped {
    connection: Arc<ConnectionRef>,
    stream: Stream,
    ticket: Option<u64>,
}

impl Stopped {
    pub(super) fn new(connection: Arc<ConnectionRef>, stream: Stream) -> Self {
        Self {
            connection,
            stream,
            ticket: None,
        }
    }
}

impl Future for Stopped {
    type Output = Result<Option<VarInt>, StoppedError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let handle = this.connection.handle;
        let mut waker = TaskWaker::of(cx);
        let (id, mut locked) = (this.stream.id, this.connection.lock());
        if locked.is_rejected(handle, this.stream) {
            return Poll::Ready(Err(StoppedError::EarlyDataRejected));
        }
        if let Some(code) = locked.entry(handle).wakers.stop_code(id, this.ticket) {
            return Poll::Ready(Ok(Some(code)));
        }
        let stopped = match locked.open_connection(handle) {
            Ok(connection) => connection.streams().stopped(id),
            Err(error) => return Poll::Ready(Err(error.into())),
        };
        match stopped {
            Err(_) => Poll::Ready(Ok(None)),
            Ok(Some(code)) => Poll::Ready(Ok(Some(VarInt::from_wire(code)))),
            Ok(None) => {
                locked
                    .entry(handle)
                    .wakers
                    .wait_for_end(id, &mut this.ticket, waker.take());
                locked.about_to_wait();
                Poll::Pending
            }
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let id = self.stream.id;
            self.connection.on_drop(move |locked, handle| {
                locked.entry(handle).wakers.forget_end(id, ticket);
            });
        }
    }
}
