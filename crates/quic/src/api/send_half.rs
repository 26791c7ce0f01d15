//! The state of the sending half of a stream, and writes under the lock of its shard.

use std::task::{Poll, ready};

use courser_base::foreign::TaskWaker;
use courser_transport::{self as transport, ConnectionHandle};
use courser_wire::{StreamId, VarInt};

use crate::api::write::{Write, Written};
use crate::error::WriteError;
use crate::shard::state::ShardState;
use crate::shard::stream::Stream;
use crate::shard::wakers::ConnectionWakers;
use crate::shard::yielding::Yielding;

/// The sending half of a stream, apart from its connection.
#[derive(Debug)]
pub(crate) struct SendHalf {
    pub(crate) stream: Stream,
    /// The stream was finished.
    pub(super) is_over: bool,
    /// The stream was reset.
    pub(crate) was_reset: bool,
    /// A waker or deadline may be registered, which has to be removed.
    pub(crate) has_waited: bool,
    yielding: Yielding,
    /// The task yields to others when the lock is released.
    pub(super) yields: bool,
}

impl SendHalf {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            is_over: false,
            was_reset: false,
            has_waited: false,
            yielding: Yielding::default(),
            yields: false,
        }
    }

    /// Returns how many bytes could be written and sent within the peer's credit.
    pub(super) fn credit(&self, state: &mut ShardState, handle: ConnectionHandle) -> u64 {
        if state.is_rejected(handle, self.stream) {
            return 0;
        }
        let streams = state.streams(handle);
        streams.map_or(0, |streams| streams.send_credit(self.stream.id))
    }

    /// Writes as much as the send buffer accepts, or arranges to be woken when it has room.
    pub(super) fn poll_send(
        &mut self,
        state: &mut ShardState,
        handle: ConnectionHandle,
        waker: &mut TaskWaker<'_>,
        write: &mut Write<'_>,
    ) -> Poll<Result<Written, WriteError>> {
        if self.yielding.is_due(&mut state.driver.run) {
            self.yields = true;
            return Poll::Pending;
        }
        let step = |streams: &mut _, id| write.write_to(streams, id);
        let (written, is_over) = ready!(self.poll_step(state, handle, waker, step))?;
        self.is_over |= is_over;
        state.used(handle, written.bytes);
        if write.is_urgent {
            state.send_now();
        }
        Poll::Ready(Ok(written))
    }

    /// Takes a step that needs room in the send buffer, or arranges to be woken when there is some.
    pub(super) fn poll_step<T>(
        &mut self,
        state: &mut ShardState,
        handle: ConnectionHandle,
        waker: &mut TaskWaker<'_>,
        mut step: impl FnMut(&mut transport::Streams, StreamId) -> Result<T, transport::WriteError>,
    ) -> Poll<Result<T, WriteError>> {
        let id = self.stream.id;
        loop {
            if state.is_rejected(handle, self.stream) {
                return Poll::Ready(Err(WriteError::EarlyDataRejected));
            }
            let connection = match state.open_connection(handle) {
                Ok(connection) => connection,
                Err(error) => return Poll::Ready(Err(error.into())),
            };
            match step(connection.streams(), id) {
                Ok(done) => return Poll::Ready(Ok(done)),
                Err(transport::WriteError::Blocked) => {
                    // Sending the waiting data may make room.
                    if !state.send_pending() {
                        self.has_waited = true;
                        state.wait_to_write(handle, id, waker.take());
                        return Poll::Pending;
                    }
                }
                Err(transport::WriteError::Stopped(code)) => {
                    return Poll::Ready(Err(WriteError::Stopped(VarInt::from_wire(code))));
                }
                Err(transport::WriteError::ClosedStream) => {
                    return Poll::Ready(Err(closed_error(&state.entry(handle).wakers, id)));
                }
            }
        }
    }
}

/// Returns the error of a stream that takes no more bytes.
pub(crate) fn closed_error(wakers: &ConnectionWakers, id: StreamId) -> WriteError {
    match wakers.stop_code(id, None) {
        Some(code) => WriteError::Stopped(code),
        None if wakers.has_expired(id) => WriteError::DeadlinePassed,
        None => WriteError::ClosedStream,
    }
}
