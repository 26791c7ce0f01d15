//! Timers of a connection.

/// A reason for which a connection must be woken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Timer {
    /// Packets pass the time threshold of loss detection (RFC 9002 §6.1.2).
    LossDetection,
    /// A probe is due (RFC 9002 §6.2).
    Probe,
    /// An acknowledgement is due (RFC 9000 §13.2.1).
    Ack,
    /// The pacer permits the next batch (RFC 9002 §7.7).
    Pacing,
    /// The idle timeout ends the connection (RFC 9000 §10.1).
    Idle,
    /// A keep-alive is due.
    KeepAlive,
    /// A blocked sender repeats its request for credit (RFC 9000 §4.1).
    Credit,
    /// The time limit of the handshake expires.
    Handshake,
    /// A path validation needs a new challenge, or has failed (RFC 9000 §8.2).
    PathValidation,
    /// The previous receive keys are erased (RFC 9001 §6.5).
    KeyDiscard,
    /// A timer of the streams expires.
    Streams,
    /// A datagram that waits to be sent expires.
    Datagrams,
    /// A PING of the application that was delayed after many others may be sent.
    Ping,
    /// The search for larger datagrams begins on a connection that sends little (RFC 8899).
    MtuSearch,
    /// The report of a changed address may be sent (limit K284).
    Observation,
    /// An address that may be a direct path is probed, or a round of probes begins or ends.
    CandidateProbe,
    /// Closing or draining is over (RFC 9000 §10.2).
    Close,
}
