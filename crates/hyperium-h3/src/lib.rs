//! Implements the transport traits of hyperium's [`h3`] crate for courser's connections.
//!
//! Types have the names and structure of those in h3-quinn. A program written for h3-quinn needs
//! only other imports.
//!
//! | traits of `h3::quic` | implemented by |
//! |---|---|
//! | `Connection`, `OpenStreams` | [`Connection`] |
//! | `OpenStreams` | [`OpenStreams`], from [`Connection::opener`](h3::quic::Connection::opener) |
//! | `BidiStream`, `SendStream`, `SendStreamUnframed`, `RecvStream` | [`BidiStream`] |
//! | `SendStream`, `SendStreamUnframed` | [`SendStream`] |
//! | `RecvStream` | [`RecvStream`] |
//!
//! With the feature `datagram`, [`Connection`] also implements the traits of the `h3-datagram` crate
//! for HTTP datagrams (RFC 9297). Version 0.0.2 of that crate sends every datagram as one of the
//! connection's first request (<https://github.com/hyperium/h3/issues/345>). It receives datagrams
//! of all requests.
//!
//! courser has its own HTTP/3 in `courser::h3`, which is faster and has more features. This crate is
//! for programs that already use `h3`. Both implementations interoperate.
//!
//! ```
//! use bytes::Bytes;
//! use courser::{ClientConfig, Endpoint, Identity, ServerConfig};
//! use http::{Request, Response};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let identity = Identity::dev()?;
//! let config = ServerConfig::with_identity(&identity)?.alpn(["h3"]);
//! let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
//! let address = server.local_addr()?;
//! tokio::spawn(async move {
//!     let connection = server.accept().await.ok_or("closed")?.await?;
//!     let connection = courser_hyperium_h3::Connection::new(connection);
//!     let mut connection = h3::server::Connection::<_, Bytes>::new(connection).await?;
//!     while let Some(resolver) = connection.accept().await? {
//!         let (_request, mut stream) = resolver.resolve_request().await?;
//!         stream.send_response(Response::new(())).await?;
//!         stream.send_data(Bytes::from("hello")).await?;
//!         stream.finish().await?;
//!     }
//!     Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! });
//!
//! let endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
//! let config = ClientConfig::with_roots([identity.certificate()])?.alpn(["h3"]);
//! let connection = endpoint.connect_with(config, address, "localhost")?.await?;
//! let (mut driver, mut client) = h3::client::new(courser_hyperium_h3::Connection::new(connection)).await?;
//! let driven = tokio::spawn(async move { driver.wait_idle().await });
//! let mut stream = client.send_request(Request::get("https://localhost/").body(())?).await?;
//! stream.finish().await?;
//! assert_eq!(stream.recv_response().await?.status(), 200);
//! let mut body = stream.recv_data().await?.ok_or("no body")?;
//! assert_eq!(bytes::Buf::copy_to_bytes(&mut body, 5), "hello");
//! # drop((stream, client));
//! # driven.await?;
//! # Ok(()) }
//! ```

mod connection;
#[cfg(feature = "datagram")]
pub mod datagram;
mod error;
mod stream;

pub use courser::{self, Endpoint, VarInt};

pub use connection::{Connection, OpenStreams};
pub use stream::{BidiStream, RecvStream, SendStream};
