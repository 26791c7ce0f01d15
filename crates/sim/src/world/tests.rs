use std::net::SocketAddr;

use bytes::Bytes;
use courser_base::Ecn;

use super::*;
use crate::apps::{Amount, Bulk, Exchange, Paced, Serve, TransferDirection};
use crate::host::{Host, HostSpec};

fn client_address(index: u8) -> SocketAddr {
    SocketAddr::from(([10, 1, index, 1], 50_000))
}

fn server_address(index: u8) -> SocketAddr {
    SocketAddr::from(([10, 2, index, 1], 443))
}

fn duplex(text: &str) -> DuplexSpec {
    text.parse().expect("the link specification is valid")
}

fn add_client(world: &mut World, index: u8, app: impl crate::host::App) -> NodeId {
    let name = format!("client-{index}");
    let address = client_address(index);
    let host = Host::new(HostSpec::client(address, world.seed_for(&name)), app);
    world.add(&name, address.ip(), host)
}

fn add_server(world: &mut World, index: u8) -> NodeId {
    let name = format!("server-{index}");
    let address = server_address(index);
    let host = Host::new(
        HostSpec::server(address, world.seed_for(&name)),
        Serve::new(),
    );
    world.add(&name, address.ip(), host)
}

fn counters(world: &World, id: NodeId) -> &crate::apps::AppCounters {
    let host = world.node::<Host>(id).expect("the node is a host");
    host.counters().expect("the application has counters")
}

/// Runs a client that sends 1 MB over a link with many effects.
fn eventful(seed: u64) -> (u64, u64, u64) {
    let mut world = World::new(seed);
    let amount = Amount::Bytes(1_000_000);
    let client = add_client(
        &mut world,
        1,
        Bulk::new(server_address(1), TransferDirection::Up, amount),
    );
    let server = add_server(&mut world, 1);
    let link = "20mbit,10ms,jitter=1ms,loss=1%,reorder=2%:8ms,duplicate=1%,corrupt=1%,queue=20p";
    world.connect(client, server, &duplex(link));
    world
        .run_for(Duration::from_secs(20))
        .expect("the world does not stall");
    let received = counters(&world, server).received;
    (world.digest(), world.events(), received)
}

#[test]
fn digest_of_a_seed_is_the_same_on_every_machine() {
    let first = eventful(7);
    assert_eq!(first.2, 1_000_000);
    assert_eq!(first, eventful(7));
    assert_ne!(first.0, eventful(8).0);
    assert_eq!(first.0, GOLDEN, "events: {}", first.1);
}

/// The digest of `eventful(7)`. It changes with every change to the packets or their times. Compare
/// the traces before updating it.
const GOLDEN: u64 = 611_594_020_522_581_601;

#[test]
fn dumbbell_serves_every_pair() {
    let mut world = World::new(3);
    let pairs: Vec<_> = (1..=4)
        .map(|index| {
            let amount = Amount::Bytes(300_000);
            let direction = if index % 2 == 0 {
                TransferDirection::Up
            } else {
                TransferDirection::Down
            };
            let client = add_client(
                &mut world,
                index,
                Bulk::new(server_address(index), direction, amount),
            );
            (client, add_server(&mut world, index), direction)
        })
        .collect();
    let left: Vec<_> = pairs.iter().map(|pair| pair.0).collect();
    let right: Vec<_> = pairs.iter().map(|pair| pair.1).collect();
    let pair = world.bottleneck(&left, &right, &duplex("10mbit,20ms,queue=1bdp"));
    world
        .run_for(Duration::from_secs(10))
        .expect("the world does not stall");
    for (client, server, direction) in pairs {
        let receiver = if direction == TransferDirection::Up {
            server
        } else {
            client
        };
        assert_eq!(
            counters(&world, receiver).received,
            300_000,
            "{direction:?}"
        );
        assert_eq!(counters(&world, receiver).mismatch, None);
    }
    let stats = world.link(pair.forward).stats();
    assert!(
        stats.bytes_out > 600_000,
        "two uploads share the link: {stats:?}"
    );
}

#[test]
fn connection_survives_a_nat_that_rebinds() {
    for link in ["10mbit,20ms,rebind=1s", "10mbit,20ms,rebind=addr:1s"] {
        let mut world = World::new(5);
        let ping = Exchange::ping(server_address(1), Duration::from_millis(100), Some(50));
        let client = add_client(&mut world, 1, ping);
        let server = add_server(&mut world, 1);
        let pair = world.connect(client, server, &duplex(link));
        let sources = std::rc::Rc::new(std::cell::RefCell::new(std::collections::BTreeSet::new()));
        let seen = std::rc::Rc::clone(&sources);
        world.on_trace(Box::new(move |event| {
            if event.happening == PacketEvent::Delivered && event.destination == server_address(1) {
                seen.borrow_mut().insert(event.source);
            }
        }));
        world
            .run_for(Duration::from_secs(8))
            .expect("the world does not stall");
        let counters = counters(&world, client);
        assert_eq!(counters.failures, Vec::<String>::new(), "{link}");
        assert_eq!(counters.exchanges.len(), 50, "{link}");
        assert!(world.rebindings(pair) >= 4, "{link}");
        let sources = sources.borrow();
        assert!(sources.len() >= 4, "{link}: {sources:?}");
        let addresses: std::collections::BTreeSet<_> = sources.iter().map(SocketAddr::ip).collect();
        assert_eq!(addresses.len() > 1, link.contains("addr"), "{addresses:?}");
    }
}

#[test]
fn ping_takes_the_round_trip_and_serialisation() {
    let mut world = World::new(1);
    let ping = Exchange::ping(server_address(1), Duration::from_millis(50), Some(20));
    let client = add_client(&mut world, 1, ping);
    let server = add_server(&mut world, 1);
    world.connect(client, server, &duplex("100mbit,20ms"));
    world
        .run_for(Duration::from_secs(5))
        .expect("the world does not stall");
    let exchanges = &counters(&world, client).exchanges;
    assert_eq!(exchanges.len(), 20);
    for (at, took) in exchanges {
        let allowed = Duration::from_millis(40)..Duration::from_millis(41);
        assert!(allowed.contains(took), "at {at:?}: {took:?}");
    }
}

#[test]
fn paced_writer_sends_what_is_due_and_no_more() {
    let mut world = World::new(1);
    let end = Time::ZERO + Duration::from_secs(3);
    let paced = Paced::new(server_address(1), 5000, Duration::from_millis(20));
    let client = add_client(&mut world, 1, paced.between(Time::ZERO, end));
    let server = add_server(&mut world, 1);
    world.connect(client, server, &duplex("100mbit,20ms"));
    world
        .run_for(Duration::from_secs(4))
        .expect("the world does not stall");
    // The handshake takes 40 ms. Data written within the last delay may be cut off.
    let received = counters(&world, server).received / 5000;
    assert!((145..=148).contains(&received), "{received} frames");
}

#[test]
fn run_until_stops_when_it_is_done() {
    let mut world = World::new(1);
    let amount = Amount::Bytes(50_000);
    let client = add_client(
        &mut world,
        1,
        Bulk::new(server_address(1), TransferDirection::Down, amount),
    );
    let server = add_server(&mut world, 1);
    world.connect(client, server, &duplex("100mbit,20ms"));
    let limit = Duration::from_secs(100);
    let done = world.run_until(limit, |world| counters(world, client).received == 50_000);
    assert_eq!(done, Ok(true));
    assert!(
        world.now() < Time::ZERO + Duration::from_secs(1),
        "{:?}",
        world.now()
    );
    let never = world.run_until(Duration::from_secs(5), |_| false);
    assert_eq!(never, Ok(false));
}

/// A machine that answers every packet. One end sends the first packet.
struct Echo {
    address: SocketAddr,
    peer: SocketAddr,
    waiting: Vec<Packet>,
}

impl Node for Echo {
    fn receive(&mut self, _now: Time, packet: Packet) {
        self.waiting.push(packet);
    }

    fn run(&mut self, _now: Time) {}

    fn transmit(&mut self, _now: Time) -> Option<Packet> {
        self.waiting.pop().map(|packet| Packet {
            source: self.address,
            destination: self.peer,
            ..packet
        })
    }

    fn next_timeout(&self) -> Option<Time> {
        None
    }
}

fn echo(from: SocketAddr, to: SocketAddr, starts: bool) -> Echo {
    let packet = Packet {
        source: from,
        destination: to,
        ecn: Ecn::NotEct,
        payload: Bytes::from_static(b"hello"),
    };
    Echo {
        address: from,
        peer: to,
        waiting: if starts { vec![packet] } else { Vec::new() },
    }
}

#[test]
fn stalled_time_is_an_error_that_names_the_machine() {
    let mut world = World::new(1);
    let (a, b) = (client_address(1), server_address(1));
    let left = world.add("left", a.ip(), echo(a, b, true));
    let right = world.add("right", b.ip(), echo(b, a, false));
    world.join(left, right, &[]);
    let stall = world
        .run_for(Duration::from_secs(1))
        .expect_err("the run stalls");
    assert_eq!(stall.at, Time::ZERO);
    let text = stall.to_string();
    assert!(
        text.contains("'left'") || text.contains("'right'"),
        "{text}"
    );
}

#[test]
fn unroutable_packet_is_traced() {
    let mut world = World::new(1);
    let (a, b) = (client_address(1), server_address(1));
    world.add("left", a.ip(), echo(a, b, true));
    let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let lines = std::rc::Rc::clone(&seen);
    world.on_trace(Box::new(move |event| {
        lines.borrow_mut().push(event.to_string())
    }));
    world
        .run_for(Duration::from_secs(1))
        .expect("the world does not stall");
    let seen = seen.borrow();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen[1].contains("unroutable"), "{seen:?}");
}
