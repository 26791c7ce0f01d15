//! The sessions of one connection.

mod early;
mod past;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use courser_base::{Pace, Side, Time};
use courser_http3::{Code, Error};
use courser_wire::Direction;
use http::{Request, StatusCode};
use thiserror::Error;

use self::early::{EarlyDatagrams, EarlyStreams};
use self::past::{Fate, Past};
use crate::agreement::{Agreement, Peer, Unsupported};
use crate::code;
use crate::config::Config;
use crate::dialect::{Dialect, TOKEN, TOKEN_H3};
use crate::request::{Opening, Refusal, token};
use crate::session::Session;
use crate::session_id::{SessionId, invalid};

/// The table of the sessions of one connection: which exist, and where streams and datagrams belong.
///
/// `S` is a stream of the peer, as the caller handles it. Streams that arrive before their session wait in the table,
/// within limits of number and time (limit K302), with their bytes in the flow control of QUIC. Datagrams wait
/// likewise (limit K303). Everything that waits returns as an [`Event`].
///
/// The [`Session`]s themselves belong to the caller, so that reads and writes of one do not use the table.
#[derive(Debug)]
pub struct Sessions<S> {
    side: Side,
    config: Config,
    support: Support,
    states: BTreeMap<SessionId, State>,
    past: Past,
    /// Number of request streams that can exist.
    requests: u64,
    pace: Pace,
    is_going_away: bool,
    streams: EarlyStreams<S>,
    datagrams: EarlyDatagrams,
    events: VecDeque<Event<S>>,
}

/// The knowledge of the peer's support.
#[derive(Clone, Copy, Debug)]
enum Support {
    /// SETTINGS have not arrived.
    Unknown,
    Agreed(Agreement),
    Unsupported(Unsupported),
}

/// The state of a session in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// A server holds the request until the SETTINGS of the client arrive.
    Held,
    /// The request waits for the decision of the server's application, or for the response.
    Requested,
    /// Streams and datagrams belong to a session.
    Established,
}

/// The fate of a request on a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Admission {
    /// The SETTINGS of the client have not arrived. Keep the request, and pass it again with
    /// [`Event::Decide`].
    Hold,
    /// The application may accept the session with [`Sessions::accept`], or refuse it with [`Sessions::refuse`].
    Open(Opening),
    /// There is no session.
    Refuse(Refusal),
}

/// The fate of a stream of the peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StreamFate<S> {
    /// The stream belongs to an established session. Its application may be slow: the stream is never refused.
    Deliver(SessionId, S),
    /// The stream waits in the table.
    Wait,
    /// The stream is refused: stop its receiving half, and reset its sending half, with this code.
    Refuse {
        /// The stream.
        stream: S,
        /// [`BUFFERED_STREAM_REJECTED`](code::BUFFERED_STREAM_REJECTED) or [`SESSION_GONE`](code::SESSION_GONE).
        code: Code,
        /// True if the stream counts as useless work of the peer (limit K17), because no session that has ended
        /// explains it.
        is_charged: bool,
    },
}

/// The fate of a datagram of the peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DatagramFate {
    /// The datagram belongs to an established session.
    Deliver(SessionId, Bytes),
    /// The datagram waits in the table.
    Wait,
    /// The datagram is dropped.
    Drop,
}

/// A change of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event<S> {
    /// The SETTINGS of the client have arrived: pass the request of this session to
    /// [`Sessions::on_request`] again.
    Decide(SessionId),
    /// A stream that has waited belongs to a session that is established now.
    Stream(SessionId, Direction, S),
    /// A datagram that has waited belongs to a session that is established now.
    Datagram(SessionId, Bytes),
    /// A stream that has waited is refused with this code.
    Refused(S, Code),
}

/// The reason why a client cannot request a session on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The SETTINGS of the server have not arrived. Settings of an earlier connection do not permit a session.
    #[error("the SETTINGS of the server have not arrived")]
    NotYet,
    /// The server does not support WebTransport. A connection for this purpose only is closed with
    /// [`REQUIREMENTS_NOT_MET`](code::REQUIREMENTS_NOT_MET).
    #[error("WebTransport is not available: {0}")]
    Unsupported(Unsupported),
    /// The server has sent GOAWAY: a new session needs a new connection.
    #[error("the server is going away; use another connection")]
    GoingAway,
    /// The connection has as many sessions as it can have.
    #[error(
        "the connection has {0} sessions, as many as allowed; wait for the end of one, or use another"
    )]
    TooMany(u64),
}

impl<S> Sessions<S> {
    /// Creates the table of a connection without sessions.
    pub fn new(side: Side, config: Config) -> Self {
        Self {
            side,
            config,
            support: Support::Unknown,
            states: BTreeMap::new(),
            past: Past::default(),
            requests: 0,
            pace: Pace::new(REQUEST_BURST, REQUEST_INTERVAL),
            is_going_away: false,
            streams: EarlyStreams::default(),
            datagrams: EarlyDatagrams::default(),
            events: VecDeque::new(),
        }
    }

    /// Processes the SETTINGS and transport parameters of the peer. They fix the dialect.
    ///
    /// # Errors
    ///
    /// Returns a connection error for an invalid setting.
    pub fn on_peer(&mut self, peer: &Peer<'_>) -> Result<(), Error> {
        if !matches!(self.support, Support::Unknown) {
            return Ok(());
        }
        self.support = match Agreement::negotiate(self.side, &self.config, peer)? {
            Ok(agreement) => Support::Agreed(agreement),
            Err(reason) => {
                let streams = self.streams.take_all();
                let refused = |stream| Event::Refused(stream, code::BUFFERED_STREAM_REJECTED);
                self.events.extend(streams.map(refused));
                self.datagrams = EarlyDatagrams::default();
                Support::Unsupported(reason)
            }
        };
        let held = self.states.keys().copied().map(Event::Decide);
        self.events.extend(held);
        Ok(())
    }

    /// Returns the agreement with the peer, once its SETTINGS have shown that it supports WebTransport.
    pub const fn agreement(&self) -> Option<&Agreement> {
        match &self.support {
            Support::Agreed(agreement) => Some(agreement),
            Support::Unknown | Support::Unsupported(_) => None,
        }
    }

    /// Sets the number of request streams that can exist, which never falls: on a server those that QUIC has granted
    /// to the client, on a client those that it has opened.
    pub fn set_requests(&mut self, requests: u64) {
        self.requests = self.requests.max(requests);
    }

    /// Returns the number of sessions that are requested or established.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Returns true if there is no session.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Returns the numbers of the sessions that are requested or established, in order.
    pub fn ids(&self) -> impl Iterator<Item = SessionId> {
        self.states.keys().copied()
    }

    // Servers.

    /// Decides about a request for a session. `is_early` is true if it has arrived as early data and the handshake is
    /// not complete.
    ///
    /// A request for which [`is_session_request`](crate::is_session_request) is false is for
    /// [`on_other_request`](Self::on_other_request).
    pub fn on_request<B>(
        &mut self,
        now: Time,
        session: SessionId,
        request: &Request<B>,
        is_early: bool,
    ) -> Admission {
        debug_assert!(self.side.is_server(), "clients receive no request");
        let admission = self.admit(now, session, request, is_early);
        match &admission {
            Admission::Hold => drop(self.states.insert(session, State::Held)),
            Admission::Open(_) => drop(self.states.insert(session, State::Requested)),
            Admission::Refuse(_) => self.refuse(session),
        }
        admission
    }

    fn admit<B>(
        &mut self,
        now: Time,
        session: SessionId,
        request: &Request<B>,
        is_early: bool,
    ) -> Admission {
        let is_held = self.states.contains_key(&session);
        if is_early {
            let reason = "a session request as early data";
            return Admission::Refuse(Refusal::status(StatusCode::TOO_EARLY, reason));
        }
        if !is_held && !self.pace.take(now) {
            return Admission::Refuse(Refusal::too_many());
        }
        let others = self.states.len() as u64 - u64::from(is_held);
        let limit = self.max_sessions();
        if others >= limit {
            let reason = format!("more than {limit} sessions");
            return Admission::Refuse(Refusal::reset(Code::REQUEST_REJECTED, reason));
        }
        let agreement = match self.check_support(token(request)) {
            Ok(Some(agreement)) => agreement,
            Ok(None) => return Admission::Hold,
            Err(refusal) => return Admission::Refuse(refusal),
        };
        let is_alone = agreement.max_sessions == 1;
        let origins = &self.config.origins;
        match Opening::check(session, agreement.dialect, is_alone, request, origins) {
            Ok(opening) => Admission::Open(opening),
            Err(refusal) => Admission::Refuse(refusal),
        }
    }

    /// Returns the agreement for a request with this token, or `None` before the SETTINGS of the client.
    fn check_support(&self, token: Option<&'static str>) -> Result<Option<Agreement>, Refusal> {
        let agreement = match self.support {
            Support::Unknown => return Ok(None),
            Support::Agreed(agreement) => agreement,
            Support::Unsupported(Unsupported::NotAnnounced) if token == Some(TOKEN) => {
                // The capsule protocol over one stream, which needs none of these settings.
                return Err(Refusal::status(
                    StatusCode::NOT_IMPLEMENTED,
                    CAPSULE_PROTOCOL,
                ));
            }
            Support::Unsupported(reason) => return Err(Refusal::malformed(reason.to_string())),
        };
        if token == Some(agreement.dialect.token()) {
            return Ok(Some(agreement));
        }
        let reason = match agreement.dialect {
            Dialect::Draft16 => CAPSULE_PROTOCOL.to_owned(),
            dialect => format!("token {TOKEN_H3} on a connection of {dialect}"),
        };
        Err(Refusal::status(StatusCode::NOT_IMPLEMENTED, reason))
    }

    /// Establishes a session that the application of a server accepts, before the 2xx response is sent. What has
    /// waited for it follows as events. `None` if the request has ended meanwhile.
    pub fn accept(&mut self, session: SessionId) -> Option<Session> {
        let agreement = *self.agreement()?;
        self.establish(session)
            .then(|| Session::new(session, &agreement))
    }

    /// Forgets a request that the application refuses, or that ends before it is accepted or answered. What has
    /// waited for it is refused, and so is what arrives later.
    pub fn refuse(&mut self, session: SessionId) {
        self.states.remove(&session);
        self.drop_waiting(session, code::BUFFERED_STREAM_REJECTED);
        self.past.add(session, Fate::Refused);
    }

    /// Refuses what waits for a session with the number of a request that is none. Optional: without it, streams wait
    /// until their time has passed.
    pub fn on_other_request(&mut self, session: SessionId) {
        if !self.states.contains_key(&session) {
            self.drop_waiting(session, code::BUFFERED_STREAM_REJECTED);
        }
    }

    // Clients.

    /// Checks that a session may be requested, and returns the dialect of the request.
    ///
    /// # Errors
    ///
    /// Returns an error before the SETTINGS of the server, without its support, after its GOAWAY, and with as many
    /// sessions as are allowed.
    pub fn check_available(&self) -> Result<Dialect, Unavailable> {
        let agreement = match &self.support {
            Support::Unknown => return Err(Unavailable::NotYet),
            Support::Unsupported(reason) => return Err(Unavailable::Unsupported(*reason)),
            Support::Agreed(agreement) => agreement,
        };
        if self.is_going_away {
            return Err(Unavailable::GoingAway);
        }
        if self.states.len() as u64 >= agreement.max_sessions {
            return Err(Unavailable::TooMany(agreement.max_sessions));
        }
        Ok(agreement.dialect)
    }

    /// Adds the session of a request that a client has sent. Its streams may be opened before the response.
    ///
    /// # Errors
    ///
    /// Returns the error of [`check_available`](Self::check_available).
    pub fn on_requested(&mut self, session: SessionId) -> Result<Session, Unavailable> {
        debug_assert!(self.side.is_client(), "servers send no request");
        self.check_available()?;
        let Support::Agreed(agreement) = &self.support else {
            return Err(Unavailable::NotYet);
        };
        self.states.insert(session, State::Requested);
        Ok(Session::new(session, agreement))
    }

    /// Establishes a session whose 2xx response has arrived. What has waited for it follows as events. Every other
    /// final response is for [`refuse`](Self::refuse). Returns false if the session has ended meanwhile.
    pub fn on_accepted(&mut self, session: SessionId) -> bool {
        self.establish(session)
    }

    /// Processes GOAWAY of the server. Sessions continue; pass it to each of them.
    pub const fn on_goaway(&mut self) {
        self.is_going_away = true;
    }

    // Both ends.

    /// Forgets a session that has ended, but for its number (limit K306).
    pub fn on_ended(&mut self, session: SessionId) {
        if self.states.remove(&session).is_some() {
            self.drop_waiting(session, code::SESSION_GONE);
            self.past.add(session, Fate::Ended);
        }
    }

    /// Decides about a stream of the peer whose header has arrived.
    ///
    /// # Errors
    ///
    /// Returns a connection error `H3_ID_ERROR` for a number that no session can have.
    pub fn on_stream(
        &mut self,
        now: Time,
        session: SessionId,
        direction: Direction,
        stream: S,
    ) -> Result<StreamFate<S>, Error> {
        Ok(match self.place(session)? {
            Place::Established => StreamFate::Deliver(session, stream),
            Place::Past(fate) => {
                let is_charged = !self.past.count_late(session);
                StreamFate::Refuse {
                    stream,
                    code: fate.code(),
                    is_charged,
                }
            }
            Place::Future => match self.streams.add(now, session, direction, stream) {
                Ok(()) => StreamFate::Wait,
                Err(stream) => refused(stream),
            },
            Place::None => refused(stream),
        })
    }

    /// Decides about a datagram of the peer.
    ///
    /// # Errors
    ///
    /// Returns a connection error `H3_ID_ERROR` for a number that no session can have.
    pub fn on_datagram(
        &mut self,
        now: Time,
        session: SessionId,
        payload: Bytes,
    ) -> Result<DatagramFate, Error> {
        Ok(match self.place(session)? {
            Place::Established => DatagramFate::Deliver(session, payload),
            Place::Future if self.datagrams.add(now, session, payload) => DatagramFate::Wait,
            Place::Future | Place::Past(_) | Place::None => DatagramFate::Drop,
        })
    }

    /// Returns the next change of the table.
    pub fn poll_event(&mut self) -> Option<Event<S>> {
        self.events.pop_front()
    }

    /// Returns the time of the next [`on_timeout`](Self::on_timeout).
    pub fn next_timeout(&self) -> Option<Time> {
        Time::earliest(self.streams.next_timeout(), self.datagrams.next_timeout())
    }

    /// Refuses streams and drops datagrams that have waited for too long.
    pub fn on_timeout(&mut self, now: Time) {
        self.datagrams.expire(now);
        while let Some(stream) = self.streams.pop_expired(now) {
            let event = Event::Refused(stream, code::BUFFERED_STREAM_REJECTED);
            self.events.push_back(event);
        }
    }

    fn max_sessions(&self) -> u64 {
        match &self.support {
            Support::Agreed(agreement) => agreement.max_sessions,
            Support::Unknown | Support::Unsupported(_) => self.config.max_sessions.max(1),
        }
    }

    /// Returns where streams and datagrams with this number belong.
    fn place(&self, session: SessionId) -> Result<Place, Error> {
        match self.states.get(&session) {
            Some(State::Established) => return Ok(Place::Established),
            Some(State::Held | State::Requested) => return Ok(Place::Future),
            None => {}
        }
        if let Some(fate) = self.past.fate(session) {
            return Ok(Place::Past(fate));
        }
        if session.quarter() >= self.requests {
            return Err(invalid("session ID beyond the granted request streams"));
        }
        match (self.side, &self.support) {
            (_, Support::Unsupported(_)) => Ok(Place::None),
            // The request may be on its way.
            (Side::Server, _) => Ok(Place::Future),
            // A client knows all its sessions.
            (Side::Client, _) => Ok(Place::None),
        }
    }

    fn establish(&mut self, session: SessionId) -> bool {
        match self.states.get_mut(&session) {
            Some(state @ State::Requested) => *state = State::Established,
            _ => return false,
        }
        let streams = self.streams.take(session);
        self.events
            .extend(streams.map(|(direction, stream)| Event::Stream(session, direction, stream)));
        let datagrams = self.datagrams.take(session);
        self.events
            .extend(datagrams.map(|payload| Event::Datagram(session, payload)));
        true
    }

    fn drop_waiting(&mut self, session: SessionId, code: Code) {
        let streams = self.streams.take(session);
        self.events
            .extend(streams.map(|(_, stream)| Event::Refused(stream, code)));
        self.datagrams.take(session).for_each(drop);
    }
}

/// The place of a session number.
enum Place {
    Established,
    /// A request that waits, or that may arrive.
    Future,
    Past(Fate),
    /// A request that is no session.
    None,
}

const fn refused<S>(stream: S) -> StreamFate<S> {
    StreamFate::Refuse {
        stream,
        code: code::BUFFERED_STREAM_REJECTED,
        is_charged: true,
    }
}

const CAPSULE_PROTOCOL: &str = "the capsule protocol over one stream is not implemented";

/// Session requests of a connection at once (limit K309). Further ones get 429.
const REQUEST_BURST: u32 = 100;
/// Time for one more session request, 50 in a second (limit K309).
const REQUEST_INTERVAL: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests;
