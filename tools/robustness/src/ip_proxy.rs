//! The victim of attacks on IP proxies, for a network in memory: `courser-robustness ip-proxy`.
//!
//! It prints its address, and at the end of its standard input the packets that have reached the network.

use std::collections::VecDeque;
use std::io::Read as _;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use courser::masque::{self, Device, IpProxy, Policy};
use courser::{Identity, Side, h3};
use serde_json::json;

/// Runs the proxy until standard input ends.
pub(super) fn main() -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let network = Network::default();
    let within = runtime.enter();
    let identity = Identity::dev().map_err(|error| error.to_string())?;
    let mut settings = h3::Config::new(Side::Server);
    masque::enable(&mut settings, Side::Server);
    let server = courser::serve((Ipv4Addr::LOCALHOST, 0), identity)
        .config(settings)
        .bind()
        .map_err(|error| error.to_string())?;
    println!("{}", json!({"addresses": [server.local_addr()]}));
    runtime.spawn(server.service(proxy(&network)?).into_future());
    drop(within);
    // The parent closes the pipe.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    let (packets, foreign) = network.counts();
    println!("{}", json!({"packets": packets, "foreign": foreign}));
    Ok(())
}

fn proxy(network: &Network) -> Result<IpProxy, String> {
    let prefix = |text: &str| {
        text.parse()
            .map_err(|error: masque::InvalidPrefix| error.to_string())
    };
    let policy = Policy::nothing()
        .allow(prefix("192.0.2.0/24")?, 0..=65_535)
        .allow(prefix("2001:db8::/32")?, 0..=65_535);
    let pool = [prefix("10.89.0.0/16")?, prefix("fd00:89::/64")?];
    Ok(IpProxy::new(pool, policy, network.clone()).open_to_all())
}

/// A network whose hosts return packets of IPv4 to their senders.
#[derive(Clone, Default)]
struct Network(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    packets: VecDeque<Bytes>,
    waker: Option<Waker>,
    /// Packets of the tunnels, and those of them that no client of ours sends.
    sent: u64,
    foreign: u64,
}

/// Packets that wait for the proxy. Further ones are dropped.
const WAITING: usize = 1024;

impl Network {
    fn counts(&self) -> (u64, u64) {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (waiting.sent, waiting.foreign)
    }
}

impl Device for Network {
    fn send_many(&self, packets: &mut Vec<Bytes>) -> std::io::Result<usize> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = packets.len();
        waiting.sent += count as u64;
        for packet in packets.drain(..) {
            // Honest clients send UDP with content of their own.
            let is_honest = packet.len() == 120 && packet[20..].iter().all(|it| *it == 0x30);
            waiting.foreign += u64::from(!is_honest);
            if is_honest && waiting.packets.len() < WAITING {
                let mut reply = packet.to_vec();
                // Checksums are the same in both directions.
                reply[12..20].rotate_left(4);
                waiting.packets.push_back(reply.into());
            }
        }
        if let Some(waker) = waiting.waker.take() {
            waker.wake();
        }
        Ok(count)
    }

    fn poll_receive_many(
        &self,
        cx: &mut Context<'_>,
        packets: &mut Vec<Bytes>,
        limit: usize,
    ) -> Poll<std::io::Result<usize>> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = waiting.packets.len().min(limit);
        if count == 0 {
            waiting.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        packets.extend(waiting.packets.drain(..count));
        Poll::Ready(Ok(count))
    }

    fn mtu(&self) -> usize {
        1500
    }
}
