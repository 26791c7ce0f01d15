//! Building of packets: from frames to protected bytes.

pub mod packet_builder;
pub mod transmit;
