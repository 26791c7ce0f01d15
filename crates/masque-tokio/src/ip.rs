//! IP proxies (CONNECT-IP, RFC 9484).

mod client;
mod device;
mod proxy;
mod request;
mod tunnel;
mod watch;

pub use self::client::IpClient;
pub use self::device::Device;
pub use self::proxy::IpProxy;
pub use self::request::IpRequest;
pub use self::tunnel::{IpTunnel, IpTunnelStats};
pub use self::watch::Watch;
