//! A stream that is opened with all that is sent on it.

use std::task::Context;

use courser_base::foreign::ForeignWaker;
use courser_wire::{Direction, StreamId};

use crate::api::connection::Connection;
use crate::api::receive_stream::RecvStream;
use crate::api::send_stream::SendStream;
use crate::shard::lock::{Afterwards, Locked};
use crate::shard::stream::Stream;

/// A stream with a message on it, as far as there was room.
#[derive(Debug)]
pub struct Opened<'a> {
    /// None if all is written, and the end behind it.
    pub(crate) send: Option<SendStream>,
    pub(crate) receive: RecvStream,
    /// Bytes of the message that found room.
    pub(crate) written: usize,
    /// To be dropped when the caller has released its own lock.
    pub(crate) afterwards: Afterwards<'a>,
}

impl Connection {
    /// Opens a stream for both directions, writes a message on it, and has the task of `cx` wait
    /// for what comes back, which is nothing yet: a small request takes the lock once instead of
    /// four times. `None` if the peer allows no stream now or the connection is over; then
    /// [`open_bi`](Self::open_bi) waits, or returns the reason.
    ///
    /// `message` gets the number of the stream, and may write on others before it. The caller holds
    /// a lock, so tasks are woken and bytes leave when [`Opened::afterwards`] is dropped.
    pub(crate) fn open_bi_with<'m>(
        &self,
        cx: &Context<'_>,
        message: impl FnOnce(StreamId, &mut Locked<'_>) -> &'m [u8],
    ) -> Option<Opened<'_>> {
        let handle = self.0.handle;
        let waker = ForeignWaker::of(cx);
        let mut locked = self.0.lock();
        let streams = locked.open_connection(handle).ok()?.streams();
        let id = streams.open(Direction::Bidirectional)?;
        let message = message(id, &mut locked);
        let streams = locked.open_connection(handle).ok()?.streams();
        // The only possible error of a stream that has just begun is that there is no room.
        let written = streams.write(id, message).unwrap_or(0);
        let stream = Stream::new(streams, id);
        let is_whole = written == message.len() && streams.finish(id).is_ok();
        let mut send = None;
        if is_whole {
            streams.await_data(id);
            // Before anything is sent: that may be the end of the connection, which wakes all.
            locked.entry(handle).wakers.wait_to_read(id, waker);
        } else {
            send = Some(SendStream::new(self.0.clone(), stream));
        }
        locked.used(handle, written);
        Some(Opened {
            send,
            receive: RecvStream::awaited(self.0.clone(), stream),
            written,
            afterwards: locked.release_later(&self.0.shard),
        })
    }
}
