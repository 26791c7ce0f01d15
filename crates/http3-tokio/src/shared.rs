//! The state that all tasks of one connection share.

mod arriving;
mod claimed;
mod updates;
mod writing;

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use courser_base::foreign::ForeignWaker;
use courser_base::{Held, Mutex, Time};
use courser_http3::{self as http3, Event, FieldsToSend, Scope, UniStream};
use courser_quic::hooks::{ConnectionHooks, SendStreamHooks as _, Ticket, Waiters};
use courser_quic::telemetry::Http3Record;
use courser_quic::{Connection, ConnectionError, RecvStream, SendStream, Side, StreamId, runtime};

use self::updates::Updates;
use super::arrivals::Arrivals;
use super::claimed::{ExtensionFrame, Groups};
use super::datagrams::{Registry, UNUSED_DATAGRAM};
use super::failure::{Failure, Origin, var_int};
use super::lingering::Lingering;
use super::origins::Origins;
use super::priority;
use super::records::Records;
use super::waiting::WaitingResponses;

/// The shared state of one connection. Its lock is taken before that of the endpoint, never after it, and no
/// task waits while it holds the lock.
#[derive(Debug)]
pub(super) struct SharedConnection {
    pub(super) quic: Connection,
    began: Instant,
    limits: http3::FieldLimits,
    extensions: http3::Extensions,
    pub(super) datagrams: Registry,
    pub(super) claimed: Groups,
    pub(super) lingering: Lingering,
    pub(super) waiting: Arc<WaitingResponses>,
    pub(super) arrivals: Arrivals,
    pub(super) records: Records,
    state: Mutex<ConnectionState>,
}

/// A request without content that was written to its stream.
#[derive(Debug)]
pub(super) enum SentHead {
    /// The whole request is written, including its end.
    Whole(RecvStream),
    /// The stream has no capacity for the rest and the end.
    Part(SendStream, RecvStream, Vec<u8>),
}

/// The error of a system without random numbers, on which the peer could predict values that must be
/// unpredictable (fault F61).
const NO_SEED: http3::Error = http3::Error {
    code: http3::Code::INTERNAL_ERROR,
    scope: Scope::Connection,
    reason: "no random numbers are available",
};

#[derive(Debug)]
pub(super) struct ConnectionState {
    pub(super) http: http3::Connection,
    /// The unidirectional streams of this end, in the order of [`http3::UniStream::ALL`], once the peer has
    /// allowed them.
    streams: [Option<SendStream>; 3],
    /// The tasks whose section is blocked, by stream.
    blocked: HashMap<u64, ForeignWaker>,
    /// The tasks that wait for the peer's settings.
    settings: Waiters,
    /// The tasks that wait for the first GOAWAY of either end.
    going_away: Waiters,
    /// Number of tasks that read the peer's unidirectional streams.
    readers: usize,
    /// The tasks that wait for the end of these readers.
    read: Waiters,
    /// The task that writes on the unidirectional streams when they have capacity again.
    writer: Option<ForeignWaker>,
    /// True if Section Acknowledgments wait until all messages that have arrived are read.
    has_delayed_answers: bool,
    /// The tasks to wake when the lock is released.
    woken: Vec<Waker>,
    /// A recycled buffer for the header section of a request.
    head: Vec<u8>,
    /// The origins that the server claims for the connection.
    origins: Origins,
    /// The priority updates of a client, created for the first one.
    updates: Option<Box<Updates>>,
    /// The error with which this end has closed the connection.
    failure: Option<http3::Error>,
}

impl SharedConnection {
    pub(super) fn new(quic: Connection, config: http3::Config) -> Arc<Self> {
        let side = quic.side();
        let seed = runtime::random_seed().ok();
        if seed.is_none() {
            quic.close(var_int(NO_SEED.code), NO_SEED.reason.as_bytes());
        }
        let (seed, failure) = match seed {
            Some(seed) => {
                let (bytes, _) = seed.split_first_chunk().unwrap_or((&[0; 8], &[]));
                (u64::from_le_bytes(*bytes), None)
            }
            // The seed is not used, because the connection is closed.
            None => (0, Some(NO_SEED)),
        };
        let began = runtime::now();
        let records = Records::of(&quic);
        Arc::new(Self {
            quic,
            records,
            began,
            limits: config.limits,
            claimed: Groups::of(&config.extensions),
            extensions: config.extensions.clone(),
            lingering: Lingering::default(),
            waiting: Arc::default(),
            arrivals: Arrivals::default(),
            datagrams: Registry::new(config.datagrams),
            state: Mutex::new(ConnectionState {
                http: http3::Connection::new(side, config, seed, Time::ZERO),
                streams: [None, None, None],
                blocked: HashMap::new(),
                settings: Waiters::default(),
                going_away: Waiters::default(),
                readers: 0,
                read: Waiters::default(),
                writer: None,
                has_delayed_answers: false,
                woken: Vec::new(),
                head: Vec::new(),
                origins: Origins::default(),
                updates: None,
                failure,
            }),
        })
    }

    pub(super) fn side(&self) -> Side {
        self.quic.side()
    }

    pub(super) const fn limits(&self) -> http3::FieldLimits {
        self.limits
    }

    pub(super) fn now(&self) -> Time {
        Time::ZERO + (runtime::now() - self.began)
    }

    /// Calls `run` with the state that all requests share. This is the only way to change it.
    ///
    /// Afterwards writes the bytes that are due on the unidirectional streams, wakes the tasks that wait for an
    /// event, and closes the connection if the error ends it.
    ///
    /// # Errors
    /// Returns the error of `run`, or the one that has closed the connection before.
    pub(super) fn drive<T>(
        &self,
        run: impl FnOnce(&mut ConnectionState) -> Result<T, http3::Error>,
    ) -> Result<T, http3::Error> {
        let mut state = self.lock();
        if let Some(failure) = state.failure {
            return Err(failure);
        }
        let result = run(&mut state);
        self.pass_records(&mut state);
        state.write_due();
        self.finish_call(state, result.as_ref().err().copied());
        result
    }

    /// Sends a request without content in one step, and registers the task of `cx` for its response. Returns
    /// `None` if several steps are needed: while the server allows no request or is shutting down, and if the
    /// connection is closed, where opening a stream returns the reason.
    pub(super) fn send_head(
        &self,
        cx: &Context<'_>,
        fields: &FieldsToSend<'_>,
        priority: Option<http3::Priority>,
    ) -> Result<Option<SentHead>, Failure> {
        let sent = self.drive(|state| Ok(state.send_head(&self.quic, cx, fields, priority)));
        let Ok(sent) = sent else {
            return Ok(None);
        };
        // The rest needs no lock of this connection. It may make a system call, for which no other task should
        // wait.
        Ok(sent?.map(|(sent, _afterwards)| sent))
    }

    /// Writes Section Acknowledgments that have been delayed.
    pub(super) fn write_answers(&self) {
        let mut state = self.lock();
        if std::mem::take(&mut state.has_delayed_answers) {
            state.write();
        }
    }

    /// Returns the failure of a call of the shared state. If the connection was closed before the call, the
    /// transport has the reason.
    pub(super) fn failure_of(&self, error: http3::Error) -> Failure {
        match self.quic.close_reason().filter(|_| error == OVER) {
            Some(reason) => Failure::Connection(reason),
            None => error.into(),
        }
    }

    /// Returns the HTTP/3 error with which this end has closed the connection, if that is the cause of a
    /// failure. The transport reports only that this end has closed it.
    pub(super) fn cause_of(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Connection(ConnectionError::LocallyClosed) => {
                let own = self.lock().failure.filter(|error| *error != OVER);
                own.map_or(failure, Failure::from)
            }
            _ => failure,
        }
    }

    /// Does the work after a call of the shared state that returned `error`. The result of the call is not
    /// passed through here, because it may be large.
    fn finish_call(&self, mut state: Held<'_, ConnectionState>, error: Option<http3::Error>) {
        if error.is_none() && state.woken.is_empty() && !state.http.has_events() {
            return;
        }
        let error = state.take_events(&self.quic, &self.claimed).err().or(error);
        let woken = std::mem::take(&mut state.woken);
        let fatal = error.filter(|error| error.scope == Scope::Connection);
        state.failure = fatal;
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        if let Some(error) = fatal {
            let reason = error.reason.as_bytes();
            self.quic.close(var_int(error.code), reason);
        }
    }

    /// Returns true if the peer accepts no more requests or the connection is closed.
    pub(super) fn goes_away(&self) -> bool {
        let state = self.lock();
        state.failure.is_some() || state.http.peer_goes_away()
    }

    /// Returns true if the peer has sent a GOAWAY.
    pub(super) fn has_goaway(&self) -> bool {
        self.lock().http.peer_goes_away()
    }

    /// Returns true if a GOAWAY of the server excludes this request.
    pub(super) fn is_refused(&self, stream: u64) -> bool {
        self.lock().http.is_refused(stream)
    }

    /// Sets the server's settings that were stored with a session.
    pub(super) fn remember(&self, settings: http3::Settings) {
        self.lock().http.remember(settings);
    }

    /// Returns the origins that the server claims, or `None` until it has sent an ORIGIN frame.
    pub(super) fn origins(&self) -> Option<Vec<String>> {
        self.lock().origins.get()
    }

    /// Closes the connection without an error.
    pub(super) fn close(&self) {
        let code = self.lock().http.closing_code();
        self.quic.close(var_int(code), b"");
    }

    /// Stores a unidirectional stream of this end, once the peer has allowed it.
    pub(super) fn set_stream(&self, index: usize, stream: SendStream) {
        // Control streams are sent first, and entirely before any request.
        stream.set_level(priority::CONTROL);
        let mut state = self.lock();
        let (kind, id) = (UniStream::ALL[index], stream.id().value());
        state.http.on_stream_opened(kind, id);
        self.pass_records(&mut state);
        state.streams[index] = Some(stream);
        state.write();
    }

    /// Writes the waiting bytes on the unidirectional streams of this end, and wakes the task when they have
    /// capacity.
    pub(super) fn write(&self, cx: &Context<'_>) {
        let waker = ForeignWaker::of(cx);
        let mut state = self.lock();
        state.writer = Some(waker);
        state.has_delayed_answers = false;
        state.write();
    }

    /// Removes the task that waits for the section of a stream.
    pub(super) fn forget_blocked(&self, stream: u64) {
        self.lock().blocked.remove(&stream);
    }

    /// Polls for the peer's settings, which complete [`PeerSettings`](super::settings::PeerSettings).
    pub(super) fn poll_settings(
        &self,
        cx: &Context<'_>,
        ticket: &mut Ticket,
    ) -> Poll<Option<http3::Settings>> {
        let waker = ForeignWaker::of(cx);
        let mut state = self.lock();
        if let Some(settings) = state.http.peer_settings() {
            return Poll::Ready(Some(*settings));
        }
        if state.failure.is_some() || self.quic.close_reason().is_some() {
            return Poll::Ready(None);
        }
        state.settings.register(ticket, waker);
        Poll::Pending
    }

    /// Polls for the first GOAWAY of either end, and returns which end it was. `None` if the connection is closed.
    pub(super) fn poll_going_away(
        &self,
        cx: &Context<'_>,
        ticket: &mut Ticket,
    ) -> Poll<Option<Origin>> {
        let waker = ForeignWaker::of(cx);
        let mut state = self.lock();
        if state.failure.is_some() || self.quic.close_reason().is_some() {
            return Poll::Ready(None);
        }
        if state.http.peer_goes_away() {
            return Poll::Ready(Some(Origin::Peer));
        }
        if state.http.goes_away() {
            return Poll::Ready(Some(Origin::Local));
        }
        state.going_away.register(ticket, waker);
        Poll::Pending
    }

    pub(super) fn stop_waiting_for_goaway(&self, ticket: &mut Ticket) {
        if ticket.is_some() {
            self.lock().going_away.forget(ticket);
        }
    }

    pub(super) fn stop_waiting_for_settings(&self, ticket: &mut Ticket) {
        if ticket.is_some() {
            self.lock().settings.forget(ticket);
        }
    }

    /// Counts a task that starts to read a unidirectional stream of the peer.
    pub(super) fn on_reader(&self) {
        self.lock().readers += 1;
    }

    /// Uncounts a task that has read, or accepted, everything that had arrived.
    pub(super) fn on_reader_over(&self) {
        let mut state = self.lock();
        state.readers -= 1;
        let mut woken = Vec::new();
        if state.readers == 0 {
            state.read.wake_all(&mut woken);
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Waits until everything on the peer's unidirectional streams is read. Completes only on a closed
    /// connection.
    pub(super) async fn all_read(&self) {
        let mut ticket = Ticket::default();
        poll_fn(|cx| {
            let waker = ForeignWaker::of(cx);
            let mut state = self.lock();
            if state.readers == 0 {
                return Poll::Ready(());
            }
            state.read.register(&mut ticket, waker);
            Poll::Pending
        })
        .await;
    }

    /// Wakes all tasks because the connection is closed.
    pub(super) fn wake_all(&self) {
        let mut state = self.lock();
        let mut woken = Vec::new();
        state.settings.wake_all(&mut woken);
        state.going_away.wake_all(&mut woken);
        woken.extend(state.blocked.drain().map(|(_, waker)| waker.into_inner()));
        woken.extend(state.writer.take().map(ForeignWaker::into_inner));
        state.failure.get_or_insert(OVER);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        self.datagrams.on_end();
        self.claimed.on_end();
        self.arrivals.on_end();
    }

    /// Returns true if both ends have enabled datagrams.
    pub(super) fn has_datagrams(&self) -> bool {
        self.lock().http.has_datagrams()
    }

    /// Processes the payloads of DATAGRAM frames, and empties `payloads`. `woken` is an empty buffer.
    pub(super) fn on_datagrams(
        &self,
        payloads: &mut Vec<Bytes>,
        woken: &mut Vec<ForeignWaker>,
    ) -> Result<(), Failure> {
        // The requests to which a datagram may refer.
        let limit = match self.side() {
            Side::Server => self.quic.granted_requests(),
            Side::Client => 0,
        };
        let mut received = Vec::with_capacity(payloads.len());
        self.drive(|state| {
            state.http.set_request_limit(limit);
            for payload in payloads.drain(..) {
                let (stream, payload) = state.http.handle_datagram(payload)?;
                received.push((stream, payload, state.http.is_future_request(stream)));
            }
            Ok(())
        })?;
        for (stream, payload, _) in &received {
            let parsed = || Http3Record::DatagramParsed {
                stream: *stream,
                len: payload.len(),
            };
            self.records.record(&self.quic, parsed);
        }
        let received = received.into_iter();
        self.datagrams
            .deliver_all(self.now(), received, woken, |stream| {
                self.refuse_datagram(stream);
            });
        Ok(())
    }

    /// Aborts a request that does not use the datagrams that its peer sends.
    pub(super) fn refuse_datagram(&self, stream: u64) {
        let code = var_int(UNUSED_DATAGRAM.code);
        self.quic.abort_stream(StreamId::from_value(stream), code);
        let now = self.now();
        // Too many cancelled requests close the connection.
        let _ = self.drive(|state| state.http.on_cancelled(now, stream));
    }

    fn lock(&self) -> Held<'_, ConnectionState> {
        // A panic leaves the state consistent, because each call into it is complete.
        let mut state = self.state.hold();
        let is_recorded = self.records.are_recorded();
        if is_recorded != state.http.is_recording() {
            state.http.set_recording(is_recorded);
        }
        state
    }

    /// Passes the records of the shared state to the sinks, before the bytes that wait on the unidirectional
    /// streams are written. The bytes of [`send_head`](Self::send_head) are an exception: they are written under
    /// the lock of the endpoint and may be sent already, so that the record of their packet can be first.
    fn pass_records(&self, state: &mut ConnectionState) {
        if state.http.is_recording() {
            Records::pass(&self.quic, state.http.take_records());
        }
    }
}

impl SharedConnection {
    /// Requests that the server changes the priority of a response, now or when the pace allows it.
    pub(crate) fn update_priority(&self, stream: u64, priority: http3::Priority) {
        let now = self.now();
        // An error has closed the connection.
        let _ = self.drive(|state| {
            let updates = state.updates.get_or_insert_default();
            if updates.admit(now, stream, priority) {
                state.http.update_priority(stream, priority);
            } else {
                // The writer sends the update later.
                let writer = state.writer.take().map(ForeignWaker::into_inner);
                state.woken.extend(writer);
            }
            Ok(())
        });
    }

    /// Sends the updates that are due. Returns the time until the next one.
    pub(crate) fn send_updates(&self) -> Option<Duration> {
        let state = self.lock();
        if state
            .updates
            .as_ref()
            .is_none_or(|updates| updates.is_empty())
        {
            return None;
        }
        drop(state);
        let now = self.now();
        let wait = self.drive(|state| {
            let updates = state.updates.get_or_insert_default();
            while let Some((stream, priority)) = updates.next(now) {
                state.http.update_priority(stream, priority);
            }
            Ok(updates.wait(now))
        });
        wait.unwrap_or_default()
    }
}

/// The error after the end of the connection. It is never sent: the transport has the actual reason.
const OVER: http3::Error = http3::Error {
    code: http3::Code::NO_ERROR,
    scope: Scope::Connection,
    reason: "the connection has ended",
};

impl ConnectionState {
    /// Wakes a task when the section of its stream can be decoded.
    pub(super) fn wait_for_entries(&mut self, stream: u64, waker: ForeignWaker) {
        self.blocked.insert(stream, waker);
    }

    /// Wakes the tasks that wait for a GOAWAY, because there is one.
    pub(super) fn wake_going_away(&mut self) {
        self.going_away.wake_all(&mut self.woken);
    }

    /// Handles the events of the connection.
    ///
    /// # Errors
    /// Returns a connection error if the application does not read its frames.
    fn take_events(&mut self, quic: &Connection, claimed: &Groups) -> Result<(), http3::Error> {
        while let Some(event) = self.http.poll_event() {
            match event {
                Event::Unblocked { stream } => {
                    let waker = self.blocked.remove(&stream);
                    self.woken.extend(waker.map(ForeignWaker::into_inner));
                }
                Event::Settings(_) => self.settings.wake_all(&mut self.woken),
                Event::Priority { stream, priority } => {
                    let id = StreamId::from_value(stream);
                    quic.set_stream_level(id, priority::level(priority, id.index()));
                }
                Event::Frame {
                    frame_type,
                    payload,
                } => {
                    let frame = ExtensionFrame {
                        stream: None,
                        frame_type,
                        payload,
                    };
                    let on = http3::FrameStream::Control;
                    let group = self.http.extensions().group_of_frame(frame_type, on);
                    if let Some(queue) = group.and_then(|group| claimed.queue(group)) {
                        queue.add_frame(frame, &mut self.woken)?;
                    }
                }
                Event::Origins(origins) => self.origins.add(origins),
                Event::GoAway { .. } | Event::ClientGoAway => self.wake_going_away(),
            }
        }
        Ok(())
    }
}

/// Closes the connection when the last handle of the user is dropped.
#[derive(Debug)]
pub(super) struct Guard(pub(super) Arc<SharedConnection>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl std::ops::Deref for Guard {
    type Target = SharedConnection;

    fn deref(&self) -> &SharedConnection {
        &self.0
    }
}
