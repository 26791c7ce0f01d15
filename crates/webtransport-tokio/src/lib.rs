//! WebTransport over HTTP/3: sessions beside ordinary requests, on servers and clients.
//!
//! Programs use this crate as `courser::webtransport`. A [`Session`] has streams and datagrams, like a QUIC connection,
//! and shares its connection with requests and other sessions. All four dialects that browsers and libraries speak
//! are offered; [`Session::dialect`] tells which one a session uses.
//!
//! - [`enable`] announces WebTransport in the settings of a connection.
//! - [`upgrade`] accepts a session in any tower or axum service. With the feature `axum`, [`Upgrade`] is an argument of
//!   handlers.
//! - [`connect`] requests a session on a [`Client`](courser_http3_tokio::Client) of HTTP/3.
//! - [`Listener`] and [`Client`] are for programs that use nothing else of HTTP.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
//! use courser::webtransport::{self, Config, Session, SessionRequest};
//!
//! async fn chat(mut request: http::Request<h3::Body>) -> Result<http::Response<h3::Empty>> {
//!     let accepted = webtransport::upgrade(&mut request)
//!         .protocols(["chat.2", "chat.1"])
//!         .accept(|session: Session| async move {
//!             let (mut send, mut receive) = session.accept_bi().await?;
//!             tokio::io::copy(&mut receive, &mut send).await?;
//!             send.finish()?;
//!             session.closed().await;
//!             Result::Ok(())
//!         });
//!     Ok(accepted.await)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result {
//! # let (near, far) = pair().await?;
//! let mut settings = h3::Config::new(Side::Server);
//! webtransport::enable(&mut settings, Side::Server, Config::new())?;
//! let serving = h3::serve(far, tower::service_fn(chat)).config(settings);
//! tokio::spawn(serving.into_future());
//!
//! let mut settings = h3::Config::new(Side::Client);
//! webtransport::enable(&mut settings, Side::Client, Config::new())?;
//! let client = h3::Client::with_config(near, settings);
//! let request = SessionRequest::new("https://localhost/chat".parse()?);
//! let session = webtransport::connect(&client, request).await?;
//! let (mut send, mut receive) = session.open_bi().await?;
//! send.write_all(b"hello").await?;
//! send.finish()?;
//! assert_eq!(receive.read_to_end(100).await?, b"hello");
//! session.close(7, "bye");
//! # Ok(()) }
//! ```
//!
//! Every future of this crate is cancel-safe: dropping it before it is ready loses nothing, as its documentation says.
#![forbid(unsafe_code)]

mod client;
mod closing;
mod connect;
mod driver;
mod enable;
mod error;
#[cfg(feature = "axum")]
mod extractor;
mod incoming;
mod listener;
mod monitor;
mod receive_stream;
mod refusal;
mod send_group;
mod send_stream;
mod session;
mod shared;
mod stats;
mod stream_hasher;
mod table;
mod transport;
mod upgrade;

pub use courser_webtransport::{
    ApplicationCode, CloseReason, Closed, Config, Dialect, Dialects, InvalidProtocol,
    InvalidRequest, Limits, NotOffered, Origins, Protocols, SessionRequest, Unavailable,
    is_session_request,
};

pub use self::client::{Client, OpenError};
pub use self::closing::Closing;
pub use self::connect::{ConnectError, connect, request_session};
pub use self::enable::enable;
pub use self::error::{ExportError, ReadError, ReadToEndError, SessionEnded, WriteError};
pub use self::incoming::IncomingSession;
pub use self::listener::{ListenError, Listener, PendingSession};
pub use self::monitor::{Monitor, MonitorStats, RefusalKind, SessionFacts};
pub use self::receive_stream::RecvStream;
pub use self::refusal::Refused;
pub use self::send_group::SendGroup;
pub use self::send_stream::SendStream;
pub use self::session::Session;
pub use self::stats::SessionStats;
pub use self::transport::{ReceiveHalf, SendHalf, Transport};
pub use self::upgrade::{Upgrade, upgrade};
