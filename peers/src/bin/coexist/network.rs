//! Three network namespaces in a row: sender, relay and receiver.

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use peers::Failure;
use peers::namespace::{Namespace, run};

use crate::flows::Flows;
use crate::relay::Relay;

/// The bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) megabits: f64,
    pub(crate) rtt: Duration,
    /// Bytes of the queue.
    pub(crate) queue: u64,
}

/// The namespaces with a running relay.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) sender: Namespace,
    pub(crate) receiver: Namespace,
    middle: Namespace,
    link: Link,
    pub(crate) flows: Arc<Flows>,
    _relay: Relay,
}

/// The address of the sender: one of those for benchmarks of networks (RFC 2544, RFC 6890).
const SENDER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The address of the receiver.
pub(crate) const RECEIVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// Returns the reason for which this machine cannot measure.
pub(crate) fn missing() -> Option<String> {
    let has = |program: &str| Command::new(program).arg("-V").output().is_ok();
    if let Some(program) = ["ip", "tc"].into_iter().find(|program| !has(program)) {
        return Some(format!("the program {program} of iproute2 is missing"));
    }
    if let Err(failure) = Namespace::new() {
        return Some(failure.to_string());
    }
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let known = fs::read_to_string(file).unwrap_or_default();
    let has_cubic = known.split_whitespace().any(|name| name == "cubic");
    (!has_cubic).then(|| format!("the kernel has no TCP CUBIC ({file})"))
}

impl Network {
    /// Makes the namespaces and begins to relay.
    pub(crate) fn new(link: &Link) -> Result<Self, Failure> {
        let (sender, middle, receiver) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        middle.inside(|| {
            for (near, far, namespace) in [("left", "out", &sender), ("right", "in", &receiver)] {
                let there = namespace.path();
                run(
                    "ip",
                    &format!("link add {near} type veth peer name {far} netns {there}"),
                )?;
                up(near)?;
            }
            let tbf = tbf(link, link.megabits);
            run("tc", &format!("qdisc add dev right root {tbf}"))
        })??;
        for (namespace, interface, address) in
            [(&sender, "out", SENDER), (&receiver, "in", RECEIVER)]
        {
            namespace.inside(|| {
                run("ip", &format!("address add {address}/24 dev {interface}"))?;
                up(interface)?;
                for (name, value) in [
                    ("tcp_no_metrics_save", "1"),
                    ("tcp_wmem", "4096 16384 33554432"),
                    ("tcp_rmem", "4096 131072 33554432"),
                ] {
                    fs::write(format!("/proc/sys/net/ipv4/{name}"), value)?;
                }
                Ok::<_, Failure>(())
            })??;
        }
        let flows = Arc::new(Flows::new());
        let relay = middle.inside(|| Relay::start("left", "right", link.rtt / 2, &flows))??;
        Ok(Self {
            sender,
            receiver,
            middle,
            link: *link,
            flows,
            _relay: relay,
        })
    }

    /// Changes the rate of the link.
    pub(crate) fn set_rate(&self, megabits: f64) -> Result<(), Failure> {
        let tbf = tbf(&self.link, megabits);
        self.middle
            .inside(|| run("tc", &format!("qdisc change dev right root {tbf}")))?
    }
}

fn tbf(link: &Link, megabits: f64) -> String {
    let kilobits = (megabits * 1000.0) as u64;
    format!("tbf rate {kilobits}kbit burst 4000 limit {}", link.queue)
}

/// Brings an interface up on which each packet is a frame of its own, as on a wire.
fn up(interface: &str) -> Result<(), Failure> {
    fs::write(
        format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"),
        "1",
    )?;
    run(
        "ip",
        &format!("link set {interface} mtu 1500 gso_max_segs 1 up"),
    )
}
