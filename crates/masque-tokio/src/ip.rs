//! IP proxies (CONNECT-IP, RFC 9484).

mod client;
mod control;
mod core;
mod device;
mod lease;
mod network;
mod proxy;
mod relay;
mod request;
mod stats;
mod tunnel;
mod watch;

pub use self::client::IpClient;
pub use self::device::Device;
pub use self::proxy::IpProxy;
pub use self::request::IpRequest;
pub use self::stats::{IpProxyStats, IpTunnelStats};
pub use self::tunnel::IpTunnel;
pub use self::watch::Watch;
