//! Attacks on UDP and IP proxies.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser::masque::{Device, IpProxy, Policy, UdpProxy};

use crate::harness::{Outcome, Storey, attack_on_storey};

const SECOND: Duration = Duration::from_secs(1);

/// Serves public targets, and one host of the world.
fn udp_proxy() -> UdpProxy {
    let host = "10.0.0.3/32".parse().expect("a prefix");
    let policy = Policy::public_only().allow(host, 7..=9);
    let proxy = UdpProxy::new(policy).open_to_all();
    proxy.resolver(|name, port| {
        let addresses = match name.as_str() {
            "localhost" => Ok(vec![(std::net::Ipv4Addr::LOCALHOST, port).into()]),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        Box::pin(async move { addresses })
    })
}

fn attack(name: &str, time: Duration) -> (Outcome, UdpProxy) {
    let proxy = udp_proxy();
    let outcome = attack_on_storey(name, time, Storey::Udp(proxy.clone()));
    (outcome, proxy)
}

#[test]
fn targets_inside_of_the_network_are_refused() {
    let (outcome, proxy) = attack("proxy-targets", 2 * SECOND);
    outcome.assert_expected().assert_peak_below(4 * 1024);
    let stats = proxy.stats();
    assert!(stats.refused > 50, "{stats:?}");
    assert_eq!((stats.opened, stats.to_targets), (0, 0), "{stats:?}");
}

#[test]
fn paths_that_hide_something_are_refused() {
    let (outcome, proxy) = attack("proxy-paths", 2 * SECOND);
    outcome.assert_expected().assert_peak_below(4 * 1024);
    assert_eq!(proxy.stats().opened, 0);
}

#[test]
fn tunnels_are_bounded() {
    let (outcome, _) = attack("proxy-tunnels", 2 * SECOND);
    outcome.assert_ran(4, 20).assert_peak_below(16 * 1024);
    assert!(outcome.statuses.contains_key(&200), "{outcome:?}");
}

#[test]
fn malformed_datagrams_reset_their_tunnel() {
    let (outcome, proxy) = attack("proxy-datagrams", 2 * SECOND);
    outcome.assert_expected().assert_peak_below(4 * 1024);
    let stats = proxy.stats();
    assert!(stats.dropped > 1000, "{stats:?}");
}

/// Limits K565 and K623: 64 KiB for the tunnels of a client to one host, and 1 KiB each second.
#[test]
fn targets_that_never_answer_receive_little() {
    let (outcome, proxy) = attack("proxy-silent-target", 4 * SECOND);
    outcome.assert_expected().assert_peak_below(4 * 1024);
    assert!(outcome.bytes.0 > 10 << 20, "{outcome:?}");
    let bytes = proxy.stats().bytes_to_targets;
    assert!((50_000..90_000).contains(&bytes), "{bytes}");
}

/// A network that counts packets, and never sends any.
#[derive(Clone, Default)]
struct Silent(Arc<AtomicU64>);

impl Device for Silent {
    fn send_many(&self, packets: &mut Vec<Bytes>) -> io::Result<usize> {
        self.0.fetch_add(packets.len() as u64, Ordering::Relaxed);
        Ok(packets.drain(..).count())
    }

    fn poll_receive_many(
        &self,
        _: &mut Context<'_>,
        _: &mut Vec<Bytes>,
        _: usize,
    ) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn mtu(&self) -> usize {
        1500
    }
}

fn ip_proxy(device: &Silent) -> IpProxy {
    let prefix = |text: &str| text.parse().expect("a prefix");
    let policy = Policy::nothing()
        .allow(prefix("192.0.2.0/24"), 0..=65_535)
        .allow(prefix("2001:db8::/32"), 0..=65_535);
    let pool = [prefix("10.89.0.0/24"), prefix("fd00:89::/64")];
    IpProxy::new(pool, policy, device.clone()).open_to_all()
}

#[test]
fn hostile_packets_do_not_reach_the_network() {
    let network = Silent::default();
    let proxy = ip_proxy(&network);
    let outcome = attack_on_storey("ip-packets", SECOND, Storey::Ip(proxy));
    outcome.assert_expected().assert_peak_below(6 * 1024);
    assert_eq!(network.0.load(Ordering::Relaxed), 0);
    // Errors are bounded by K630, whatever the number of packets.
    assert!(outcome.bytes.1 < outcome.bytes.0 / 10, "{outcome:?}");
}

#[test]
fn invalid_capsules_end_their_tunnel() {
    let network = Silent::default();
    let proxy = ip_proxy(&network);
    let outcome = attack_on_storey("ip-capsules", SECOND, Storey::Ip(proxy.clone()));
    outcome.assert_expected().assert_peak_below(6 * 1024);
    assert!(proxy.stats().assigned < 200, "{:?}", proxy.stats());
}
