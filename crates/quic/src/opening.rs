//! A stream that is opened with all that is sent on it.

use std::task::{Context, Waker};

use courser_wire::{Direction, StreamId};

use crate::connection::Connection;
use crate::shard::Locked;
use crate::{RecvStream, SendStream};

/// The outcome of sending a message on a new stream.
#[derive(Debug)]
pub struct Opened {
    /// None if all is written, and the end behind it.
    pub(crate) send: Option<SendStream>,
    pub(crate) receive: RecvStream,
    /// Bytes of the message that found room.
    pub(crate) written: usize,
    /// Nobody sends it soon: to be flushed before the task waits.
    pub(crate) is_unflushed: bool,
}

impl Connection {
    /// Opens a stream for both directions, writes a message on it, and has the task of `cx` wait
    /// for what comes back, which is nothing yet: a small request takes the lock once instead of
    /// four times. `None` if the peer allows no stream now or the connection is over; then
    /// [`open_bi`](Self::open_bi) waits or tells.
    ///
    /// `message` gets the number of the stream, and may write on others before it. Whoever calls
    /// holds a lock, so those whom this wakes are only put into `woken`.
    pub(crate) fn open_bi_with<'m>(
        &self,
        cx: &Context<'_>,
        woken: &mut Vec<Waker>,
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
        let mut opened = Opened {
            send: None,
            receive: RecvStream::awaited(self.0.clone(), id),
            written,
            is_unflushed: false,
        };
        if is_whole {
            streams.await_data(id);
            // Before anything is sent: that may be the end of the connection, which wakes all.
            locked.slot(key).wakers.wait_to_read(id, cx.waker());
        } else {
            opened.send = Some(SendStream::new(self.0.clone(), id));
        }
        locked.on_used(key, written);
        opened.is_unflushed = is_whole && locked.is_unflushed();
        locked.release_into(woken);
        Some(opened)
    }
}
