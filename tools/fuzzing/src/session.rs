//! Sessions of WebTransport: the table of a connection, one session, headers of streams, fields and settings.

use std::time::Duration;

use bytes::Bytes;
use courser_base::{Side, Time};
use courser_http3::{Code, Protocol, Scope};
use courser_webtransport::{
    Admission, CloseReason, Config, Dialect, HeaderStep, OpenError, Output, Peer, Session,
    SessionEvent, SessionId, Sessions, StreamHeaderReader, code,
};
use courser_wire::Direction;
use http::{HeaderValue, Method, Request};

use crate::input::Input;

/// Lets the peer, the application and the clock of one end act in any order. It must not panic, and the
/// table and the outputs must stay bounded.
pub fn session(bytes: &[u8]) {
    header(bytes);
    let mut input = Input::new(bytes);
    let side = match input.below(2) {
        0 => Side::Client,
        _ => Side::Server,
    };
    let mut end = End::new(side);
    while !input.is_empty() {
        if end.step(&mut input).is_err() {
            break; // The connection ends.
        }
        end.poll();
    }
    end.finish();
}

/// Reads the header of a stream in one piece, byte by byte, and in pieces of three bytes.
fn header(bytes: &[u8]) {
    for direction in [Direction::Bidirectional, Direction::Unidirectional] {
        for reader in [
            StreamHeaderReader::whole(direction),
            StreamHeaderReader::after_type(),
        ] {
            let read = |size: usize| {
                let mut reader = reader.clone();
                for piece in bytes.chunks(size.min(bytes.len()).max(1)) {
                    match reader.read(Bytes::copy_from_slice(piece)) {
                        Ok(HeaderStep::Incomplete) => {}
                        Ok(HeaderStep::Complete { session, len, .. }) => {
                            return Ok(Some((session, len)));
                        }
                        Err(error) => return Err((error.code, error.scope)),
                    }
                }
                Ok(None)
            };
            let whole = read(usize::MAX);
            assert_eq!((read(1), read(3)), (whole, whole), "a header in pieces");
        }
    }
}

/// One end of a connection, with one session that the application uses.
struct End {
    side: Side,
    now: Time,
    table: Sessions,
    session: Option<Session>,
    /// Bytes of the peer that the session has counted.
    unread: u64,
    /// The end of the session was told.
    is_closed: bool,
}

impl End {
    fn new(side: Side) -> Self {
        Self {
            side,
            now: Time::from_nanos(1),
            table: Sessions::new(side, Config::new()),
            session: None,
            unread: 0,
            is_closed: false,
        }
    }

    fn step(&mut self, input: &mut Input<'_>) -> Result<(), ()> {
        match input.below(4) {
            0 => return self.settings(input),
            1 => self.request(input),
            2 => self.connect_stream(input),
            _ => self.application(input),
        }
        Ok(())
    }

    fn settings(&mut self, input: &mut Input<'_>) -> Result<(), ()> {
        let flags = input.byte();
        let mut settings = Vec::new();
        for (bit, dialect) in Dialect::ALL.into_iter().enumerate() {
            if flags >> bit & 1 == 1 {
                settings.push((dialect.setting(), input.number() % 20));
            }
        }
        for id in [0x2b61, 0x2b64, 0x2b65, 0xff_d277] {
            settings.push((id, input.number()));
        }
        let peer = Peer {
            settings: &settings,
            h3_datagram: flags & 0x10 == 0,
            extended_connect: flags & 0x20 == 0,
            max_datagram_frame_size: u64::from(flags & 0x40 == 0),
            reset_stream_at: flags & 0x80 == 0,
        };
        self.table.on_peer(&peer).map_err(|error| {
            assert_eq!(
                (error.code, error.scope),
                (Code::SETTINGS_ERROR, Scope::Connection)
            );
        })
    }

    fn request(&mut self, input: &mut Input<'_>) {
        let Some(id) = id(input) else {
            return;
        };
        match (self.side, input.below(4)) {
            (Side::Server, 0) => {
                let admission = self.table.on_request(self.now, id, &request(input), false);
                if let Admission::Open(opening) = admission {
                    let chosen = opening.protocols.iter().next();
                    assert!(opening.response_headers(chosen).is_ok());
                }
            }
            (Side::Server, 1) => self.start(|table| table.accept(id)),
            (Side::Client, 0) => self.start(|table| table.on_requested(id).ok()),
            (Side::Client, 1) => drop(self.table.on_accepted(id)),
            (_, 2) => self.table.refuse(id),
            _ => self.table.on_ended(id),
        }
    }

    fn start(&mut self, start: impl FnOnce(&mut Sessions) -> Option<Session>) {
        if let Some(session) = start(&mut self.table) {
            (self.session, self.unread, self.is_closed) = (Some(session), 0, false);
        }
    }

    /// The peer acts on the CONNECT stream.
    fn connect_stream(&mut self, input: &mut Input<'_>) {
        let Some(session) = &mut self.session else {
            return;
        };
        match input.below(8) {
            0 => session.on_content_end(self.now),
            1 => session.on_content_reset(self.now, Code::REQUEST_CANCELLED),
            2 => session.on_stopped(self.now, code::SESSION_GONE),
            _ => {
                let content = Bytes::copy_from_slice(input.bytes());
                session.on_content(self.now, content);
            }
        }
    }

    /// The application or the clock acts.
    fn application(&mut self, input: &mut Input<'_>) {
        let (action, amount) = (input.below(10), input.number());
        if action == 0 {
            self.now += Duration::from_millis(amount % 10_000);
        }
        let Some(session) = &mut self.session else {
            return;
        };
        let now = self.now;
        let has_ended = session.closed().is_some();
        match action {
            0 => session.on_timeout(now),
            1 => session.close(now, CloseReason::new(7, "bye")),
            2 => session.drain(),
            3 => {
                let opened = session.open_stream(direction(input));
                assert_eq!(opened == Err(OpenError::Closed), has_ended);
            }
            4 => {
                let reserved = session.reserve_data(amount);
                assert!(reserved <= amount && !(has_ended && reserved > 0));
                session.give_back_data(reserved / 2);
            }
            5 => drop(session.on_stream(now, direction(input))),
            6 => session.on_stream_ended(direction(input)),
            7 if session.on_data(now, amount).is_ok() => self.unread = amount,
            8 => session.on_consumed(now, Duration::from_millis(5), self.unread),
            _ => {
                // At most one capsule of each kind, and the end.
                let outputs = std::iter::from_fn(|| session.poll_output())
                    .take(20)
                    .count();
                assert!(outputs < 10, "{outputs} outputs");
            }
        }
    }

    fn poll(&mut self) {
        assert!(
            self.table.len() <= REQUESTS as usize,
            "more sessions than requests"
        );
        let Some(session) = &mut self.session else {
            return;
        };
        while let Some(event) = session.poll_event() {
            if let SessionEvent::Closed(closed) = event {
                assert!(!self.is_closed && session.closed() == Some(&closed));
                self.is_closed = true;
            }
        }
        assert_eq!(self.is_closed, session.closed().is_some());
    }

    /// Ends the session, which must come to its end by itself.
    fn finish(&mut self) {
        self.now += Duration::from_secs(10);
        let Some(session) = &mut self.session else {
            return;
        };
        session.close(self.now, CloseReason::default());
        session.on_timeout(self.now + Duration::from_secs(10));
        let last = std::iter::from_fn(|| session.poll_output()).last();
        assert!(session.is_over(), "{last:?}");
        assert!(!matches!(last, Some(Output::Content(_))));
    }
}

fn direction(input: &mut Input<'_>) -> Direction {
    match input.below(2) {
        0 => Direction::Bidirectional,
        _ => Direction::Unidirectional,
    }
}

/// Returns a session ID, mostly of a request that can exist.
fn id(input: &mut Input<'_>) -> Option<SessionId> {
    match input.below(64) {
        63 => SessionId::new(input.number()).ok(),
        index => SessionId::new(4 * (index as u64 % (REQUESTS + 1))).ok(),
    }
}

/// Returns a request of any dialect, with fields of the input.
fn request(input: &mut Input<'_>) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = http::Uri::from_static("https://example.org/chat");
    let token = Dialect::ALL[input.below(4)].token();
    if let Some(protocol) = Protocol::new(token) {
        request.extensions_mut().insert(protocol);
    }
    for name in ["origin", "wt-available-protocols", "wt-available-protocols"] {
        if input.below(4) == 0
            && let Ok(value) = HeaderValue::from_bytes(input.bytes())
        {
            request.headers_mut().append(name, value);
        }
    }
    request
}

/// Requests that the client may open.
const REQUESTS: u64 = 20;
