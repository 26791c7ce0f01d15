//! One session: its CONNECT stream, its flow control and its end.

mod noise;

use std::time::Duration;

use bytes::Bytes;
use courser_base::Time;
use courser_http3::{Capsule, CapsuleReader, Code, Error};
use courser_wire::{Direction, varint_len};
use thiserror::Error;

use self::noise::Noise;
use crate::agreement::Agreement;
use crate::capsule::{CloseReason, SessionCapsule, malformed};
use crate::closed::Closed;
use crate::code;
use crate::dialect::Dialect;
use crate::flow::Flow;
use crate::session_id::SessionId;

/// The state of one session, from its request to its end.
///
/// The caller passes the content of the CONNECT stream in, and carries out what [`poll_output`](Self::poll_output)
/// returns, whenever the stream accepts content. It asks for credit before it opens a stream or sends its body, and
/// reports the streams and bytes of the peer. Without [flow control](Self::has_flow_control), which no browser has,
/// credit is unlimited and reports have no effect, so both may be left out.
///
/// Memory is constant: at most one message of `WT_CLOSE_SESSION`, and one capsule of each kind to send (limit K301).
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    dialect: Dialect,
    /// Present if flow control is on.
    flow: Option<Flow>,
    reader: CapsuleReader,
    noise: Noise,
    send: SendHalf,
    receive: ReceiveHalf,
    drain: Drain,
    news: News,
    probe_timeout: Duration,
    closed: Option<Closed>,
    /// The time at which the CONNECT stream is reset if it has not ended.
    deadline: Option<Time>,
}

/// The sending half of the CONNECT stream.
#[derive(Debug, PartialEq, Eq)]
enum SendHalf {
    Open,
    /// The capsule of the end is due, if there is one, then FIN.
    Closing(Option<Bytes>),
    /// Both halves are to be reset with this code.
    Resetting(Code),
    Ended,
}

/// The receiving half of the CONNECT stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceiveHalf {
    Open,
    /// The peer has sent `WT_CLOSE_SESSION`: nothing but FIN may follow.
    ClosedByPeer,
    Ended,
}

/// `WT_DRAIN_SESSION` of this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drain {
    None,
    Due,
    Sent,
}

/// Changes that the caller has not been told of. Each is told once, however often it happens.
#[derive(Debug, Default)]
struct News {
    draining: Told,
    bidi: bool,
    uni: bool,
    data: bool,
    closed: bool,
}

/// Whether the caller has been told of a change that it is told of only once in a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Told {
    #[default]
    No,
    Due,
    Done,
}

/// A step for the CONNECT stream of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Writes content, as the payload of a DATA frame.
    Content(Bytes),
    /// Ends the sending half (FIN).
    Finish,
    /// Resets the sending half and stops the receiving half, as far as they have not ended.
    Reset(Code),
}

/// A change of a session that its application waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SessionEvent {
    /// The peer asks to end the session soon: by `WT_DRAIN_SESSION`, or by GOAWAY for the whole connection.
    Draining,
    /// Further streams in this direction may be opened.
    StreamsAllowed(Direction),
    /// Further bytes may be sent.
    DataAllowed,
    /// The session has ended. Reset and stop all its streams with
    /// [`SESSION_GONE`](crate::code::SESSION_GONE), open none and send no datagram. The CONNECT stream needs its
    /// outputs until [`is_over`](Session::is_over).
    Closed(Closed),
}

/// The reason why a stream cannot be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum OpenError {
    /// The peer allows no further stream in this direction. The event
    /// [`StreamsAllowed`](SessionEvent::StreamsAllowed) tells when it does.
    #[error("the peer allows {limit} streams in this session")]
    Blocked {
        /// The number of streams that the peer allows, over the life of the session.
        limit: u64,
    },
    /// The session has ended.
    #[error("the session has ended")]
    Closed,
}

impl Session {
    /// Creates the state of a session: of one that a server accepts, or that a client requests.
    pub fn new(id: SessionId, agreement: &Agreement) -> Self {
        Self {
            id,
            dialect: agreement.dialect,
            flow: agreement.flow_control.then(|| Flow::new(agreement)),
            reader: CapsuleReader::default(),
            noise: Noise::default(),
            send: SendHalf::Open,
            receive: ReceiveHalf::Open,
            drain: Drain::None,
            news: News::default(),
            probe_timeout: Duration::ZERO,
            closed: None,
            deadline: None,
        }
    }

    /// Returns the number of the session.
    pub const fn id(&self) -> SessionId {
        self.id
    }

    /// Returns the dialect of the session.
    pub const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns true if streams and bytes need credit. It does not change.
    pub const fn has_flow_control(&self) -> bool {
        self.flow.is_some()
    }

    /// Sets the probe timeout of the path, of which three are the time for the peer to end the CONNECT stream, at
    /// least 100 ms and at most 5 s (limit K307). Set it before anything that can end the session.
    pub const fn set_probe_timeout(&mut self, probe_timeout: Duration) {
        self.probe_timeout = probe_timeout;
    }

    // The CONNECT stream.

    /// Processes content of the CONNECT stream, in pieces of any length.
    ///
    /// A violation ends the session, as the event [`Closed`](SessionEvent::Closed) tells.
    pub fn on_content(&mut self, now: Time, chunk: Bytes) {
        if chunk.is_empty() || self.is_over() || matches!(self.send, SendHalf::Resetting(_)) {
            return;
        }
        if self.receive == ReceiveHalf::ClosedByPeer {
            return self.fail(now, malformed("content after WT_CLOSE_SESSION"));
        }
        if self.closed.is_some() {
            return; // This end has closed the session, and only FIN of the peer matters.
        }
        if let Err(error) = self.read(now, chunk) {
            self.fail(now, error);
        }
    }

    /// Processes the FIN of the peer.
    pub fn on_content_end(&mut self, now: Time) {
        let was = std::mem::replace(&mut self.receive, ReceiveHalf::Ended);
        if was != ReceiveHalf::Open || self.closed.is_some() {
            return;
        }
        match self.reader.finish() {
            Ok(()) => self.end(now, Closed::Peer(CloseReason::default()), None),
            Err(error) => self.fail(now, error),
        }
    }

    /// Processes a reset of the CONNECT stream by the peer.
    pub fn on_content_reset(&mut self, now: Time, code: Code) {
        self.receive = ReceiveHalf::Ended;
        self.end(now, Closed::Reset(code), None);
    }

    /// Processes the request of the peer to stop sending on the CONNECT stream, upon which QUIC resets it.
    pub fn on_stopped(&mut self, now: Time, code: Code) {
        self.end(now, Closed::Reset(code), None);
        if !matches!(self.send, SendHalf::Resetting(_)) {
            self.send = SendHalf::Ended;
        }
    }

    /// Processes the end of the connection. Nothing remains to be sent.
    ///
    /// Pass content that has arrived before, so that a `WT_CLOSE_SESSION` in the same packet is what the application
    /// learns.
    pub fn on_connection_lost(&mut self, now: Time) {
        self.end(now, Closed::ConnectionLost, None);
        self.receive = ReceiveHalf::Ended;
        self.send = SendHalf::Ended;
        self.deadline = None;
    }

    /// Returns the next step for the CONNECT stream. Call it when the stream has accepted all content before, so
    /// that a newer limit replaces an older one that was not sent.
    pub fn poll_output(&mut self) -> Option<Output> {
        match &mut self.send {
            SendHalf::Open => self.poll_capsule().map(|it| Output::Content(it.encode())),
            SendHalf::Closing(capsule) => Some(match capsule.take() {
                Some(capsule) => Output::Content(capsule),
                None => {
                    self.send = SendHalf::Ended;
                    Output::Finish
                }
            }),
            SendHalf::Resetting(_) => self.poll_reset().map(Output::Reset),
            SendHalf::Ended => None,
        }
    }

    /// Returns the code with which the CONNECT stream is to be reset now, once. Unlike other outputs it does not wait until
    /// the stream has accepted what was written before.
    pub fn poll_reset(&mut self) -> Option<Code> {
        match self.send {
            SendHalf::Resetting(code) => {
                self.send = SendHalf::Ended;
                self.receive = ReceiveHalf::Ended;
                Some(code)
            }
            _ => None,
        }
    }

    /// Returns true if [`poll_output`](Self::poll_output) has a step.
    pub fn has_output(&self) -> bool {
        match self.send {
            SendHalf::Open => {
                self.drain == Drain::Due || self.flow.as_ref().is_some_and(Flow::has_capsule)
            }
            SendHalf::Closing(_) | SendHalf::Resetting(_) => true,
            SendHalf::Ended => false,
        }
    }

    /// Returns the next change that the application waits for.
    pub fn poll_event(&mut self) -> Option<SessionEvent> {
        use Direction::{Bidirectional, Unidirectional};
        if self.news.draining == Told::Due {
            self.news.draining = Told::Done;
            return Some(SessionEvent::Draining);
        }
        if self.closed.is_none() {
            if std::mem::take(&mut self.news.bidi) {
                return Some(SessionEvent::StreamsAllowed(Bidirectional));
            }
            if std::mem::take(&mut self.news.uni) {
                return Some(SessionEvent::StreamsAllowed(Unidirectional));
            }
            if std::mem::take(&mut self.news.data) {
                return Some(SessionEvent::DataAllowed);
            }
        }
        let closed = self.closed.as_ref()?;
        if std::mem::replace(&mut self.news.closed, true) {
            return None;
        }
        Some(SessionEvent::Closed(closed.clone()))
    }

    /// Returns the time of the next [`on_timeout`](Self::on_timeout).
    pub const fn next_timeout(&self) -> Option<Time> {
        match (&self.flow, &self.closed) {
            (Some(flow), None) => flow.next_timeout(),
            _ if self.is_over() => None,
            _ => self.deadline,
        }
    }

    /// Makes credit due for a peer that waits for it. Resets the CONNECT stream if the time for its end has passed
    /// (limit K307).
    pub fn on_timeout(&mut self, now: Time) {
        if let (Some(flow), None) = (&mut self.flow, &self.closed) {
            flow.on_timeout(now);
        } else if self.next_timeout().is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            self.send = SendHalf::Resetting(code::SESSION_GONE);
        }
    }

    /// Returns the reason of the end, once the session has ended.
    pub const fn closed(&self) -> Option<&Closed> {
        self.closed.as_ref()
    }

    /// Returns true if both halves of the CONNECT stream have ended, so that the state can be dropped.
    pub const fn is_over(&self) -> bool {
        matches!(
            (&self.send, self.receive),
            (SendHalf::Ended, ReceiveHalf::Ended)
        )
    }

    // The application.

    /// Ends the session with a code and a message. Has no effect if it has ended.
    ///
    /// The capsule is sent when the CONNECT stream accepts content. If it does not, or if the peer does not end its
    /// half in time, the stream is reset.
    pub fn close(&mut self, now: Time, reason: CloseReason) {
        let capsule = SessionCapsule::Close(reason.clone()).encode();
        self.end(now, Closed::Local(reason), Some(capsule));
    }

    /// Ends the session with a reset of its CONNECT stream, for example with
    /// [`ALPN_ERROR`](crate::code::ALPN_ERROR). Has no effect if it has ended.
    pub fn reset(&mut self, now: Time, code: Code) {
        if self.closed.is_none() {
            self.end(now, Closed::LocalReset(code), None);
            self.send = SendHalf::Resetting(code);
        }
    }

    /// Asks the peer to end the session soon, once.
    pub fn drain(&mut self) {
        if self.drain == Drain::None {
            self.drain = Drain::Due;
        }
    }

    /// Processes GOAWAY of the peer, which asks to end all sessions of the connection
    /// (draft-ietf-webtrans-http3-16 §4.7).
    pub fn on_goaway(&mut self) {
        if self.news.draining == Told::No {
            self.news.draining = Told::Due;
        }
    }

    /// Uses the credit for a stream that this end opens.
    ///
    /// # Errors
    ///
    /// Returns an error if the peer allows no further stream, which it is told once for each limit, or if the session
    /// has ended.
    pub fn open_stream(&mut self, direction: Direction) -> Result<(), OpenError> {
        if self.closed.is_some() {
            return Err(OpenError::Closed);
        }
        let Some(flow) = &mut self.flow else {
            return Ok(());
        };
        flow.open_stream(direction)
            .map_err(|limit| OpenError::Blocked { limit })
    }

    /// Uses credit for the bodies of streams. Returns the number of bytes that may be sent now, at most `wanted`. If
    /// it is less, the peer is told once for each limit, and [`DataAllowed`](SessionEvent::DataAllowed) follows.
    pub fn reserve_data(&mut self, wanted: u64) -> u64 {
        match &mut self.flow {
            _ if self.closed.is_some() => 0,
            Some(flow) => flow.reserve(wanted),
            None => wanted,
        }
    }

    /// Returns credit for bytes that were reserved and are not sent: because QUIC has accepted less, or because the
    /// stream was reset at a smaller final size.
    pub fn give_back_data(&mut self, bytes: u64) {
        if let Some(flow) = &mut self.flow {
            flow.give_back(bytes);
            self.news.data |= bytes > 0;
        }
    }

    // Streams of the peer.

    /// Counts a stream that the peer has opened in the session.
    ///
    /// # Errors
    ///
    /// Returns the code with which to refuse the stream if the session has ended, perhaps by this very stream: a
    /// stream beyond the limit ends it.
    pub fn on_stream(&mut self, now: Time, direction: Direction) -> Result<(), Code> {
        self.count(now, |flow| flow.on_stream(direction))
    }

    /// Counts the end of a stream of the peer: both halves of a bidirectional one. The peer may open another one.
    pub fn on_stream_ended(&mut self, direction: Direction) {
        if let Some(flow) = &mut self.flow {
            flow.on_stream_ended(direction);
        }
    }

    /// Counts bytes in the body of a stream of the peer.
    ///
    /// # Errors
    ///
    /// Returns the code with which to stop the stream if the session has ended, perhaps by these very bytes.
    pub fn on_data(&mut self, now: Time, bytes: u64) -> Result<(), Code> {
        self.count(now, |flow| flow.on_data(bytes))
    }

    /// Counts bytes that the application has read. `rtt` is the smoothed round-trip time: the window grows if it is
    /// used up faster than in two.
    pub fn on_consumed(&mut self, now: Time, rtt: Duration, bytes: u64) {
        if let Some(flow) = &mut self.flow {
            flow.on_consumed(now, rtt, bytes);
        }
    }

    /// Counts the bytes of a stream that its peer has reset: its final size without its header, less the `counted`
    /// bytes of its body, of which `consumed` were read.
    ///
    /// # Errors
    ///
    /// Returns an error if the session has ended, perhaps by this very stream.
    pub fn on_stream_reset(&mut self, now: Time, reset: StreamReset) -> Result<(), Code> {
        let body = reset.final_size.saturating_sub(reset.header);
        let uncounted = body.saturating_sub(reset.counted);
        let unread = body.max(reset.counted).saturating_sub(reset.consumed);
        let result = self.on_data(now, uncounted);
        self.on_consumed(now, Duration::ZERO, unread);
        result
    }

    /// Runs a check of flow control. Its failure ends the session.
    fn count(
        &mut self,
        now: Time,
        check: impl FnOnce(&mut Flow) -> Result<(), Error>,
    ) -> Result<(), Code> {
        if self.closed.is_some() {
            return Err(code::SESSION_GONE);
        }
        let Some(flow) = &mut self.flow else {
            return Ok(());
        };
        check(flow).map_err(|error| {
            self.fail(now, error);
            code::SESSION_GONE
        })
    }

    fn read(&mut self, now: Time, chunk: Bytes) -> Result<(), Error> {
        let flow_control = self.flow.is_some();
        self.noise.add(now, chunk.len());
        self.reader.push(chunk);
        loop {
            let is_open = self.receive == ReceiveHalf::Open;
            let longest = |kind| match is_open {
                true => SessionCapsule::longest(kind, flow_control),
                false => Some(0), // Nothing is skipped after WT_CLOSE_SESSION.
            };
            // The only error of the reader is a value that is too long for its type.
            let capsule = self.reader.poll(longest);
            let capsule = capsule.map_err(|_| malformed("a capsule that is too long"))?;
            let Some(capsule) = capsule else {
                break;
            };
            if self.receive != ReceiveHalf::Open {
                return Err(malformed("a capsule after WT_CLOSE_SESSION"));
            }
            let len = encoded_len(&capsule);
            if self.on_capsule(now, SessionCapsule::decode(&capsule)?)? {
                self.noise.subtract(len);
            }
        }
        if self.receive == ReceiveHalf::ClosedByPeer && self.reader.finish().is_err() {
            return Err(malformed("content after WT_CLOSE_SESSION"));
        }
        self.noise.check()
    }

    /// Processes a capsule. Returns true if it has changed anything.
    fn on_capsule(&mut self, now: Time, capsule: SessionCapsule) -> Result<bool, Error> {
        match capsule {
            SessionCapsule::Close(reason) => {
                self.receive = ReceiveHalf::ClosedByPeer;
                self.end(now, Closed::Peer(reason), None);
                Ok(true)
            }
            SessionCapsule::Drain => {
                let is_new = self.news.draining == Told::No;
                self.on_goaway();
                Ok(is_new)
            }
            SessionCapsule::MaxData(_) | SessionCapsule::MaxStreams(..) => {
                if let Some(flow) = &mut self.flow {
                    flow.on_limit(&capsule)?;
                }
                match capsule {
                    SessionCapsule::MaxStreams(Direction::Bidirectional, _) => {
                        self.news.bidi = true
                    }
                    SessionCapsule::MaxStreams(..) => self.news.uni = true,
                    _ => self.news.data = true,
                }
                Ok(true)
            }
            SessionCapsule::DataBlocked(_) | SessionCapsule::StreamsBlocked(..) => {
                // A peer that uses all its credit reports each limit once, and small windows have many limits.
                let flow = self.flow.as_mut();
                Ok(flow.is_some_and(|flow| flow.on_blocked(now, &capsule)))
            }
        }
    }

    fn poll_capsule(&mut self) -> Option<SessionCapsule> {
        if let Some(capsule) = self.flow.as_mut().and_then(Flow::poll_capsule) {
            return Some(capsule);
        }
        if self.drain == Drain::Due {
            self.drain = Drain::Sent;
            return Some(SessionCapsule::Drain);
        }
        None
    }

    /// Ends the session, if it has not ended. The sending half ends after the capsule.
    fn end(&mut self, now: Time, closed: Closed, capsule: Option<Bytes>) {
        if self.closed.is_some() {
            return;
        }
        self.closed = Some(closed);
        if self.send == SendHalf::Open {
            self.send = SendHalf::Closing(capsule);
        }
        let wait = (3 * self.probe_timeout).clamp(SHORTEST_CLOSE, LONGEST_CLOSE);
        self.deadline = Some(now + wait);
    }

    /// Ends the session because of a violation. The CONNECT stream is reset even if the session has ended.
    fn fail(&mut self, now: Time, error: Error) {
        self.end(now, Closed::Violation(error), None);
        if !self.is_over() {
            self.send = SendHalf::Resetting(error.code);
        }
    }
}

/// A stream that its peer has reset. All fields are numbers of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamReset {
    /// The final size of the stream (RFC 9000 §4.5), with its header.
    pub final_size: u64,
    /// The length of the header, with the type or signal.
    pub header: u64,
    /// The bytes of the body that were passed to [`Session::on_data`] before.
    pub counted: u64,
    /// The bytes of the body that were passed to [`Session::on_consumed`] before.
    pub consumed: u64,
}

/// Returns the length of a capsule on the wire, if its integers are as short as possible.
const fn encoded_len(capsule: &Capsule) -> usize {
    let len = capsule.value.len();
    varint_len(capsule.kind) + varint_len(len as u64) + len
}

/// Shortest and longest time for the peer to end its half of the CONNECT stream (limit K307).
const SHORTEST_CLOSE: Duration = Duration::from_millis(100);
const LONGEST_CLOSE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
