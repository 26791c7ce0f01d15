//! Writing on the unidirectional streams of this end, and requests that are sent in one step.

use std::task::{Context, Poll, Waker};

use courser_base::foreign::ForeignWaker;
use courser_http3::{self as http3, FieldsToSend, RequestError, UniStream};
use courser_quic::hooks::{Afterwards, ConnectionHooks, LockedStreams, SendStreamHooks, Write};
use courser_quic::{Connection, SendStream, WriteError};

use super::{ConnectionState, SentHead};
use crate::priority;

impl ConnectionState {
    /// Writes the bytes that are due on the unidirectional streams, within their capacity.
    pub(super) fn write_due(&mut self) {
        let mut has_due = self.http.has_urgent();
        if !self.has_delayed_answers && self.http.has_answers() {
            if self.http.may_delay_answers() {
                self.has_delayed_answers = true;
                // A client's next request without content sends them, and a server writes them before it waits
                // for a request. Otherwise the writer task does so, with another waker.
                self.woken
                    .extend(self.writer.take().map(ForeignWaker::into_inner));
            } else {
                has_due = true;
            }
        }
        // Most calls have nothing to send.
        if has_due {
            self.write();
        }
    }

    /// Writes the bytes that wait on the unidirectional streams, within their capacity, except delayed answers.
    pub(super) fn write(&mut self) {
        self.write_with(|send, cx, out| send.poll_write(cx, out));
    }

    /// Like [`write`](Self::write), under the lock of the endpoint.
    fn write_locked(&mut self, locked: &mut LockedStreams<'_, '_>) {
        self.write_with(|send, cx, out| {
            let written = send.poll_send_locked(locked, cx, Write::slice(out));
            written.map_ok(|written| written.bytes)
        });
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
        if !self.http.has_urgent() && (self.has_delayed_answers || !self.http.has_answers()) {
            return;
        }
        let waker = self.writer.as_ref().map(ForeignWaker::as_waker);
        let waker = waker.unwrap_or(Waker::noop());
        let mut cx = Context::from_waker(waker);
        for (stream, place) in UniStream::ALL.into_iter().zip(&mut self.streams) {
            if self.has_delayed_answers && stream == UniStream::Decoder {
                continue;
            }
            let out = self.http.outgoing(stream);
            let Some(send) = place else {
                continue;
            };
            while !out.is_empty() {
                // Errors are those of the connection, which other calls report.
                let Poll::Ready(Ok(written)) = poll_write(send, &mut cx, out) else {
                    break;
                };
                out.drain(..written);
            }
        }
    }

    /// Appends a HEADERS frame to `out`. Its inserts are within the credit of the encoder stream; until the peer
    /// has allowed that stream there are none.
    pub(crate) fn encode(
        &mut self,
        stream: u64,
        fields: &FieldsToSend<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), RequestError> {
        let encoder = self.streams[UniStream::Encoder as usize].as_ref();
        let credit = || encoder.map_or(0, SendStreamHooks::credit);
        self.http.encode_within(stream, fields, credit, out)
    }

    /// Writes a request without content for [`SharedConnection::send_head`](super::SharedConnection::send_head).
    pub(super) fn send_head<'q>(
        &mut self,
        quic: &'q Connection,
        cx: &Context<'_>,
        fields: &FieldsToSend<'_>,
        priority: Option<http3::Priority>,
    ) -> Result<Option<(SentHead, Afterwards<'q>)>, RequestError> {
        if self.http.peer_goes_away() {
            return Ok(None);
        }
        self.http.check_size(fields)?;
        let mut head = std::mem::take(&mut self.head);
        let opened = quic.open_bi_with(cx, |id, locked| {
            if let Some(priority) = priority {
                // The stream was just opened, so it is open.
                locked.set_level(id, priority::level(priority, id.index()));
            }
            let encoder = self.streams[UniStream::Encoder as usize].as_ref();
            let credit = || encoder.map_or(0, |stream| stream.credit_locked(locked));
            self.http
                .append_section(id.value(), fields, credit, &mut head);
            // Inserts are sent first, because the request may refer to them.
            self.has_delayed_answers = false;
            self.write_locked(locked);
            &head
        });
        let sent = opened.map(|opened| {
            let written = opened.written();
            let (send, receive, afterwards) = opened.into_parts();
            let sent = match send {
                None => SentHead::Whole(receive),
                Some(send) => SentHead::Part(send, receive, head[written..].to_vec()),
            };
            (sent, afterwards)
        });
        if head.capacity() <= LARGEST_BUFFER_KEPT {
            head.clear();
            self.head = head;
        }
        Ok(sent)
    }
}

/// Largest buffer that a connection keeps for the header sections of later requests.
const LARGEST_BUFFER_KEPT: usize = 1024;
