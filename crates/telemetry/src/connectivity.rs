//! The life of a connection, and the paths it takes.

use courser_base::FourTuple;
use courser_wire::{ApplicationErrorCode, ConnectionId, TransportErrorCode};

/// A connection begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionStarted {
    /// Addresses of its first path.
    pub path: FourTuple,
    /// The ID that we are addressed by.
    pub local_id: ConnectionId,
    /// The ID that the peer is addressed by: on a client a random one at first.
    pub peer_id: ConnectionId,
}

/// What ended a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseCause {
    /// A rule of the protocol was broken, or TLS failed.
    Transport {
        /// The code of the CONNECTION_CLOSE frame.
        code: TransportErrorCode,
    },
    /// An application closed it.
    Application {
        /// The application's code.
        code: ApplicationErrorCode,
    },
    /// Nothing was heard for the idle timeout (RFC 9000 §10.1).
    IdleTimeout,
    /// The handshake did not finish in time.
    HandshakeTimeout,
    /// The peer has lost its state (RFC 9000 §10.3).
    StatelessReset,
    /// The two ends have no version in common (RFC 9000 §6.2).
    VersionMismatch,
}

/// The connection is over: what may follow is only the goodbye.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionClosed {
    /// The peer said so.
    pub by_peer: bool,
    /// What ended it.
    pub cause: CloseCause,
    /// For humans. A peer's text is any bytes; what is not UTF-8 was replaced.
    pub reason: String,
}

/// One end is addressed by another ID from now on (RFC 9000 §5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionIdUpdated {
    /// It is the peer that is addressed differently; else it is us.
    pub of_peer: bool,
    /// The ID until now.
    pub old: Option<ConnectionId>,
    /// The ID from now on.
    pub new: ConnectionId,
}

/// The connection entered another state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateChanged {
    /// The state it left; `None` for a connection that begins.
    pub old: Option<&'static str>,
    /// Name of the state: `handshaking`, `complete`, `confirmed`, `closing`, `draining`, `drained`.
    pub state: &'static str,
}

/// What happened to a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathState {
    /// PATH_CHALLENGE frames ask whether the peer is there (RFC 9000 §8.2).
    ProbingStarted,
    /// The peer answered.
    ProbingSuccessful,
    /// Nobody answered.
    ProbingAbandoned,
    /// Everything goes this way from now on, proven or not (RFC 9000 §9.3).
    MigrationStarted,
    /// The path in use is proven.
    MigrationComplete,
    /// The path in use turned out not to be the peer's, an older one is in use again
    /// (RFC 9000 §9.3.2).
    MigrationAbandoned,
}

/// A path is being proven, taken or left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathUpdated {
    /// What happened.
    pub state: PathState,
    /// Addresses of the path.
    pub path: FourTuple,
}

/// Full datagrams have another size (RFC 8899).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MtuUpdated {
    /// UDP payload until now, in bytes.
    pub old: u16,
    /// UDP payload from now on, in bytes.
    pub new: u16,
    /// The search is over for now.
    pub done: bool,
}
