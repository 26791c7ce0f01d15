//! UDP and IP proxies over HTTP (MASQUE) without a transport: CONNECT-UDP (RFC 9298) and CONNECT-IP (RFC 9484) over HTTP
//! Datagrams and capsules (RFC 9297).
//!
//! The crate decides, and the caller acts: it owns the streams and sockets, resolves names and reads the clock. No type has
//! a clock, a socket or a task, and all memory is bounded.
//!
//! - A [`Template`] makes the URI of a request from a [`Target`] on a client, and finds the target in a path on a proxy.
//! - [`request`] has the fields of requests and responses of all three versions of HTTP.
//! - A [`Policy`] judges the addresses of a target after its name is resolved.
//! - [`ProxyError`] is the reason of a refusal, as the field Proxy-Status (RFC 9209) carries it.
//! - [`datagram`] has the payloads of HTTP Datagrams, and [`Contexts`] their context IDs.
//! - [`Allowance`] bounds the bytes to a target that has never answered.
//! - [`ip`] has what IP proxies need beside.
//!
//! A request over HTTP/3, as both ends see it:
//!
//! ```
//! use bytes::Bytes;
//! use courser_masque::{Carrier, Policy, Template, datagram, request};
//! use http::StatusCode;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The client.
//! let template = Template::of_proxy("proxy.example:4433")?;
//! let wish = request::connect_udp(&template, &"192.0.2.7:443".parse()?, Carrier::Http3)?;
//! assert_eq!(wish.uri().path(), "/.well-known/masque/udp/192.0.2.7/443/");
//!
//! // The proxy. This address is for documentation, so that the policy allows it by a rule.
//! let paths = Template::path(Template::WELL_KNOWN)?;
//! let target = request::check(&wish, Some(request::UPGRADE_TOKEN), &paths)?;
//! let policy = Policy::public_only().allow("192.0.2.0/24".parse()?, 443..=443);
//! let address = policy.judge("192.0.2.7:443".parse()?)?;
//! assert_eq!(address.port(), target.port().get());
//! let answer = request::accept(Carrier::Http3);
//! assert_eq!(answer.status(), StatusCode::OK);
//!
//! // Datagrams, both ways.
//! request::check_response(Carrier::Http3, &answer)?;
//! let sent = datagram::encode(b"a UDP payload");
//! assert_eq!(datagram::decode(sent)?, datagram::Decoded::Udp(Bytes::from("a UDP payload")));
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

mod addresses;
mod allowance;
mod contexts;
pub mod datagram;
pub mod ip;
mod limits;
mod messages;
mod names;
mod policy;
mod prefix;
mod proxy_error;
mod refusal;
pub mod request;
mod target;
mod template;

pub use self::allowance::Allowance;
pub use self::contexts::{ContextError, Contexts};
pub use self::limits::Limits;
pub use self::names::{InvalidNames, Names};
pub use self::policy::{InvalidTranslator, Policy, Prohibited, WellKnown};
pub use self::prefix::{InvalidPrefix, Prefix};
pub use self::proxy_error::{ProxyError, ReportedError};
pub use self::request::Carrier;
pub use self::target::{Host, InvalidTarget, Target};
pub use self::template::{InvalidTemplate, Mismatch, Template};
