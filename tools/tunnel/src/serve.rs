//! The network of an IP proxy.

use std::fs;

use courser::TransportConfig;
use courser::masque::{Prefix, Tun};

use crate::failure::Failure;
use crate::link::transport;
use crate::plan::is_private;
use crate::system::unusable;

/// The network of an IP proxy: a TUN device to which the addresses of its clients are routed. It ends when the device is
/// dropped.
#[derive(Debug)]
pub struct IpNetwork {
    /// The device, for `IpProxy::new`.
    pub device: Tun,
    /// What the administrator should know: settings without which packets do not pass, each with the command that
    /// changes it.
    pub warnings: Vec<String>,
}

/// Creates the network of a proxy whose clients get addresses of `pool`: a TUN device of this name, or of one that the
/// system chooses, with routes to the pool. Needs CAP_NET_ADMIN, and a runtime of tokio around the call.
///
/// Forwarding and masquerading are settings of the whole machine, which this function does not change: it reports what
/// is missing.
///
/// # Errors
/// Returns an error if the system refuses the device or a route, for example because another interface has the addresses.
pub fn serve_ip(pool: &[Prefix], name: Option<&str>) -> Result<IpNetwork, Failure> {
    if pool.is_empty() {
        let text =
            "the pool is empty: name a prefix, such as 10.89.0.0/16 or fd00:89::/64".to_owned();
        return Err(Failure::Setting(text));
    }
    let device = Tun::open(name).map_err(unusable)?;
    // Senders learn the size of each tunnel from ICMP.
    device.set_mtu(MTU).map_err(unusable)?;
    device.set_up().map_err(unusable)?;
    device.set_routes(pool).map_err(unusable)?;
    let read = |path: &str| fs::read_to_string(path).ok();
    let warnings = warnings(pool, device.name(), read);
    Ok(IpNetwork { device, warnings })
}

/// Returns the parameters of the connections to the clients of an IP proxy, for `Server::transport`: queues for the batches
/// of a device, and packets that keep the mappings of routers.
#[must_use]
pub fn ip_transport() -> TransportConfig {
    transport()
}

fn warnings(pool: &[Prefix], device: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for (is_ipv4, path, setting) in [
        (true, "/proc/sys/net/ipv4/ip_forward", "net.ipv4.ip_forward"),
        (
            false,
            "/proc/sys/net/ipv6/conf/all/forwarding",
            "net.ipv6.conf.all.forwarding",
        ),
    ] {
        let Some(prefix) = pool.iter().find(|it| it.is_ipv4() == is_ipv4) else {
            continue;
        };
        if read(path).is_none_or(|text| text.trim() == "0") {
            found.push(format!(
                "this machine does not forward packets, so that clients in {prefix} reach only itself: \
                 sysctl -w {setting}=1"
            ));
        }
    }
    if let Some(prefix) = pool.iter().find(|it| is_private(it)) {
        let family = if prefix.is_ipv4() { "ip" } else { "ip6" };
        found.push(format!(
            "{prefix} is a private network: for the Internet, masquerade it, for example with nft: \
             add table inet courser; add chain inet courser out {{ type nat hook postrouting priority srcnat; }}; \
             add rule inet courser out {family} saddr {prefix} oifname != \"{device}\" masquerade"
        ));
    }
    found
}

/// The MTU of the device, as of most networks behind it.
const MTU: usize = 1500;

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pool: &[&str], forward: &str) -> Vec<String> {
        let pool: Vec<Prefix> = pool.iter().map(|it| it.parse().expect(it)).collect();
        warnings(&pool, "courser0", |_| Some(forward.to_owned()))
    }

    #[test]
    fn settings_of_the_machine_are_reported() {
        assert!(found(&["198.51.100.0/24"], "1\n").is_empty());
        let both = found(&["198.51.100.0/24", "2001:db8::/64"], "0\n");
        assert!(
            both[0].ends_with("sysctl -w net.ipv4.ip_forward=1"),
            "{both:?}"
        );
        assert!(
            both[1].ends_with("sysctl -w net.ipv6.conf.all.forwarding=1"),
            "{both:?}"
        );
        let private = found(&["10.89.0.0/16"], "1");
        assert!(private[0].contains("ip saddr 10.89.0.0/16"), "{private:?}");
        let private = found(&["fd00:89::/64"], "1");
        assert!(private[0].contains("ip6 saddr fd00:89::/64"), "{private:?}");
    }
}
