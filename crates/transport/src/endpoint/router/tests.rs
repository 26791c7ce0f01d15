use courser_wire::VERSION_1;

use super::*;

fn router(number: u16, shared: &Arc<Shared>) -> Router {
    let config = EndpointConfig::from_seed([1; 32]);
    let shard = ShardId { number, count: 2 };
    Router::new(&config, shard, [1; 16], shared.clone())
}

fn path() -> FourTuple {
    FourTuple::to("192.0.2.1:5000".parse().expect("an address"))
}

fn handle(index: u32) -> ConnectionHandle {
    ConnectionHandle {
        index,
        generation: 0,
    }
}

fn id(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).expect("at most 20 bytes")
}

fn packet(kind: PacketKind, destination: ConnectionId) -> Packet {
    Packet {
        kind,
        version: VERSION_1,
        destination,
        source: ConnectionId::default(),
        token: 0..0,
        packet_number_offset: 0,
        end: 0,
    }
}

#[test]
fn owner_is_found_by_id_until_its_connection_is_removed() {
    let mut router = router(0, &Shared::of_test(2));
    let (mut routes, mut rng) = (ConnectionRoutes::default(), Rng::new([1; 32]));
    let ours = router.new_id(&mut rng).expect("free");
    let packet = packet(PacketKind::OneRtt, ours);
    assert_eq!(router.find(&packet, &path()), Found::NoOwner);
    assert!(router.add(handle(7), &mut routes, ours, path()));
    let found = Found::Owner(Owner::Connection(handle(7)));
    assert_eq!(router.find(&packet, &path()), found);
    assert_eq!(router.find(&packet, &path()), found, "the same ID again");
    router.remove(handle(7), &mut routes, [ours].into_iter());
    assert_eq!(router.find(&packet, &path()), Found::NoOwner);
    assert_eq!((router.len(), router.common_len()), (0, 0));
}

#[test]
fn first_id_of_an_accepted_client_stays_routed() {
    let mut router = router(0, &Shared::of_test(2));
    let mut routes = ConnectionRoutes::default();
    let first = packet(PacketKind::Initial, id(&[9; 8]));
    assert!(router.add_waiting(first.destination, 3));
    assert!(!router.add_waiting(first.destination, 4), "it has an owner");
    let waiting = Found::Owner(Owner::Waiting(3));
    assert_eq!(router.find(&first, &path()), waiting);
    router.remove_waiting(&first.destination, 3);
    router.add_initial_id(handle(1), &mut routes, first.destination);
    let accepted = Found::Owner(Owner::Connection(handle(1)));
    assert_eq!(router.find(&first, &path()), accepted);
    router.remove_faulty(handle(1), &mut routes);
    assert_eq!(router.find(&first, &path()), Found::NoOwner);
}

#[test]
fn only_clients_may_choose_ids_of_another_length() {
    let mut router = router(0, &Shared::of_test(2));
    let other = id(&[9; 11]);
    let find = |router: &mut Router, kind| router.find(&packet(kind, other), &path());
    assert_eq!(find(&mut router, PacketKind::OneRtt), Found::Foreign);
    assert_eq!(find(&mut router, PacketKind::Handshake), Found::Foreign);
    assert_eq!(find(&mut router, PacketKind::Initial), Found::NoOwner);
}

#[test]
fn other_shards_find_first_ids_and_read_the_shard_in_issued_ones() {
    let shared = Shared::of_test(2);
    let (mut one, mut other) = (router(0, &shared), router(1, &shared));
    let first = packet(PacketKind::Initial, id(&[9; 8]));
    assert!(one.add_waiting(first.destination, 3));
    assert_eq!(other.find(&first, &path()), Found::NoOwner);
    assert_eq!(other.find_elsewhere(&first, &path()), Some(0));
    assert!(
        !other.add_waiting(first.destination, 1),
        "one client, one shard"
    );
    let ours = one.new_id(&mut Rng::new([1; 32])).expect("free");
    assert_eq!(other.shard_of(&packet(PacketKind::OneRtt, ours)), Some(0));
    one.leave();
    assert_eq!(other.find_elsewhere(&first, &path()), None);
}

#[test]
fn source_id_of_a_retry_is_long_enough_for_a_first_packet() {
    let mut config = EndpointConfig::from_seed([1; 32]);
    for length in [0, 4, 8, 20] {
        config.connection_id_len = length;
        let shard = ShardId {
            number: 0,
            count: 1,
        };
        let router = Router::new(&config, shard, [1; 16], Shared::of_test(1));
        let source = router.retry_source(&mut Rng::new([1; 32]));
        assert_eq!(source.len(), length.max(MIN_DESTINATION));
    }
}
