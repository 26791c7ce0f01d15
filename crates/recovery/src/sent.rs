//! The properties of a sent packet.

use courser_base::Time;

/// A sent packet. `F` is the caller's list of its frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent<F> {
    /// The time at which the packet was sent.
    pub time: Time,
    /// The size in bytes, as congestion control counts it.
    pub size: u16,
    /// The path on which the packet was sent, in the caller's numbering. A packet of an old path
    /// must not affect the round-trip time and the window of the new one (RFC 9000 §9.4).
    pub path: u32,
    /// The snapshot number that [`DeliveryRate::on_sent`](crate::DeliveryRate::on_sent) returned.
    pub snapshot: u32,
    /// Bytes in flight after the packet was sent, its own included.
    pub tx_in_flight: u32,
    /// True if the peer must acknowledge the packet.
    pub ack_eliciting: bool,
    /// True if the packet counts towards bytes in flight.
    pub in_flight: bool,
    /// True if the packet was sent with an ECT codepoint.
    pub ecn_marked: bool,
    /// True if the packet was sent in a batch of datagrams and was not the first of it.
    pub follows_in_batch: bool,
    /// True if the packet was sent with a cleared QUIC bit (RFC 9287).
    pub quic_bit_cleared: bool,
    /// The count of in-flight packets sent before, modulo 2^32: packets sent one after the other
    /// have consecutive values. Set by [`SentPackets::push`](crate::SentPackets::push).
    pub order: u32,
    /// True for a probe of the path MTU, whose loss does not indicate congestion (RFC 9000 §14.4).
    pub is_mtu_probe: bool,
    /// The frames of the packet.
    pub frames: F,
}
