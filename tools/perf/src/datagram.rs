//! Measures loss, reordering and jitter of DATAGRAM frames (RFC 9221).
//!
//! A measurement has one stream, on which both ends send lines of JSON ([`message`]), and datagrams that
//! carry a number and the time of their departure ([`header`]). The receiving end counts them
//! ([`arrivals`]).

mod arrivals;
mod client;
mod flow;
mod header;
mod message;
mod outcome;
mod server;

pub(crate) use self::client::{Shape, check_version, measure};
pub(crate) use self::message::{DATAGRAM_REQUEST, VERSION};
pub use self::outcome::{DatagramFlow, Datagrams};
pub(crate) use self::server::serve;
