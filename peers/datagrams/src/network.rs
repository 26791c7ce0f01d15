//! Three network namespaces: client, router and server, with a veth pair of Ethernet's size on each side of the router.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use courser_emulator::{Emulator, Plan};
use peers_common::Failure;
use peers_common::namespace::{Namespace, run};

/// The namespaces.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) client: Namespace,
    pub(crate) server: Namespace,
    router: Namespace,
}

/// Addresses for benchmarks of networks (RFC 2544, RFC 6890).
const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const NEAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const FAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 5);
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 6);

/// Returns the reason for which this machine cannot measure.
pub(crate) fn missing() -> Option<String> {
    if Command::new("ip").arg("-V").output().is_err() {
        return Some("the program ip of iproute2 is missing".to_owned());
    }
    Namespace::new().err().map(|failure| failure.to_string())
}

impl Network {
    /// Makes the namespaces and their routes.
    pub(crate) fn new() -> Result<Self, Failure> {
        let network = Self {
            client: Namespace::new()?,
            server: Namespace::new()?,
            router: Namespace::new()?,
        };
        let sides = [
            ("near", NEAR, &network.client, CLIENT),
            ("far", FAR, &network.server, SERVER),
        ];
        for (interface, router, end, address) in sides {
            let there = end.path();
            network.router.inside(|| {
                run(
                    "ip",
                    &format!("link add {interface} type veth peer name end netns {there}"),
                )?;
                run("ip", &format!("address add {router}/30 dev {interface}"))?;
                run("ip", &format!("link set {interface} up"))
            })??;
            end.inside(|| {
                run("ip", &format!("address add {address}/30 dev end"))?;
                run("ip", "link set end up")?;
                run("ip", &format!("route add default via {router}"))
            })??;
        }
        network
            .router
            .inside(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"))??;
        Ok(network)
    }

    /// Narrows the way from the router to the server.
    pub(crate) fn narrow(&self, mtu: u32) -> Result<(), Failure> {
        self.router
            .inside(|| run("ip", &format!("link set far mtu {mtu}")))?
    }

    /// Lets the router send nothing of its own: no ICMP message reports a packet that is too large.
    pub(crate) fn silence(&self) -> Result<(), Failure> {
        self.router
            .inside(|| run("ip", "rule add pref 10 iif lo blackhole"))?
    }

    /// Starts an emulated link towards the server, in place of the kernel's routing.
    pub(crate) fn emulate(
        &self,
        link: &str,
        server: SocketAddr,
        seed: u64,
    ) -> Result<Link, Failure> {
        let plan = Plan {
            listen: SocketAddr::from((NEAR, 0)),
            server,
            link: link.parse().map_err(|error| format!("{link}: {error}"))?,
            seed,
            max_clients: 16,
            idle: Duration::from_secs(60),
            amplification_bytes: 0,
            hold: 64 << 20,
        };
        let router = self.router.clone();
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let (send, address) = channel();
        let thread = thread::spawn(move || {
            router.enter()?;
            let mut emulator = Emulator::bind(plan)?;
            send.send(emulator.local_addr())?;
            emulator.run(|_| !is_stopped.load(Relaxed))?;
            let report = emulator.report();
            Ok(report.kernel_drops + report.to_server.unsent + report.to_clients.unsent)
        });
        let Ok(address) = address.recv() else {
            return Err(match thread.join() {
                Ok(Err(failure)) => failure,
                _ => "the emulator failed".into(),
            });
        };
        Ok(Link {
            address,
            stop,
            thread,
        })
    }
}

/// An emulated link in its thread.
#[derive(Debug)]
pub(crate) struct Link {
    /// The address in place of the server's.
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, Failure>>,
}

impl Link {
    /// Ends it, and returns how many datagrams were lost to the emulator itself and not to the link.
    pub(crate) fn finish(self) -> Result<u64, Failure> {
        self.stop.store(true, Relaxed);
        self.thread.join().map_err(|_| "the emulator panicked")?
    }
}
