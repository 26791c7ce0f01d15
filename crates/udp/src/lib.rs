//! UDP sockets in batches: GSO, GRO, ECN.
//!
//! One send call hands the kernel a whole batch of equal datagrams and one receive call takes a
//! whole batch out of it, because the fixed cost of a system call is some thirty times the cost
//! of one more datagram inside it. On Linux the calls are our own (`portable/linux`); elsewhere
//! they go through `quinn-udp` (`portable/fallback`).
//!
//! - [`UdpSocket`] sends and receives; all its methods take `&self`.
//! - [`Transmit`] and [`Received`] are one batch out and one batch in.
//! - [`Capabilities`] says what this machine can do and what its administrator should change.
//! - [`PacketTooBig`] is what a router says of a datagram that did not fit.
//! - [`classify`] sorts errors by what a caller can do about them.
//!
//! This is the only crate with `unsafe`, and only in the modules named for a system call.

#![deny(unsafe_code)]

mod batch;
mod capabilities;
mod counters;
mod error;
mod icmp;
mod portable;
mod socket;
mod too_big;

pub use batch::{Received, Transmit};
pub use capabilities::Capabilities;
pub use counters::Counters;
pub use error::{ErrorClass, classify, is_too_large, is_transient};
pub use icmp::{Refused, TooBigSender};
pub use socket::UdpSocket;
pub use too_big::{MAX_QUOTE, PacketTooBig};

/// Length of a receive buffer that no batch can overflow.
///
/// A UDP length field counts to 65,535, and the kernel never merges more than 64 KiB.
pub const RECEIVE_BUFFER_LEN: usize = 65_536;

/// Most payload bytes that one send call carries: 65,535 less the IPv4 and UDP headers.
///
/// Holds for a batch as a whole too, since the kernel builds it as one datagram first.
/// IPv6 has 20 bytes more; one limit for both keeps batches the same.
pub const MAX_BATCH_LEN: usize = 65_507;
