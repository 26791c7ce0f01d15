//! Requests that may be replayed (RFC 8470).

/// Marks requests that arrived in early data (0-RTT) before the handshake was complete, in their extensions. An
/// attacker may have replayed them (RFC 9001 §9.2).
///
/// A connection has such requests if it was created with [`Connecting::early`](courser_quic::Connecting::early)
/// and its server accepts early data. Requests that intermediaries have marked with `Early-Data: 1` do not have
/// this extension.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EarlyData;
