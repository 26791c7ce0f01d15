//! A host whose chosen datagrams are lost, and for which the three-times limit is checked.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use super::attacker::ATTACKER;
use courser_base::Time;
use courser_sim::host::Host;
use courser_sim::node::Node;
use courser_sim::packet::{Packet, TooBig};
use courser_wire::packet::{self, PacketKind};

/// The observations of the watchers of both hosts.
#[derive(Clone)]
pub struct Watcher(Rc<RefCell<Observations>>);

struct Observations {
    server: SocketAddr,
    lost: Vec<u64>,
    damaged: Vec<(u64, usize)>,
    count: u64,
    accounts: BTreeMap<SocketAddr, Account>,
}

#[derive(Clone, Copy, Default)]
struct Account {
    received: usize,
    sent: usize,
    is_proven: bool,
}

impl Watcher {
    pub fn new(server: SocketAddr, lost: Vec<u64>, damaged: Vec<(u64, usize)>) -> Self {
        Self(Rc::new(RefCell::new(Observations {
            server,
            lost,
            damaged,
            count: 0,
            accounts: BTreeMap::new(),
        })))
    }
}

/// A host with its watcher.
pub struct Watched {
    pub host: Host,
    watcher: Watcher,
}

impl Watched {
    pub fn new(host: Host, watcher: Watcher) -> Self {
        Self { host, watcher }
    }
}

impl Observations {
    /// Checks RFC 9000 §8.1 from outside: before a packet arrives that only a receiver at an
    /// address could have sent, three times the received bytes may be sent there.
    fn on_sent(&mut self, packet: &Packet) {
        if packet.source != self.server {
            return;
        }
        let account = self.accounts.entry(packet.destination).or_default();
        account.sent += packet.payload.len();
        assert!(
            account.is_proven || account.sent <= 3 * account.received,
            "{} bytes to {} for {}",
            account.sent,
            packet.destination,
            account.received,
        );
    }

    fn damage(&self, packet: &mut Packet) {
        let number = self.count;
        let Some((_, at)) = self.damaged.iter().find(|(damaged, _)| *damaged == number) else {
            return;
        };
        let mut bytes = packet.payload.to_vec();
        let at = (*at).min(bytes.len() - 1);
        bytes[at] ^= 0x55;
        packet.payload = bytes.into();
    }

    fn on_received(&mut self, packet: &Packet) {
        if packet.destination != self.server {
            return;
        }
        let source = packet.source;
        let account = self.accounts.entry(source).or_default();
        account.received += packet.payload.len();
        let mut rest = &packet.payload[..];
        while let Ok(packet) = packet::decode(rest, 0, 8) {
            // A sender that only repeats copied packets proves nothing.
            account.is_proven |= source != ATTACKER
                && match packet.kind {
                    PacketKind::Initial => !packet.token.is_empty(),
                    PacketKind::Handshake | PacketKind::OneRtt => true,
                    _ => false,
                };
            rest = &rest[packet.end..];
        }
    }
}

impl Node for Watched {
    fn receive(&mut self, now: Time, packet: Packet) {
        self.watcher.0.borrow_mut().on_received(&packet);
        self.host.receive(now, packet);
    }

    fn packet_too_big(&mut self, now: Time, message: &TooBig) {
        self.host.packet_too_big(now, message);
    }

    fn run(&mut self, now: Time) {
        self.host.run(now);
    }

    fn transmit(&mut self, now: Time) -> Option<Packet> {
        loop {
            let mut packet = self.host.transmit(now)?;
            let mut seen = self.watcher.0.borrow_mut();
            seen.on_sent(&packet);
            seen.count += 1;
            seen.damage(&mut packet);
            if !seen.lost.contains(&seen.count) {
                return Some(packet);
            }
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        self.host.next_timeout()
    }
}
