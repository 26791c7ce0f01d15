//! Resolution of names to addresses and services.

#[cfg(feature = "dns")]
mod dns;
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

/// A custom way to find addresses.
///
/// The client requests addresses and services at the same time. Once it has addresses, it waits for
/// services for at most the resolution delay of 50 ms.
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
    /// Returns the addresses of a host, the preferred one first. An empty list counts as an error.
    ///
    /// `IpAddr` and `SocketAddr` convert to [`ScopedIp`]. Link-local addresses need their zone, as those that
    /// multicast DNS finds: nothing can be sent to them without it.
    fn addresses(&self, host: &str) -> Resolving<Vec<ScopedIp>>;

    /// Returns the HTTPS records (RFC 9460) of an origin, the best one first. None by default.
    fn services(&self, host: &str, port: u16) -> Resolving<Vec<ServiceRecord>> {
        let _ = (host, port);
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// Time between the first addresses and the start without further results of the lookup
/// (draft-ietf-happy-happyeyeballs-v3 §9: Resolution Delay).
pub(super) const RESOLUTION_DELAY: Duration = Duration::from_millis(50);
