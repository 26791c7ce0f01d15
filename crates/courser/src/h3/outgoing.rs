//! Our message on a request stream.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use bytes::{Buf as _, Bytes};
use courser_http3::{Code, FieldsToSend, data_header};
use http::HeaderMap;
use http_body::Body;

use super::error::{Error, var_int};
use super::shared::Guard;
use crate::{SendStream, Side};

/// Dropped before its end, it resets the stream.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) guard: Arc<Guard>,
    pub(super) send: SendStream,
    is_over: bool,
}

/// Errors of bodies, whatever they are.
type BodyError = Box<dyn std::error::Error + Send + Sync>;

impl Outgoing {
    pub(super) fn new(guard: Arc<Guard>, send: SendStream) -> Self {
        Self {
            guard,
            send,
            is_over: false,
        }
    }

    /// A HEADERS frame.
    pub(super) fn encode(&self, fields: &FieldsToSend<'_>) -> Result<Vec<u8>, Error> {
        let stream = self.send.id().value();
        let mut out = Vec::with_capacity(256);
        self.guard
            .with(|state| Ok(state.http.encode(stream, fields, &mut out)))??;
        Ok(out)
    }

    /// Writes bytes that were encoded before.
    pub(super) async fn write(&mut self, bytes: Vec<u8>) -> Result<(), Error> {
        Ok(self.send.write_chunk(Bytes::from(bytes)).await?)
    }

    /// Writes a head, a body and the end. A body that is ready leaves in one write with the head.
    pub(super) async fn send<B>(&mut self, head: Vec<u8>, body: B) -> Result<(), Error>
    where
        B: Body,
        B::Error: Into<BodyError>,
    {
        let mut body = pin!(body);
        let mut waiting = Waiting::new(head);
        while !body.is_end_stream() {
            let frame = match self.next_frame(body.as_mut(), &mut waiting).await? {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Err(Error::Body(error.into())),
                None => break,
            };
            match frame.into_data() {
                Ok(mut data) => {
                    let len = data.remaining();
                    if len > 0 {
                        waiting.push_data(data.copy_to_bytes(len));
                    }
                }
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        waiting.push(self.trailers(&trailers)?);
                        break;
                    }
                }
            }
            if waiting.is_large() {
                self.write_all(&mut waiting).await?;
            }
        }
        self.write_all(&mut waiting).await?;
        self.finish()
    }

    /// The next frame. While there is none, what waits is written.
    async fn next_frame<B: Body>(
        &mut self,
        mut body: Pin<&mut B>,
        waiting: &mut Waiting,
    ) -> Result<Option<Result<http_body::Frame<B::Data>, B::Error>>, Error> {
        poll_fn(|cx| {
            if let Poll::Ready(frame) = body.as_mut().poll_frame(cx) {
                return Poll::Ready(Ok(frame));
            }
            while !waiting.chunks.is_empty() {
                match self.send.poll_write_chunks(cx, &mut waiting.chunks) {
                    Poll::Ready(Ok(written)) => drop(waiting.chunks.drain(..written.chunks)),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                    Poll::Pending => break,
                }
            }
            Poll::Pending
        })
        .await
    }

    async fn write_all(&mut self, waiting: &mut Waiting) -> Result<(), Error> {
        self.send.write_all_chunks(&mut waiting.chunks).await?;
        waiting.chunks.clear();
        Ok(())
    }

    fn trailers(&self, trailers: &HeaderMap) -> Result<Vec<u8>, Error> {
        self.encode(&FieldsToSend::trailers(trailers))
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.is_over = true;
        // It is over already when the peer has stopped it, and all was written.
        let _ = self.send.finish();
        Ok(())
    }

    /// Gives the message up.
    pub(super) fn reset(&mut self, code: Code) {
        if !self.is_over {
            self.is_over = true;
            let _ = self.send.reset(var_int(code));
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.reset(match self.guard.side() {
            Side::Server => Code::INTERNAL_ERROR,
            Side::Client => Code::REQUEST_CANCELLED,
        });
    }
}

/// What is to be written next.
#[derive(Debug)]
struct Waiting {
    chunks: Vec<Bytes>,
}

impl Waiting {
    fn new(head: Vec<u8>) -> Self {
        Self {
            chunks: vec![Bytes::from(head)],
        }
    }

    fn push(&mut self, bytes: Vec<u8>) {
        self.chunks.push(Bytes::from(bytes));
    }

    fn push_data(&mut self, data: Bytes) {
        let header = data_header(data.len() as u64);
        self.chunks.push(Bytes::copy_from_slice(header.as_ref()));
        self.chunks.push(data);
    }

    /// Enough for a system call of its own.
    fn is_large(&self) -> bool {
        self.chunks.iter().map(Bytes::len).sum::<usize>() >= LARGE
    }
}

const LARGE: usize = 64 * 1024;
