//! The sessions of one connection.

use std::collections::BTreeMap;
use std::time::Duration;

use courser_base::{Pace, Side, Time};
use courser_http3::{Code, Error};
use http::{Request, StatusCode};
use thiserror::Error;

use crate::agreement::{Agreement, Peer, Unsupported};
use crate::config::Config;
use crate::dialect::{Dialect, TOKEN, TOKEN_H3};
use crate::request::{Opening, Refusal, token};
use crate::session::Session;
use crate::session_id::SessionId;

/// The table of the sessions of one connection: which exist, and who may have another one.
///
/// Streams and datagrams belong to their sessions by number, which the implementation of HTTP/3 reads: it delivers them to
/// those that are established, lets those of later ones wait within limits, and refuses the others.
///
/// The [`Session`]s themselves belong to the caller, so that reads and writes of one do not use the table.
#[derive(Debug)]
pub struct Sessions {
    side: Side,
    config: Config,
    support: Support,
    states: BTreeMap<SessionId, State>,
    pace: Pace,
    is_going_away: bool,
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
    /// The SETTINGS of the client have not arrived. Keep the request, and pass it again after
    /// [`Sessions::on_peer`].
    Hold,
    /// The application may accept the session with [`Sessions::accept`], or refuse it with [`Sessions::refuse`].
    Open(Opening),
    /// There is no session.
    Refuse(Refusal),
}

/// The reason why a client cannot request a session on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The SETTINGS of the server have not arrived. Settings of an earlier connection do not permit a session.
    #[error("the SETTINGS of the server have not arrived")]
    NotYet,
    /// The server does not support WebTransport. A connection for this purpose only is closed with
    /// [`REQUIREMENTS_NOT_MET`](crate::code::REQUIREMENTS_NOT_MET).
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

impl Sessions {
    /// Creates the table of a connection without sessions.
    pub fn new(side: Side, config: Config) -> Self {
        Self {
            side,
            config,
            support: Support::Unknown,
            states: BTreeMap::new(),
            pace: Pace::new(REQUEST_BURST, REQUEST_INTERVAL),
            is_going_away: false,
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
            Err(reason) => Support::Unsupported(reason),
        };
        Ok(())
    }

    /// Returns the agreement with the peer, once its SETTINGS have shown that it supports WebTransport.
    pub const fn agreement(&self) -> Option<&Agreement> {
        match &self.support {
            Support::Agreed(agreement) => Some(agreement),
            Support::Unknown | Support::Unsupported(_) => None,
        }
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
    /// Only for requests for which [`is_session_request`](crate::is_session_request) is true.
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

    /// Establishes a session that the application of a server accepts, before the 2xx response is sent. `None` if the request has ended meanwhile.
    pub fn accept(&mut self, session: SessionId) -> Option<Session> {
        let agreement = *self.agreement()?;
        self.establish(session)
            .then(|| Session::new(session, &agreement))
    }

    /// Forgets a request that the application refuses, or that ends before it is accepted or answered.
    pub fn refuse(&mut self, session: SessionId) {
        self.states.remove(&session);
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

    /// Establishes a session whose 2xx response has arrived. Every other final response is for [`refuse`](Self::refuse). Returns false if the session has ended meanwhile.
    pub fn on_accepted(&mut self, session: SessionId) -> bool {
        self.establish(session)
    }

    /// Processes GOAWAY of the server. Sessions continue; pass it to each of them.
    pub const fn on_goaway(&mut self) {
        self.is_going_away = true;
    }

    // Both ends.

    /// Forgets a session that has ended.
    pub fn on_ended(&mut self, session: SessionId) {
        self.states.remove(&session);
    }

    fn max_sessions(&self) -> u64 {
        match &self.support {
            Support::Agreed(agreement) => agreement.max_sessions,
            Support::Unknown | Support::Unsupported(_) => self.config.max_sessions.max(1),
        }
    }

    fn establish(&mut self, session: SessionId) -> bool {
        match self.states.get_mut(&session) {
            Some(state @ State::Requested) => *state = State::Established,
            _ => return false,
        }
        true
    }
}

const CAPSULE_PROTOCOL: &str = "the capsule protocol over one stream is not implemented";

/// Session requests of a connection at once (limit K309). Further ones get 429.
const REQUEST_BURST: u32 = 100;
/// Time for one more session request, 50 in a second (limit K309).
const REQUEST_INTERVAL: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests;
