//! Events of the sockets of an endpoint, for logs.

use std::fmt;

use courser_udp::ErrorCause;

/// A call of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SocketCall {
    /// A call that sends a batch of datagrams.
    Send,
    /// A call that receives a batch of datagrams.
    Receive,
}

/// An event of a socket of an endpoint; see [`Endpoint::socket_event`](crate::Endpoint::socket_event).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SocketEvent {
    /// Calls have failed, and their datagrams are lost. Connections continue. Reported once a minute for
    /// each direction and cause, but not for probes of the path MTU that are too large and for replies of peers
    /// and routers.
    Failed {
        /// The direction of the failed calls.
        call: SocketCall,
        /// The cause, by which [`Counters`](crate::Counters) counts as well.
        cause: ErrorCause,
        /// Failures since the last event with this direction and cause.
        failures: u64,
        /// The error of the last one.
        error: String,
    },
    /// All calls have failed for seconds, or the descriptor of the socket was closed by another part of the
    /// process. A new socket on the same address has taken its place.
    Reopened {
        /// The error of the socket before.
        cause: String,
    },
    /// A socket could not be opened again. Another attempt follows.
    NotReopened {
        /// The error of the socket.
        cause: String,
        /// The error of the attempt.
        error: String,
    },
    /// A shard of the endpoint has ended with all its connections. Others continue, and the endpoint is over
    /// when the last one ends.
    Stopped {
        /// The reason why the shard has ended.
        cause: String,
    },
}

impl SocketEvent {
    /// Returns true if the other event is of the same kind, so that a log needs only one of them.
    pub(crate) fn has_same_cause_as(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Failed { call, cause, .. },
                Self::Failed {
                    call: other_call,
                    cause: other_cause,
                    ..
                },
            ) => (call, cause) == (other_call, other_cause),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl fmt::Display for SocketEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed {
                call,
                failures,
                error,
                ..
            } => {
                let verb = match call {
                    SocketCall::Send => "send",
                    SocketCall::Receive => "receive",
                };
                let times = if *failures == 1 { "time" } else { "times" };
                write!(f, "cannot {verb} datagrams, {failures} {times}: {error}")
            }
            Self::Reopened { cause } => write!(f, "opened the UDP socket again: {cause}"),
            Self::NotReopened { cause, error } => {
                write!(
                    f,
                    "cannot open the UDP socket again: {error} (after: {cause})"
                )
            }
            Self::Stopped { cause } => write!(f, "a QUIC endpoint has stopped: {cause}"),
        }
    }
}
