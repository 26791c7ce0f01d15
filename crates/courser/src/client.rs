//! An HTTP client that pools connections and chooses the protocol version.
//!
//! [`Client`] sends [`http::Request`]s over HTTP/3, HTTP/2 or HTTP/1.1. If an HTTPS record (RFC 9460) or an
//! `alt-svc` field (RFC 7838) has announced that an origin supports HTTP/3, the client races QUIC against TCP
//! and uses the connection that is established first. If TCP already serves the origin, the client opens a QUIC
//! connection in the background, and later requests use it. It remembers networks that drop UDP. HTTPS records
//! require the feature `dns`; without it the client detects HTTP/3 from `alt-svc` fields only. The features
//! `brotli` and `zstd` add these content codings to gzip and deflate.
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
//! A client is also a [`tower_service::Service`], so that layers of tower can wrap it. Each response has its
//! [`Timing`] among its extensions.
//!
//! [`tower_service::Service`]: https://docs.rs/tower-service/latest/tower_service/trait.Service.html
//!
//! A request is repeated only if that is safe: if the server reports that it was not processed, or if an idle
//! connection turns out to be closed and the method is idempotent. A [`RetryPolicy`] repeats requests after failures
//! that may pass.

#[cfg(feature = "dns")]
#[doc(inline)]
pub use courser_client::DnsResolver;
#[doc(hidden)]
pub use courser_client::fuzzing;
#[doc(inline)]
pub use courser_client::{
    Attempt, Body, Client, ClientBuilder, EarlyRequest, Error, ErrorKind, Family, FileTokenStore,
    HttpVersion, Origin, Outcome, Prepared, Proxy, ProxyFunction, Redirect, Resolve, Resolving,
    RetryPolicy, ScopedIp, ServiceRecord, SystemResolver, Timing, TlsSummary, TlsVersions,
    TokenFileError, TokenFileReason, Transport,
};
