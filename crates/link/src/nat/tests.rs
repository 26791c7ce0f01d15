use bytes::Bytes;
use courser_base::Ecn;

use super::*;

fn server() -> SocketAddr {
    ([192, 0, 2, 1], 443).into()
}

fn client(host: u8) -> SocketAddr {
    ([10, 0, 0, host], 5000).into()
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn sent(nat: &mut Nat, now: Time, source: SocketAddr) -> SocketAddr {
    let mut packet = Packet {
        source,
        destination: server(),
        ecn: Ecn::NotEct,
        payload: Bytes::new(),
    };
    nat.outbound(now, &mut packet);
    packet.source
}

fn answered(nat: &mut Nat, now: Time, destination: SocketAddr) -> Option<SocketAddr> {
    let mut packet = Packet {
        source: server(),
        destination,
        ecn: Ecn::NotEct,
        payload: Bytes::new(),
    };
    nat.inbound(now, &mut packet).then_some(packet.destination)
}

fn every_second(address: bool) -> NatSpec {
    NatSpec {
        address,
        ..NatSpec::every(Duration::from_secs(1))
    }
}

#[test]
fn replies_are_translated_and_those_to_an_old_port_are_dropped() {
    let mut nat = Nat::new(every_second(false), 1);
    let first = sent(&mut nat, at(0), client(1));
    assert_eq!(first, client(1));
    assert_eq!(answered(&mut nat, at(999), first), Some(client(1)));
    assert_eq!(answered(&mut nat, at(1_000), first), None);
    let second = sent(&mut nat, at(1_001), client(1));
    assert_eq!(second.ip(), first.ip());
    assert_ne!(second.port(), first.port());
    assert_eq!(answered(&mut nat, at(1_500), second), Some(client(1)));
    assert_eq!(answered(&mut nat, at(2_000), second), None);
    assert_eq!(nat.changes(), 2);
}

#[test]
fn address_changes_within_its_network() {
    let mut nat = Nat::new(every_second(true), 1);
    let first = sent(&mut nat, at(0), client(1));
    let second = sent(&mut nat, at(1_000), client(1));
    assert_ne!(first.ip(), second.ip());
    let IpAddr::V4(ip) = second.ip() else {
        panic!("the address is not IPv4")
    };
    assert_eq!(ip.octets()[..3], [10, 0, 0]);
    assert_eq!(answered(&mut nat, at(1_000), second), Some(client(1)));
}

#[test]
fn clients_never_share_an_address() {
    let mut nat = Nat::new(every_second(false), 1);
    for second in 0..5 {
        let mut public: Vec<SocketAddr> = (1..=200)
            .map(|host| sent(&mut nat, at(second * 1_000), client(host)))
            .collect();
        public.sort_unstable();
        public.dedup();
        assert_eq!(public.len(), 200);
    }
}

#[test]
fn same_seed_gives_the_same_ports() {
    let run = |seed| {
        let mut nat = Nat::new(every_second(true), seed);
        let mut all = Vec::new();
        for second in 0..4 {
            for host in 1..=20 {
                all.push(sent(&mut nat, at(second * 1_000), client(host)));
            }
        }
        all
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn mappings_of_many_clients_are_bounded() {
    let mut nat = Nat::new(every_second(false), 1);
    for number in 0..25_000_u32 {
        let ip: IpAddr = std::net::Ipv4Addr::from(0x0a00_0000 + number).into();
        sent(&mut nat, at(0), SocketAddr::from((ip, 1)));
    }
    assert!(nat.public_of.len() <= Nat::MAX_CLIENTS);
    assert!(nat.private_of.len() <= Nat::MAX_CLIENTS);
}

#[test]
fn idle_mapping_expires_and_the_next_packet_creates_another() {
    let mut nat = Nat::new(NatSpec::idle(Duration::from_secs(1)), 1);
    let first = sent(&mut nat, at(0), client(1));
    assert_eq!(sent(&mut nat, at(900), client(1)), first);
    assert_eq!(answered(&mut nat, at(1_899), first), Some(client(1)));
    // The inbound packet has not kept the mapping alive.
    assert_eq!(answered(&mut nat, at(1_900), first), None);
    let second = sent(&mut nat, at(5_000), client(1));
    assert_eq!(second.ip(), first.ip());
    assert_ne!(second.port(), first.port());
    assert_eq!(answered(&mut nat, at(5_500), first), None);
    assert_eq!(answered(&mut nat, at(5_500), second), Some(client(1)));
    assert_eq!(nat.changes(), 1);
}
