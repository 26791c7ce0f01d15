//! A server for tower services over HTTP/3, HTTP/2 and HTTP/1.1.
//!
//! [`serve`] takes an address, a certificate and any [`tower_service::Service`], such as an axum router or
//! layers of tower-http. It serves HTTP/3 over QUIC, and HTTP/2 and HTTP/1.1 over TLS and TCP on the same port,
//! where each response announces HTTP/3 (`Alt-Svc`).
//!
//! ```no_run
//! # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
//! use axum::{Router, routing::get};
//! use courser::{Identity, serve, server::shutdown_signal};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), courser::server::Error> {
//! let app = Router::new().route("/", get(|| async { "hello\n" }));
//! let drained = serve("[::]:4433", Identity::dev()?).drain(shutdown_signal()).service(app).await?;
//! println!("{drained}");
//! # Ok(()) }
//! ```
//!
//! # Extensions and bodies of requests
//!
//! The extensions of a request contain a [`Peer`] with its address, protocol and TLS parameters. The body is a
//! [`Body`], the same type for all protocols. `Upgrade` works over HTTP/1.1 as it does with hyper. Interim
//! responses are sent through an [`h3::Interim`](courser_http3_tokio::Interim) if [`Server::interim_responses`]
//! is on.
//!
//! Requests have exactly one valid host, over every protocol: the server responds to others with 400 (Bad Request).
//! [`authority`] returns it. Cookies that a client has split are joined.
//!
//! [`Server::extension`] adds further values to the extensions of requests, and `Server::connect_info` (feature `axum`)
//! those for axum's `ConnectInfo<SocketAddr>`. `Server::metrics` (feature `metrics`) counts requests and connections.
//!
//! # Panics
//!
//! A panic of the service ends one request: with 500 if there was no response, and by aborting the response otherwise,
//! over every protocol. [`Event::HandlerPanicked`] reports it.
//!
//! # Draining
//!
//! A server drains when the future of [`Server::drain`] completes or [`ServerHandle::drain`] is called.
//! [`ServerStats::ready`] becomes false, and after [`Server::ready_delay`] no more connections are accepted.
//! HTTP/3 clients receive GOAWAY twice (RFC 9114 §5.2), and so do HTTP/2 clients. HTTP/1.1 connections close
//! after their response, and responses over TCP withdraw `Alt-Svc`. Requests in flight are completed. At
//! [`Server::deadline`] the remaining ones are aborted. [`Drained`] contains the counts.
//!
//! Dropping the future aborts all connections at once. The sockets are closed when the server has ended, whatever
//! handles are left.

// Displays the feature that each item requires.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod alt_svc;
mod builder;
mod cause;
mod certificates;
/// Fields of certificates (RFC 5280 §4.1) for diagnostics.
pub mod certificate {
    pub use crate::certificates::fields::{Certificate, length_in_order};
    #[doc(hidden)]
    pub use crate::certificates::ocsp::{OcspStatus, ocsp_status};
}
mod drain;
mod error;
mod events;
mod exchange;
#[cfg(unix)]
mod give_away;
mod handle;
mod handover;
mod http2;
mod limits;
mod listen;
#[cfg(feature = "metrics")]
mod metrics;
mod own_response;
mod peer;
mod phase;
mod quic;
mod rare;
mod redirect;
mod requests;
mod run;
mod signal;
mod site;
mod stats;
mod tally;
mod tasks;
mod tcp;
mod tls;
mod tunnel_reset;

pub use self::alt_svc::AltSvc;
pub use self::builder::{Server, serve};
pub use self::cause::Cause;
#[cfg(feature = "acme")]
pub use self::certificates::{Acme, DnsChange, DnsRecord};
pub use self::certificates::{CertificateFacts, Certificates};
pub use self::drain::Drained;
pub use self::error::Error;
pub use self::events::Event;
pub use self::exchange::body::{Body, BodyError};
pub use self::exchange::control_data::{AbsoluteTarget, authority};
pub use self::exchange::early_data::{Timely, TimelyFuture, TooEarly};
pub use self::handle::ServerHandle;
pub use self::handover::ListeningSockets;
pub use self::limits::Limits;
pub use self::limits::pace::{BodyRate, TooSlow};
pub use self::limits::read_monitor::ReadRate;
pub use self::limits::refusals::Refusals;
pub use self::own_response::OwnResponse;
pub use self::peer::{Peer, Protocol, TlsFacts};
pub use self::run::{Bound, Serving};
pub use self::signal::shutdown_signal;
pub use self::stats::{
    AcmeStats, ConnectionSummary, DrainProgress, ListenerStats, ProtocolStats, ServerStats,
    ShardStats, TcpStats,
};
pub use self::tally::QuicTotals;
pub use self::tunnel_reset::TunnelReset;
pub use courser_http3_tokio::EarlyData;
