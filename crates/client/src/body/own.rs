//! Bodies of requests that the program creates: from streams and files.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use http_body::{Body, Frame};
use tokio::fs::File;
use tokio::io::{AsyncRead as _, ReadBuf};

/// A stream of pieces as a body.
pub(super) struct Streamed<S>(pub(super) Pin<Box<S>>);

impl<S, T, E> Body for Streamed<S>
where
    S: Stream<Item = Result<T, E>>,
    T: Into<Bytes>,
{
    type Data = Bytes;
    type Error = E;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        let piece = ready!(self.0.as_mut().poll_next(cx));
        Poll::Ready(piece.map(|piece| piece.map(|data| Frame::data(data.into()))))
    }
}

/// The rest of a file as a body.
pub(super) struct FileBody {
    file: File,
    buffer: BytesMut,
}

impl FileBody {
    pub(super) fn new(file: File) -> Self {
        let buffer = BytesMut::new();
        Self { file, buffer }
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        // A piece is sent before the next one is read, so that its memory is used again.
        this.buffer.resize(PIECE, 0);
        let mut buffer = ReadBuf::new(&mut this.buffer);
        ready!(Pin::new(&mut this.file).poll_read(cx, &mut buffer))?;
        let len = buffer.filled().len();
        if len == 0 {
            return Poll::Ready(None);
        }
        let piece = this.buffer.split_to(len).freeze();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

/// Bytes that are read from a file at once: enough that a call costs little beside the transfer.
const PIECE: usize = 64 * 1024;
