//! The switch of an IP proxy: packets of the network go to the tunnel that has their destination.

use std::collections::HashMap;
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Instant;

use bytes::Bytes;
use courser_base::{Mutex, Time};
use courser_http3_tokio::Code;
use courser_masque::ip::{Header, IcmpLimit, Pool, icmp};
use courser_masque::{Policy, Prefix};
use courser_quic::runtime::{self, JoinHandle};

use super::core::Core;
use super::device::Device;
use crate::ended::Ended;

/// What the tunnels of a proxy share.
pub(crate) struct Network {
    pub(super) device: Arc<dyn Device>,
    pub(super) policy: Arc<Policy>,
    /// True if clients may send packets to each other.
    pub(super) connects_clients: AtomicBool,
    pub(super) pool: Mutex<Pool>,
    /// The prefixes of the pool.
    prefixes: Vec<Prefix>,
    /// The addresses among them that the machine may have.
    routers: [Option<IpAddr>; 2],
    /// The tunnels, by the first address of each assigned prefix.
    table: Mutex<HashMap<IpAddr, Core>>,
    begin: Instant,
    icmp: Mutex<IcmpLimit>,
    has_failed: AtomicBool,
    task: Mutex<Option<JoinHandle<()>>>,
    pub(super) counters: Counters,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(super) open: AtomicU64,
    pub(super) opened: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) to_network: AtomicU64,
    pub(super) from_network: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) unroutable: AtomicU64,
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }
}

impl Network {
    pub(crate) fn new(pool: Pool, policy: Arc<Policy>, device: Arc<dyn Device>) -> Arc<Self> {
        Arc::new(Self {
            device,
            policy,
            connects_clients: AtomicBool::new(false),
            prefixes: pool.prefixes().collect(),
            routers: [pool.router(true), pool.router(false)],
            pool: Mutex::new(pool),
            table: Mutex::default(),
            begin: runtime::now(),
            icmp: Mutex::default(),
            has_failed: AtomicBool::new(false),
            task: Mutex::new(None),
            counters: Counters::default(),
        })
    }

    pub(super) fn now(&self) -> Time {
        Time::ZERO + (runtime::now() - self.begin)
    }

    /// Starts the task that reads the device, unless it runs. Returns false if the device has failed.
    pub(super) fn start(self: &Arc<Self>) -> bool {
        let mut task = self.task.lock();
        if task.is_none() {
            *task = Some(runtime::spawn(run(
                Arc::downgrade(self),
                self.device.clone(),
            )));
        }
        !self.has_failed.load(Relaxed)
    }

    /// Sends packets for an assigned prefix to a tunnel from now on.
    pub(super) fn attach(&self, first: IpAddr, core: &Core) {
        self.table.lock().insert(first, core.clone());
    }

    pub(super) fn detach(&self, first: IpAddr) {
        self.table.lock().remove(&first);
    }

    /// Returns true if an address is one that clients get, or of the router among them.
    pub(super) fn is_inside(&self, address: IpAddr) -> bool {
        self.prefixes.iter().any(|prefix| prefix.covers(address))
    }

    /// Returns true if a packet of the network claims to be from a client. Those of clients do not come from there, unless
    /// they may reach each other.
    fn is_spoofed(&self, packet: &[u8]) -> bool {
        let Some(source) = source(packet) else {
            return false;
        };
        self.is_inside(source)
            && !self.routers.contains(&Some(source))
            && !self.connects_clients.load(Relaxed)
    }

    /// The device has failed: no tunnel is of use any more.
    pub(super) fn fail(&self) {
        self.has_failed.store(true, Relaxed);
        let tunnels: Vec<_> = self.table.lock().values().cloned().collect();
        for core in tunnels {
            core.tunnel.abort(Ended::Closed, Code::CONNECT_ERROR);
        }
    }

    /// Distributes packets of the network.
    fn deliver(&self, packets: &mut Vec<Bytes>) {
        let mut groups: Vec<(Core, Vec<Bytes>)> = Vec::new();
        let mut lost = Vec::new();
        self.group(packets, &mut groups, &mut lost);
        for (core, mut group) in groups {
            // The end of a tunnel is noticed by its relay.
            let sent = core.send(&mut group).unwrap_or(0);
            self.counters.from_network.fetch_add(sent as u64, Relaxed);
        }
        if !lost.is_empty() {
            let count = lost.len() as u64;
            self.counters.unroutable.fetch_add(count, Relaxed);
            self.answer(&lost);
        }
    }

    /// Groups packets by the tunnels of their destinations.
    fn group(
        &self,
        packets: &mut Vec<Bytes>,
        groups: &mut Vec<(Core, Vec<Bytes>)>,
        lost: &mut Vec<Bytes>,
    ) {
        let pool = self.pool.lock();
        let table = self.table.lock();
        let mut last: Option<(IpAddr, usize)> = None;
        for packet in packets.drain(..) {
            let Some(destination) = destination(&packet) else {
                continue; // No packet at all.
            };
            if self.is_spoofed(&packet) {
                self.counters.dropped.fetch_add(1, Relaxed);
                continue;
            }
            let index = match last {
                // Packets of one flow come in runs.
                Some((known, index)) if known == destination => index,
                _ => {
                    let first = pool.unit_of(destination);
                    let Some(core) = first.and_then(|first| table.get(&first)) else {
                        lost.push(packet);
                        continue;
                    };
                    let is_it = |group: &(Core, _)| Arc::ptr_eq(&group.0.shared, &core.shared);
                    groups.iter().position(is_it).unwrap_or_else(|| {
                        groups.push((core.clone(), Vec::new()));
                        groups.len() - 1
                    })
                }
            };
            last = Some((destination, index));
            groups[index].1.push(packet);
        }
    }

    /// Answers packets to addresses that no client has.
    fn answer(&self, lost: &[Bytes]) {
        let mut answers = Vec::new();
        for packet in lost {
            let Ok(header) = Header::parse(packet) else {
                continue;
            };
            let router = self.pool.lock().router(header.source.is_ipv4());
            let error = router.and_then(|router| icmp::error(icmp::Error::NoRoute, router, packet));
            if let Some(error) = error
                && self.icmp.lock().take(self.now())
            {
                answers.push(error.into());
            }
        }
        // A device that has failed is noticed when it is read.
        let _ = self.device.send_many(&mut answers);
    }
}

/// Reads the device until it fails or the proxy is dropped.
async fn run(network: Weak<Network>, device: Arc<dyn Device>) {
    let mut packets = Vec::new();
    for turn in 1_u64.. {
        let received = poll_fn(|cx| device.poll_receive_many(cx, &mut packets, BATCH)).await;
        let Some(network) = network.upgrade() else {
            return;
        };
        if received.is_err() {
            return network.fail();
        }
        network.deliver(&mut packets);
        packets.clear();
        drop(network);
        if turn % TURNS == 0 {
            // A device that always has packets leaves other tasks their turn.
            let mut has_waited = false;
            poll_fn(|cx| {
                if std::mem::replace(&mut has_waited, true) {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
    }
}

/// Returns the destination of a packet, whose header is judged later.
fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(<[u8; 4]>::try_from(packet.get(16..20)?).ok()?.into()),
        6 => Some(<[u8; 16]>::try_from(packet.get(24..40)?).ok()?.into()),
        _ => None,
    }
}

/// Returns the source of a packet, whose header is judged later.
fn source(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(<[u8; 4]>::try_from(packet.get(12..16)?).ok()?.into()),
        6 => Some(<[u8; 16]>::try_from(packet.get(8..24)?).ok()?.into()),
        _ => None,
    }
}

/// Batches before other tasks have their turn.
const TURNS: u64 = 16;

/// Packets that are read from the device at a time.
const BATCH: usize = 256;
