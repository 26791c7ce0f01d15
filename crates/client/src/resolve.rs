//! Resolution of names to addresses and HTTPS records.

#[cfg(feature = "dns")]
mod dns;
#[cfg(feature = "dns")]
mod over_https;
mod service;
mod system;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use courser_base::ScopedIp;

#[cfg(feature = "dns")]
pub use self::dns::DnsResolver;
pub use self::service::ServiceRecord;
pub use self::system::SystemResolver;

/// The future of a lookup.
pub type Resolving<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

/// Resolves host names for a client.
///
/// The client requests addresses and services concurrently. Once it has addresses, it waits at most the
/// resolution delay of 50 ms for services.
///
/// ```
/// # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
/// use std::net::Ipv4Addr;
///
/// use courser::client::{Resolve, Resolving, ScopedIp};
///
/// struct OnlyHere;
///
/// impl Resolve for OnlyHere {
///     fn addresses(&self, _host: &str) -> Resolving<Vec<ScopedIp>> {
///         Box::pin(async { Ok(vec![Ipv4Addr::LOCALHOST.into()]) })
///     }
/// }
/// ```
pub trait Resolve: Send + Sync + 'static {
    /// Returns the addresses of a host in order of preference. An empty list counts as an error.
    ///
    /// `IpAddr` and `SocketAddr` convert to [`ScopedIp`]. Link-local addresses, such as those found by multicast
    /// DNS, need their zone, because they are unreachable without it.
    fn addresses(&self, host: &str) -> Resolving<Vec<ScopedIp>>;

    /// Returns the HTTPS records (RFC 9460) of an origin in order of preference. None by default.
    fn services(&self, host: &str, port: u16) -> Resolving<Vec<ServiceRecord>> {
        let _ = (host, port);
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// Time to wait for further results after the first addresses (draft-ietf-happy-happyeyeballs-v3 §9, Resolution
/// Delay).
pub(super) const RESOLUTION_DELAY: Duration = Duration::from_millis(50);
