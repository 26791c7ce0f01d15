//! Configurations of endpoints, servers and clients.

mod client;
mod endpoint;
mod mtu;
#[cfg(feature = "qlog")]
mod qlog;
mod server;
mod transport;

use std::time::SystemTime;

pub use self::client::ClientConfig;
pub use self::endpoint::EndpointConfig;
pub use self::mtu::{AckFrequencyConfig, MtuDiscoveryConfig};
#[cfg(feature = "qlog")]
pub use self::qlog::{QlogConfig, QlogStream};
pub use self::server::{ServerConfig, ValidationTokenConfig};
pub(crate) use self::transport::WINDOW_AT_ONCE;
pub use self::transport::{IdleTimeout, TransportConfig};

/// The payload of UDP that every path of QUIC carries.
const MIN_MTU: u16 = 1200;
/// The largest payload of UDP over IPv4.
const MAX_MTU: u16 = 65_507;

/// A source of the time of day.
pub trait TimeSource: Send + Sync {
    /// Returns the time of day.
    fn now(&self) -> SystemTime;
}

/// The time of day of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct StdSystemTime;

impl TimeSource for StdSystemTime {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// Returns the versions of QUIC that courser supports among these numbers, in their order.
fn known_versions(numbers: &[u32]) -> Vec<courser_quic::QuicVersion> {
    let known = numbers.iter().copied();
    known
        .filter_map(courser_quic::QuicVersion::from_value)
        .collect()
}
