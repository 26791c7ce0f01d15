//! Records of a connection's lifecycle and its paths.

use courser_base::FourTuple;
use courser_wire::{ApplicationErrorCode, ConnectionId, TransportErrorCode};

/// The connection was created: on a client by a call, on a server by the first Initial packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionStarted {
    /// The addresses of its first path.
    pub path: FourTuple,
    /// The connection ID that the peer uses to address this end.
    pub local_id: ConnectionId,
    /// The connection ID that this end uses to address the peer. A client starts with a random one.
    pub peer_id: ConnectionId,
}

/// The cause that ended a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseCause {
    /// One end violated the protocol, or TLS failed.
    Transport {
        /// The error code of the CONNECTION_CLOSE frame.
        code: TransportErrorCode,
    },
    /// An application closed the connection.
    Application {
        /// The application's error code.
        code: ApplicationErrorCode,
    },
    /// No packet arrived within the idle timeout (RFC 9000 §10.1).
    IdleTimeout,
    /// The handshake did not complete within its timeout.
    HandshakeTimeout,
    /// Too many consecutive probe timeouts passed without an acknowledgement (RFC 9002 §6.2).
    PathSilent,
    /// The peer lost its state and sent a stateless reset (RFC 9000 §10.3).
    StatelessReset,
    /// The two ends have no version in common (RFC 9000 §6.2).
    VersionMismatch,
}

/// The connection is closed. Only packets with CONNECTION_CLOSE may follow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionClosed {
    /// True if the peer closed the connection.
    pub by_peer: bool,
    /// The cause of the close.
    pub cause: CloseCause,
    /// A reason phrase for humans. Bytes in the peer's phrase that are not UTF-8 were replaced.
    pub reason: String,
}

/// One end is addressed by a new connection ID (RFC 9000 §5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionIdUpdated {
    /// True if the ID addresses the peer, false if it addresses this end.
    pub of_peer: bool,
    /// The previous ID; `None` for the first one.
    pub old: Option<ConnectionId>,
    /// The ID in use from now on.
    pub new: ConnectionId,
}

/// The connection changed its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateChanged {
    /// The previous state; `None` for a new connection.
    pub old: Option<&'static str>,
    /// The new state: `handshaking`, `complete`, `confirmed`, `closing`, `draining` or `drained`.
    pub state: &'static str,
}

/// An event in the lifecycle of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathState {
    /// Path validation started: the first PATH_CHALLENGE frame probes the peer's address (RFC 9000
    /// §8.2). [`ProbingSuccessful`](Self::ProbingSuccessful) or
    /// [`ProbingAbandoned`](Self::ProbingAbandoned) follows, unless the connection ends before.
    /// Repeated challenges are not reported, and neither is the second part of a validation, which
    /// verifies the size of datagrams.
    ProbingStarted,
    /// Path validation succeeded: the peer answered a PATH_CHALLENGE.
    ProbingSuccessful,
    /// Path validation failed: no answer arrived in time, or it was abandoned earlier. A path that was
    /// validated before may stay in use.
    ProbingAbandoned,
    /// The connection moved to this path, validated or not (RFC 9000 §9.3).
    MigrationStarted,
    /// The path in use was validated. Reported once for each migration, and immediately if the path
    /// was validated before.
    MigrationComplete,
    /// The path in use did not belong to the peer, so the connection moved back to this one
    /// (RFC 9000 §9.3.2).
    MigrationAbandoned,
}

/// A path was probed, migrated to or abandoned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathUpdated {
    /// The step of validation or migration.
    pub state: PathState,
    /// The addresses of the path.
    pub path: FourTuple,
}

/// Several consecutive probes on the path in use were not acknowledged, or a packet was
/// acknowledged after that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathSilenceUpdated {
    /// True if acknowledgements stopped, false if they resumed.
    pub is_silent: bool,
    /// Number of consecutive probe timeouts; 0 if acknowledgements resumed.
    pub probe_timeouts: u32,
}

/// The size of full datagrams changed (RFC 8899).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MtuUpdated {
    /// The previous UDP payload size in bytes.
    pub old: u16,
    /// The new UDP payload size in bytes.
    pub new: u16,
    /// True if the path MTU search is complete for now.
    pub done: bool,
}

/// An optional feature of packets that a path may drop without an error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PathFeature {
    /// Batches that segmentation offload (GSO) splits into datagrams.
    Batches,
    /// ECN marks (RFC 9000 §13.4).
    EcnMarks,
    /// The cleared QUIC bit (RFC 9287).
    ClearedQuicBit,
}

/// An optional feature of packets was disabled on the path in use, because packets with it were lost
/// while others arrived, or it was enabled again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathFeatureUpdated {
    /// The feature that was disabled or enabled.
    pub feature: PathFeature,
    /// True if packets use it again, false if it was disabled.
    pub is_used: bool,
}
