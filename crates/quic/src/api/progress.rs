//! The progress of streams: statistics, acknowledged bytes, writers that wait.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use courser_base::foreign::ForeignWaker;
use courser_transport::{BlockedBy, ClosedStream, RecvStreamStats, SendStreamStats};
use courser_wire::VarInt;

use crate::api::handles::ConnectionRef;
use crate::api::hooks::{RecvStreamHooks, SendStreamHooks};
use crate::api::receive_stream::RecvStream;
use crate::api::send_half::closed_error;
use crate::api::send_stream::SendStream;
use crate::error::{ReadError, WriteError};
use crate::shard::stream::Stream;
use crate::shard::wakers::Watch;

impl SendStream {
    /// Returns the numbers of bytes that were written, sent and acknowledged so far.
    ///
    /// # Errors
    /// Returns [`ClosedStream`] if everything was acknowledged, the stream was reset, or the connection is over.
    pub fn stats(&self) -> Result<SendStreamStats, ClosedStream> {
        let (handle, stream) = (self.connection.handle, self.half.stream);
        let mut locked = self.connection.lock();
        locked.open_streams(handle, stream)?.send_stats(stream.id)
    }

    /// Waits until the peer has acknowledged all bytes that were written before this call.
    ///
    /// The peer's transport has these bytes then; its application may still have to read them.
    /// Acknowledgements may be delayed, by default for up to 25 ms. The future does not borrow the
    /// stream, so that writing can continue while it waits.
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # async fn copy(stream: &mut courser::SendStream) -> Result<(), courser::WriteError> {
    /// stream.write_all(b"a record").await?;
    /// let first = stream.acknowledged();
    /// stream.write_all(b"another record").await?;
    /// first.await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if one of these precedes the acknowledgement: [`WriteError::Stopped`] if the peer stopped
    /// the stream, [`WriteError::ClosedStream`] if the stream was reset, [`WriteError::DeadlinePassed`] if its
    /// deadline passed, [`WriteError::EarlyDataRejected`], and [`WriteError::ConnectionLost`].
    ///
    /// # Cancel safety
    /// Safe. The bytes are sent in any case.
    pub fn acknowledged(
        &self,
    ) -> impl Future<Output = Result<(), WriteError>> + Send + Sync + 'static {
        self.acknowledged_to(u64::MAX)
    }

    /// Waits until the peer has acknowledged what was written, up to this offset.
    pub(crate) fn acknowledged_to(
        &self,
        limit: u64,
    ) -> impl Future<Output = Result<(), WriteError>> + Send + Sync + 'static {
        Acknowledged {
            connection: self.connection.clone(),
            state: self.watch_written(limit),
        }
    }

    fn watch_written(&self, limit: u64) -> Watching {
        let (handle, stream) = (self.connection.handle, self.half.stream);
        let id = stream.id;
        let mut locked = self.connection.lock();
        if locked.is_rejected(handle, stream) {
            return Watching::Known(Err(WriteError::EarlyDataRejected));
        }
        let connection = match locked.open_connection(handle) {
            Ok(connection) => connection,
            Err(error) => return Watching::Known(Err(error.into())),
        };
        let streams = connection.streams();
        let written = streams.send_stats(id).map(|stats| stats.written);
        let waits = written.and_then(|written| {
            let written = written.min(limit);
            let is_acked = streams.await_acknowledged(id, written)?;
            Ok((!is_acked).then_some(written))
        });
        let wakers = &mut locked.entry(handle).wakers;
        match waits {
            Ok(None) => Watching::Known(Ok(())),
            Ok(Some(written)) => Watching::Open(wakers.await_acked(id, written)),
            Err(ClosedStream) => Watching::Known(match closed_error(wakers, id) {
                // It was finished, and all of it was acknowledged.
                WriteError::ClosedStream if !self.half.was_reset => Ok(()),
                error => Err(error),
            }),
        }
    }

    /// Resets the stream with `code` after this time, unless the peer has acknowledged everything by
    /// then. `None` removes the deadline.
    ///
    /// Outdated data then takes no bandwidth from other data. A stream that is not finished has not delivered
    /// everything, so its deadline always passes. Later writes fail with [`WriteError::DeadlinePassed`], and the
    /// peer reads a reset. The deadline stays when the handle is dropped.
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # use std::time::Duration;
    /// # async fn send(stream: &mut courser::SendStream, frame: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    /// stream.set_deadline(Some(Duration::from_millis(200)), 1u32.into())?;
    /// stream.write_all(frame).await?;
    /// stream.finish()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`ClosedStream`] if everything was acknowledged, the stream was reset, or the connection is over.
    pub fn set_deadline(
        &mut self,
        after: Option<Duration>,
        code: VarInt,
    ) -> Result<(), ClosedStream> {
        self.set_deadline_at(after, code, 0)
    }

    /// Waits until a write to this stream has to wait, and returns the limit that blocks it.
    ///
    /// Returns at once while a write waits. The future does not borrow the stream, so that another
    /// task can wait for it beside the writer, for example to lower the quality of what it sends.
    ///
    /// # Errors
    /// Returns [`WriteError::Stopped`] if the peer stopped the stream, [`WriteError::ClosedStream`] if the stream
    /// is finished or reset, [`WriteError::EarlyDataRejected`], and [`WriteError::ConnectionLost`] if the
    /// connection is over. If the writer finishes the stream without waiting, the error follows when the peer
    /// has acknowledged everything.
    ///
    /// # Cancel safety
    /// Safe. The method can be called again, and by several tasks.
    pub fn blocked(
        &self,
    ) -> impl Future<Output = Result<BlockedBy, WriteError>> + Send + Sync + 'static {
        Blocked {
            connection: self.connection.clone(),
            stream: self.half.stream,
            watch: None,
        }
    }
}

impl RecvStream {
    /// Waits until the peer resets the stream, and returns its code, without reading. `None` means that no
    /// reset can follow: all bytes up to the end have arrived, the end was read, or the stream was
    /// stopped.
    ///
    /// Bytes that have arrived stay to be read, unless the stream was reset.
    ///
    /// # Errors
    /// Returns [`ReadError::ConnectionLost`] if the connection is over before, and
    /// [`ReadError::EarlyDataRejected`].
    ///
    /// # Cancel safety
    /// Safe. The method can be called again.
    pub async fn received_reset(&mut self) -> Result<Option<VarInt>, ReadError> {
        std::future::poll_fn(|cx| self.poll_received_reset(cx)).await
    }

    /// Polls for the result of [`RecvStream::received_reset`], and arranges to be woken when data arrives.
    ///
    /// # Errors
    /// Returns the errors of [`RecvStream::received_reset`].
    pub fn poll_received_reset(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<VarInt>, ReadError>> {
        if let Some(code) = self.end_code() {
            return Poll::Ready(Ok(code));
        }
        match self.poll_reset(cx) {
            Poll::Ready(ReadError::Reset(code)) => return Poll::Ready(Ok(Some(code))),
            Poll::Ready(error) => return Poll::Ready(Err(error)),
            Poll::Pending => {}
        }
        let handle = self.connection.handle;
        let mut locked = self.connection.lock();
        let streams = locked.streams(handle);
        let has_everything = streams.and_then(|streams| streams.has_everything(self.stream.id));
        match (has_everything, locked.end_of(handle)) {
            (Some(true), _) => Poll::Ready(Ok(None)),
            // The rest of the stream will not arrive.
            (_, Some(error)) => Poll::Ready(Err(error.clone().into())),
            (Some(false), None) => Poll::Pending,
            // It was stopped.
            (None, None) => Poll::Ready(Ok(None)),
        }
    }

    /// Returns the number of bytes in the stream, once the peer has announced it with the end or with a reset. After a
    /// read has returned either, it stays known.
    pub fn final_size(&self) -> Option<u64> {
        let stats = || self.stats().ok()?.final_size;
        self.known_final_size().or_else(stats)
    }

    /// Returns the numbers of bytes that were received and read so far.
    ///
    /// # Errors
    /// Returns [`ClosedStream`] if the stream was read to its end or is gone.
    pub fn stats(&self) -> Result<RecvStreamStats, ClosedStream> {
        let (handle, stream) = (self.connection.handle, self.stream);
        let mut locked = self.connection.lock();
        let streams = locked.received_streams(handle, stream);
        streams.ok_or(ClosedStream)?.receive_stats(stream.id)
    }
}

/// The result of [`Acknowledged`], or how to get it.
#[derive(Debug)]
enum Watching {
    Open(Watch),
    Known(Result<(), WriteError>),
}

/// Waits for the acknowledgement of written bytes.
struct Acknowledged {
    connection: Arc<ConnectionRef>,
    state: Watching,
}

impl Future for Acknowledged {
    type Output = Result<(), WriteError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let watch = match &self.state {
            Watching::Known(result) => return Poll::Ready(result.clone()),
            Watching::Open(watch) => *watch,
        };
        let handle = self.connection.handle;
        let waker = ForeignWaker::of(cx);
        let mut locked = self.connection.lock();
        if let Some(result) = locked.entry(handle).wakers.acked(watch, waker) {
            return Poll::Ready(result);
        }
        if let Some(error) = locked.end_of(handle) {
            return Poll::Ready(Err(error.clone().into()));
        }
        locked.about_to_wait();
        Poll::Pending
    }
}

impl Drop for Acknowledged {
    fn drop(&mut self) {
        if let Watching::Open(watch) = self.state {
            forget(&self.connection, watch);
        }
    }
}

/// Waits until the writer of a stream waits.
struct Blocked {
    connection: Arc<ConnectionRef>,
    stream: Stream,
    watch: Option<Watch>,
}

impl Future for Blocked {
    type Output = Result<BlockedBy, WriteError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let handle = this.connection.handle;
        let waker = ForeignWaker::of(cx);
        let mut locked = this.connection.lock();
        if locked.is_rejected(handle, this.stream) {
            return Poll::Ready(Err(WriteError::EarlyDataRejected));
        }
        let id = this.stream.id;
        let blocked = match locked.open_connection(handle) {
            Ok(connection) => connection.streams().blocked_by(id),
            Err(error) => return Poll::Ready(Err(error.into())),
        };
        let wakers = &mut locked.entry(handle).wakers;
        match blocked {
            Ok(Some(limit)) => Poll::Ready(Ok(limit)),
            Ok(None) => {
                wakers.wait_for_blocked(id, &mut this.watch, waker);
                locked.about_to_wait();
                Poll::Pending
            }
            Err(ClosedStream) => Poll::Ready(Err(closed_error(wakers, id))),
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        if let Some(watch) = self.watch {
            forget(&self.connection, watch);
        }
    }
}

fn forget(connection: &Arc<ConnectionRef>, watch: Watch) {
    connection.on_drop(move |locked, handle| {
        locked.entry(handle).wakers.forget_watch(watch);
    });
}
