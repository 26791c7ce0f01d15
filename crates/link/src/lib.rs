//! Links made of stacked effects: rate, delay, loss, queues and other properties of real paths.
//!
//! A [`Link`] is one direction of a path, without endpoints. It has no clock: callers pass the time.
//! Its behaviour follows from the [`LinkSpec`], the seed, and the packets with the times at which they
//! were sent.
//!
//! ```
//! use courser_base::{Ecn, Time};
//! use courser_link::{Link, LinkSpec, Packet};
//!
//! let spec: LinkSpec = "10mbit,40ms,queue=25p".parse()?;
//! let mut link = Link::new(&spec, 7);
//! link.send(Time::ZERO, Packet {
//!     source: ([10, 0, 0, 1], 1).into(),
//!     destination: ([10, 0, 0, 2], 2).into(),
//!     ecn: Ecn::Ect0,
//!     payload: vec![0; 1222].into(),
//! });
//! // 1250 bytes with headers take 1 ms at 10 Mbit/s, and then the delay of 40 ms.
//! assert!(link.poll(Time::from_nanos(40_999_999)).is_none());
//! assert!(link.poll(Time::from_nanos(41_000_000)).is_some());
//! # Ok::<(), courser_link::SpecError>(())
//! ```
//!
//! The link is the network of all tests and models of the workspace: of the congestion controllers,
//! of the transport, of the simulator, and of the emulator, which gives it real time.

#![forbid(unsafe_code)]

mod blackhole;
mod bottleneck;
mod codel;
mod flight;
mod gilbert;
mod histogram;
mod hop;
mod link;
mod loss;
mod nat;
mod packet;
mod payload;
mod policer;
mod probability;
pub mod quantity;
mod queue;
mod remark;
pub mod seed;
mod spec;
mod stats;
pub mod suggest;
mod transmitter;

pub use crate::histogram::Histogram;
pub use crate::link::Link;
pub use crate::nat::Nat;
pub use crate::packet::{Packet, TooBig};
pub use crate::probability::Probability;
pub use crate::spec::{
    Aqm, Blackhole, Change, DropList, DuplexSpec, Gilbert, LinkSpec, Mtu, NatSpec, Policer,
    QueueLimit, Remark, RemarkTo, Reorder, Repeated, SpecError, Step,
};
pub use crate::stats::{Dropped, LinkStats, QueueState};
