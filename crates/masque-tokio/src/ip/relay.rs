//! The task of an IP tunnel on a proxy: packets of its client go to the network.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use courser_masque::ip::{Filter, Header, Reason, Rejected};
use courser_quic::runtime::{self, Sleep};

use super::core::Core;
use super::lease::Lease;
use super::network::Network;
use super::record::{IpTunnelRecord, OnIpEnd};
use crate::clients::Permit;
use crate::connect::is_own_address;
use crate::ended::Ended;
use crate::record::RecordedEnd;

/// One direction of a tunnel; the other one is the network's.
pub(crate) struct Relay {
    core: Core,
    network: Arc<Network>,
    filter: Filter,
    packets: Vec<Bytes>,
    answers: Vec<Bytes>,
    idle: Pin<Box<Sleep>>,
    time: Duration,
    /// The time without a packet of the client that ends a tunnel while the proxy drains.
    draining: Option<Duration>,
    /// Packets at the last look: of both directions, or those of the client while the proxy drains.
    seen: u64,
    begin: Instant,
    /// Packets of the client that the network has accepted, bytes of those that may pass, and packets that were dropped.
    passed: u64,
    passed_bytes: u64,
    dropped: u64,
    permit: Permit,
    /// Given back at the end.
    lease: Arc<Lease>,
}

impl Relay {
    pub(crate) fn new(
        core: Core,
        network: Arc<Network>,
        lease: Arc<Lease>,
        (idle, permit): (Duration, Permit),
    ) -> Self {
        Self {
            core,
            network,
            filter: Filter::default(),
            packets: Vec::new(),
            answers: Vec::new(),
            idle: Box::pin(runtime::sleep(idle)),
            time: idle,
            draining: None,
            seen: 0,
            begin: runtime::now(),
            passed: 0,
            passed_bytes: 0,
            dropped: 0,
            permit,
            lease,
        }
    }

    /// Runs until the tunnel ends, the network fails, or no packet has passed for too long.
    pub(crate) async fn run(mut self, on_end: Option<OnIpEnd>) {
        let end = poll_fn(|cx| self.poll(cx)).await;
        if let Some(on_end) = on_end {
            on_end.call(&self.record(end));
        }
    }

    fn record(&self, end: RecordedEnd) -> IpTunnelRecord {
        let stats = self.core.stats();
        let entries = self.lease.entries();
        let judged = stats.malformed + stats.wrong_source + stats.hop_limit + stats.link_local;
        IpTunnelRecord {
            addresses: entries.iter().map(|entry| entry.prefix).collect(),
            took: runtime::now() - self.begin,
            packets_to_network: self.passed,
            bytes_to_network: self.passed_bytes,
            packets_from_network: stats.sent,
            bytes_from_network: stats.bytes_sent,
            dropped_to_network: self.dropped + stats.dropped_receiving + judged,
            dropped_from_network: stats.dropped_sending,
            end,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<RecordedEnd> {
        for _ in 0..TURNS {
            let (packets, answers) = (&mut self.packets, &mut self.answers);
            match self.core.poll_receive(cx, packets, answers, BATCH) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(Ended::Closed)) => return Poll::Ready(RecordedEnd::Cut),
                Poll::Ready(Err(_)) => return Poll::Ready(RecordedEnd::Client),
                Poll::Pending => return self.poll_idle(cx),
            }
            if self.forward().is_err() {
                self.network.fail();
                return Poll::Ready(RecordedEnd::Cut);
            }
        }
        // Other tasks have their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<RecordedEnd> {
        let draining = self.permit.draining();
        if draining != self.draining {
            self.draining = draining;
            self.time = draining.unwrap_or(self.time).min(self.time);
            self.seen = self.packets();
            self.idle = Box::pin(runtime::sleep(self.time));
        }
        while self.idle.as_mut().poll(cx).is_ready() {
            let seen = self.packets();
            if seen == self.seen {
                return Poll::Ready(RecordedEnd::Idle);
            }
            self.seen = seen;
            self.idle = Box::pin(runtime::sleep(self.time));
        }
        Poll::Pending
    }

    /// Returns the number of packets that keep the tunnel open. The network may go on to send to a client that has vanished.
    fn packets(&self) -> u64 {
        let stats = self.core.stats();
        match self.draining {
            Some(_) => stats.received,
            None => stats.received + stats.sent,
        }
    }

    /// Sends packets to the network that may go there.
    fn forward(&mut self) -> std::io::Result<()> {
        let mtu = self.network.device.mtu();
        let mut packets = std::mem::take(&mut self.packets);
        let before = packets.len();
        packets.retain(|packet| match self.judge(packet, mtu) {
            Ok(()) => true,
            Err(rejected) => {
                self.core.reject(&rejected, packet);
                false
            }
        });
        let bytes: usize = packets.iter().map(Bytes::len).sum();
        let answers = self.answers.len();
        packets.append(&mut self.answers);
        let sent = match packets.is_empty() {
            true => Ok(0),
            false => self.network.device.send_many(&mut packets),
        };
        packets.clear();
        self.packets = packets;
        let passed = sent?.saturating_sub(answers).min(before);
        let counters = &self.network.counters;
        counters.to_network.fetch_add(passed as u64, Relaxed);
        let dropped = (before - passed) as u64;
        counters.dropped.fetch_add(dropped, Relaxed);
        self.passed += passed as u64;
        self.passed_bytes += bytes as u64;
        self.dropped += dropped;
        Ok(())
    }

    fn judge(&mut self, packet: &Bytes, mtu: usize) -> Result<(), Rejected> {
        let header = Header::parse(packet)?;
        let destination = header.destination;
        if self.network.is_inside(destination) {
            return match self.network.connects_clients.load(Relaxed) {
                true => self.fits(packet, mtu),
                false => Err(Rejected::new(Reason::Prohibited(destination))),
            };
        }
        let policy = &self.network.policy;
        self.filter.judge(policy, &header, packet, is_own_address)?;
        self.fits(packet, mtu)
    }

    fn fits(&self, packet: &Bytes, max: usize) -> Result<(), Rejected> {
        let size = packet.len();
        match size <= max {
            true => Ok(()),
            false => Err(Rejected::new(Reason::TooBig { size, max })),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.core.tunnel.close();
    }
}

/// Packets of a client that are forwarded at a time: several runs of 64 KiB, of which a device writes each with one call.
const BATCH: usize = 512;

/// Batches before other tasks have their turn.
const TURNS: usize = 4;
