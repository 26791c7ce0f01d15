//! The task of an IP tunnel on a proxy: packets of its client go to the network.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser_masque::ip::{Filter, Header, Reason, Rejected};
use courser_quic::runtime::{self, Sleep};

use super::core::Core;
use super::lease::Lease;
use super::network::Network;
use crate::connect::is_own_address;

/// One direction of a tunnel; the other one is the network's.
pub(crate) struct Relay {
    core: Core,
    network: Arc<Network>,
    filter: Filter,
    packets: Vec<Bytes>,
    answers: Vec<Bytes>,
    idle: Pin<Box<Sleep>>,
    time: Duration,
    /// Packets of both directions at the last look.
    seen: u64,
    /// Given back at the end.
    _lease: Arc<Lease>,
}

impl Relay {
    pub(crate) fn new(
        core: Core,
        network: Arc<Network>,
        lease: Arc<Lease>,
        idle: Duration,
    ) -> Self {
        Self {
            core,
            network,
            filter: Filter::default(),
            packets: Vec::new(),
            answers: Vec::new(),
            idle: Box::pin(runtime::sleep(idle)),
            time: idle,
            seen: 0,
            _lease: lease,
        }
    }

    /// Runs until the tunnel ends, the network fails, or no packet has passed for too long.
    pub(crate) async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..TURNS {
            let (packets, answers) = (&mut self.packets, &mut self.answers);
            match self.core.poll_receive(cx, packets, answers, BATCH) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => return self.poll_idle(cx),
            }
            if self.forward().is_err() {
                self.network.fail();
                return Poll::Ready(());
            }
        }
        // Other tasks have their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.idle.as_mut().poll(cx).is_ready() {
            let stats = self.core.stats();
            let seen = stats.received + stats.sent;
            if seen == self.seen {
                return Poll::Ready(());
            }
            self.seen = seen;
            self.idle = Box::pin(runtime::sleep(self.time));
        }
        Poll::Pending
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

/// Packets of a client that are forwarded at a time.
const BATCH: usize = 64;

/// Batches before other tasks have their turn.
const TURNS: usize = 16;
