//! HTTP/3 (RFC 9114) on a [`Connection`](courser_quic::Connection), with the Rust ecosystem's types.
//!
//! Requests and responses are those of the [`http`] crate, bodies are [`http_body::Body`], and a
//! server is any [`tower_service::Service`]. A service written for hyper runs here unchanged.
//!
//! - [`serve`] answers the requests of one connection with a service.
//! - [`Client`] sends requests on one connection.
//! - [`Client::connect`] and [`upgrade`] turn a CONNECT into a stream, for WebSocket (RFC 9220) and
//!   similar protocols. [`Capsules`] and [`Datagrams`] carry the messages of such protocols
//!   (RFC 9297).
//! - [`Interim`] and [`OnInterim`] send and receive interim responses, such as 103 (Early Hints).
//! - [`ServerConnection`] returns requests one by one, for servers without a service.
//!
//! Field sections are compressed with a dynamic table in both directions (RFC 9204). Responses are
//! sent in the order of their priority (RFC 9218). Bodies are streamed in both directions with
//! back-pressure: a body that is not read is not received beyond its flow-control window.
//!
//! ```
//! # mod courser { pub use courser_quic::*; pub use courser_http3_tokio as h3; }
//! use bytes::Bytes;
//! use courser::{ClientConfig, Endpoint, Identity, ServerConfig, h3};
//! use http::{Request, Response};
//! use http_body_util::{BodyExt, Full};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let identity = Identity::dev()?;
//! let config = ServerConfig::with_identity(&identity)?.alpn([h3::ALPN]);
//! let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
//! let address = server.local_addr()?;
//! tokio::spawn(async move {
//!     while let Some(incoming) = server.accept().await {
//!         let connection = incoming.await?;
//!         let service = tower::service_fn(|request: Request<h3::Body>| async move {
//!             let text = format!("you asked for {}", request.uri().path());
//!             Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from(text))))
//!         });
//!         tokio::spawn(async move { h3::serve(connection, service).await });
//!     }
//!     Ok::<(), courser::ConnectionError>(())
//! });
//!
//! let endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
//! let config = ClientConfig::with_roots([identity.certificate()])?.alpn([h3::ALPN]);
//! let connection = endpoint.connect_with(config, address, "localhost")?.await?;
//! let client = h3::Client::new(connection);
//! let request = Request::get("https://localhost/here").body(h3::Empty::new())?;
//! let response = client.send(request).await?;
//! assert_eq!(response.status(), 200);
//! let body = response.into_body().collect().await?.to_bytes();
//! assert_eq!(body, "you asked for /here");
//! # Ok(()) }
//! ```

mod answering;
mod body;
mod capsules;
mod client;
mod datagrams;
mod driver;
mod error;
mod failure;
mod first_poll;
#[doc(hidden)]
pub mod hooks;
mod http_service;
mod incoming;
mod interim;
mod on_interim;
mod outgoing;
mod priority;
mod respond;
mod serve;
mod server;
mod service;
mod settings;
mod shared;
mod slot;
mod unresolved;
mod upgrade;

pub use courser_http3::{Capsule, Code, Config, FieldLimits, Priority, Protocol, Settings};

pub use self::body::{Body, Empty};
pub use self::capsules::{Capsules, Received};
pub use self::client::Client;
pub use self::datagrams::{DatagramError, Datagrams};
pub use self::error::Error;
pub use self::failure::Origin;
pub use self::http_service::HttpService;
pub use self::interim::{Interim, InterimError, InterimOutcome};
pub use self::on_interim::OnInterim;
pub use self::respond::Respond;
pub use self::serve::{Serve, serve};
pub use self::server::ServerConnection;
pub use self::unresolved::Unresolved;
pub use self::upgrade::{OnUpgrade, Upgraded, upgrade};

/// The ALPN protocol name of HTTP/3 (RFC 9114 §3.1).
pub const ALPN: &str = "h3";
