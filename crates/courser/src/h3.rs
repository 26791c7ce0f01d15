//! HTTP/3 (RFC 9114) on a [`Connection`](crate::Connection), with the common HTTP types of Rust.
//!
//! Requests and responses are those of the [`http`] crate, bodies are [`http_body::Body`], and a
//! server is any [`tower_service::Service`], so a service for hyper needs no change.
//!
//! [`http`]: https://docs.rs/http/latest/http/
//! [`http_body::Body`]: https://docs.rs/http-body/latest/http_body/trait.Body.html
//! [`tower_service::Service`]: https://docs.rs/tower-service/latest/tower_service/trait.Service.html
//!
//! - [`serve`] answers the requests of one connection with a service.
//! - [`Client`] sends requests on one connection.
//! - [`Client::connect`] and [`upgrade`] turn a CONNECT request into a stream, for protocols such as WebSocket
//!   (RFC 9220); [`Capsules`] and [`Datagrams`] carry the messages of such protocols (RFC 9297).
//! - [`Interim`] and [`OnInterim`] send and receive interim responses, such as 103 (Early Hints).
//! - [`ServerConnection`] returns requests one by one, for programs without a service.
//! - [`Extensions`] claim settings, stream types and frame types for a protocol of the application
//!   beside HTTP, and an [`Extension`] opens and accepts its streams.
//!
//! Server push (RFC 9114 §4.6) is not supported: a client never sends MAX_PUSH_ID, so a push of a
//! server is a connection error of type `H3_ID_ERROR`, as is a CANCEL_PUSH for either end. A server
//! accepts MAX_PUSH_ID, as RFC 9114 requires, and promises nothing. A push of a client is
//! `H3_STREAM_CREATION_ERROR`, and a promise of a client `H3_FRAME_UNEXPECTED`.
//!
//! Field sections are compressed with a dynamic table in both directions (RFC 9204). Responses are sent in the
//! order of their priority (RFC 9218). Bodies are streamed in both directions with back-pressure: content that
//! the application does not read is not received.
//!
//! ```
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

#[doc(inline)]
pub use courser_http3_tokio::{
    ALPN, Body, Capsule, CapsuleReceiver, CapsuleSender, Capsules, CapsulesWait, ClaimError,
    ClaimedReceive, ClaimedStream, Client, Code, Config, DatagramError, Datagrams, EarlyData,
    Empty, Error, Extension, ExtensionFrame, Extensions, FieldLimits, FrameStream, HttpService,
    Interim, InterimError, InterimOutcome, LeadingFrames, OnInterim, OnUpgrade, Origin, Priority,
    Protocol, Received, Respond, Serve, ServerConnection, SessionCodes, SessionStreams, Settings,
    Unresolved, Upgraded, serve, upgrade,
};
