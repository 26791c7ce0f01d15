//! The arrival of bidirectional streams at a server whose extensions claim some of them.
//!
//! The first bytes of a stream show whether it is a request or belongs to an extension. They are read before
//! anything is built for a request, because sessions may open thousands of streams a second.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use courser_http3::{self as http3, Code, Group};
use courser_quic::hooks::{Accepted, ConnectionHooks as _, RecvStreamHooks as _};
use courser_quic::{StreamId, runtime};

use super::SharedConnection;
use crate::arrivals::Arrival;
use crate::claimed::{ClaimedReceive, ClaimedStream, peek_varint};
use crate::error::Error;
use crate::executor::yield_now;
use crate::failure::var_int;
use crate::priority;

impl SharedConnection {
    /// Waits for the next request of the client, and passes streams of extensions to these meanwhile.
    ///
    /// # Errors
    /// Returns an error when the connection is closed.
    pub(crate) async fn next_request(self: &Arc<Self>) -> Result<Arrival, Error> {
        let mut in_a_row = 0_u32;
        loop {
            let Accepted {
                send,
                receive,
                mut first,
                is_in_session,
            } = match self.next_stream().await? {
                Next::Request(arrival) => return Ok(arrival),
                Next::Stream(accepted) => accepted,
            };
            if let Some((group, signal, len)) = self.claim_of(&first) {
                first.advance(len);
                let stream = ClaimedStream {
                    stream_type: signal,
                    send: Some(send),
                    receive: ClaimedReceive::new(len, first, receive),
                    is_in_session,
                };
                self.claim(group, stream);
                in_a_row += 1;
                if in_a_row.is_multiple_of(MOST_IN_A_ROW) {
                    yield_now().await;
                }
                continue;
            }
            let arrival = Arrival {
                send,
                receive,
                first,
                update: None,
            };
            if let Some(request) = self.sort(arrival).await? {
                return Ok(request);
            }
        }
    }

    /// Waits for a request that may run, or for the next stream.
    async fn next_stream(&self) -> Result<Next, Error> {
        let accepting = self.quic.accept_bi_and_read(
            priority::level_of_new,
            |first| self.session_of(first),
            || self.write_answers(),
        );
        let mut accepting = pin!(accepting);
        let next = poll_fn(|cx| {
            if self.arrivals.has_waiting()
                && let Poll::Ready(arrival) = self.arrivals.poll_take(&self.waiting, cx)
            {
                return Poll::Ready(Ok(Next::Request(arrival)));
            }
            if let Poll::Ready(accepted) = accepting.as_mut().poll(cx) {
                return Poll::Ready(accepted.map(Next::Stream));
            }
            let waiting = self.arrivals.poll_take(&self.waiting, cx);
            waiting.map(|arrival| Ok(Next::Request(arrival)))
        });
        Ok(next.await?)
    }

    /// Returns the group that claims a stream which begins with these bytes, the signal and its length.
    fn claim_of(&self, first: &[u8]) -> Option<(Group, u64, usize)> {
        let (signal, len) = peek_varint(first)?;
        let group = self.extensions().bidirectional(signal)?;
        Some((group, signal, len))
    }

    /// Returns the request of the open session to which a stream belongs that begins with these bytes.
    fn session_of(&self, first: &[u8]) -> Option<StreamId> {
        let (group, _, len) = self.claim_of(first)?;
        let sessions = self.claimed.sessions(group)?;
        let (number, _) = peek_varint(first.get(len..)?)?;
        let is_open = sessions.is_open(number);
        is_open.then(|| StreamId::from_value(number))
    }

    /// Passes a stream to the extension that has claimed it.
    fn claim(self: &Arc<Self>, group: Group, stream: ClaimedStream) {
        let (id, signal) = (stream.id().value(), stream.stream_type);
        let supports = self.drive(|state| {
            state.http.on_claimed_arrived(id, signal);
            Ok(state.http.peer_supports(group))
        });
        if let Ok(supports) = supports {
            self.deliver(group, supports, stream);
        }
    }

    /// Returns a stream that is a request which may run. Requests that may not wait, and streams whose first integer is
    /// incomplete are read by tasks of their own.
    async fn sort(self: &Arc<Self>, arrival: Arrival) -> Result<Option<Arrival>, Error> {
        let stream = arrival.receive.id().value();
        // Registered first, because its datagrams count as early ones until then.
        self.datagrams.open(self.now(), stream);
        let is_unknown = peek_varint(&arrival.first).is_none() && !arrival.receive.has_ended();
        if is_unknown {
            self.drive(|state| {
                state.http.on_stream_arrived(stream);
                Ok(())
            })?;
            self.arrivals.on_unread();
            runtime::spawn(self.clone().read_first(arrival));
            return Ok(None);
        }
        let mut admitted = self.admit(arrival)?;
        let added = poll_fn(|cx| {
            let added = admitted
                .take()
                .map(|it| self.arrivals.add(it, &self.waiting, cx));
            Poll::Ready(added.flatten())
        });
        Ok(added.await)
    }

    /// Counts a request. Returns `None` if it is rejected.
    fn admit(&self, mut arrival: Arrival) -> Result<Option<Arrival>, http3::Error> {
        let stream = arrival.receive.id().value();
        let is_served = self.drive(|state| {
            arrival.update = state.http.on_request_opened(stream);
            let is_served =
                state.http.is_served(stream) && state.http.admit_request(|| self.now())?;
            Ok(is_served)
        })?;
        if !is_served {
            self.reject(arrival);
            return Ok(None);
        }
        Ok(Some(arrival))
    }

    pub(crate) fn reject(&self, mut arrival: Arrival) {
        self.datagrams.forget(arrival.receive.id().value());
        let code = var_int(Code::REQUEST_REJECTED);
        // Either fails if that half is over.
        let _ = arrival.send.reset(code);
        let _ = arrival.receive.stop(code);
    }

    /// Reads the first integer of a stream that has brought none of it, or a part, and passes the stream on.
    ///
    /// The peer may have no use for one half of a stream of an extension, and its STOP_SENDING may arrive before the first
    /// bytes. They are waited for all the same: they show that the stream is none of a request that was cancelled.
    async fn read_first(self: Arc<Self>, mut arrival: Arrival) {
        let longest = self.arrivals.longest();
        let reading = self.read_integer(&mut arrival);
        let is_late = runtime::timeout(longest.unwrap_or(LONGEST_FIRST), reading).await;
        let stream = arrival.receive.id().value();
        let mut request = None;
        if is_late.is_err() {
            self.reject(arrival);
            let now = self.now();
            // Too many of them close the connection.
            let _ = self.drive(|state| state.http.on_cancelled(now, stream));
        } else if let Some((group, signal, len)) = self.claim_of(&arrival.first) {
            self.datagrams.forget(stream);
            let mut first = arrival.first;
            first.advance(len);
            let stream = ClaimedStream {
                stream_type: signal,
                send: Some(arrival.send),
                receive: ClaimedReceive::new(len, first, arrival.receive),
                is_in_session: false,
            };
            self.claim(group, stream);
        } else {
            // An error has closed the connection.
            request = self.admit(arrival).ok().flatten();
        }
        self.arrivals.on_read(request);
    }

    /// Reads until the first integer is complete, or the stream has ended. Errors are read again with the request.
    async fn read_integer(&self, arrival: &mut Arrival) {
        while peek_varint(&arrival.first).is_none() {
            let read = poll_fn(|cx| arrival.receive.poll_read_chunk_and_end(cx)).await;
            let Ok(Some(chunk)) = read else {
                return;
            };
            arrival.first = match arrival.first.is_empty() {
                true => chunk,
                false => join(&arrival.first, &chunk),
            };
            if arrival.receive.has_ended() {
                return;
            }
        }
    }
}

/// What the task that accepts requests gets.
enum Next {
    Request(Arrival),
    Stream(Accepted),
}

/// Joins the parts of an integer. Incomplete ones are short and rare, so they are copied.
fn join(first: &[u8], more: &[u8]) -> Bytes {
    let mut joined = BytesMut::from(first);
    joined.extend_from_slice(more);
    joined.freeze()
}

/// Number of streams of extensions that are accepted before other tasks may run.
const MOST_IN_A_ROW: u32 = 64;
/// Longest wait for the first integer of a stream, where requests have no limit of their own. Equal to that for the
/// number of a session (limit K582).
const LONGEST_FIRST: Duration = Duration::from_secs(30);
