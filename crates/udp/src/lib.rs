//! UDP sockets in batches: GSO, GRO, ECN.
//!
//! One send call passes a whole batch of equal datagrams to the kernel, and one receive call
//! returns a whole batch. The fixed cost of a system call is some thirty times the cost of one more
//! datagram in it. On Linux this crate makes the calls itself (`portable/linux`); elsewhere it uses
//! `quinn-udp` (`portable/fallback`).
//!
//! - [`UdpSocket`] sends and receives; all its methods take `&self`.
//! - [`SocketGroup`] is several sockets of one address, among which datagrams are distributed.
//! - [`Transmit`] and [`Received`] are one outgoing and one received batch.
//! - [`Capabilities`] lists the abilities of this machine, with advice for its administrator.
//! - [`PacketTooBig`] is an ICMP message about a datagram that did not fit, and [`UnreachableReport`] one about a
//!   datagram that did not reach its destination.
//! - [`clock_state`] reports whether the clock of the machine is synchronized.
//! - [`default_memory_budget`] is a share of this machine's memory for an endpoint.
//! - [`release_unused_memory`] gives memory that is not in use back to the system.
//! - [`parse_ip`] and [`parse_socket_addr`] read addresses with zones, which the names of interfaces can be,
//!   and [`split_zone`] takes the zone out of a URL.
//! - `take_passed_descriptors` takes sockets that a service manager has opened, on Linux.
//! - [`classify`] classifies errors by the reaction they call for, and [`ErrorCause`] names their cause.
//!
//! This is the only crate with `unsafe` for system calls, and only in the modules named for one.

#![deny(unsafe_code)]

mod batch;
mod capabilities;
mod clock;
mod counters;
mod error;
mod group;
mod icmp;
mod memory;
#[cfg(target_os = "linux")]
mod passed;
mod portable;
mod quote;
mod socket;
mod steering;
mod too_big;
mod unreachable;
mod zone;

pub use batch::{Received, Transmit};
pub use capabilities::Capabilities;
pub use clock::ClockState;
pub use counters::{AtomicCounters, Counters, ErrorCounts};
pub use error::{
    ErrorCause, ErrorClass, classify, has_lost_descriptor, is_too_large, is_transient,
};
pub use group::{MAX_GROUP, SocketGroup};
pub use icmp::{Refused, TooBigSender};
pub use memory::default_memory_budget;
#[cfg(target_os = "linux")]
pub use passed::{PassedDescriptor, take_passed_descriptors};
pub use portable::{clock_state, release_unused_memory};
pub use quote::MAX_QUOTE;
pub use socket::{UdpSocket, bind_to_interface};
pub use steering::Steering;
pub use too_big::PacketTooBig;
pub use unreachable::{UnreachableReport, unreachable_cause};
pub use zone::{parse_ip, parse_socket_addr, split_zone};

/// Length of a receive buffer that no batch can overflow.
///
/// The UDP length field ends at 65,535, and the kernel never merges more than 64 KiB.
pub const RECEIVE_BUFFER_LEN: usize = 65_536;

/// The largest payload of one send call in bytes: 65,535 less the IPv4 and UDP headers.
///
/// The limit also applies to a whole batch, because the kernel first builds it as one datagram.
/// IPv6 allows 20 bytes more; a common limit keeps batches equal.
pub const MAX_BATCH_LEN: usize = 65_507;
