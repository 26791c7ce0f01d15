//! Sending of a body after its header section.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Buf as _;
use courser_base::demand;
use courser_http3::{FieldsToSend, MessageWriter};
use courser_quic::hooks::{SendStreamHooks, Write};
use courser_quic::runtime::{self, Sleep};
use courser_quic::{Side, StoppedError, VarInt, WriteError, Written};
use http_body::Body;

use super::Outgoing;
use crate::failure::Failure;

/// Completes when the peer has stopped reading the message.
type Stopped = Pin<Box<dyn Future<Output = Result<Option<VarInt>, StoppedError>> + Send>>;

/// An error of the body to send.
type BodyError = Box<dyn std::error::Error + Send + Sync>;

impl Outgoing {
    /// Writes a header section, a body and the end. A body that is ready is sent in one write with the header
    /// section. `length` is the length of the content, if known.
    pub(crate) async fn send<B>(
        &mut self,
        headers: Vec<u8>,
        body: Pin<&mut B>,
        length: Option<u64>,
    ) -> Result<(), Failure>
    where
        B: Body,
        B::Error: Into<BodyError>,
    {
        let sent = self.send_message(headers, body, length).await;
        if let Err(Failure::Http { .. }) = &sent
            && self.guard.side() == Side::Server
        {
            self.on_cancelled_by_peer()?;
        }
        sent
    }

    async fn send_message<B>(
        &mut self,
        headers: Vec<u8>,
        mut body: Pin<&mut B>,
        length: Option<u64>,
    ) -> Result<(), Failure>
    where
        B: Body,
        B::Error: Into<BodyError>,
    {
        let mut unwritten = Unwritten::new(headers, length);
        let mut stopped = None;
        while !body.is_end_stream() {
            let credit = self.wait_for_credit(&mut unwritten).await?;
            let frame = self.next_frame(body.as_mut(), credit, &mut unwritten, &mut stopped);
            let frame = match frame.await? {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Err(Failure::Body(error.into())),
                None => break,
            };
            match frame.into_data() {
                Ok(data) => {
                    self.record_data(data.remaining());
                    unwritten.frames.push_content(data);
                }
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        let trailers = self.encode(&FieldsToSend::trailers(&trailers))?;
                        unwritten.frames.push_trailers(&trailers);
                        break;
                    }
                }
            }
            if unwritten.is_large() {
                self.write_all(&mut unwritten).await?;
            }
        }
        self.write_last(unwritten).await
    }

    /// Waits while the peer grants no credit, and returns how much it grants. The header section is sent first, but
    /// the body is not polled, because a frame that it returned now would wait in memory (attack A88).
    async fn wait_for_credit(&mut self, unwritten: &mut Unwritten) -> Result<u64, Failure> {
        let ahead = unwritten.frames.len() as u64;
        let credit = poll_fn(|cx| Poll::Ready(self.send.poll_credit(cx, ahead))).await;
        match credit {
            Poll::Ready(credit) => return Ok(credit?),
            Poll::Pending => self.write_all(unwritten).await?,
        }
        let credit = poll_fn(|cx| {
            let credit = self.send.poll_credit(cx, 0);
            if credit.is_pending() {
                unwritten.frames.shrink();
                self.waiting.on_waiting(&self.guard.waiting);
            }
            credit
        });
        Ok(credit.await?)
    }

    /// Waits for the next frame of the body, which may be idle for long. Meanwhile writes the available bytes,
    /// unless only the end is missing. Fails when the peer has stopped reading. `credit` is how much can be written.
    async fn next_frame<B: Body>(
        &mut self,
        mut body: Pin<&mut B>,
        credit: u64,
        unwritten: &mut Unwritten,
        stopped: &mut Option<Stopped>,
    ) -> Result<Option<Result<http_body::Frame<B::Data>, B::Error>>, Failure> {
        let demand = MessageWriter::content_within(credit);
        poll_fn(|cx| {
            let polled = demand::within(demand, || body.as_mut().poll_frame(cx));
            if let Poll::Ready(frame) = polled {
                return Poll::Ready(Ok(frame));
            }
            ready!(unwritten.poll_hold(cx));
            let chunks = unwritten.frames.chunks();
            while !chunks.is_empty() {
                match self.send.poll_send(cx, Write::chunks(chunks)) {
                    Poll::Ready(Ok(written)) => {
                        chunks.drain(..written.chunks);
                        self.waiting.on_written(written.bytes, &self.guard.waiting);
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                    Poll::Pending => {
                        self.waiting.on_waiting(&self.guard.waiting);
                        break;
                    }
                }
            }
            let stopped = stopped.get_or_insert_with(|| Box::pin(self.send.stopped()));
            match ready!(stopped.as_mut().poll(cx)) {
                Ok(Some(code)) => Poll::Ready(Err(Failure::of_peer(code))),
                // Only this end can end the stream.
                Ok(None) => Poll::Ready(Err(Failure::closed())),
                Err(StoppedError::ConnectionLost(error)) => Poll::Ready(Err(error.into())),
                Err(_) => Poll::Ready(Err(Failure::closed())),
            }
        })
        .await
    }

    async fn write_all(&mut self, unwritten: &mut Unwritten) -> Result<(), Failure> {
        let len = unwritten.frames.len();
        let chunks = unwritten.frames.chunks();
        {
            let mut written = pin!(self.send.write_all_chunks(chunks));
            poll_fn(|cx| {
                let written = written.as_mut().poll(cx);
                if written.is_pending() {
                    self.waiting.on_waiting(&self.guard.waiting);
                }
                written
            })
            .await?;
        }
        chunks.clear();
        self.waiting.on_written(len, &self.guard.waiting);
        Ok(())
    }

    /// Writes the rest and the end in one step if the stream has the capacity.
    async fn write_last(&mut self, mut unwritten: Unwritten) -> Result<(), Failure> {
        if let Some(mut left) = unwritten.frames.as_small() {
            loop {
                let write = poll_fn(|cx| self.poll_last(cx, Write::slice(left)));
                left = &left[write.await?.bytes..];
                if left.is_empty() {
                    break;
                }
            }
        } else {
            let (mut done, all) = (0, unwritten.frames.chunks());
            while done < all.len() {
                let write = poll_fn(|cx| {
                    let rest = Write::chunks(&mut all[done..]);
                    self.poll_last(cx, rest)
                });
                done += write.await?.chunks;
            }
        }
        self.on_end();
        Ok(())
    }

    /// Writes the last bytes with the end of the message.
    fn poll_last(
        &mut self,
        cx: &mut Context<'_>,
        rest: Write<'_>,
    ) -> Poll<Result<Written, WriteError>> {
        let written = self.send.poll_send(cx, rest.last());
        if written.is_pending() {
            self.waiting.on_waiting(&self.guard.waiting);
        }
        written
    }
}

/// The frames that are not written yet.
#[derive(Debug)]
struct Unwritten {
    frames: MessageWriter,
    hold: Hold,
}

/// A short wait for the end of a body whose content is complete.
#[derive(Debug)]
enum Hold {
    Unused,
    Waiting(Pin<Box<Sleep>>),
    Over,
}

impl Unwritten {
    const fn new(headers: Vec<u8>, length: Option<u64>) -> Self {
        Self {
            frames: MessageWriter::new(headers, length),
            hold: Hold::Unused,
        }
    }

    /// Waits for the end if the content is complete and small, so that both are sent together. Bodies that read
    /// files must read once more to detect their end.
    fn poll_hold(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.frames.has_all_content() || self.frames.is_empty() || self.is_large() {
            return Poll::Ready(());
        }
        if let Hold::Unused = self.hold {
            self.hold = Hold::Waiting(Box::pin(runtime::sleep(LONGEST_HOLD)));
        }
        if let Hold::Waiting(sleep) = &mut self.hold {
            ready!(sleep.as_mut().poll(cx));
            self.hold = Hold::Over;
        }
        Poll::Ready(())
    }

    /// Returns true if the frames justify a system call.
    fn is_large(&self) -> bool {
        self.frames.len() >= LARGE
    }
}

/// Number of bytes that justify a system call.
const LARGE: usize = 64 * 1024;

/// Time for which complete content waits for the end of its body. Slower bodies may take any time.
const LONGEST_HOLD: Duration = Duration::from_millis(1);
