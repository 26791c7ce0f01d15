//! A client that keeps connections and chooses the protocol.
//!
//! [`Client`] sends [`http::Request`]s over HTTP/3, HTTP/2 or HTTP/1.1. Where an origin is known to
//! speak HTTP/3, from an HTTPS record (RFC 9460) or an `alt-svc` field (RFC 7838), QUIC is raced
//! against TCP; what is there first carries the request. Networks that drop UDP are remembered.
//! HTTPS records are asked for with the feature `dns`; without it the client learns of HTTP/3 from
//! `alt-svc` fields. The features `brotli` and `zstd` add these content codings to gzip and deflate.
//!
//! [`http::Request`]: https://docs.rs/http/latest/http/request/struct.Request.html
//!
//! ```no_run
//! use courser::Client;
//! use http_body_util::BodyExt;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new()?;
//! let response = client.get("https://example.org/").await?;
//! println!("{} over {:?}", response.status(), response.version());
//! let body = response.into_body().collect().await?.to_bytes();
//! # Ok(()) }
//! ```
//!
//! A client is also a [`tower_service::Service`], so that what was made for those can be put in
//! front of it. Each response has its [`Timing`] among its extensions.
//!
//! [`tower_service::Service`]: https://docs.rs/tower-service/latest/tower_service/trait.Service.html
//!
//! A request is sent again only when that is safe: when the server says that it was not
//! processed, or when a connection that had been idle is gone and the method is idempotent.

#[cfg(feature = "dns")]
#[doc(inline)]
pub use courser_client::DnsResolver;
#[doc(hidden)]
pub use courser_client::fuzzing;
#[doc(inline)]
pub use courser_client::{
    Attempt, Body, Client, ClientBuilder, EarlyRequest, Error, ErrorKind, Family, FileTokenStore,
    HttpVersion, Origin, Outcome, Prepared, Proxy, Redirect, Resolve, Resolving, ScopedIp,
    ServiceRecord, SystemResolver, Timing, TlsSummary, TokenFileError, TokenFileReason, Transport,
};
