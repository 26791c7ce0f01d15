//! From frames to protected bytes.

pub mod packet_builder;
pub mod transmit;
