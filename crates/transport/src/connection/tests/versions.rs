//! Tests versions of QUIC and their negotiation. RFC 9368, RFC 9369.

use std::collections::BTreeSet;

use courser_wire::frame::Frame;
use courser_wire::packet::{self, PacketKind, version_negotiation};
use courser_wire::{TransportErrorCode, VERSION_1, VERSION_2, Version, Versions};

use super::*;
use crate::config::RetryPolicy;
use crate::testing::Setup;
use crate::testing::identity::{client_tls, server_tls, server_tls_with_big_chain};
use crate::testing::tampering::{Tampered, join_parameters, split_parameters};
use crate::testing::traffic::Transfer;

const V1: Version = Version::V1;
const V2: Version = Version::V2;
const VERSION_INFORMATION: u64 = 0x11;

fn list(versions: &[Version]) -> Versions {
    versions.iter().copied().collect()
}

/// Returns a setup whose server accepts these versions and moves clients to the first possible one.
fn moving(versions: &[Version]) -> Setup {
    let mut setup = Setup::default();
    setup.server.versions = list(versions);
    setup.server.moves_clients = true;
    setup
}

/// Creates a pair whose client offers these versions.
fn pair_of(setup: Setup, client: &[Version]) -> Pair {
    let mut pair = Pair::with(setup);
    pair.client_config.versions = list(client);
    pair
}

/// Returns the kinds and versions of all packets with a long header that an end sent.
fn sent(datagrams: &[Datagram]) -> BTreeSet<(String, u32)> {
    let mut found = BTreeSet::new();
    for datagram in datagrams {
        let mut rest = &datagram.bytes[..];
        while let Ok(packet) = packet::decode(rest, 0, 8) {
            if packet.kind != PacketKind::OneRtt {
                found.insert((format!("{:?}", packet.kind), packet.version));
            }
            rest = &rest[packet.end..];
        }
    }
    found
}

fn set<const N: usize>(packets: [(&str, u32); N]) -> BTreeSet<(String, u32)> {
    packets
        .into_iter()
        .map(|(kind, version)| (kind.to_owned(), version))
        .collect()
}

fn versions_in_use(pair: &mut Pair) -> (Version, Version) {
    let of = |connection: &Connection| connection.stats().version;
    (of(pair.client.connection()), of(pair.server.connection()))
}

/// Connects, moves data and updates keys, and checks the version of both ends.
fn works_in(pair: &mut Pair, version: Version) {
    pair.connect();
    assert_eq!(versions_in_use(pair), (version, version));
    let transfer = Transfer::up(pair, 20_000);
    assert!(transfer.finish(pair, Duration::from_secs(20)).is_some());
    let now = pair.now;
    let updated = pair.client.connection().initiate_key_update(now);
    assert_eq!(updated, Ok(()));
    pair.client.touch();
    let transfer = Transfer::up(pair, 20_000);
    assert!(transfer.finish(pair, Duration::from_secs(20)).is_some());
    assert_eq!(pair.server.connection().stats().key_updates, 1);
}

#[test]
fn client_that_begins_in_version_2_stays_in_it() {
    let mut pair = pair_of(Setup::default(), &[V2]);
    works_in(&mut pair, V2);
    let both = set([("Initial", VERSION_2), ("Handshake", VERSION_2)]);
    assert_eq!(sent(&pair.client.sent), both);
    assert_eq!(sent(&pair.server.sent), both);
}

/// A server that follows the client's preference needs the order, and reads the first flight.
#[test]
fn client_can_begin_in_another_version_than_the_preferred_one() {
    let mut pair = pair_of(moving(&[V2, V1]), &[V2, V1]);
    pair.client_config.first_version = Some(V1);
    works_in(&mut pair, V2);
    let client = sent(&pair.client.sent);
    assert!(client.contains(&("Initial".to_owned(), VERSION_1)));
    assert!(client.contains(&("Handshake".to_owned(), VERSION_2)));
    assert!(!client.contains(&("Handshake".to_owned(), VERSION_1)));

    let mut pair = pair_of(Setup::default(), &[V2, V1]);
    pair.client_config.first_version = Some(V1);
    works_in(&mut pair, V1);
}

#[test]
fn first_version_that_is_not_offered_is_an_error() {
    let mut config = Pair::with(Setup::default()).client_config;
    for (versions, first, is_valid) in [
        (&[V2, V1][..], V1, true),
        (&[V1], V1, true),
        (&[V1], V2, false),
    ] {
        config.versions = list(versions);
        config.first_version = Some(first);
        assert_eq!(
            config.validate().is_ok(),
            is_valid,
            "{versions:?} {first:?}"
        );
    }
}

#[test]
fn default_is_version_1_even_if_the_client_offers_both() {
    for client in [&[V1][..], &[V1, V2]] {
        let mut pair = pair_of(Setup::default(), client);
        works_in(&mut pair, V1);
        let both = set([("Initial", VERSION_1), ("Handshake", VERSION_1)]);
        assert_eq!(sent(&pair.client.sent), both, "{client:?}");
        assert_eq!(sent(&pair.server.sent), both, "{client:?}");
    }
}

#[test]
fn server_changes_the_version_within_the_first_round_trip() {
    for (original, last) in [(V1, V2), (V2, V1)] {
        for offload in [false, true] {
            let mut setup = moving(&[last, original]);
            setup.server.offload_tls = offload;
            let mut pair = pair_of(setup, &[original, last]);
            pair.client_config.offload_tls = offload;
            let begun = pair.now;
            pair.start();
            assert!(pair.run_until(RTT * 3, |pair| pair.client.has(&Event::Connected)));
            assert_eq!(pair.now - begun, RTT, "no round trip is added");
            assert!(pair.run_until(RTT * 3, |pair| pair.client.has(&Event::Confirmed)));
            pair.run_for(RTT * 3);
            assert_eq!(versions_in_use(&mut pair), (last, last));
            let transfer = Transfer::up(&mut pair, 20_000);
            assert!(transfer.finish(&mut pair, Duration::from_secs(5)).is_some());
            let [original, last] = [original, last].map(Version::value);
            let client = sent(&pair.client.sent);
            assert!(client.contains(&("Initial".to_owned(), original)));
            assert!(client.contains(&("Handshake".to_owned(), last)));
            assert!(!client.contains(&("Handshake".to_owned(), original)));
            let server = sent(&pair.server.sent);
            assert!(server.contains(&("Initial".to_owned(), last)));
            assert!(!server.contains(&("Handshake".to_owned(), original)));
        }
    }
}

#[test]
fn client_hello_in_several_packets_is_acknowledged_in_the_original_version() {
    let (setup, eye) = moving(&[V2, V1]).with_eye();
    let mut pair = pair_of(setup, &[V1, V2]);
    // The second datagram is lost: a post-quantum share does not fit into one.
    pair.link.filter = Some(Box::new(|index, _| index != 1));
    works_in(&mut pair, V2);
    let initials = eye.server_sent(&pair);
    let initials = initials.iter().filter(|it| it.kind == PacketKind::Initial);
    for initial in initials {
        let is_original = initial.first_byte & 0x30 == 0;
        let has_crypto = initial.has(|frame| matches!(frame, Frame::Crypto(_)));
        assert!(!(is_original && has_crypto), "RFC 9369 §4.1");
    }
    let server = sent(&pair.server.sent);
    assert!(server.contains(&("Initial".to_owned(), VERSION_1)));
    assert!(server.contains(&("Initial".to_owned(), VERSION_2)));
    let client = sent(&pair.client.sent);
    assert!(
        client.contains(&("Initial".to_owned(), VERSION_2)),
        "RFC 9369 §4.1"
    );
}

#[test]
fn version_changes_survive_losses_reordering_and_retry() {
    for seed in 0..150_u8 {
        let mut setup = moving(&[V2, V1]);
        setup.seed = seed;
        setup.server.offload_tls = seed % 3 == 0;
        if seed % 2 == 0 {
            setup.server.retry = RetryPolicy::Always;
        }
        if seed % 5 == 0 {
            // Several packets at each level.
            setup.server.tls = server_tls_with_big_chain(&[b"test"], 8);
        }
        let mut pair = pair_of(setup, &[V1, V2]);
        pair.tls_delay = Duration::from_millis(u64::from(seed % 7) * 5);
        (pair.link.loss, pair.link.reorder, pair.link.duplicate) = (150, 200, 100);
        pair.connect();
        (pair.link.loss, pair.link.reorder) = (0, 0);
        assert_eq!(versions_in_use(&mut pair), (V2, V2), "seed {seed}");
        let transfer = Transfer::up(&mut pair, 20_000);
        let taken = transfer.finish(&mut pair, Duration::from_secs(20));
        assert!(taken.is_some(), "seed {seed}: no transfer");
    }
}

#[test]
fn retry_is_answered_in_the_original_version() {
    for (client, last) in [(&[V1, V2][..], V2), (&[V2], V2), (&[V1], V1)] {
        let mut setup = moving(&[V2, V1]);
        setup.server.retry = RetryPolicy::Always;
        let mut pair = pair_of(setup, client);
        works_in(&mut pair, last);
        let original = client[0].value();
        let retry = ("Retry".to_owned(), original);
        assert!(sent(&pair.server.sent).contains(&retry), "{client:?}");
        for datagram in &pair.client.sent {
            let packet = packet::decode(&datagram.bytes, 0, 8).expect("a packet");
            if packet.kind == PacketKind::Initial && !packet.token.is_empty() {
                assert_eq!(packet.version, original, "RFC 9369 §4.1");
                break;
            }
        }
    }
}

#[test]
fn retry_of_another_version_is_discarded() {
    let mut setup = Setup::default();
    setup.server.retry = RetryPolicy::Always;
    let mut pair = pair_of(setup, &[V1, V2]);
    pair.link.filter = Some(Box::new(|_, datagram| {
        let packet = packet::decode(&datagram.bytes, 0, 8).expect("a packet");
        if packet.kind == PacketKind::Retry {
            // The same Retry in version 2, with a valid tag.
            datagram.bytes[0] = 0xcf;
            datagram.bytes[1..5].copy_from_slice(&VERSION_2.to_be_bytes());
        }
        true
    }));
    pair.start();
    pair.run_for(RTT * 4);
    let token = |datagram: &Datagram| {
        let packet = packet::decode(&datagram.bytes, 0, 8).expect("a packet");
        !packet.token.is_empty()
    };
    assert!(!pair.client.sent.iter().any(token));
    assert!(pair.client.connection().stats().packets_dropped > 0);
}

/// Creates a pair whose server accepts version 1 only, and whose client begins with version 2.
fn outdated_server(client: &[Version]) -> Pair {
    let mut setup = Setup::default();
    setup.server.versions = Versions::V1;
    pair_of(setup, client)
}

#[test]
fn version_negotiation_costs_one_round_trip() {
    let mut pair = outdated_server(&[V2, V1]);
    let begun = pair.now;
    pair.start();
    assert!(pair.run_until(RTT * 4, |pair| pair.client.has(&Event::Connected)));
    assert_eq!(pair.now - begun, RTT * 2);
    assert!(pair.run_until(RTT * 4, |pair| pair.client.has(&Event::Confirmed)));
    pair.run_for(RTT * 3);
    assert_eq!(versions_in_use(&mut pair), (V1, V1));
    let transfer = Transfer::up(&mut pair, 20_000);
    assert!(transfer.finish(&mut pair, Duration::from_secs(5)).is_some());
    // The second attempt is another connection, with another first ID.
    let ids: BTreeSet<_> = pair
        .client
        .sent
        .iter()
        .filter_map(|datagram| packet::decode(&datagram.bytes, 0, 8).ok())
        .filter(|packet| packet.kind == PacketKind::Initial)
        .map(|packet| (packet.version, packet.destination.to_vec()))
        .collect();
    assert!(ids.len() >= 3, "{ids:?}");
    assert_eq!(pair.server.endpoint.stats().accepted, 1);
}

#[test]
fn client_without_a_common_version_ends_the_attempt() {
    let mut pair = outdated_server(&[V2]);
    pair.start();
    assert!(pair.run_until(RTT * 2, |pair| {
        let lost = |event: &Event| {
            matches!(event, Event::Lost(ConnectionError::VersionMismatch { supported, offered })
                if *supported == Versions::from_iter([V2]) && offered[0] == VERSION_1)
        };
        pair.client.events.iter().any(lost)
    }));
    // One for each datagram of the first flight.
    let flight = pair.client.sent.len() as u64;
    let answers = pair.server.endpoint.stats().version_negotiations_sent;
    assert_eq!(answers, flight);
}

#[test]
fn negotiation_after_version_negotiation_survives_losses() {
    for seed in 0..60_u8 {
        let mut setup = Setup {
            seed,
            ..Setup::default()
        };
        setup.server.versions = Versions::V1;
        if seed % 2 == 0 {
            setup.server.retry = RetryPolicy::Always;
        }
        let mut pair = pair_of(setup, &[V2, V1]);
        (pair.link.loss, pair.link.reorder, pair.link.duplicate) = (150, 200, 100);
        pair.connect();
        assert_eq!(versions_in_use(&mut pair), (V1, V1), "seed {seed}");
    }
}

/// Delivers a forged Version Negotiation packet to the client, which has sent its first flight.
fn inject(pair: &mut Pair, versions: &[u32]) {
    let first = packet::decode(&pair.client.sent[0].bytes, 0, 8).expect("the client's Initial");
    let (to, from) = (&first.source, &first.destination);
    let mut bytes = vec![0; version_negotiation::encoded_len(to, from, versions)];
    let mut writer = courser_wire::Writer::new(&mut bytes);
    version_negotiation::encode(&mut writer, 0, to, from, versions);
    pair.send_to_client(bytes);
}

/// Runs until the client's connection is over, and returns the code of its error.
fn error_of_client(pair: &mut Pair) -> Option<TransportErrorCode> {
    pair.run_for(RTT * 5);
    pair.client.events.iter().find_map(|event| match event {
        Event::Lost(ConnectionError::TransportError(error)) => Some(error.code),
        _ => None,
    })
}

fn error_at_server(pair: &Pair) -> Option<TransportErrorCode> {
    pair.server.events.iter().find_map(|event| match event {
        Event::Lost(ConnectionError::ConnectionClosed(close)) => Some(close.code),
        _ => None,
    })
}

const DISAGREEMENT: TransportErrorCode = TransportErrorCode::VERSION_NEGOTIATION_ERROR;

#[test]
fn downgrade_by_forged_version_negotiation_ends_the_connection() {
    for moves in [false, true] {
        let mut setup = moving(&[V2, V1]);
        setup.server.moves_clients = moves;
        let mut pair = pair_of(setup, &[V2, V1]);
        pair.start();
        pair.drive();
        inject(&mut pair, &[VERSION_1]);
        // The server moves the second attempt back to version 2, which disproves the forgery too.
        assert_eq!(error_of_client(&mut pair), Some(DISAGREEMENT), "{moves}");
    }
}

#[test]
fn server_receives_the_error_of_a_downgrade() {
    let mut pair = pair_of(Setup::default(), &[V2, V1]);
    pair.start();
    pair.drive();
    inject(&mut pair, &[VERSION_1]);
    assert_eq!(error_of_client(&mut pair), Some(DISAGREEMENT));
    assert_eq!(error_at_server(&pair), Some(DISAGREEMENT));
}

#[test]
fn version_negotiation_with_the_original_version_or_repeated_is_ignored() {
    let mut pair = pair_of(Setup::default(), &[V2, V1]);
    pair.start();
    pair.drive();
    inject(&mut pair, &[VERSION_1, VERSION_2]);
    works_after(&mut pair, V2);
    let mut pair = outdated_server(&[V2, V1]);
    pair.start();
    assert!(pair.run_until(RTT * 2, |pair| {
        sent(&pair.client.sent).contains(&("Initial".to_owned(), VERSION_1))
    }));
    // Both the answer to the first attempt and one to the second.
    inject(&mut pair, &[0x709a_50c4]);
    let last = pair.client.sent.len() - 1;
    pair.client.sent.swap(0, last);
    inject(&mut pair, &[0x709a_50c4]);
    pair.client.sent.swap(0, last);
    works_after(&mut pair, V1);
}

fn works_after(pair: &mut Pair, version: Version) {
    assert!(pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.has(&Event::Confirmed)
    }));
    pair.run_for(RTT);
    assert_eq!(versions_in_use(pair), (version, version));
}

#[test]
fn servers_ignore_version_negotiation() {
    let mut pair = pair_of(Setup::default(), &[V2, V1]);
    pair.connect();
    let (to, from) = (
        pair.server.connection().parts.handshake.local_id(),
        pair.client.connection().parts.handshake.local_id(),
    );
    let versions = [0x709a_50c4];
    let mut bytes = vec![0; version_negotiation::encoded_len(&to, &from, &versions)];
    let mut writer = courser_wire::Writer::new(&mut bytes);
    version_negotiation::encode(&mut writer, 0, &to, &from, &versions);
    pair.send_to_server(bytes);
    works_after(&mut pair, V2);
}

/// Replaces the versions in version_information, or removes the parameter.
fn replace_versions(versions: Option<&'static [u32]>) -> impl Fn(Vec<u8>) -> Vec<u8> + Send + Sync {
    move |bytes| {
        let mut parameters = split_parameters(&bytes);
        parameters.retain(|(id, _)| *id != VERSION_INFORMATION);
        if let Some(versions) = versions {
            let value = versions.iter().flat_map(|version| version.to_be_bytes());
            parameters.push((VERSION_INFORMATION, value.collect()));
        }
        join_parameters(&parameters)
    }
}

#[test]
fn false_version_information_of_a_client_is_refused() {
    const PARAMETER: TransportErrorCode = TransportErrorCode::TRANSPORT_PARAMETER_ERROR;
    for (versions, code) in [
        (&[VERSION_2, VERSION_2][..], DISAGREEMENT),
        (&[0x709a_50c4, 0x709a_50c4], DISAGREEMENT),
        (&[VERSION_1], PARAMETER),
        (&[VERSION_1, VERSION_2], PARAMETER),
        (&[0, 0], PARAMETER),
        (&[VERSION_1, VERSION_1, 0], PARAMETER),
        (&[], PARAMETER),
    ] {
        for moves in [false, true] {
            let case = format!("{versions:x?} {moves}");
            let mut setup = moving(&[V2, V1]);
            setup.server.moves_clients = moves;
            setup.client_tls =
                Tampered::parameters(client_tls(&[b"test"]), replace_versions(Some(versions)));
            let mut pair = pair_of(setup, &[V1]);
            pair.start();
            pair.run_for(RTT * 3);
            let error = pair.server.events.iter().find_map(|event| match event {
                Event::Lost(ConnectionError::TransportError(error)) => Some(error.code),
                _ => None,
            });
            assert_eq!(error, Some(code), "{case}");
        }
    }
}

/// RFC 9368 §2.3: the rules of the negotiated version for a first flight apply if the version changes.
#[test]
fn first_flight_is_checked_by_the_rules_of_the_negotiated_version() {
    const ACK_DELAY_EXPONENT: u64 = 0x0a;
    const INITIAL_SOURCE_CONNECTION_ID: u64 = 0x0f;
    for (id, value) in [
        (ACK_DELAY_EXPONENT, Some(vec![21])),
        (INITIAL_SOURCE_CONNECTION_ID, Some(vec![1, 2, 3])),
        (INITIAL_SOURCE_CONNECTION_ID, None),
    ] {
        let case = format!("parameter {id:#x}: {value:?}");
        let mut setup = moving(&[V2, V1]);
        setup.client_tls = Tampered::parameters(client_tls(&[b"test"]), move |bytes| {
            let mut parameters = split_parameters(&bytes);
            parameters.retain(|(known, _)| *known != id);
            parameters.extend(value.clone().map(|value| (id, value)));
            join_parameters(&parameters)
        });
        let mut pair = pair_of(setup, &[V1, V2]);
        pair.start();
        pair.run_for(RTT * 3);
        let error = pair.server.events.iter().find_map(|event| match event {
            Event::Lost(ConnectionError::TransportError(error)) => Some(error.code),
            _ => None,
        });
        let expected = TransportErrorCode::TRANSPORT_PARAMETER_ERROR;
        assert_eq!(error, Some(expected), "{case}");
    }
}

/// RFC 9001 §8.1, RFC 9368 §6: one list of protocols serves all versions, because what they need of
/// QUIC is in each of them, and a client without a common protocol is refused in each.
#[test]
fn protocol_is_chosen_or_refused_in_every_version() {
    let cases = [
        (moving(&[V1]), &[V1][..], V1),
        (moving(&[V2]), &[V2], V2),
        (moving(&[V2, V1]), &[V1, V2], V2),
        (moving(&[V1]), &[V2, V1], V1),
    ];
    for (mut setup, client, version) in cases {
        let case = format!("{client:?} to {version:?}");
        let refusing = Setup {
            server: setup.server.clone(),
            client_tls: client_tls(&[b"other"]),
            ..Setup::default()
        };
        setup.client_tls = client_tls(&[b"other", b"test"]);
        let mut pair = pair_of(setup, client);
        works_in(&mut pair, version);
        for end in [&mut pair.client, &mut pair.server] {
            let data = end.connection().handshake_data().expect("complete");
            assert_eq!(data.protocol.as_deref(), Some(&b"test"[..]), "{case}");
        }
        let mut pair = pair_of(refusing, client);
        pair.start();
        pair.run_for(RTT * 5);
        assert_eq!(pair.server_error(), Some(0x178), "{case}");
        assert_eq!(pair.close_received_by_client(), Some(0x178), "{case}");
    }
}

/// RFC 9368 §6: the second attempt offers all protocols again, not those of the first one's version.
#[test]
fn protocol_is_negotiated_again_after_version_negotiation() {
    let mut setup = Setup {
        client_tls: client_tls(&[b"first", b"test"]),
        ..Setup::default()
    };
    setup.server.versions = Versions::V1;
    let (setup, eye) = setup.with_eye();
    let mut pair = pair_of(setup, &[V2, V1]);
    pair.start();
    assert!(pair.run_until(RTT * 4, |pair| pair.client.has(&Event::Connected)));
    let data = pair.client.connection().handshake_data().expect("complete");
    assert_eq!(data.protocol.as_deref(), Some(&b"test"[..]));
    let mut hello = std::collections::BTreeMap::new();
    for packet in eye.client_sent(&pair) {
        // In version 1 the type of an Initial is 0, in version 2 it is 1.
        if packet.kind == PacketKind::Initial && packet.first_byte & 0x30 == 0 {
            for frame in packet.frames() {
                if let Frame::Crypto(crypto) = frame {
                    hello.insert(crypto.offset, crypto.data.to_vec());
                }
            }
        }
    }
    let hello = hello.into_values().collect::<Vec<_>>().concat();
    let offers = |name: &[u8]| hello.windows(name.len()).any(|it| it == name);
    assert!(offers(b"\x05first\x04test"), "{hello:?}");
}

#[test]
fn false_version_information_of_a_server_is_refused() {
    for (server, versions) in [
        (&[V2, V1][..], Some(&[VERSION_1, VERSION_1, VERSION_2][..])),
        (&[V2, V1], Some(&[0x709a_50c4, 0x709a_50c4])),
        (&[V2, V1], None),
        (&[V1], Some(&[VERSION_2, VERSION_2, VERSION_1])),
    ] {
        let mut setup = moving(server);
        setup.server.tls = Tampered::parameters(server_tls(&[b"test"]), replace_versions(versions));
        let mut pair = pair_of(setup, &[V1, V2]);
        pair.start();
        let error = error_of_client(&mut pair);
        assert_eq!(error, Some(DISAGREEMENT), "{server:?} {versions:x?}");
    }
}

#[test]
fn forged_version_field_does_not_change_the_version() {
    // Every other datagram with an Initial of the server arrives with the other version.
    let mut pair = pair_of(Setup::default(), &[V1, V2]);
    let mut count = 0_u32;
    pair.link.filter = Some(Box::new(move |_, datagram| {
        count += 1;
        let is_initial = datagram.bytes[1..5] == VERSION_1.to_be_bytes();
        if datagram.from.port() == 4433 && is_initial && count.is_multiple_of(2) {
            datagram.bytes[0] = (datagram.bytes[0] & 0xcf) | 0x10;
            datagram.bytes[1..5].copy_from_slice(&VERSION_2.to_be_bytes());
        }
        true
    }));
    pair.connect();
    assert_eq!(versions_in_use(&mut pair), (V1, V1));
}

#[test]
fn tokens_are_kept_apart_by_version() {
    let mut setup = Setup::default();
    setup.server.moves_clients = true;
    setup.server.versions = list(&[V2, V1]);
    let mut pair = pair_of(setup, &[V1, V2]);
    pair.connect();
    let store = pair.client_config.tokens.clone().expect("a store");
    assert_eq!(
        store.take("localhost:4433"),
        None,
        "the token is one of version 2"
    );
    let token = store.take("localhost:4433#quic-v2").expect("a token");
    // A client that ignores the rule gets no validated address.
    for (name, is_valid) in [("localhost:4433", false), ("localhost:4433#quic-v2", true)] {
        store.put(name, token.clone());
        pair.client_config.versions = if is_valid { list(&[V2]) } else { list(&[V1]) };
        pair.accepts = false;
        pair.start();
        pair.run_for(RTT / 2);
        let incoming = pair.server.endpoint.poll_incoming().expect("it waits");
        assert_eq!(incoming.is_address_validated(), is_valid, "{name}");
        pair.server.endpoint.ignore(incoming);
    }
}
