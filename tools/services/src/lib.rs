//! Tower services for HTTP servers.
//!
//! - [`Proxy`] forwards requests to an upstream server.
//! - [`Recorder`] records each request of a [`Site`] in an [`AccessLog`] and in [`Metrics`].
//! - [`listing::answer`] lists a folder as a page or as JSON.
//! - [`admin`] serves health, readiness, metrics and a live page on a separate address.
//! - [`AddressLists`] are files of blocked and allowed addresses, which a [`ListWatch`] reloads when they
//!   change.
//! - [`release_memory_of_bursts`] returns the memory of a burst of clients to the system.
//! - [`read_server_ids`] reads the connection ID settings of a server behind a load balancer.
//! - [`webtransport::Echo`] answers sessions of WebTransport, with a page that tests them in a browser.
//! - [`forward::Forward`] is a forward proxy: CONNECT, CONNECT-UDP and `http` URLs.
//! - [`Site`] combines them: files or an upstream server, compressed and recorded.
//!
//! The services accept requests with the body of [`courser::serve`], and can be wrapped by axum and other
//! layers.
//! Files are served by [`courser::files`].
//!
//! ```no_run
//! use std::path::Path;
//! use std::time::Duration;
//!
//! use courser::server::Certificates;
//! use courser_services::{AccessLog, Backend, LogFormat, Proxy, ProxyTimes, Recorder, Site};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let backend = Backend::parse("http://localhost:8080")?;
//! let proxy = Proxy::new(
//!     backend,
//!     ProxyTimes {
//!         connect: Duration::from_secs(5),
//!         response: Duration::from_secs(60),
//!         body: Duration::from_secs(300),
//!     },
//! );
//! let (log, writer) = AccessLog::open(LogFormat::Combined, None, |warning| eprintln!("{warning}"))?;
//! let recorder = Recorder {
//!     log: Some(log.clone()),
//!     metrics: None,
//! };
//! let certificates = Certificates::pem_files(Path::new("cert.pem"), Path::new("key.pem"))?;
//! let own = log.clone();
//! courser::serve(("0.0.0.0", 443), certificates)
//!     .on_own_response(move |it| own.record_own(it))
//!     .interim_responses(true)
//!     .service(Site::Proxy(Box::new(proxy)).into_service(false, recorder))
//!     .await?;
//! log.end(&writer, Duration::from_secs(5));
//! # Ok(())
//! # }
//! ```
//!
//! # Protection against clients
//!
//! Text from clients cannot end a line or field of the access log, create a series of the metrics, or write HTML
//! into listings. The log with its queue is bounded (limit K106), and so are listings. A request whose target
//! and Host field name different hosts, or that has two Host fields, is not forwarded. The admin endpoints
//! refuse unknown hosts, because a web page can make its own name resolve to this machine.

mod access_log;
mod address_list;
pub mod admin;
mod body;
#[cfg(test)]
mod browser;
mod bursts;
mod client_closed;
mod exchange;
pub mod forward;
pub mod listing;
mod metrics;
mod plain_listener;
mod plain_stream;
mod proxy;
mod record;
mod request_id;
mod server_ids;
mod site;
pub mod webtransport;

pub use self::access_log::{AccessLog, LogFormat, Writer};
pub use self::address_list::{AddressLists, ListError, ListEvent, ListKind, ListWatch};
pub use self::admin::open_files_limit;
pub use self::body::{Body, BoxError};
pub use self::bursts::release_memory_of_bursts;
pub use self::metrics::{Metrics, MetricsSources};
pub use self::plain_listener::PlainListener;
#[cfg(feature = "fuzzing")]
pub use self::proxy::fuzzing;
pub use self::proxy::{
    Backend, FIELD_RULES, FieldAction, FieldRule, Proxy, ProxyLimits, ProxyTimes, SessionBackend,
    SessionProxy, SessionProxyStats, TcpConnector, UpgradeProtocol, UpstreamStats,
};
pub use self::record::Recorder;
pub use self::server_ids::{ServerIdsError, read_server_ids};
pub use self::site::{Site, SiteService};
