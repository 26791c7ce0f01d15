//! Bytes on our unidirectional streams.

use std::task::{Context, Poll, Waker};

use courser_http3::UniStream;

use super::State;
use crate::shard::Locked;
use crate::{SendStream, WriteError};

impl State {
    /// Writes what waits on our streams, as far as it goes, and as far as it has to leave now.
    pub(super) fn write(&mut self) {
        self.write_with(|send, cx, out| send.poll_write(cx, out));
    }

    /// As [`write`](Self::write), for whoever holds the lock of the connection.
    pub(super) fn write_locked(&mut self, locked: &mut Locked<'_>) {
        self.write_with(|send, cx, out| send.poll_write_locked(locked, cx, out));
    }

    fn write_with(
        &mut self,
        mut poll_write: impl FnMut(
            &mut SendStream,
            &mut Context<'_>,
            &[u8],
        ) -> Poll<Result<usize, WriteError>>,
    ) {
        // Most calls have nothing to send.
        if !self.http.has_urgent() && (self.owes_answers || !self.http.has_answers()) {
            return;
        }
        let waker = self.writer.as_ref().unwrap_or(Waker::noop());
        let mut cx = Context::from_waker(waker);
        for (stream, place) in UniStream::ALL.into_iter().zip(&mut self.streams) {
            if self.owes_answers && stream == UniStream::Decoder {
                continue;
            }
            let out = self.http.outgoing(stream);
            let Some(send) = place else {
                continue;
            };
            while !out.is_empty() {
                // Errors are those of the connection, which others will see.
                let Poll::Ready(Ok(written)) = poll_write(send, &mut cx, out) else {
                    break;
                };
                out.drain(..written);
            }
        }
    }
}
