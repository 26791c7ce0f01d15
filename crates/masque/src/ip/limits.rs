//! Limits of tunnels for IP packets.

use std::time::Duration;

/// Ranges of a ROUTE_ADVERTISEMENT (limit K627).
pub const RANGES: usize = 256;

/// Addresses of an ADDRESS_REQUEST (limit K627).
pub const REQUESTS: usize = 16;

/// Addresses of an ADDRESS_ASSIGN (limit K627), with the answers to requests.
pub const ADDRESSES: usize = 32;

/// Request IDs of a tunnel, which an end has to remember (limit K628).
pub const REQUEST_IDS: usize = 256;

/// Extension headers of an IPv6 packet that are walked (limit K629).
pub const EXTENSION_HEADERS: usize = 8;

/// ICMP errors of a tunnel per second (limit K630).
pub const ICMP_RATE: u32 = 100;

/// ICMP errors of a tunnel at a time (limit K630).
pub const ICMP_BURST: u32 = 50;

/// Time until an address that was given back is given to another client (limit K631).
pub const REST: Duration = Duration::from_secs(60);

/// Addresses that rest at a time (limit K631). While there are as many, clients get none that was never assigned.
pub const MAX_RESTING: usize = 65_536;

/// The smallest MTU of a link that carries IPv6, in bytes (RFC 8200 §5).
pub const SMALLEST_MTU: usize = 1280;

/// The longest IP packet, in bytes: an IPv6 packet with 65 535 bytes behind its header.
pub const LONGEST_PACKET: usize = 65_575;
