//! Requests that may be replayed. RFC 8470.

/// An extension of requests that arrived in early data (0-RTT) while the handshake was not complete: an
/// attacker may have replayed them. RFC 9001 §9.2.
///
/// A connection carries such requests if it comes from
/// [`Connecting::early`](courser_quic::Connecting::early) and its server accepts early data. Those
/// that intermediaries have marked with `Early-Data: 1` have no extension.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EarlyData;
