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
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new()?;
//! let response = client.get("https://example.org/").await?.error_for_status()?;
//! println!("{} over {:?}", response.status(), response.version());
//! println!("{}", response.text().await?);
//! # Ok(()) }
//! ```
//!
//! Requests are built with [`Client::get`] and similar methods, or are any [`http::Request`] for [`Client::send`]. The
//! features `json`, `form`, `cookies` and `charset` add JSON, queries and forms, a cookie jar, and texts in charsets
//! other than UTF-8.
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
#[cfg(feature = "cookies")]
#[doc(hidden)]
pub use courser_client::cookie_parts;
#[doc(hidden)]
pub use courser_client::fuzzing;
#[doc(inline)]
pub use courser_client::multipart;
#[doc(inline)]
pub use courser_client::{
    Attempt, Body, BytesStream, Client, ClientBuilder, CookieStore, EarlyRequest, Error, ErrorKind,
    Family, FileTokenStore, History, Hop, HttpVersion, IntoUrl, Origin, Outcome, Prepared, Proxy,
    ProxyFunction, Redirect, RedirectAction, RedirectAttempt, RedirectPolicy, RequestBuilder,
    RequestTimeout, Resolve, Resolving, Response, RetryPolicy, ScopedIp, ServiceRecord,
    SystemResolver, Timing, TlsSummary, TlsVersions, TokenFileError, TokenFileReason, Transport,
    Url,
};
#[doc(no_inline)]
pub use courser_client::{Bytes, http};
#[cfg(feature = "cookies")]
#[doc(inline)]
pub use courser_client::{Cookie, CookieJar, RefusedCookie};
