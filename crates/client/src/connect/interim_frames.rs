//! Frames of HTTP/2 that hyper discards: interim responses, which it does not count, and ALTSVC frames.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::interim::MAX_INTERIM;

/// A stream of HTTP/2 frames from a server. Reading fails if a response has too many interim responses.
pub(super) struct InterimFrames<S> {
    stream: S,
    reader: FrameReader,
    on_alt_svc: OnAltSvc,
}

/// Receives the payloads of ALTSVC frames with their stream IDs.
pub(super) type OnAltSvc = Box<dyn FnMut(u32, &[u8]) + Send>;

impl<S> InterimFrames<S> {
    pub(super) fn new(stream: S, on_alt_svc: OnAltSvc) -> Self {
        Self {
            stream,
            reader: FrameReader::default(),
            on_alt_svc,
        }
    }
}

/// Counts the HEADERS frames of each stream that do not end it, and collects ALTSVC frames.
#[derive(Default, Debug)]
struct FrameReader {
    /// The part of a frame header that has arrived (RFC 9113 §4.1).
    head: [u8; 9],
    filled: usize,
    /// The number of bytes of a payload that have not arrived.
    payload: usize,
    sections: BTreeMap<u32, u32>,
    /// The stream and the first bytes of an ALTSVC frame that has not arrived completely.
    alt_svc: Option<(u32, Vec<u8>)>,
}

impl FrameReader {
    /// Processes received bytes. Returns false if a stream has too many header sections.
    fn read(&mut self, mut bytes: &[u8], on_alt_svc: &mut dyn FnMut(u32, &[u8])) -> bool {
        while !bytes.is_empty() {
            let skipped = self.payload.min(bytes.len());
            self.payload -= skipped;
            if let Some((_, collected)) = &mut self.alt_svc {
                collected.extend_from_slice(&bytes[..skipped]);
            }
            bytes = &bytes[skipped..];
            if self.payload == 0
                && let Some((id, payload)) = self.alt_svc.take()
            {
                on_alt_svc(id, &payload);
            }
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
        } else if kind == ALTSVC && (1..=MAX_ALTSVC).contains(&self.payload) {
            self.alt_svc = Some((id, Vec::with_capacity(self.payload)));
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
        let this = &mut *self;
        let received = &buffer.filled()[before..];
        let is_within = this.reader.read(received, &mut this.on_alt_svc);
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
/// RFC 7838 §4.
const ALTSVC: u8 = 10;
const END_STREAM: u8 = 1;
/// The largest number of streams whose header sections are counted (limit K383).
const MAX_STREAMS: usize = 1024;
/// The largest payload of an ALTSVC frame that is read (limit K531). Larger ones are skipped, as unknown frames are.
const MAX_ALTSVC: usize = 4096;

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
            let mut reader = FrameReader::default();
            let mut read = |bytes: &[u8]| reader.read(bytes, &mut |_, _| panic!("no ALTSVC"));
            assert!(sections.chunks(size).all(&mut read), "{size}");
            assert!(read(&frame(DATA, 0, 1, 500)));
            assert!(read(&frame(HEADERS, 4 | END_STREAM, 1, 5)), "trailers");
            assert!(!read(&frame(HEADERS, 4, 3, 5)), "one too many");
        }
    }

    #[test]
    fn number_of_counted_streams_is_bounded() {
        let mut reader = FrameReader::default();
        for id in 0..10_000 {
            assert!(reader.read(&frame(HEADERS, 4, id * 2 + 1, 0), &mut |_, _| {}));
        }
        assert_eq!(reader.sections.len(), MAX_STREAMS);
    }

    /// Limit K531.
    #[test]
    fn alt_svc_frames_are_collected_however_the_bytes_arrive() {
        let frames = [
            frame(ALTSVC, 0, 0, 5),
            frame(DATA, 0, 1, 9),
            frame(ALTSVC, 0, 3, MAX_ALTSVC),
            frame(ALTSVC, 0, 5, 0),
            frame(ALTSVC, 0, 7, MAX_ALTSVC + 1),
            frame(ALTSVC, 0, 9, 1),
        ]
        .concat();
        for size in [1, 2, 9, 10, 14, 15, 100_000] {
            let mut reader = FrameReader::default();
            let mut seen = Vec::new();
            for part in frames.chunks(size) {
                let mut on_alt_svc = |id, payload: &[u8]| seen.push((id, payload.len()));
                assert!(reader.read(part, &mut on_alt_svc), "{size}");
            }
            assert_eq!(seen, [(0, 5), (3, MAX_ALTSVC), (9, 1)], "{size}");
        }
    }
}
