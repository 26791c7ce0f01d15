//! The search for the largest datagrams that the path carries. RFC 8899, RFC 9000 §14.

use std::cell::Cell;
use std::net::SocketAddr;

use courser_wire::frame::Frame;

use super::*;
use crate::testing::eye::Seen;
use crate::testing::traffic::Transfer;
use crate::testing::{End, Setup};

/// Returns settings with which both ends search up to `most` bytes.
fn setup(most: u16) -> Setup {
    let mut setup = Setup::default();
    setup.client.mtu_discovery = true;
    setup.client.mtu_max = most;
    setup.server.transport = Arc::new(setup.client.clone());
    setup
}

/// A connected pair on a path whose datagram size is the value of the cell, with a count of larger
/// datagrams of the client dropped.
struct Narrow {
    pair: Pair,
    carried: Rc<Cell<usize>>,
    dropped: Rc<Cell<usize>>,
}

impl Narrow {
    fn new(setup: Setup, carried: usize) -> Self {
        let mut pair = Pair::with(setup);
        let (carried, dropped) = (Rc::new(Cell::new(carried)), Rc::new(Cell::new(0)));
        let (limit, count) = (Rc::clone(&carried), Rc::clone(&dropped));
        let client = pair.client.address;
        pair.link.filter = Some(Box::new(move |_, datagram| {
            let passes = datagram.bytes.len() <= limit.get();
            let counts = !passes && datagram.from == client;
            count.set(count.get() + usize::from(counts));
            passes
        }));
        pair.connect();
        Self {
            pair,
            carried,
            dropped,
        }
    }

    fn mtu(&mut self) -> usize {
        usize::from(self.pair.client.connection().stats().path.mtu)
    }
}

#[test]
fn search_finds_the_mtu_of_the_path_and_loses_only_probes() {
    for carried in [1200, 1252, 1280, 1400, 1472, 3000, 8972] {
        let mut path = Narrow::new(setup(65_507), carried);
        path.pair.link.rate = Some(4_000_000);
        path.pair.upload(15_000_000);
        path.pair.run_for(RTT * 50);
        let found = path.mtu();
        assert!(
            found <= carried && carried - found <= 6,
            "{found} on a path of {carried}"
        );
        let dropped = path.dropped.get();
        assert!(dropped <= 45, "{dropped} probes lost for {carried}");
        let stats = path.pair.client.connection().stats();
        assert_eq!(stats.packets_lost, dropped as u64, "{carried}");
        assert_eq!(stats.congestion_events, 0, "{carried}: {stats:?}");
        // The last probe may have been in flight alone.
        assert!(stats.ptos <= 1, "{carried}: {} timeouts", stats.ptos);
    }
}

/// Uses an interface with jumbo frames on a path of 1500 bytes, as is common for servers in clouds.
#[test]
fn search_beyond_ethernet_costs_a_small_part_of_a_transfer() {
    let mut pair = Pair::with(setup(65_507));
    let lost = Rc::new(Cell::new(0));
    let seen = Rc::clone(&lost);
    pair.link.filter = Some(Box::new(move |_, datagram| {
        let len = datagram.bytes.len();
        seen.set(seen.get() + if len > 1472 { len } else { 0 });
        len <= 1472
    }));
    pair.connect();
    pair.link.rate = Some(4_000_000);
    pair.client.connection().set_interface_mtu(9001);
    pair.upload(2_000_000);
    // The first probe, and the one that the last byte of data permits.
    let most = 2_000_000 / 64 + 8973;
    let lost = lost.get();
    assert!((8973..=most).contains(&lost), "{lost} bytes of probes");
}

#[test]
fn largest_possible_datagrams_carry_data_in_both_directions() {
    let mut path = Narrow::new(setup(65_507), usize::MAX);
    path.pair.upload(8_000_000);
    path.pair.download(16_000_000);
    assert_eq!(path.mtu(), 65_507);
    assert_eq!(path.pair.server.connection().stats().path.mtu, 65_507);
    let largest = path.pair.client.sent.iter().map(|it| it.bytes.len()).max();
    assert_eq!(largest, Some(65_507));
}

#[test]
fn known_interface_mtu_takes_one_probe() {
    let mut pair = Pair::with(setup(65_507));
    pair.connect();
    pair.client.connection().set_interface_mtu(1500);
    pair.upload(1_000_000);
    let sizes: Vec<_> = pair.client.sent.iter().map(|it| it.bytes.len()).collect();
    let probe = sizes.iter().position(|&size| size > 1200).expect("a probe");
    assert_eq!(sizes.iter().max(), Some(&1472));
    assert!(sizes[..probe].iter().all(|&size| size <= 1200));
    assert_eq!(pair.client.connection().stats().path.mtu, 1472);
}

#[test]
fn probe_is_a_single_datagram_without_data() {
    let (setup, eye) = setup(1472).with_eye();
    let mut pair = Pair::with(setup);
    pair.connect();
    pair.client.connection().set_interface_mtu(1500);
    pair.upload(1_000_000);
    let sent = eye.client_sent(&pair);
    let probe = sent.iter().find(|seen| seen.datagram_len > 1200);
    let probe = probe.expect("a probe");
    assert_eq!(probe.datagram_len, 1472);
    let is_harmless =
        |frame: Frame<'_>| matches!(frame, Frame::Ping | Frame::ImmediateAck | Frame::Padding(_));
    assert!(probe.frames().all(is_harmless), "{probe:?}");
}

/// Counts the requests of an end for the MTU of its interface.
fn mtu_requests(end: &End) -> usize {
    let is_question = |it: &&Event| matches!(it, Event::InterfaceMtuWanted { .. });
    end.events.iter().filter(is_question).count()
}

/// Determining the MTU of an interface takes system calls, which connections that send little must avoid.
#[test]
fn interface_mtu_is_requested_once_by_a_connection_that_sends_full_datagrams() {
    let mut pair = Pair::with(setup(65_507));
    pair.connect();
    assert_eq!(mtu_requests(&pair.client), 0);
    pair.upload(20_000);
    assert_eq!(mtu_requests(&pair.client), 1);
    pair.upload(1_000_000);
    assert_eq!(mtu_requests(&pair.client), 1);
    assert!(pair.client.sent.iter().any(|it| it.bytes.len() > 1200));
    // The server sends little: its search begins by the time.
    pair.run_for(Duration::from_millis(200));
    assert_eq!(mtu_requests(&pair.server), 1);
}

#[test]
fn interface_mtu_is_requested_at_once_for_datagrams_above_1200_bytes() {
    let mut setup = setup(1472);
    setup.client.mtu = 1400;
    let mut pair = Pair::with(setup);
    pair.connect();
    assert_eq!(mtu_requests(&pair.client), 1);
    assert_eq!(mtu_requests(&pair.server), 0);
}

#[test]
fn short_connection_sends_no_probes() {
    let mut pair = Pair::with(setup(65_507));
    pair.connect();
    pair.client.connection().pings().request();
    pair.client.touch();
    pair.run_for(RTT);
    let is_small = |end: &End| end.sent.iter().all(|it| it.bytes.len() <= 1200);
    assert!(is_small(&pair.client) && is_small(&pair.server));
}

/// Sends a small datagram from the client.
fn send_datagram(pair: &mut Pair) {
    let (now, data) = (pair.now, Bytes::from_static(&[7; 64]));
    let sent = pair
        .client
        .connection()
        .send_datagram(now, data, SendOptions::default());
    assert_eq!(sent, Ok(None));
    pair.client.touch();
}

/// Returns the datagram sizes of both ends.
fn sizes(pair: &mut Pair) -> [u16; 2] {
    [&mut pair.client, &mut pair.server].map(|end| end.connection().stats().path.mtu)
}

#[test]
fn idle_connection_finds_the_mtu_on_both_ends() {
    for carried in [1200, 1280, 1392, 1472, 65_507] {
        let mut path = Narrow::new(setup(65_507), carried);
        path.pair.run_for(Duration::from_secs(5));
        let best = carried.min(1472);
        for found in sizes(&mut path.pair).map(usize::from) {
            let is_close = found <= best && best - found <= 6;
            assert!(is_close, "{found} on a path of {carried}");
        }
        let probes = [&path.pair.client, &path.pair.server].map(|end| end.sent.len());
        assert!(probes.iter().all(|&count| count <= 90), "{probes:?}");
    }
}

#[test]
fn idle_connection_finds_ethernet_within_300_ms() {
    let mut pair = Pair::with(setup(65_507));
    pair.connect();
    for end in [&mut pair.client, &mut pair.server] {
        end.connection().set_interface_mtu(1500);
    }
    pair.run_for(Duration::from_millis(200));
    assert_eq!(sizes(&mut pair), [1472, 1472]);
}

/// The search costs an idle connection a few packets once, and its idle timeout counts from the last of them.
#[test]
fn idle_connection_falls_silent_after_the_search_and_times_out() {
    for carried in [1250, 1472] {
        let mut path = Narrow::new(setup(65_507), carried);
        path.pair.run_for(Duration::from_secs(5));
        let sent = |pair: &Pair| pair.client.sent.len() + pair.server.sent.len();
        let (before, begin) = (sent(&path.pair), path.pair.now);
        path.pair.run_for(Duration::from_secs(24));
        assert_eq!(sent(&path.pair), before, "{carried}");
        assert!(!path.pair.client.connection().is_closed());
        path.pair.run_for(Duration::from_secs(7));
        for end in [&path.pair.client, &path.pair.server] {
            let is_over = end.has(&Event::Lost(ConnectionError::TimedOut));
            assert!(is_over, "{carried}, idle since {begin:?} at the latest");
        }
    }
}

#[test]
fn search_of_a_connection_with_small_datagrams_begins_at_once() {
    let mut pair = Pair::with(setup(65_507));
    pair.connect();
    pair.run_for(RTT);
    for _ in 0..4 {
        send_datagram(&mut pair);
        pair.run_for(RTT);
    }
    assert_eq!(sizes(&mut pair)[0], 1472);
}

#[test]
fn change_of_the_datagram_size_is_an_event() {
    let mut path = Narrow::new(setup(65_507), 1472);
    let changes = |end: &End| {
        let is_change = |it: &&Event| matches!(it, Event::DatagramSizeChanged);
        end.events.iter().filter(is_change).count()
    };
    assert_eq!(changes(&path.pair.client), 0);
    let before = path.pair.client.connection().max_datagram_size();
    path.pair.run_for(Duration::from_secs(1));
    let after = path.pair.client.connection().max_datagram_size();
    assert_eq!(after, before.map(|size| size + 272));
    // 1452, 1464 and 1472 bytes arrived.
    assert_eq!(changes(&path.pair.client), 3);
}

/// An outage has lowered the size, and a sender of small datagrams raises it again.
#[test]
fn size_returns_after_an_outage_of_a_connection_that_sends_little() {
    let mut path = Narrow::new(setup(1472), 1472);
    path.pair.run_for(Duration::from_secs(1));
    assert_eq!(path.mtu(), 1472);
    path.carried.set(0);
    send_datagram(&mut path.pair);
    path.pair.run_for(Duration::from_secs(2));
    assert_eq!(path.mtu(), 1200);
    path.carried.set(1472);
    send_datagram(&mut path.pair);
    path.pair.run_for(Duration::from_secs(3));
    assert_eq!(path.mtu(), 1472);
}

#[test]
fn disabled_search_sends_no_larger_datagrams() {
    let mut pair = Pair::connected();
    pair.client.connection().set_interface_mtu(9000);
    pair.upload(3_000_000);
    assert_eq!(pair.client.connection().stats().path.mtu, 1200);
    assert!(pair.client.sent.iter().all(|it| it.bytes.len() <= 1200));
}

#[test]
fn search_starts_at_the_configured_size_and_ends_at_the_maximum() {
    let mut setup = setup(1400);
    setup.client.mtu = 1300;
    let mut pair = Pair::with(setup);
    pair.connect();
    assert_eq!(pair.client.connection().stats().path.mtu, 1300);
    pair.upload(3_000_000);
    assert_eq!(pair.client.connection().stats().path.mtu, 1400);
    let largest = pair.client.sent.iter().map(|it| it.bytes.len()).max();
    assert_eq!(largest, Some(1400));
}

/// The MTU falls while data is in flight (attack A47).
#[test]
fn mtu_that_falls_during_a_transfer_is_followed() {
    let mut path = Narrow::new(setup(1472), 1472);
    path.pair.upload(1_000_000);
    assert_eq!(path.mtu(), 1472);
    for carried in [1280, 1200] {
        let mut transfer = Transfer::up(&mut path.pair, 3_000_000);
        for _ in 0..20 {
            path.pair.step();
            transfer.step(&mut path.pair);
        }
        let before = path.pair.client.connection().stats().ptos;
        path.carried.set(carried);
        let time = transfer.finish(&mut path.pair, Duration::from_secs(60));
        let time = time.expect("the transfer ends");
        assert!(time < Duration::from_secs(2), "{time:?} at {carried}");
        let ptos = path.pair.client.connection().stats().ptos - before;
        assert!(ptos <= 1, "{ptos} probe timeouts at {carried}");
        // The search from below takes time; the transfer does not wait for it.
        for _ in 0..3 {
            path.pair.upload(3_000_000);
        }
        let found = path.mtu();
        assert!(found <= carried && carried - found <= 28, "{found}");
    }
}

#[test]
fn outage_costs_one_probe_and_the_size_returns() {
    let mut path = Narrow::new(setup(1472), 1472);
    path.pair.upload(1_000_000);
    let mut transfer = Transfer::up(&mut path.pair, 3_000_000);
    for _ in 0..20 {
        path.pair.step();
        transfer.step(&mut path.pair);
    }
    path.carried.set(0);
    path.pair.run_for(Duration::from_secs(2));
    assert_eq!(path.mtu(), 1200, "the cause of the losses is unknown");
    path.carried.set(1472);
    let time = transfer.finish(&mut path.pair, Duration::from_secs(60));
    assert!(time.is_some());
    assert_eq!(path.mtu(), 1472);
}

#[test]
fn path_that_carries_only_small_packets_ends_the_connection() {
    let (setup, eye) = setup(1472).with_eye();
    let mut path = Narrow::new(setup, 1472);
    path.carried.set(1100);
    // Little enough data to leave room in the window for small packets.
    let mut transfer = Transfer::up(&mut path.pair, 1_200);
    let ended = |pair: &mut Pair| pair.client_error() == Some(0x10);
    let end = path.pair.now + Duration::from_secs(20);
    while !ended(&mut path.pair) {
        if path.pair.now > end {
            let search = path
                .pair
                .client
                .connection()
                .packets
                .recovery
                .path()
                .search();
            panic!("NO_VIABLE_PATH is never sent: {search:?}");
        }
        path.pair.client.connection().pings().request();
        transfer.step(&mut path.pair);
        path.pair.run_for(Duration::from_millis(50));
    }
    let is_close = |packet: &Seen| packet.has(|it| matches!(it, Frame::ConnectionClose(_)));
    let sent = eye.client_sent(&path.pair);
    let first = sent
        .iter()
        .position(is_close)
        .expect("a CONNECTION_CLOSE is sent");
    path.pair.run_for(Duration::from_secs(5));
    let sent = eye.client_sent(&path.pair);
    assert!(
        sent[first..].iter().all(is_close),
        "nothing else is sent afterwards"
    );
}

fn move_client(pair: &mut Pair, to: &str) {
    let to: SocketAddr = to.parse().expect("an address");
    pair.client.address = to;
    pair.client.connection().pings().request();
    pair.client.touch();
    pair.run_for(RTT * 2);
}

#[test]
fn rebinding_keeps_the_size_and_a_new_network_restarts_the_search() {
    let mut pair = Pair::with(setup(1472));
    pair.connect();
    pair.download(1_000_000);
    let mtu = |pair: &mut Pair| pair.server.connection().stats().path.mtu;
    assert_eq!(mtu(&mut pair), 1472);
    move_client(&mut pair, "10.0.0.1:50001");
    assert_eq!(mtu(&mut pair), 1472);
    move_client(&mut pair, "192.168.7.7:40000");
    assert_eq!(mtu(&mut pair), 1200);
    pair.download(1_000_000);
    assert_eq!(mtu(&mut pair), 1472);
}

#[test]
fn lost_probes_leave_nothing_in_flight() {
    let mut path = Narrow::new(setup(65_507), 1300);
    path.pair.upload(4_000_000);
    path.pair.run_for(Duration::from_secs(5));
    let connection = path.pair.client.connection();
    assert_eq!(connection.stats().path.bytes_in_flight, 0);
    assert_eq!(connection.packets.recovery.lists_in_use(), 0);
}
