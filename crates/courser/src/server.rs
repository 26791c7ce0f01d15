//! HTTP/3, HTTP/2 and HTTP/1.1 on one port.
//!
//! [`serve`] takes an address, a certificate and any [`tower_service::Service`], such as an axum router, with or
//! without layers of tower-http. It serves HTTP/3 over QUIC, and HTTP/2 and HTTP/1.1 with TLS over TCP at the same
//! port. Responses over TCP announce HTTP/3 in the field `Alt-Svc`.
//!
//! [`tower_service::Service`]: https://docs.rs/tower-service/latest/tower_service/trait.Service.html
//!
//! ```no_run
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
//! A request has a [`Peer`] among its extensions: the address, the protocol, and the negotiated parameters of TLS.
//! Its body is a [`Body`], the same type for all protocols. `Upgrade` works over HTTP/1.1 as it does with hyper.
//! [`h3::Interim`](crate::h3::Interim) sends interim responses, if [`Server::interim_responses`] enables them.
//!
//! [`Server::extension`] adds further values to the extensions of requests, and `Server::connect_info` (feature `axum`)
//! those for axum's `ConnectInfo<SocketAddr>`. `Server::metrics` (feature `metrics`) counts requests and connections.
//!
//! # Panics
//!
//! A panic of the service ends one request: with 500 if there was no response, and by aborting the response otherwise,
//! over every protocol. [`Event::HandlerPanicked`] reports it.
//!
//! # Graceful shutdown
//!
//! The server drains when the future of [`Server::drain`] is ready, or when [`ServerHandle::drain`] is called:
//!
//! 1. [`ServerStats::ready`] turns false. After [`Server::ready_delay`] the server accepts no more connections.
//! 2. HTTP/3 and HTTP/2 clients get GOAWAY twice (RFC 9114 §5.2), HTTP/1.1 connections close after their response,
//!    and responses over TCP withdraw `Alt-Svc`.
//! 3. Requests in progress finish. After [`Server::deadline`] the remaining ones are cut. [`Drained`] has the
//!    counts.
//!
//! Dropping the future cuts all connections at once. The sockets are closed when the server has ended, whatever
//! handles are left.

#[doc(inline)]
pub use courser_server::{
    AbsoluteTarget, AcmeStats, AltSvc, Body, BodyError, BodyRate, Bound, Cause, CertificateFacts,
    Certificates, ConnectionSummary, DrainProgress, Drained, EarlyData, Error, Event, Limits,
    ListenerStats, ListeningSockets, OwnResponse, Peer, Protocol, ProtocolStats, QuicTotals,
    ReadRate, Refusals, Server, ServerHandle, ServerStats, Serving, ShardStats, TcpStats, Timely,
    TimelyFuture, TlsFacts, TooEarly, TooSlow, TunnelReset, authority, certificate, serve,
    shutdown_signal,
};
#[cfg(feature = "acme")]
#[doc(inline)]
pub use courser_server::{Acme, DnsChange, DnsRecord};
