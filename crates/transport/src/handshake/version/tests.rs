use courser_wire::{ConnectionId, LongHeader, VERSION_1, VERSION_2};

use super::*;

const V1: Version = Version::V1;
const V2: Version = Version::V2;
const UNKNOWN: u32 = 0x709a_50c4;

fn list(versions: &[Version]) -> Versions {
    versions.iter().copied().collect()
}

fn packet(kind: PacketKind, version: u32) -> Packet {
    let header = LongHeader {
        kind,
        version,
        destination: ConnectionId::EMPTY,
        source: ConnectionId::EMPTY,
        token: &[],
    };
    let mut bytes = [0; 60];
    header.encode(&mut courser_wire::Writer::new(&mut bytes), 1);
    courser_wire::packet::decode(&bytes, 0, 0).expect("a header")
}

fn initial(version: u32) -> Packet {
    packet(PacketKind::Initial, version)
}

/// Encodes the parameter by hand, since it may lie.
fn parameters(versions: Option<&[u32]>, sent_by: Side) -> TransportParameters {
    let Some(versions) = versions else {
        return TransportParameters::default();
    };
    let mut bytes = vec![0x11, u8::try_from(4 * versions.len()).expect("a few")];
    bytes.extend(versions.iter().flat_map(|version| version.to_be_bytes()));
    TransportParameters::decode(&bytes, sent_by).expect("a valid encoding")
}

fn from_client(versions: &[u32]) -> TransportParameters {
    parameters(Some(versions), Side::Client)
}

fn from_server(versions: &[u32]) -> TransportParameters {
    parameters(Some(versions), Side::Server)
}

fn error_of(result: Result<bool, TransportError>) -> TransportErrorCode {
    result.expect_err("an error").code
}

const DISAGREEMENT: TransportErrorCode = TransportErrorCode::VERSION_NEGOTIATION_ERROR;

#[test]
fn server_switches_to_preferred_version_if_client_supports_it() {
    let [none, one, both] = [
        None,
        Some(&[VERSION_1, VERSION_1][..]),
        Some(&[VERSION_1, VERSION_1, VERSION_2][..]),
    ];
    for (supported, moves, client, expected) in [
        (&[V2, V1][..], true, both, V2),
        (&[V2, V1], true, one, V1),
        (&[V2, V1], true, none, V1),
        (&[V1, V2], true, both, V1),
        (&[V2, V1], false, both, V1),
        (&[V1], true, both, V1),
    ] {
        let case = format!("{supported:?} {moves} {client:x?}");
        let mut server = Negotiation::of_server(list(supported), moves, V1);
        let has_moved = server.on_parameters(&parameters(client, Side::Client));
        assert_eq!(has_moved, Ok(expected != V1), "{case}");
        assert_eq!(server.current(), expected, "{case}");
        assert_eq!(server.of_kind(PacketKind::ZeroRtt), V1, "{case}");
    }
    // The other direction.
    let mut server = Negotiation::of_server(list(&[V1, V2]), true, V2);
    let client = from_client(&[VERSION_2, VERSION_2, VERSION_1]);
    assert_eq!(server.on_parameters(&client), Ok(true));
    assert_eq!(server.current(), V1);
}

#[test]
fn server_depends_on_client_only_if_it_may_switch_version() {
    let depends = |versions: &[Version], moves, original| {
        Negotiation::of_server(list(versions), moves, original).depends_on_client()
    };
    assert!(depends(&[V2, V1], true, V1));
    assert!(!depends(&[V2, V1], true, V2));
    assert!(!depends(&[V2, V1], false, V1));
    assert!(!depends(&[V1], true, V1));
}

#[test]
fn a_chosen_version_other_than_that_of_the_first_flight_is_refused() {
    for moves in [false, true] {
        let mut server = Negotiation::of_server(list(&[V2, V1]), moves, V1);
        for lie in [[VERSION_2, VERSION_2], [UNKNOWN, UNKNOWN]] {
            let result = server.on_parameters(&from_client(&lie));
            assert_eq!(error_of(result), DISAGREEMENT, "{lie:x?}");
        }
    }
}

#[test]
fn first_packet_of_another_version_switches_client() {
    let mut client = Negotiation::of_client(list(&[V1, V2]), None);
    assert!(client.accepts(&initial(VERSION_1)) && client.accepts(&initial(VERSION_2)));
    assert_eq!(client.other(&initial(VERSION_1)), None);
    assert_eq!(client.other(&initial(VERSION_2)), Some(V2));
    // An acknowledgement in the original version decides nothing.
    assert!(!client.on_server_packet(&initial(VERSION_1)));
    assert!(client.on_server_packet(&initial(VERSION_2)));
    assert_eq!(client.current(), V2);
    assert!(!client.accepts(&initial(VERSION_1)));
    assert!(!client.accepts(&packet(PacketKind::Handshake, VERSION_1)));
    assert!(client.accepts(&packet(PacketKind::Handshake, VERSION_2)));
    assert_eq!(client.other(&initial(VERSION_1)), None);
}

#[test]
fn crypto_data_settles_original_version() {
    let mut client = Negotiation::of_client(list(&[V1, V2]), None);
    client.on_crypto();
    assert_eq!(client.other(&initial(VERSION_2)), None);
    assert!(!client.accepts(&initial(VERSION_2)));
    assert!(!client.on_server_packet(&initial(VERSION_2)));
    assert_eq!(client.current(), V1);
}

#[test]
fn versions_that_were_not_offered_are_dropped() {
    let mut client = Negotiation::of_client(Versions::V1, None);
    assert!(!client.accepts(&initial(VERSION_2)));
    assert!(!client.on_server_packet(&initial(VERSION_2)));
    let server = Negotiation::of_server(list(&[V2, V1]), true, V1);
    assert!(!server.accepts(&initial(VERSION_2)));
    assert!(!server.accepts(&packet(PacketKind::ZeroRtt, VERSION_2)));
}

#[test]
fn a_server_opens_initials_of_both_versions_and_other_packets_of_the_last() {
    let mut server = Negotiation::of_server(list(&[V2, V1]), true, V1);
    let client = from_client(&[VERSION_1, VERSION_2, VERSION_1]);
    assert_eq!(server.on_parameters(&client), Ok(true));
    assert!(server.accepts(&initial(VERSION_1)) && server.accepts(&initial(VERSION_2)));
    assert!(!server.accepts(&packet(PacketKind::Handshake, VERSION_1)));
    assert!(server.accepts(&packet(PacketKind::Handshake, VERSION_2)));
    assert!(server.accepts(&packet(PacketKind::ZeroRtt, VERSION_1)));
    assert!(!server.accepts(&packet(PacketKind::ZeroRtt, VERSION_2)));
}

#[test]
fn a_client_refuses_a_chosen_version_other_than_that_of_the_packets() {
    for lie in [VERSION_2, UNKNOWN] {
        let mut client = Negotiation::of_client(list(&[V1, V2]), None);
        client.on_crypto();
        let result = client.on_parameters(&from_server(&[lie, VERSION_1, lie]));
        assert_eq!(error_of(result), DISAGREEMENT, "{lie:#x}");
    }
    let mut moved = Negotiation::of_client(list(&[V1, V2]), None);
    assert!(moved.on_server_packet(&initial(VERSION_2)));
    let result = moved.on_parameters(&from_server(&[VERSION_1, VERSION_1]));
    assert_eq!(error_of(result), DISAGREEMENT);
    let result = moved.on_parameters(&TransportParameters::default());
    assert_eq!(error_of(result), DISAGREEMENT, "missing");
    assert_eq!(moved.on_parameters(&from_server(&[VERSION_2])), Ok(false));
}

#[test]
fn a_server_need_not_send_the_parameter_if_it_negotiates_nothing() {
    for first in [V1, V2] {
        let mut client = Negotiation::of_client(list(&[first, V1, V2]), None);
        client.on_crypto();
        let result = client.on_parameters(&TransportParameters::default());
        assert_eq!(result, Ok(false), "{first}");
    }
}

#[test]
fn version_negotiation_is_followed_once_and_never_with_the_original_version() {
    let offer = |versions: &'static [u32]| versions.iter().copied();
    let mut client = Negotiation::of_client(list(&[V2, V1]), None);
    for list in [&[VERSION_2][..], &[UNKNOWN, VERSION_1, VERSION_2]] {
        let reaction = client.on_version_negotiation(offer(list));
        assert_eq!(reaction, Reaction::Ignore, "{list:x?}");
    }
    let reaction = client.on_version_negotiation(offer(&[UNKNOWN]));
    assert_eq!(reaction, Reaction::Fail);
    let reaction = client.on_version_negotiation(offer(&[UNKNOWN, VERSION_1]));
    assert_eq!(reaction, Reaction::Restart(V1));
    assert_eq!(client.current(), V1);
    for list in [&[VERSION_2][..], &[UNKNOWN]] {
        let reaction = client.on_version_negotiation(offer(list));
        assert_eq!(reaction, Reaction::Ignore, "{list:x?}");
    }
}

/// Returns a client that prefers version 2 and was told that only version 1 is supported.
fn downgraded() -> Negotiation {
    let mut client = Negotiation::of_client(list(&[V2, V1]), None);
    let reaction = client.on_version_negotiation([VERSION_1].into_iter());
    assert_eq!(reaction, Reaction::Restart(V1));
    client.on_crypto();
    client
}

#[test]
fn downgrade_by_forged_version_negotiation_is_detected() {
    for lists in [
        &[VERSION_1, VERSION_1, VERSION_2][..],
        &[VERSION_1, VERSION_2],
        // An empty list cannot confirm anything.
        &[VERSION_1],
    ] {
        let result = downgraded().on_parameters(&from_server(lists));
        assert_eq!(error_of(result), DISAGREEMENT, "{lists:x?}");
    }
    // Lists that agree with what the client was told.
    for lists in [&[VERSION_1, VERSION_1][..], &[VERSION_1, UNKNOWN]] {
        let result = downgraded().on_parameters(&from_server(lists));
        assert_eq!(result, Ok(false), "{lists:x?}");
    }
}

#[test]
fn a_server_without_the_parameter_supports_version_1_only() {
    let missing = TransportParameters::default();
    assert_eq!(downgraded().on_parameters(&missing), Ok(false));
    let mut client = Negotiation::of_client(list(&[V1, V2]), None);
    let reaction = client.on_version_negotiation([VERSION_2].into_iter());
    assert_eq!(reaction, Reaction::Restart(V2));
    client.on_crypto();
    assert_eq!(error_of(client.on_parameters(&missing)), DISAGREEMENT);
}

#[test]
fn the_parameter_has_the_preferred_version_first_whatever_the_first_flight_is() {
    let first = Negotiation::of_client(list(&[V2, V1]), Some(V1));
    assert_eq!(first.current(), V1);
    let information = first.information(first.current());
    let available = information.as_ref().map(|it| it.available());
    assert_eq!(
        available.and_then(|it| it.first()),
        Some(V2),
        "the preferred one"
    );
}

#[test]
fn ends_with_version_1_alone_send_no_parameter() {
    assert_eq!(
        Negotiation::of_client(Versions::V1, None).information(V1),
        None
    );
    let both = Negotiation::of_server(Versions::ALL, false, V1);
    let information = both.information(V1).expect("the parameter");
    assert_eq!(information.chosen(), VERSION_1);
    assert_eq!(information.available(), Versions::ALL);
}
