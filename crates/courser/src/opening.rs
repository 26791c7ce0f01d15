//! A stream that is opened with all that is sent on it.

use std::task::Context;

use courser_wire::{Direction, StreamId};

use crate::connection::Connection;
use crate::shard::Locked;
use crate::{RecvStream, SendStream};

/// What became of a message and its stream.
#[derive(Debug)]
pub(crate) enum Opened {
    /// It is written, and the end behind it.
    Whole(RecvStream),
    /// There was room for so many bytes of it.
    Part {
        send: SendStream,
        receive: RecvStream,
        written: usize,
    },
}

impl Connection {
    /// Opens a stream for both directions, writes a message on it, and has the task of `cx` wait
    /// for what comes back, which is nothing yet: a small request takes the lock once instead of
    /// four times. `None` if the peer allows no stream now or the connection is over; then
    /// [`open_bi`](Self::open_bi) waits or tells.
    ///
    /// `message` gets the number of the stream, and may write on others before it.
    pub(crate) fn open_bi_with<'m>(
        &self,
        cx: &Context<'_>,
        message: impl FnOnce(StreamId, &mut Locked<'_>) -> &'m [u8],
    ) -> Option<Opened> {
        let key = self.0.key;
        let mut locked = self.0.lock();
        let streams = locked.open_connection(key).ok()?.streams();
        let id = streams.open(Direction::Bidirectional)?;
        let message = message(id, &mut locked);
        let streams = locked.open_connection(key).ok()?.streams();
        // The only error of a stream that nobody knows of yet is that there is no room.
        let written = streams.write(id, message).unwrap_or(0);
        let is_whole = written == message.len() && streams.finish(id).is_ok();
        streams.await_data(id);
        locked.on_used(key, written);
        if !is_whole {
            return Some(Opened::Part {
                send: SendStream::new(self.0.clone(), id),
                receive: RecvStream::new(self.0.clone(), id),
                written,
            });
        }
        locked.slot(key).wakers.wait_to_read(id, cx.waker());
        locked.flush_before_wait();
        Some(Opened::Whole(RecvStream::awaited(self.0.clone(), id)))
    }
}
