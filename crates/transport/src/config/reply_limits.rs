//! Limits on replies without a connection.

/// Rates of packets that are sent without a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplyLimits {
    /// Packets per second to the addresses of one /24 (IPv4) or /56 (IPv6).
    pub per_prefix: u32,
    /// Packets per second to all addresses.
    pub overall: u32,
}

impl ReplyLimits {
    /// Limits for stateless resets (limit K18).
    ///
    /// Each reset is shorter than the datagram that it answers, so that reflection gains nothing.
    /// After a crash, the peers behind one address are reset at this rate, and the last ones detect
    /// the loss only by their idle timeout.
    pub const STATELESS_RESET: Self = Self {
        per_prefix: 200,
        overall: 2_000,
    };
    /// Limits for Version Negotiation, Retry and refusals (limit K19).
    ///
    /// Each reply is shorter than the datagram that it answers, so that reflection gains nothing.
    /// The rate of a network lets a burst of honest clients behind one address pass. The overall
    /// rate bounds the CPU time: a Retry costs a few microseconds.
    pub const HANDSHAKE: Self = Self {
        per_prefix: 10_000,
        overall: 40_000,
    };
}
