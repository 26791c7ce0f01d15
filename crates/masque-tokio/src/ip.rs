//! IP proxies (CONNECT-IP, RFC 9484).

mod client;
mod control;
mod core;
mod device;
mod lease;
mod network;
mod proxy;
mod record;
mod relay;
mod request;
mod stats;
pub(crate) mod transport;
mod tunnel;
mod watch;

pub use self::client::{IpClient, IpClientBuilder};
pub use self::device::Device;
pub use self::proxy::IpProxy;
pub use self::record::{IpTunnelRecord, OnIpEnd};
pub use self::request::IpRequest;
pub use self::stats::{IpProxyStats, IpTunnelStats};
pub use self::transport::ip_transport_config;
pub use self::tunnel::IpTunnel;
pub use self::watch::Watch;
