//! IP tunnels as networks of a system: the parts behind `courser tunnel` and `courser proxy --ip`.
//!
//! - [`run`] keeps a tunnel to a proxy, and with it a TUN device, addresses, routes, rules and name servers. All of them
//!   are taken back when its future ends or is dropped.
//! - [`check`] connects and returns the [`Plan`] without changing anything.
//! - [`serve_ip`] is the network of a proxy.
//!
//! The crate names no flags and prints nothing: it reports [`Event`]s.

// Plans are made and tested everywhere.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg(target_os = "linux")]
mod client;
mod config;
#[cfg(target_os = "linux")]
mod dns;
mod event;
mod failure;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod machine;
mod plan;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod system;
#[cfg(not(target_os = "linux"))]
mod unsupported;

pub use config::{Config, Wishes, template};
pub use event::Event;
pub use failure::Failure;
pub use plan::Plan;

#[cfg(target_os = "linux")]
pub use client::{check, run};
#[cfg(target_os = "linux")]
pub use serve::{IpNetwork, ip_transport, serve_ip};
#[cfg(not(target_os = "linux"))]
pub use unsupported::{check, run};
