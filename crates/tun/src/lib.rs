//! TUN devices in batches: IP packets between a program and the network of its system, on Linux.
//!
//! One read returns up to 64 KiB of a TCP connection as one super-packet, which this crate cuts into packets of the
//! device's MTU, and one write passes a run of packets of one flow to the system. A system call for each packet costs
//! several times as much as the packet.
//!
//! - [`Device`] is a device; [`Device::read_many`] and [`Device::write_many`] never block and take `&self`.
//! - [`split`] cuts a super-packet, as its [`Header`] says, and [`Joiner`] finds runs of packets that may be joined.
//!   Both are functions of bytes, without a device.
//! - `network` sets addresses, routes and rules, with the feature `network`.
//!
//! Outside of Linux the crate compiles, and [`DeviceBuilder::open`] returns an error.
//!
//! `unsafe` is in one module only, which is named for the system call `ioctl`.

#![deny(unsafe_code)]
// What only a device needs is compiled and tested everywhere.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

mod batch;
mod checksum;
mod device;
mod error;
mod header;
mod join;
#[cfg(all(feature = "network", target_os = "linux"))]
pub mod network;
mod packet;
mod platform;
mod split;

pub use batch::{Offloads, ReadBuffer, WriteBuffer, Written};
pub use device::{Device, DeviceBuilder};
pub use error::OpenError;
pub use header::{Header, Segmentation};
pub use join::{Joiner, MAX_RUN, Run};
pub use split::{MAX_SEGMENTS, Malformed, split};

/// The largest IP packet in bytes, and therefore the largest super-packet.
pub const MAX_PACKET: usize = 65_535;
