use std::net::{IpAddr, Ipv4Addr};

use super::*;
use crate::cid::IdSource;
use crate::config::EndpointConfig;
use crate::rng::Rng;

fn id(number: u64) -> ConnectionId {
    ConnectionId::new(&number.to_be_bytes()).unwrap()
}

fn peer(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn tuple(port: u16) -> FourTuple {
    FourTuple::to(peer(port))
}

fn routing() -> RouteTables<u32> {
    RouteTables::new([1; 16])
}

/// Returns a datagram that ends in a token.
fn reset(len: usize, token: ResetToken) -> Vec<u8> {
    let mut bytes = vec![0x40; len - token.len()];
    bytes.extend(token);
    bytes
}

#[test]
fn datagrams_are_found_by_any_issued_id() {
    let mut routing = routing();
    assert!(routing.insert_id(id(1), 7) && routing.insert_id(id(2), 7));
    assert!(routing.insert_id(id(3), 8));
    assert_eq!(routing.find(&id(1), &tuple(1)), Some(7));
    assert_eq!(
        routing.find(&id(2), &tuple(2)),
        Some(7),
        "the address does not matter"
    );
    assert_eq!(routing.find(&id(3), &tuple(1)), Some(8));
    assert_eq!(routing.find(&id(4), &tuple(1)), None);
}

#[test]
fn first_packets_are_found_by_the_id_that_the_client_chose() {
    let mut routing = routing();
    assert!(routing.insert_initial_id(id(1), 7));
    assert_eq!(routing.find(&id(1), &tuple(1)), Some(7));
    routing.remove_initial_id(&id(1), 7);
    assert_eq!(routing.find(&id(1), &tuple(1)), None);
}

#[test]
fn empty_ids_are_found_by_address() {
    let mut routing = routing();
    assert!(routing.insert_four_tuple(tuple(1), 7));
    assert_eq!(routing.find(&[], &tuple(1)), Some(7));
    assert_eq!(routing.find(&[], &tuple(2)), None);
    let other_local = FourTuple {
        local: Some(IpAddr::from([127, 0, 0, 2])),
        ..tuple(1)
    };
    assert_eq!(
        routing.find(&[], &other_local),
        Some(7),
        "it was unknown at the start"
    );
    assert!(routing.insert_four_tuple(other_local, 8));
    assert_eq!(routing.find(&[], &other_local), Some(8));
    assert_eq!(
        routing.find(&id(1), &tuple(1)),
        None,
        "with an id it is not ours"
    );
}

#[test]
fn ids_of_other_versions_have_no_owner() {
    let routing = routing();
    for len in 21..=255 {
        assert_eq!(routing.find(&vec![0; len], &tuple(1)), None, "{len} bytes");
    }
}

#[test]
fn owner_is_never_overwritten() {
    let mut routing = routing();
    assert!(routing.insert_id(id(1), 7));
    assert!(routing.insert_initial_id(id(2), 7));
    assert!(routing.insert_four_tuple(tuple(3), 7));
    assert!(routing.insert_reset_token(peer(4), [4; 16], 7));
    for intruder in [8, 7] {
        assert!(!routing.insert_id(id(1), intruder));
        assert!(!routing.insert_initial_id(id(2), intruder));
        assert!(!routing.insert_four_tuple(tuple(3), intruder));
        assert!(!routing.insert_reset_token(peer(4), [4; 16], intruder));
    }
    assert_eq!(routing.find(&id(1), &tuple(9)), Some(7));
    assert_eq!(routing.find(&id(2), &tuple(9)), Some(7));
    assert_eq!(routing.find(&[], &tuple(3)), Some(7));
    assert_eq!(routing.find_reset(peer(4), &reset(50, [4; 16])), Some(7));
}

#[test]
fn removal_by_another_owner_has_no_effect() {
    let mut routing = routing();
    assert!(routing.insert_id(id(1), 7));
    assert!(routing.insert_initial_id(id(2), 7));
    assert!(routing.insert_four_tuple(tuple(3), 7));
    assert!(routing.insert_reset_token(peer(4), [4; 16], 7));
    for (handle, left) in [(8, 4), (7, 0)] {
        routing.remove_id(&id(1), handle);
        routing.remove_initial_id(&id(2), handle);
        routing.remove_four_tuple(&tuple(3), handle);
        routing.remove_reset_token(peer(4), [4; 16], handle);
        assert_eq!(routing.len(), left, "removed by {handle}");
    }
    assert!(routing.is_empty());
}

/// A client may choose the ID of a live connection as its first destination.
#[test]
fn issued_id_takes_precedence_over_one_that_a_client_chose() {
    let mut routing = routing();
    assert!(routing.insert_initial_id(id(1), 8));
    assert!(routing.insert_id(id(1), 7));
    assert_eq!(routing.find(&id(1), &tuple(1)), Some(7));
}

#[test]
fn ids_of_both_tables_are_taken() {
    let mut routing = routing();
    assert!(routing.insert_id(id(0), 7));
    assert!(routing.insert_initial_id(id(1), 7));
    let taken = [id(0), id(1), id(2)].map(|id| routing.is_taken(&id));
    assert_eq!(taken, [true, true, false]);
}

#[test]
fn one_byte_ids_run_out_instead_of_repeating() {
    let (mut routing, mut rng) = (routing(), Rng::new([1; 32]));
    let mut config = EndpointConfig::from_seed([1; 32]);
    config.connection_id_len = 1;
    let source = IdSource::new(&config);
    let mut made = 0;
    for _ in 0..100_000 {
        if let Ok(id) = source.generate(&mut rng, |id| routing.is_taken(id)) {
            assert!(routing.insert_id(id, made));
            made += 1;
        }
    }
    assert_eq!(made, 256);
}

#[test]
fn reset_is_found_by_token_and_address() {
    let mut routing = routing();
    assert_eq!(routing.find_reset(peer(1), &reset(50, [1; 16])), None);
    assert!(routing.insert_reset_token(peer(1), [1; 16], 7));
    assert_eq!(routing.find_reset(peer(1), &reset(50, [1; 16])), Some(7));
    assert_eq!(
        routing.find_reset(peer(2), &reset(50, [1; 16])),
        None,
        "another address"
    );
    assert_eq!(
        routing.find_reset(peer(1), &reset(50, [2; 16])),
        None,
        "another token"
    );
    routing.remove_reset_token(peer(1), [1; 16], 7);
    assert_eq!(
        routing.find_reset(peer(1), &reset(50, [1; 16])),
        None,
        "retired"
    );
}

/// The tables hardly ever compare different keys, because their hashes differ.
#[test]
fn equal_tokens_of_two_addresses_are_two_keys() {
    let source = |port, token| ResetSource {
        peer: peer(port),
        token,
    };
    assert!(source(1, [1; 16]) == source(1, [1; 16]));
    assert!(source(1, [1; 16]) != source(2, [1; 16]));
    assert!(source(1, [1; 16]) != source(1, [2; 16]));
}

#[test]
fn every_bit_of_a_token_counts() {
    let mut routing = routing();
    let token = 0x0123_4567_89ab_cdef_u128;
    assert!(routing.insert_reset_token(peer(1), token.to_be_bytes(), 7));
    for bit in 0..128 {
        let wrong = (token ^ 1 << bit).to_be_bytes();
        assert_eq!(
            routing.find_reset(peer(1), &reset(50, wrong)),
            None,
            "bit {bit}"
        );
    }
}

#[test]
fn reset_is_found_with_any_first_byte() {
    let mut routing = routing();
    assert!(routing.insert_reset_token(peer(1), [1; 16], 7));
    for first_byte in 0..=255 {
        let mut datagram = reset(21, [1; 16]);
        datagram[0] = first_byte;
        assert_eq!(
            routing.find_reset(peer(1), &datagram),
            Some(7),
            "first byte {first_byte:#x}"
        );
    }
}

#[test]
fn datagram_too_short_for_quic_is_no_reset() {
    let mut routing = routing();
    assert!(routing.insert_reset_token(peer(1), [1; 16], 7));
    for len in 16..21 {
        assert_eq!(
            routing.find_reset(peer(1), &reset(len, [1; 16])),
            None,
            "{len} bytes"
        );
    }
    for len in 0..16 {
        assert_eq!(
            routing.find_reset(peer(1), &vec![1; len]),
            None,
            "{len} bytes"
        );
    }
}

#[test]
fn datagrams_that_end_in_zeros_reset_no_connection() {
    let mut routing = routing();
    for number in 0..100 {
        let mut token = [0; 16];
        Rng::new([number; 32]).fill(&mut token);
        assert!(routing.insert_reset_token(peer(1), token, u32::from(number)));
        assert!(routing.insert_id(id(u64::from(number)), u32::from(number)));
    }
    assert_eq!(routing.find_reset(peer(1), &[0; 100]), None);
}

/// Attack A14: every table is keyed, so the order of its entries differs from key to key. An
/// unkeyed table would have the same order each time.
#[test]
fn tables_are_keyed() {
    fn order<K: Clone, H>(table: &HashMap<K, H, KeyedState>) -> Vec<K> {
        table.keys().cloned().collect()
    }
    let filled = |key: u8| {
        let mut routing = RouteTables::<u32>::new([key; 16]);
        for number in 0..50 {
            assert!(routing.insert_id(id(number), 1));
            assert!(routing.insert_initial_id(id(number), 1));
            assert!(routing.insert_four_tuple(tuple(number as u16), 1));
            assert!(routing.insert_reset_token(peer(1), [number as u8; 16], 1));
        }
        routing
    };
    let (a, b) = (filled(1), filled(2));
    assert_ne!(order(&a.ids), order(&b.ids));
    assert_ne!(order(&a.initial_ids), order(&b.initial_ids));
    assert_ne!(order(&a.four_tuples), order(&b.four_tuples));
    let tokens = |routing: &RouteTables<u32>| {
        routing
            .reset_tokens
            .keys()
            .map(|source| source.token)
            .collect::<Vec<_>>()
    };
    assert_ne!(tokens(&a), tokens(&b));
    assert_eq!(order(&a.ids), order(&filled(1).ids), "runs can be repeated");
}

#[test]
fn tokens_stay_out_of_logs() {
    let mut routing = routing();
    assert!(routing.insert_reset_token(peer(1), [0xab; 16], 7));
    let text = format!("{routing:?}");
    assert!(!text.contains("171, 171"), "{text}");
}
