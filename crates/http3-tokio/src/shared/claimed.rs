//! Streams and frames of extensions of the application.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use courser_http3::{self as http3, Code, Group, Scope};
use courser_quic::hooks::ConnectionHooks as _;
use courser_quic::{ReadError, StreamId, runtime};

use super::SharedConnection;
use crate::claimed::{ClaimedStream, ExtensionFrame, Routed};

impl SharedConnection {
    /// Returns the extensions of the application.
    pub(crate) const fn extensions(&self) -> &http3::Extensions {
        &self.extensions
    }

    /// Returns the peer's settings that only the application implements.
    pub(crate) fn peer_other_settings(&self) -> Vec<(u64, u64)> {
        self.lock().http.peer_other_settings().to_vec()
    }

    /// Allows the peer as many open streams as the groups of extensions need.
    pub(crate) fn grant_streams(&self) {
        if let Some((bidirectional, unidirectional)) = self.extensions.granted_streams() {
            if self.side().is_server() {
                self.arrivals.set_limit(self.quic.granted_requests());
            }
            self.quic.raise_max_streams(bidirectional, unidirectional);
        }
    }

    /// Returns true if the peer supports a group, or `None` until its settings arrive.
    pub(crate) fn peer_supports(&self, group: Group) -> Option<bool> {
        self.lock().http.peer_supports(group)
    }

    /// Returns the settings with which the peer has announced a group.
    pub(crate) fn peer_announced(&self, group: Group) -> Vec<(u64, u64)> {
        self.lock().http.peer_announced(group).collect()
    }

    /// Passes a claimed stream to the application, or refuses it. If the group delivers streams by session, the
    /// number of the session is read first.
    pub(crate) fn on_claimed(self: &Arc<Self>, stream: ClaimedStream) {
        let group = match stream.send {
            Some(_) => self.extensions.bidirectional(stream.stream_type),
            None => self.extensions.unidirectional(stream.stream_type),
        };
        let group = group.unwrap_or(Group::FIRST);
        let supports = self.peer_supports(group);
        self.deliver(group, supports, stream);
    }

    /// Passes a claimed stream to its group. `supports` says whether the peer supports it.
    pub(crate) fn deliver(
        self: &Arc<Self>,
        group: Group,
        supports: Option<bool>,
        mut stream: ClaimedStream,
    ) {
        if supports == Some(false) {
            return self.refuse(stream, self.extensions.refusal(group));
        }
        if self.claimed.sessions(group).is_some() {
            match stream.receive.take_varint() {
                Some(number) => self.route(group, number, stream),
                None => drop(runtime::spawn(self.clone().read_number(group, stream))),
            }
            return;
        }
        let Some(queue) = self.claimed.queue(group) else {
            return;
        };
        if let Some(stream) = queue.add_stream(stream) {
            self.refuse(stream, self.extensions.refusal(group));
        }
    }

    /// Reads the number of the session, whose bytes have not all arrived with the stream type.
    async fn read_number(self: Arc<Self>, group: Group, mut stream: ClaimedStream) {
        let number = runtime::timeout(LONGEST_NUMBER, stream.receive.read_varint()).await;
        match number {
            Ok(Ok(Some(number))) => self.route(group, number, stream),
            // A stream without a session is useless.
            Ok(Ok(None) | Err(ReadError::Reset(_))) | Err(_) => {
                self.refuse(stream, self.extensions.refusal(group));
            }
            // The connection is closed.
            Ok(Err(_)) => {}
        }
    }

    /// Delivers a stream to its session.
    fn route(self: &Arc<Self>, group: Group, number: u64, mut stream: ClaimedStream) {
        stream.receive.hold();
        let codes = self.extensions.session_codes(group);
        let (Some(codes), Some(sessions)) = (codes, self.claimed.sessions(group)) else {
            return;
        };
        if !is_request(number) {
            return self.fail_id("the session of a stream is not the stream of a request");
        }
        match sessions.route(self.now(), self.side(), number, stream) {
            Routed::Done => {}
            Routed::Early { is_first } => {
                // The numbers of open sessions need no check.
                if self.side().is_server() && number / 4 >= self.quic.granted_requests() {
                    return self.fail_id("the session of a stream is beyond the stream limit");
                }
                if is_first {
                    runtime::spawn(self.clone().watch_early(group));
                }
            }
            Routed::Unknown(stream) => self.refuse(stream, codes.unknown),
            Routed::Over { stream, is_useless } if is_useless => self.refuse(stream, codes.over),
            Routed::Over { stream, .. } => stream.refuse(codes.over),
        }
    }

    /// Closes the connection because of a session that cannot exist.
    fn fail_id(&self, reason: &'static str) {
        let error = http3::Error {
            code: Code::ID_ERROR,
            scope: Scope::Connection,
            reason,
        };
        // This closes the connection.
        let _ = self.drive(|_| Err::<(), _>(error));
    }

    /// Refuses streams whose session nobody registers in time.
    async fn watch_early(self: Arc<Self>, group: Group) {
        let codes = self.extensions.session_codes(group);
        let (Some(codes), Some(sessions)) = (codes, self.claimed.sessions(group)) else {
            return;
        };
        let mut closed = pin!(self.quic.closed());
        loop {
            let (expired, wait) = sessions.expire(self.now());
            for stream in expired {
                self.refuse(stream, codes.unknown);
            }
            let Some(wait) = wait else {
                return;
            };
            let mut sleep = pin!(runtime::sleep(wait));
            let is_closed = std::future::poll_fn(|cx| {
                if closed.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(true);
                }
                sleep.as_mut().poll(cx).map(|()| false)
            });
            if is_closed.await {
                return;
            }
        }
    }

    /// Refuses a stream and counts it: too many of them close the connection (A122).
    fn refuse(&self, stream: ClaimedStream, code: Code) {
        stream.refuse(code);
        let now = self.now();
        let _ = self.drive(|state| state.http.on_claimed_refused(now));
    }

    /// Registers a session, and lets the peer open its streams beside others. Returns false if it is registered, or over.
    pub(crate) fn register_session(&self, group: Group, number: u64) -> bool {
        let sessions = self.claimed.sessions(group);
        let Some(count) = sessions.and_then(|sessions| sessions.register(number)) else {
            return false;
        };
        if count > 0
            && let Some((bidirectional, unidirectional)) = self.extensions.granted_streams()
        {
            // Sessions leave their streams to each other, and to requests (limit K593).
            let count = count as u64;
            let bidirectional = bidirectional.saturating_mul(count);
            self.quic.raise_max_streams(
                bidirectional.saturating_add(self.arrivals.limit()),
                unidirectional.saturating_mul(count),
            );
        }
        true
    }

    /// Ends the sessions of a request in all groups, because nobody will register them.
    pub(crate) fn end_sessions_of(&self, number: u64) {
        for group in self.extensions.groups() {
            self.end_session(group, number);
        }
    }

    /// Ends a session and refuses its streams, which the peer may have opened without fault.
    pub(crate) fn end_session(&self, group: Group, number: u64) {
        let codes = self.extensions.session_codes(group);
        if let (Some(codes), Some(sessions)) = (codes, self.claimed.sessions(group)) {
            for stream in sessions.end(number) {
                stream.refuse(codes.over);
            }
        }
    }

    /// Refuses all claimed streams of a peer that does not support the group.
    pub(crate) fn refuse_claimed(&self, group: Group) {
        let code = self.extensions.refusal(group);
        if let Some(queue) = self.claimed.queue(group) {
            for stream in queue.take_streams() {
                stream.refuse(code);
            }
        }
        if let Some(sessions) = self.claimed.sessions(group) {
            for stream in sessions.take_streams() {
                stream.refuse(code);
            }
        }
    }

    /// Passes a claimed frame of a request stream to the application.
    ///
    /// # Errors
    /// Returns a stream error if too many frames wait.
    pub(crate) fn on_request_frame(
        &self,
        stream: u64,
        frame_type: u64,
        payload: Bytes,
    ) -> Result<(), http3::Error> {
        let on = http3::FrameStream::Request;
        let Some(group) = self.extensions.group_of_frame(frame_type, on) else {
            return Ok(());
        };
        let Some(queue) = self.claimed.queue(group) else {
            return Ok(());
        };
        self.drive(|state| {
            if state.http.peer_supports(group) == Some(false) {
                return Ok(());
            }
            let frame = ExtensionFrame {
                stream: Some(StreamId::from_value(stream)),
                frame_type,
                payload,
            };
            queue.add_frame(frame, &mut state.woken)
        })
    }
}

/// Returns true for the ID of a stream that a client has opened in both directions.
const fn is_request(number: u64) -> bool {
    number.is_multiple_of(4)
}

/// Longest wait for the rest of the number of a session (limit K582), equal to that for SETTINGS (K52).
const LONGEST_NUMBER: Duration = Duration::from_secs(30);
