//! Limits the interim responses of HTTP/2, which hyper discards without counting them.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::interim::MAX_INTERIM;

/// A stream of HTTP/2 frames from a server. Reading fails if a response has too many interim responses.
#[derive(Debug)]
pub(super) struct InterimFrames<S> {
    stream: S,
    counter: Counter,
}

impl<S> InterimFrames<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            counter: Counter::default(),
        }
    }
}

/// Counts the HEADERS frames of each stream that do not end it.
#[derive(Default, Debug)]
struct Counter {
    /// The part of a frame header that has arrived (RFC 9113 §4.1).
    head: [u8; 9],
    filled: usize,
    /// The number of bytes of a payload that have not arrived.
    payload: usize,
    sections: BTreeMap<u32, u32>,
}

impl Counter {
    /// Processes received bytes. Returns false if a stream has too many header sections.
    fn read(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let skipped = self.payload.min(bytes.len());
            self.payload -= skipped;
            bytes = &bytes[skipped..];
            let taken = (self.head.len() - self.filled).min(bytes.len());
            self.head[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
            if self.filled == self.head.len() {
                self.filled = 0;
                if !self.on_frame() {
                    return false;
                }
            }
        }
        true
    }

    fn on_frame(&mut self) -> bool {
        let [a, b, c, kind, flags, id @ ..] = self.head;
        self.payload = u32::from_be_bytes([0, a, b, c]) as usize;
        let id = u32::from_be_bytes(id) & (u32::MAX >> 1);
        let ends = kind == RST_STREAM || matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0;
        if ends {
            self.sections.remove(&id);
        } else if kind == HEADERS {
            if self.sections.len() >= MAX_STREAMS {
                // The oldest streams were probably cancelled by this end.
                self.sections.pop_first();
            }
            let sections = self.sections.entry(id).or_default();
            *sections += 1;
            // The last one is that of the final response.
            return *sections <= MAX_INTERIM + 1;
        }
        true
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for InterimFrames<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let is_within = self.counter.read(&buffer.filled()[before..]);
        Poll::Ready(match is_within {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "the server sent more than {MAX_INTERIM} interim responses to a request"
            ))),
        })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for InterimFrames<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const END_STREAM: u8 = 1;
/// The largest number of streams whose header sections are counted (limit K383).
const MAX_STREAMS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, id: u32, payload: usize) -> Vec<u8> {
        let length = u32::try_from(payload).expect("small").to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(id.to_be_bytes());
        frame.extend(vec![HEADERS; payload]);
        frame
    }

    #[test]
    fn sections_are_counted_by_stream_however_the_bytes_arrive() {
        let most = usize::try_from(MAX_INTERIM).expect("small") + 1;
        let sections: Vec<u8> = (0..most)
            .flat_map(|_| [frame(HEADERS, 4, 1, 20), frame(HEADERS, 4, 3, 0)].concat())
            .collect();
        for size in [1, 2, 9, 10, 10_000] {
            let mut counter = Counter::default();
            assert!(
                sections.chunks(size).all(|part| counter.read(part)),
                "{size}"
            );
            assert!(counter.read(&frame(DATA, 0, 1, 500)));
            assert!(
                counter.read(&frame(HEADERS, 4 | END_STREAM, 1, 5)),
                "trailers"
            );
            assert!(!counter.read(&frame(HEADERS, 4, 3, 5)), "one too many");
        }
    }

    #[test]
    fn number_of_counted_streams_is_bounded() {
        let mut counter = Counter::default();
        for id in 0..10_000 {
            assert!(counter.read(&frame(HEADERS, 4, id * 2 + 1, 0)));
        }
        assert_eq!(counter.sections.len(), MAX_STREAMS);
    }
}
