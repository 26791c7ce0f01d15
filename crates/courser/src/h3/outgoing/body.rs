//! Sends a body behind its head.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BufMut as _, Bytes};
use courser_http3::{FieldsToSend, data_header};
use http::HeaderMap;
use http_body::Body;

use super::Outgoing;
use crate::h3::error::Error;
use crate::runtime::{self, Sleep};
use crate::{Side, StoppedError, VarInt};

/// Until the peer wants no more of the message.
type Stopped = Pin<Box<dyn Future<Output = Result<Option<VarInt>, StoppedError>> + Send>>;

/// Errors of bodies, whatever they are.
type BodyError = Box<dyn std::error::Error + Send + Sync>;

impl Outgoing {
    /// Writes a head, a body and the end. A body that is ready leaves in one write with the head.
    /// `length` is that of the content, if it is known.
    pub(in crate::h3) async fn send<B>(
        &mut self,
        head: Vec<u8>,
        body: B,
        length: Option<u64>,
    ) -> Result<(), Error>
    where
        B: Body,
        B::Error: Into<BodyError>,
    {
        let sent = self.send_message(head, body, length).await;
        if let Err(Error::Http { .. }) = &sent
            && self.guard.side() == Side::Server
        {
            let (now, stream) = (self.guard.now(), self.send.id().value());
            self.guard
                .drive(|state| state.http.on_given_up(now, stream))?;
        }
        sent
    }

    async fn send_message<B>(
        &mut self,
        head: Vec<u8>,
        body: B,
        length: Option<u64>,
    ) -> Result<(), Error>
    where
        B: Body,
        B::Error: Into<BodyError>,
    {
        let mut body = pin!(body);
        let mut waiting = Waiting::new(head, length);
        let mut stopped = None;
        while !body.is_end_stream() {
            self.until_wanted(&mut waiting).await?;
            let frame = self.next_frame(body.as_mut(), &mut waiting, &mut stopped);
            let frame = match frame.await? {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Err(Error::Body(error.into())),
                None => break,
            };
            match frame.into_data() {
                Ok(data) if data.has_remaining() => waiting.push_data(data),
                Ok(_) => {}
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        waiting.push(&self.trailers(&trailers)?);
                        break;
                    }
                }
            }
            if waiting.is_large() {
                self.write_all(&mut waiting).await?;
            }
        }
        self.write_last(waiting).await
    }

    /// Waits while the peer grants no credit. The head goes ahead, the content stays where it is:
    /// what a body gives here would wait in memory (attack A88).
    async fn until_wanted(&mut self, waiting: &mut Waiting) -> Result<(), Error> {
        let ahead = waiting.len() as u64;
        let is_wanted = poll_fn(|cx| Poll::Ready(self.send.poll_worth_writing(cx, ahead))).await;
        match is_wanted {
            Poll::Ready(wanted) => return Ok(wanted?),
            Poll::Pending => self.write_all(waiting).await?,
        }
        Ok(poll_fn(|cx| self.send.poll_worth_writing(cx, 0)).await?)
    }

    /// The next frame. While there is none, what waits is written, unless the end is all that is
    /// missing, and a peer that wants no more ends the waiting: a body may have nothing to say for long.
    async fn next_frame<B: Body>(
        &mut self,
        mut body: Pin<&mut B>,
        waiting: &mut Waiting,
        stopped: &mut Option<Stopped>,
    ) -> Result<Option<Result<http_body::Frame<B::Data>, B::Error>>, Error> {
        poll_fn(|cx| {
            if let Poll::Ready(frame) = body.as_mut().poll_frame(cx) {
                return Poll::Ready(Ok(frame));
            }
            if waiting.poll_hold(cx).is_pending() {
                return Poll::Pending;
            }
            waiting.close_small();
            while !waiting.chunks.is_empty() {
                match self.send.poll_write_chunks(cx, &mut waiting.chunks) {
                    Poll::Ready(Ok(written)) => drop(waiting.chunks.drain(..written.chunks)),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                    Poll::Pending => break,
                }
            }
            let stopped = stopped.get_or_insert_with(|| Box::pin(self.send.stopped()));
            match ready!(stopped.as_mut().poll(cx)) {
                Ok(Some(code)) => Poll::Ready(Err(Error::of_peer(code))),
                // Nobody else ends the stream.
                Ok(None) => Poll::Ready(Err(Error::closed())),
                Err(StoppedError::ConnectionLost(error)) => Poll::Ready(Err(error.into())),
            }
        })
        .await
    }

    async fn write_all(&mut self, waiting: &mut Waiting) -> Result<(), Error> {
        waiting.close_small();
        self.send.write_all_chunks(&mut waiting.chunks).await?;
        waiting.chunks.clear();
        Ok(())
    }

    /// Writes what is left and the end in one step, if there is room.
    async fn write_last(&mut self, mut waiting: Waiting) -> Result<(), Error> {
        if waiting.chunks.is_empty() {
            let mut left = waiting.small.as_slice();
            loop {
                let written = poll_fn(|cx| self.send.poll_write_last(cx, left)).await?;
                left = &left[written..];
                if left.is_empty() {
                    break;
                }
            }
        } else {
            waiting.close_small();
            let (mut done, all) = (0, &mut waiting.chunks);
            while done < all.len() {
                let write = poll_fn(|cx| self.send.poll_write_last_chunks(cx, &mut all[done..]));
                done += write.await?.chunks;
            }
        }
        self.end();
        Ok(())
    }

    fn trailers(&self, trailers: &HeaderMap) -> Result<Vec<u8>, Error> {
        self.encode(&FieldsToSend::trailers(trailers))
    }
}

/// What is to be written next.
#[derive(Debug)]
struct Waiting {
    chunks: Vec<Bytes>,
    /// What comes behind them: heads, frame headers, little content.
    small: Vec<u8>,
    /// Content that has not come from the body yet, if its length is known and the body keeps to it.
    left: Option<u64>,
    /// Until what waits does so no longer.
    hold: Option<Pin<Box<Sleep>>>,
}

impl Waiting {
    fn new(head: Vec<u8>, length: Option<u64>) -> Self {
        Self {
            chunks: Vec::new(),
            small: head,
            left: length,
            hold: None,
        }
    }

    /// Bodies that are read from files have to look once more to see their end. When all of the
    /// content is here and little of it, it waits for the end too: they leave together then.
    fn poll_hold(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.left != Some(0) || self.is_empty() || self.is_large() {
            return Poll::Ready(());
        }
        let hold = || Box::pin(runtime::sleep(LONGEST_HOLD));
        ready!(self.hold.get_or_insert_with(hold).as_mut().poll(cx));
        self.left = None;
        Poll::Ready(())
    }

    fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.small.is_empty()
    }

    fn push(&mut self, bytes: &[u8]) {
        self.small.extend_from_slice(bytes);
    }

    /// Small content is copied behind what is there already: a chunk costs more than its bytes.
    fn push_data<B: Buf>(&mut self, mut data: B) {
        let len = data.remaining();
        self.left = self.left.and_then(|left| left.checked_sub(len as u64));
        let header = data_header(len as u64);
        self.small.extend_from_slice(header.as_ref());
        if len <= SMALL {
            self.small.put(data);
            return;
        }
        self.close_small();
        self.chunks.push(data.copy_to_bytes(len));
    }

    fn close_small(&mut self) {
        if !self.small.is_empty() {
            self.chunks.push(std::mem::take(&mut self.small).into());
        }
    }

    fn len(&self) -> usize {
        self.chunks.iter().map(Bytes::len).sum::<usize>() + self.small.len()
    }

    /// Enough for a system call of its own.
    fn is_large(&self) -> bool {
        self.len() >= LARGE
    }
}

const LARGE: usize = 64 * 1024;

/// A body that has given all of its content and says nothing of its end for as long may go on to say
/// nothing.
const LONGEST_HOLD: Duration = Duration::from_millis(1);

/// Content up to here is copied: the transport would do the same with chunks of its own.
const SMALL: usize = 1023;
