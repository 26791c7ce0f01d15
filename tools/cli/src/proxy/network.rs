//! The network of IP tunnels.

use courser::TransportConfig;
use courser::masque::Prefix;
use courser_services::forward::{Forward, ForwardSettings};
use courser_services::{AccessLog, LogFormat};

use crate::error::Failure;

/// Creates the proxy, with its network if there is a pool of addresses, and the warnings about it.
#[cfg(target_os = "linux")]
pub(super) fn forward(
    settings: ForwardSettings,
    (pool, tun): (Vec<Prefix>, Option<&str>),
    log: Option<(AccessLog, LogFormat)>,
) -> Result<(Forward, Vec<String>), Failure> {
    if pool.is_empty() {
        return Ok((Forward::new(settings, log), Vec::new()));
    }
    let network = courser_tunnel::serve_ip(&pool, tun);
    let network = network.map_err(|error| Failure::new(format!("cannot serve --ip: {error}")))?;
    let forward = Forward::with_network(settings, (pool, network.device), log);
    Ok((forward, network.warnings))
}

/// Returns the transport parameters of connections that carry IP tunnels.
#[cfg(target_os = "linux")]
pub(super) fn transport() -> TransportConfig {
    courser_tunnel::ip_transport()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn forward(
    settings: ForwardSettings,
    (pool, _): (Vec<Prefix>, Option<&str>),
    log: Option<(AccessLog, LogFormat)>,
) -> Result<(Forward, Vec<String>), Failure> {
    if !pool.is_empty() {
        let text = "cannot serve --ip: it needs Linux, whose TUN devices courser can use";
        return Err(Failure::new(text));
    }
    Ok((Forward::new(settings, log), Vec::new()))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn transport() -> TransportConfig {
    TransportConfig::default()
}
