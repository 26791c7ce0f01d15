//! Operations on the halves of streams, which implement them.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser_transport::{ClosedStream, Level};
use courser_wire::{StreamId, VarInt};

use super::locked_streams::LockedStreams;
use crate::api::write::{Write, Written};
use crate::error::{ReadError, WriteError};

/// Operations on a `SendStream`.
#[doc(hidden)]
pub trait SendStreamHooks {
    /// Takes the stream out of this handle, which is over afterwards.
    #[must_use]
    fn take(&mut self) -> Self;

    /// Writes as many bytes as fit, or has the task woken when some do. Bytes of an urgent write leave at
    /// once.
    ///
    /// # Errors
    /// Returns the errors of `SendStream::write`.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        write: Write<'_>,
    ) -> Poll<Result<Written, WriteError>>;

    /// Waits until the credit of the peer covers more than `ahead` further bytes, and returns how many more it
    /// covers; `u64::MAX` if the stream can never send them. Content that is produced beyond the credit
    /// occupies memory for as long as the peer likes. With bytes ahead the task may not be woken: they have to
    /// be written first.
    ///
    /// # Errors
    /// Returns the errors of `SendStream::write`.
    fn poll_credit(&mut self, cx: &mut Context<'_>, ahead: u64) -> Poll<Result<u64, WriteError>>;

    /// Sets the level among the streams of the connection. Does nothing if the stream is over.
    fn set_level(&self, level: Level);

    /// Sets a deadline like `SendStream::set_deadline`, at which the first `reliable_size` bytes are still delivered if
    /// the peer accepts RESET_STREAM_AT.
    ///
    /// # Errors
    /// The error of `SendStream::set_deadline`.
    fn set_deadline_at(
        &mut self,
        after: Option<Duration>,
        code: VarInt,
        reliable_size: u64,
    ) -> Result<(), ClosedStream>;

    /// Puts the stream into the session of this request. Does nothing if the stream is over.
    fn set_session(&self, request: StreamId);

    /// Waits until the peer has acknowledged the first `len` bytes, or all if fewer were written.
    ///
    /// # Errors
    /// Returns the errors of `SendStream::acknowledged`.
    fn acknowledged_to(
        &self,
        len: u64,
    ) -> impl Future<Output = Result<(), WriteError>> + Send + Sync + 'static;

    /// Writes bytes under a lock that the caller holds.
    ///
    /// # Errors
    /// Returns the errors of `SendStream::write`.
    fn poll_send_locked(
        &mut self,
        locked: &mut LockedStreams<'_, '_>,
        cx: &mut Context<'_>,
        write: Write<'_>,
    ) -> Poll<Result<Written, WriteError>>;

    /// Returns how many more bytes may be written so that the peer's credit for the stream and for the
    /// connection covers all of them.
    fn credit(&self) -> u64;

    /// Returns the [`credit`](Self::credit) under a lock that the caller holds.
    fn credit_locked(&self, locked: &mut LockedStreams<'_, '_>) -> u64;
}

/// Operations on a `RecvStream`.
#[doc(hidden)]
pub trait RecvStreamHooks {
    /// Takes the stream out of this handle, which is over afterwards.
    #[must_use]
    fn take(&mut self) -> Self;

    /// Waits for a reset without reading. Bytes that arrive wake the task too, and after the end of the
    /// stream it is not woken.
    fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<ReadError>;

    /// Waits for the final size of the stream, also after it was stopped. Returns `None` if it will not be known,
    /// because the connection or the stream is over.
    fn poll_final_size(&mut self, cx: &mut Context<'_>) -> Poll<Option<u64>>;

    /// Withholds the credit of bytes that were read, until [`release_credit`](Self::release_credit).
    fn hold_credit(&self, len: u64);

    /// Grants credit that was withheld, also after the end of the stream.
    fn release_credit(&self, len: u64);

    /// Reads a chunk, and the end of the stream if it directly follows: see [`has_ended`](Self::has_ended).
    ///
    /// # Errors
    /// Returns the errors of `RecvStream::read`.
    fn poll_read_chunk_and_end(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ReadError>>;

    /// Returns true if the end was read.
    fn has_ended(&self) -> bool;
}
