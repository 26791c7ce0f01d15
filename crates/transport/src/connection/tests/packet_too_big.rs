//! ICMP Packet Too Big messages, genuine and forged. RFC 9000 §14.2.1, RFC 8899 §4.6.

use std::cell::Cell;

use super::*;
use crate::endpoint::PacketTooBig;
use crate::testing::Setup;
use crate::testing::traffic::Transfer;

/// Bytes of the IPv4 and UDP headers.
const HEADERS: usize = 28;

/// A connected pair on a path whose first link carries datagrams of at most this size, with the
/// larger ones that it refused.
struct Narrow {
    pair: Pair,
    carried: Rc<Cell<usize>>,
    refused: Rc<RefCell<Vec<Datagram>>>,
}

impl Narrow {
    fn new(client_cid_len: usize) -> Self {
        let mut setup = Setup::default();
        setup.client.mtu_discovery = true;
        setup.client.mtu_max = 1472;
        setup.server.transport = Arc::new(setup.client.clone());
        setup.client_cid_len = client_cid_len;
        let mut pair = Pair::with(setup);
        pair.link.rate = Some(4_000_000);
        let carried = Rc::new(Cell::new(1472));
        let refused = Rc::new(RefCell::new(Vec::new()));
        let (limit, list) = (Rc::clone(&carried), Rc::clone(&refused));
        pair.link.filter = Some(Box::new(move |_, datagram| {
            let passes = datagram.bytes.len() <= limit.get();
            if !passes {
                list.borrow_mut().push(datagram.clone());
            }
            passes
        }));
        pair.connect();
        Self {
            pair,
            carried,
            refused,
        }
    }

    /// Starts a transfer at 1472 bytes on a path whose size has just fallen: the datagrams in
    /// flight were refused, but no message has arrived yet.
    fn shrunk(to_client: bool, carried: usize) -> (Self, Transfer) {
        let mut path = Self::new(if to_client { 0 } else { 8 });
        if to_client {
            path.pair.download(1_000_000);
        } else {
            path.pair.upload(1_000_000);
        }
        let mut transfer = if to_client {
            Transfer::down(&mut path.pair, 2_000_000)
        } else {
            Transfer::up(&mut path.pair, 2_000_000)
        };
        for _ in 0..50 {
            path.pair.step();
            transfer.step(&mut path.pair);
        }
        path.carried.set(carried);
        while path.refused.borrow().is_empty() {
            path.pair.step();
            transfer.step(&mut path.pair);
        }
        (path, transfer)
    }

    /// Delivers the ICMP messages of the router for all datagrams refused since the last call.
    fn answer(&mut self) -> usize {
        let refused = std::mem::take(&mut *self.refused.borrow_mut());
        let mtu = self.carried.get() + HEADERS;
        refused
            .iter()
            .filter(|datagram| self.report(datagram, mtu, MANY))
            .count()
    }

    /// Delivers one message about a datagram, with `quoted` bytes of it. Returns true if it was
    /// accepted.
    fn report(&mut self, datagram: &Datagram, mtu: usize, quoted: usize) -> bool {
        let quote = &datagram.bytes[..quoted.min(datagram.bytes.len())];
        let message = PacketTooBig {
            peer: datagram.to,
            mtu: u32::try_from(mtu).expect("small"),
            quote,
        };
        let end = if datagram.from == self.pair.client.address {
            &mut self.pair.client
        } else {
            &mut self.pair.server
        };
        end.endpoint.on_packet_too_big(self.pair.now, &message)
    }

    fn stats(&mut self) -> ConnectionStats {
        self.pair.client.connection().stats()
    }
}

/// Bytes that routers commonly quote.
const MANY: usize = 548;

/// Returns a datagram that the client sent, delivered or not.
fn sent(path: &Narrow, is_chosen: impl Fn(&Datagram) -> bool) -> Datagram {
    let mut all = path.pair.client.sent.iter().rev();
    all.find(|datagram| is_chosen(datagram))
        .expect("sent")
        .clone()
}

#[test]
fn reported_mtu_is_applied_at_once_and_is_no_congestion() {
    for to_client in [false, true] {
        let (mut path, mut transfer) = Narrow::shrunk(to_client, 1372);
        let sender = |path: &mut Narrow| {
            if to_client {
                path.pair.server.connection().stats()
            } else {
                path.pair.client.connection().stats()
            }
        };
        let before = sender(&mut path);
        assert_eq!(before.path.mtu, 1472);
        assert!(path.answer() > 0, "the first report is accepted at once");
        assert_eq!(sender(&mut path).path.mtu, 1372);
        for _ in 0..4_000 {
            path.pair.step();
            path.answer();
            if transfer.step(&mut path.pair) {
                break;
            }
        }
        let after = sender(&mut path);
        assert_eq!(transfer.received(), 2_000_000);
        assert_eq!(after.path.mtu, 1372);
        assert_eq!(after.congestion_events, before.congestion_events);
        assert_eq!(after.ptos, before.ptos, "no timeout was needed");
        assert!(after.packets_lost > before.packets_lost);
    }
}

/// Routers limit the rate of their messages: datagrams without a message were refused all the same.
#[test]
fn one_report_for_a_whole_flight_is_enough() {
    let (mut path, mut transfer) = Narrow::shrunk(false, 1400);
    let before = path.stats();
    for _ in 0..40 {
        path.pair.step();
        transfer.step(&mut path.pair);
    }
    let refused = std::mem::take(&mut *path.refused.borrow_mut());
    assert!(refused.len() > 3, "{}", refused.len());
    assert!(path.report(&refused[0], 1428, MANY));
    let time = transfer.finish(&mut path.pair, Duration::from_secs(20));
    assert!(time.is_some());
    let after = path.stats();
    assert_eq!(after.path.mtu, 1400);
    assert_eq!(after.congestion_events, before.congestion_events);
    assert_eq!(
        after.packets_lost - before.packets_lost,
        refused.len() as u64
    );
}

#[test]
fn report_about_a_probe_determines_the_next_one() {
    let mut path = Narrow::new(8);
    path.carried.set(1390);
    path.pair.client.connection().set_interface_mtu(1500);
    let mut transfer = Transfer::up(&mut path.pair, 500_000);
    for _ in 0..400 {
        path.pair.step();
        path.answer();
        transfer.step(&mut path.pair);
    }
    assert_eq!(path.stats().path.mtu, 1390, "exactly the reported MTU");
    let probes = path.pair.client.sent.iter();
    let mut sizes: Vec<_> = probes
        .map(|it| it.bytes.len())
        .filter(|len| *len > 1200)
        .collect();
    sizes.dedup();
    assert_eq!(sizes[..2], [1472, 1390]);
    assert!(sizes[2..].iter().all(|size| *size <= 1390), "{sizes:?}");
}

/// Reported values outside the possible range have no effect (conformance rule 9000-231).
#[test]
fn claims_below_1200_bytes_and_above_the_datagram_are_ignored() {
    let (mut path, _transfer) = Narrow::shrunk(false, 1372);
    let refused = path.refused.borrow()[0].clone();
    for mtu in [
        0,
        28,
        68,
        576,
        1199 + HEADERS,
        1472 + HEADERS,
        1500,
        9000,
        65_535,
    ] {
        let before = path.stats();
        assert!(!path.report(&refused, mtu, MANY), "{mtu}");
        assert_eq!(path.stats(), before, "{mtu}");
    }
    assert!(path.report(&refused, 1200 + HEADERS, MANY));
    assert_eq!(path.stats().path.mtu, 1200);
}

/// Only quotes of packets in flight are accepted (conformance rule 9000-232).
#[test]
fn forged_quotes_change_nothing() {
    let (mut path, _transfer) = Narrow::shrunk(false, 1372);
    let real = path.refused.borrow()[0].clone();
    let changed = |change: &dyn Fn(&mut Datagram)| {
        let mut datagram = real.clone();
        change(&mut datagram);
        datagram
    };
    let forged = [
        ("another address", changed(&|it| it.to.set_port(4434))),
        ("another connection ID", changed(&|it| it.bytes[3] ^= 1)),
        ("a long header", changed(&|it| it.bytes[0] |= 0x80)),
        ("no fixed bit", changed(&|it| it.bytes[0] &= !0x40)),
        ("nothing at all", changed(&|it| it.bytes.clear())),
        ("one byte", changed(&|it| it.bytes.truncate(1))),
        ("half an ID", changed(&|it| it.bytes.truncate(5))),
        ("no packet number", changed(&|it| it.bytes.truncate(9))),
        ("half a sample", changed(&|it| it.bytes.truncate(28))),
        ("zeros", changed(&|it| it.bytes.fill(0))),
        (
            "a packet that arrived",
            sent(&path, |it| {
                it.bytes.len() == 1472 && it.to.port() == 4433 && *it != real
            }),
        ),
        ("a handshake packet", path.pair.client.sent[0].clone()),
    ];
    // Packets in flight could be refused as well, an acknowledged one could not. It is not much
    // older than they are, because the short number of an old packet may match another one.
    let sent = &path.pair.client.sent;
    let refused = sent.iter().position(|it| *it == real).expect("sent");
    let acknowledged = sent[..refused - 100].iter().rev();
    let acknowledged = acknowledged
        .into_iter()
        .find(|it| it.bytes.len() == 1472)
        .expect("of the transfer before")
        .clone();
    let before = path.stats();
    for (what, datagram) in &forged {
        if *what == "a packet that arrived" {
            assert!(!path.report(&acknowledged, 1400, MANY), "{what}");
        } else {
            assert!(!path.report(datagram, 1400, MANY), "{what}");
        }
        assert_eq!(path.stats(), before, "{what}");
    }
    let stats = path.pair.client.endpoint.stats();
    assert_eq!(stats.packets_too_big_ignored, forged.len() as u64);
    assert!(
        path.report(&real, 1400, MANY),
        "the genuine report is accepted"
    );
}

/// An attacker who sees the connection ID could quote real packets too. Guesses achieve no more
/// than that: each packet in flight is declared lost once, and the size never falls below the reported
/// one.
#[test]
fn guesses_affect_only_packets_in_flight() {
    let (mut path, transfer) = Narrow::shrunk(false, 1372);
    let real = path.refused.borrow()[0].clone();
    let before = path.stats();
    let in_flight = before.path.bytes_in_flight / 1300;
    for guess in 0..20_000_u32 {
        let mut forged = real.clone();
        forged.bytes[9..13].copy_from_slice(&guess.wrapping_mul(2_654_435_761).to_be_bytes());
        path.report(&forged, 1328, MANY);
    }
    let after = path.stats();
    assert!(after.path.mtu >= 1300);
    let lost = after.packets_lost - before.packets_lost;
    assert!(
        lost <= in_flight,
        "{lost} of {in_flight} packets declared lost"
    );
    assert_eq!(after.congestion_events, before.congestion_events);
    path.carried.set(1472);
    let time = transfer.finish(&mut path.pair, Duration::from_secs(20));
    assert!(time.is_some());
}

#[test]
fn repeated_message_counts_once() {
    let (mut path, transfer) = Narrow::shrunk(false, 1372);
    let real = path.refused.borrow()[0].clone();
    let believed = (0..10_000)
        .filter(|_| path.report(&real, 1400, MANY))
        .count();
    assert_eq!(believed, 1);
    let stats = path.pair.client.endpoint.stats();
    assert_eq!(stats.packets_too_big_ignored, 9_999);
    path.carried.set(1472);
    let time = transfer.finish(&mut path.pair, Duration::from_secs(20));
    assert!(time.is_some());
    assert_eq!(path.stats().path.mtu, 1372);
}

/// The router was wrong, or the message was forged: the packet declared lost arrives after all.
#[test]
fn arrival_of_a_packet_reported_as_refused_is_harmless() {
    let mut path = Narrow::new(8);
    path.pair.upload(1_000_000);
    let mut transfer = Transfer::up(&mut path.pair, 1_000_000);
    for _ in 0..20 {
        path.pair.step();
        transfer.step(&mut path.pair);
    }
    let last = sent(&path, |it| it.bytes.len() == 1472);
    assert!(path.report(&last, 1328, MANY));
    assert_eq!(path.stats().path.mtu, 1300);
    let time = transfer.finish(&mut path.pair, Duration::from_secs(20));
    assert!(time.is_some());
    assert_eq!(path.pair.client_error(), None);
    path.pair.run_for(Duration::from_secs(2));
    assert_eq!(path.stats().path.bytes_in_flight, 0);
    // Some ten minutes later the size is tried again.
    path.pair.run_for(Duration::from_secs(20));
    let connection = path.pair.client.connection();
    assert_eq!(connection.packets.recovery.lists_in_use(), 0);
}

/// Old routers quote only eight bytes, which contain no connection ID.
#[test]
fn quote_without_a_packet_number_counts_only_for_a_probe() {
    let (mut path, _transfer) = Narrow::shrunk(false, 1372);
    let real = path.refused.borrow()[0].clone();
    assert!(!path.report(&real, 1400, 8));
    assert!(!path.report(&real, 1400, 12), "no probe is in flight");
    assert_eq!(path.stats().path.mtu, 1472);

    let mut path = Narrow::new(8);
    path.carried.set(1390);
    path.pair.client.connection().set_interface_mtu(1500);
    let mut transfer = Transfer::up(&mut path.pair, 500_000);
    let client = path.pair.client.address;
    let by_client = |it: &Datagram| it.from == client;
    while !path.refused.borrow().iter().any(by_client) {
        path.pair.step();
        transfer.step(&mut path.pair);
    }
    let probe = path
        .refused
        .borrow()
        .iter()
        .find(|it| by_client(it))
        .cloned();
    let probe = probe.expect("a probe of the client");
    assert_eq!(probe.bytes.len(), 1472);
    assert!(!path.report(&probe, 1418, 8));
    assert!(path.report(&probe, 1418, 12));
    let time = transfer.finish(&mut path.pair, Duration::from_secs(20));
    assert!(time.is_some());
    assert_eq!(path.stats().path.mtu, 1390);
}

#[test]
fn fixed_size_and_closed_connections_ignore_reports() {
    let mut pair = Pair::connected();
    pair.client.connection().pings().request();
    pair.client.touch();
    pair.upload(50_000);
    let full = pair.client.sent.iter().rev();
    let full = full.clone().find(|it| it.bytes.len() == 1200);
    let full = full.expect("a full one").clone();
    let message = PacketTooBig {
        peer: full.to,
        mtu: 1228,
        quote: &full.bytes,
    };
    assert!(!pair.client.endpoint.on_packet_too_big(pair.now, &message));
    let now = pair.now;
    pair.client.connection().close(now, 0, b"");
    pair.client.touch();
    pair.run_for(RTT * 2);
    assert!(!pair.client.endpoint.on_packet_too_big(pair.now, &message));
    pair.run_for(Duration::from_secs(30));
    assert!(!pair.client.endpoint.on_packet_too_big(pair.now, &message));
}

/// The client moved, so messages about its old address do not concern the path in use.
#[test]
fn message_about_a_previous_address_is_ignored() {
    let (mut path, _transfer) = Narrow::shrunk(true, 1372);
    let real = path.refused.borrow()[0].clone();
    path.pair.client.address = "10.0.0.1:50001".parse().expect("an address");
    path.carried.set(1472);
    path.pair.client.connection().pings().request();
    path.pair.client.touch();
    path.pair.run_for(RTT * 2);
    assert!(!path.report(&real, 1400, MANY));
}
