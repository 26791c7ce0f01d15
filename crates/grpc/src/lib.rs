//! gRPC over HTTP/3 for services and clients of tonic.
//!
//! tonic generates the code, encodes messages and compresses them. This crate provides what tonic's own transport
//! does, over HTTP/3 and over HTTP/2:
//!
//! - [`Channel`] is what generated clients send calls on. It resolves the name of a server, keeps a connection to each
//!   of its addresses, connects again, and distributes calls over the addresses that answer.
//! - [`ServerLayer`] enforces deadlines in a server, and tells services the address of the client; [`peer_certs`] are
//!   the client's certificates.
//! - Both convert each error to the [`Status`](tonic::Status) that gRPC defines for it; see [`code_of`].
//!
//! A server is any [`courser_server::serve`] with a generated service. The protocol is that of gRPC over HTTP/2
//! (PROTOCOL-HTTP2), which HTTP/3 leaves as it is but for error codes (gRFC G2).

// Displays the feature that each item requires.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "client")]
mod channel;
mod deadline;
#[cfg(feature = "server")]
mod server;
mod status;

#[cfg(feature = "client")]
pub use self::channel::{Backend, Channel, ChannelBuilder};
pub use self::deadline::Deadline;
#[cfg(feature = "server")]
pub use self::server::{
    RequestBody, ResponseBody, ResponseFuture, ServerLayer, ServerService, peer_certs,
};
pub use self::status::code_of;
