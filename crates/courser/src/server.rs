//! HTTP/3, HTTP/2 and HTTP/1.1 on one port.
//!
//! [`serve`] takes an address, a certificate and any [`tower_service::Service`]: an axum router,
//! layers of tower-http, one's own. It answers HTTP/3 over QUIC, and HTTP/2 and HTTP/1.1 with TLS
//! over TCP at the same port, where each response tells clients about HTTP/3 (`Alt-Svc`).
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
//! # What a request brings
//!
//! Among its extensions is a [`Peer`]: address, protocol, what TLS agreed on. Its body is a
//! [`Body`], the same type for all protocols. `Upgrade` works over HTTP/1.1 as it does with hyper.
//! [`h3::Interim`](crate::h3::Interim) sends interim responses, if [`Server::interim_responses`] enables them.
//!
//! # How it ends
//!
//! When the future of [`Server::drain`] is ready, or [`ServerHandle::drain`] is called:
//! [`ServerStats::ready`] turns false; after [`Server::ready_delay`] no connection is accepted any
//! more; HTTP/3 clients get GOAWAY twice (RFC 9114 §5.2), so do those of HTTP/2, and HTTP/1.1
//! connections close after their response; responses over TCP take `Alt-Svc` back. What is in
//! flight is finished. After [`Server::deadline`] the rest is cut. [`Drained`] has the counts.
//!
//! Dropping the future cuts everything at once.

#[cfg(feature = "acme")]
#[doc(inline)]
pub use courser_server::Acme;
#[doc(inline)]
pub use courser_server::{
    AltSvc, Body, BodyError, BodyRate, Bound, CertificateFacts, Certificates, ConnectionSummary,
    DrainProgress, Drained, EarlyData, Error, Event, Limits, ListenerStats, Peer, Protocol,
    ProtocolStats, QuicTotals, ReadRate, Refusals, Server, ServerHandle, ServerStats, Serving,
    ShardStats, TcpStats, Timely, TimelyFuture, TlsFacts, TooEarly, TooSlow, certificate, serve,
    shutdown_signal,
};
