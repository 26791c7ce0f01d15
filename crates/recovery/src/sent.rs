//! What is remembered of one packet.

use courser_base::Time;

/// What is remembered of a sent packet. `F` is the caller's record of the frames in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent<F> {
    /// When it was sent.
    pub time: Time,
    /// Its size in bytes, as congestion control counts it.
    pub size: u16,
    /// The path it was sent on, in the caller's numbering: a packet of an old path must not
    /// move the round-trip time and the window of the new one (RFC 9000 §9.4).
    pub path: u32,
    /// What [`DeliveryRate::on_sent`](crate::DeliveryRate::on_sent) gave for its batch.
    pub snapshot: u32,
    /// Bytes in flight when it had just been sent, itself included.
    pub tx_in_flight: u32,
    /// The peer has to acknowledge it.
    pub ack_eliciting: bool,
    /// It counts towards bytes in flight.
    pub in_flight: bool,
    /// It was sent with an ECT codepoint.
    pub ecn_marked: bool,
    /// Packets in flight before it, modulo 2^32: those sent one after the other have neighbouring
    /// values. [`SentPackets::push`](crate::SentPackets::push) sets it.
    pub order: u32,
    /// It probes the path MTU: its loss says nothing about congestion (RFC 9000 §14.4).
    pub is_mtu_probe: bool,
    /// What it carried.
    pub frames: F,
}
