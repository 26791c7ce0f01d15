//! The sending half of a stream of capsules.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use courser_http3::{Capsule, Code};
use courser_quic::StreamId;

use super::super::datagrams::Datagrams;
use super::super::error::Error;
use super::super::upgrade::{End, SendingPart};
use super::encoding::{encode, in_frame};

/// The sending half of [`Capsules::split`](super::Capsules::split). Dropping it finishes the sending direction.
///
/// [`send`](Self::send) waits while the peer gives no credit. [`queue`](Self::queue) does not wait: up to 8
/// capsules are kept, which [`flush`](Self::flush) writes. So a task can answer what it reads although the peer
/// does not read:
///
/// ```
/// # mod courser { pub use courser_quic::*; pub use courser_http3_tokio as h3; }
/// # use courser::h3;
/// # async fn run(upgraded: h3::Upgraded) -> Result<(), h3::Error> {
/// const LIMIT: u64 = 0x1000;
/// let (mut sender, mut receiver) = h3::Capsules::new(upgraded).accept(LIMIT, 8).split();
/// loop {
///     tokio::select! {
///         received = receiver.next() => match received? {
///             Some(h3::Received::Capsule(limit)) => {
///                 // Replaces an older answer that still waits.
///                 let _ = sender.queue_latest(LIMIT, &limit.value);
///             }
///             Some(h3::Received::Datagram(_)) => {}
///             None => return sender.finish().await,
///         },
///         written = sender.flush(), if sender.is_waiting() => written?,
///     }
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct CapsuleSender {
    part: SendingPart,
    datagrams: Option<Datagrams>,
    /// Encoded capsules with their types.
    waiting: VecDeque<(u64, Bytes)>,
    _end: Option<Arc<End>>,
}

/// The error of [`CapsuleSender::queue`]: already 8 capsules wait for credit of the peer (limit K584).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{MAX_WAITING} capsules wait for flow control credit of the peer, the most that are kept")]
pub struct CapsulesWait;

impl CapsuleSender {
    pub(super) const fn new(
        part: SendingPart,
        datagrams: Option<Datagrams>,
        end: Option<Arc<End>>,
    ) -> Self {
        Self {
            part,
            datagrams,
            waiting: VecDeque::new(),
            _end: end,
        }
    }

    /// Returns the stream ID.
    pub fn stream(&self) -> StreamId {
        self.part.stream()
    }

    /// Keeps a capsule for [`flush`](Self::flush), behind those that wait.
    ///
    /// # Errors
    /// Returns an error if 8 capsules wait.
    pub fn queue(&mut self, kind: u64, value: &[u8]) -> Result<(), CapsulesWait> {
        if self.waiting.len() >= MAX_WAITING {
            return Err(CapsulesWait);
        }
        self.waiting.push_back((kind, encode(kind, value)));
        Ok(())
    }

    /// Keeps a capsule for [`flush`](Self::flush), in the place of one of the same type that waits, such as an
    /// older limit.
    ///
    /// # Errors
    /// The errors of [`queue`](Self::queue), if none of the type waits.
    pub fn queue_latest(&mut self, kind: u64, value: &[u8]) -> Result<(), CapsulesWait> {
        match self.waiting.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, older)) => *older = encode(kind, value),
            None => self.queue(kind, value)?,
        }
        Ok(())
    }

    /// Returns true while capsules of [`queue`](Self::queue) wait.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Writes the capsules that wait.
    ///
    /// # Errors
    /// The errors of [`Capsules::send`](super::Capsules::send).
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing, and the next call continues.
    pub async fn flush(&mut self) -> Result<(), Error> {
        poll_fn(|cx| self.poll_flush(cx)).await
    }

    /// Polls like [`flush`](Self::flush).
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            ready!(self.part.poll_written(cx))?;
            let Some((_, capsule)) = self.waiting.pop_front() else {
                return Poll::Ready(Ok(()));
            };
            self.part.begin_frame(capsule);
        }
    }

    /// Writes the capsules that wait, and then this one.
    ///
    /// # Errors
    /// The errors of [`Capsules::send`](super::Capsules::send).
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready sends nothing or, with the next write, the whole capsule.
    pub async fn send(&mut self, kind: u64, value: &[u8]) -> Result<(), Error> {
        self.flush().await?;
        self.part.write_chunk(encode(kind, value)).await
    }

    /// Sends a datagram like [`Capsules::send_datagram`](super::Capsules::send_datagram).
    ///
    /// # Errors
    /// The errors of [`Capsules::send`](super::Capsules::send).
    ///
    /// # Cancel safety
    /// The same as for [`send`](Self::send).
    pub async fn send_datagram(&mut self, payload: &[u8]) -> Result<(), Error> {
        match in_frame(self.datagrams.as_ref(), payload) {
            Some(sent) => sent,
            None => self.send(Capsule::DATAGRAM, payload).await,
        }
    }

    /// Writes the capsules that wait and finishes the sending direction.
    ///
    /// # Errors
    /// The errors of [`Capsules::send`](super::Capsules::send).
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready finishes the direction without the capsules that wait, or resets
    /// it if one was written in part.
    pub async fn finish(mut self) -> Result<(), Error> {
        self.flush().await?;
        poll_fn(|cx| self.part.poll_finish(cx)).await
    }

    /// Resets the sending direction.
    pub fn reset(mut self, code: Code) {
        self.part.reset(code);
    }
}

/// Largest number of capsules that wait for credit (limit K584, attack A97).
const MAX_WAITING: usize = 8;
