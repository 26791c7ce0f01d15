//! IP proxies without a transport: CONNECT-IP (RFC 9484).
//!
//! - A [`Scope`] is what a request asks for, and a [`Template`] carries it in a URI. [`request`] has the messages.
//! - A [`Capsule`] assigns addresses, requests them, or advertises [`Routes`].
//! - A [`Pool`] has the addresses that a proxy assigns.
//! - An [`End`] is the state of one end of a tunnel. It judges the packets of both directions.
//! - A [`Filter`] judges destinations by the policy of a proxy.
//! - [`packet`] reads headers of packets, and [`icmp`] builds errors about them.
//!
//! Both ends of a tunnel, from an assignment to a packet:
//!
//! ```
//! use courser_base::Side;
//! use courser_masque::ip::{AssignedAddress, Capsule, End, Routes, icmp};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (mut client, mut proxy) = (End::new(Side::Client), End::new(Side::Server));
//! let gift = proxy.assign(vec![AssignedAddress::unasked("10.89.0.2/32".parse()?)], &[]);
//! let routes = proxy.advertise(Routes::all(true, false));
//! for capsule in [gift, routes] {
//!     let mut value = Vec::new();
//!     capsule.encode(&mut value);
//!     client.on_capsule(Capsule::decode(capsule.kind(), &value)?)?;
//! }
//! assert_eq!(client.assigned(), ["10.89.0.2/32".parse()?]);
//!
//! let ping = icmp::echo_request("10.89.0.2".parse()?, "192.0.2.1".parse()?, b"who").ok_or("two versions")?;
//! assert!(client.judge_outgoing(&ping).is_ok());
//! assert!(proxy.judge_incoming(&ping).is_ok());
//! let spoofed = icmp::echo_request("10.89.0.3".parse()?, "192.0.2.1".parse()?, b"who").ok_or("two versions")?;
//! assert!(proxy.judge_incoming(&spoofed).is_err());
//! # Ok(()) }
//! ```

pub mod capsule;
mod checksum;
mod end;
mod errors;
mod filter;
pub mod icmp;
mod judge;
pub mod limits;
mod link_echo;
pub mod packet;
mod pool;
mod range;
pub mod request;
mod scope;
mod template;

pub use self::capsule::{AssignedAddress, Capsule, CapsuleError, RequestedAddress};
pub use self::end::{End, Event};
pub use self::errors::IcmpLimit;
pub use self::filter::Filter;
pub use self::judge::{Reason, Rejected};
pub use self::packet::Header;
pub use self::pool::Pool;
pub use self::range::{AddressRange, InvalidRange, Routes};
pub use self::scope::{Destination, InvalidScope, Scope};
pub use self::template::{Mismatch, Template};
