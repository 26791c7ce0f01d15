//! Names to addresses, and to what serves behind them.

#[cfg(feature = "dns")]
mod dns;
mod service;
mod system;

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

#[cfg(feature = "dns")]
pub use self::dns::DnsResolver;
pub use self::service::ServiceRecord;
pub use self::system::SystemResolver;

/// What a lookup gives, some time.
pub type Resolving<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

/// Finds addresses, in a way of the user's own.
///
/// The client asks for addresses and services at the same time. It never waits for services for
/// longer than the resolution delay of 50 ms once it has addresses.
///
/// ```
/// use courser::client::{Resolve, Resolving};
///
/// struct OnlyHere;
///
/// impl Resolve for OnlyHere {
///     fn addresses(&self, _host: &str) -> Resolving<Vec<std::net::IpAddr>> {
///         Box::pin(async { Ok(vec![[127, 0, 0, 1].into()]) })
///     }
/// }
/// ```
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of a host, the preferred one first. None at all is an error too.
    fn addresses(&self, host: &str) -> Resolving<Vec<IpAddr>>;

    /// The HTTPS records (RFC 9460) of an origin, best priority first. None by default.
    fn services(&self, host: &str, port: u16) -> Resolving<Vec<ServiceRecord>> {
        let _ = (host, port);
        Box::pin(async { Ok(Vec::new()) })
    }
}
