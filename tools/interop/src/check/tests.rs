use std::time::Duration;

use bytes::Bytes;
use courser_wire::CloseKind;

use super::*;
use crate::trace::{Contents, FlowFacts};

/// A capture in which each packet has a datagram of its own.
fn evidence(packets: &[(Side, PacketKind, Contents)]) -> Evidence {
    let mut evidence = Evidence {
        datagrams: Vec::new(),
        trace: Trace::default(),
        has_keys: true,
    };
    for (index, (from, kind, contents)) in packets.iter().enumerate() {
        let place = match from {
            Side::Client => ObservationPoint::FromClient,
            Side::Server => ObservationPoint::FromServer,
        };
        evidence.datagrams.push(datagram(place, &[0x40], 1));
        evidence.trace.packets.push(SeenPacket {
            datagram: index,
            from: *from,
            kind: *kind,
            version: VERSION_1,
            destination: ConnectionId::EMPTY,
            source: ConnectionId::EMPTY,
            token: Vec::new(),
            len: 100,
            contents: Some(contents.clone()),
        });
    }
    evidence
}

fn datagram(place: ObservationPoint, payload: &[u8], port: u16) -> ObservedDatagram {
    ObservedDatagram {
        at: Duration::ZERO,
        place,
        client: SocketAddr::from(([127, 0, 0, 1], 9)),
        translated: Some(SocketAddr::from(([127, 0, 0, 1], port))),
        ecn: Ecn::Ect0,
        payload: Bytes::copy_from_slice(payload),
    }
}

fn assert_fails(result: Result<(), Failed>, expected: &str) {
    let reason = result.expect_err(expected);
    assert!(reason.contains(expected), "{reason}");
}

#[test]
fn marks_and_counts_of_both_ends_are_required() {
    let counts = |has_ack_with_ecn| Contents {
        has_ack_with_ecn,
        ..Contents::default()
    };
    let of = |client, server| {
        evidence(&[
            (Side::Client, PacketKind::OneRtt, counts(client)),
            (Side::Server, PacketKind::OneRtt, counts(server)),
        ])
    };
    assert_eq!(of(true, true).check_ecn(), Ok(()));
    assert_fails(
        of(false, true).check_ecn(),
        "the client sent no ACK with ECN counts",
    );
    assert_fails(
        of(true, false).check_ecn(),
        "the server sent no ACK with ECN counts",
    );
    for (mark, expected) in [
        (Ecn::NotEct, "the server marked no packet"),
        (Ecn::Ce, "the server sent CE"),
    ] {
        let mut marked = of(true, true);
        marked.datagrams[1].ecn = mark;
        assert_fails(marked.check_ecn(), expected);
    }
}

#[test]
fn version_negotiation_has_the_ids_of_the_first_flight() {
    let id = |byte| ConnectionId::new(&[byte; 8]).expect("short");
    let of = |version, source, destination| {
        let none = Contents::default();
        let mut evidence = evidence(&[
            (Side::Client, PacketKind::Initial, none.clone()),
            (Side::Server, PacketKind::VersionNegotiation, none.clone()),
            (Side::Client, PacketKind::Initial, none),
        ]);
        let [first, answer, _] = &mut evidence.trace.packets[..] else {
            panic!("three packets");
        };
        (first.version, first.source, first.destination) = (version, id(1), id(2));
        (answer.version, answer.source, answer.destination) = (0, source, destination);
        evidence.check_version_negotiation()
    };
    assert_eq!(of(VERSION_2, id(2), id(1)), Ok(()));
    assert_fails(of(VERSION_1, id(2), id(1)), "began with version 1");
    assert_fails(of(VERSION_2, id(3), id(1)), "has the IDs");
    assert_fails(of(VERSION_2, id(2), id(3)), "has the IDs");
    let without = evidence(&[(Side::Client, PacketKind::Initial, Contents::default())]);
    assert_fails(
        without.check_version_negotiation(),
        "no Version Negotiation",
    );
}

#[test]
fn server_may_send_three_times_the_bytes_that_reached_it() {
    let handshake = (Side::Client, PacketKind::Handshake, Contents::default());
    let of = |sent: usize| {
        let mut evidence = evidence(std::slice::from_ref(&handshake));
        let early = [
            datagram(ObservationPoint::FromClient, &[0xc0; 1300], 1),
            // Of these two datagrams one is lost.
            datagram(ObservationPoint::FromClient, &[0xc0; 1200], 1),
            datagram(ObservationPoint::ToServer, &[0xc0; 1200], 1),
            datagram(ObservationPoint::FromServer, &vec![0xc0; sent], 1),
            datagram(ObservationPoint::ToServer, &[0x40], 1),
            datagram(ObservationPoint::FromServer, &[0xc0; 9000], 1),
        ];
        evidence.datagrams.extend(early);
        evidence.within_three_times()
    };
    assert_eq!(of(3600), Ok(()));
    assert_fails(of(3601), "sent 3601 bytes after 1200 bytes");
}

#[test]
fn run_without_handshake_packet_of_the_client_fails() {
    let mut evidence = evidence(&[]);
    evidence
        .datagrams
        .push(datagram(ObservationPoint::ToServer, &[0xc0; 1200], 1));
    assert_fails(evidence.within_three_times(), "no Handshake packet");
}

#[test]
fn new_path_begins_with_a_challenge_that_is_answered() {
    let challenge = |data: &[[u8; 8]]| Contents {
        challenges: data.to_vec(),
        ..Contents::default()
    };
    let response = |data: &[[u8; 8]]| Contents {
        responses: data.to_vec(),
        ..Contents::default()
    };
    let of = |challenges: &[[u8; 8]], responses: &[[u8; 8]], port| {
        let mut evidence = evidence(&[
            (Side::Server, PacketKind::OneRtt, Contents::default()),
            (Side::Server, PacketKind::OneRtt, challenge(challenges)),
            (Side::Client, PacketKind::OneRtt, response(responses)),
        ]);
        evidence.datagrams[1].translated = Some(SocketAddr::from(([127, 0, 0, 1], port)));
        evidence.check_paths()
    };
    let data = [[7; 8]];
    assert_eq!(of(&data, &data, 2), Ok(()));
    assert_fails(of(&data, &data, 1), "one path only");
    assert_fails(of(&[], &data, 2), "has no PATH_CHALLENGE");
    assert_fails(
        of(&data, &[[8; 8]], 2),
        "1 PATH_CHALLENGE frames were not answered",
    );
}

#[test]
fn challenge_that_meets_the_close_of_the_client_needs_no_answer() {
    let challenge = Contents {
        challenges: vec![[7; 8]],
        ..Contents::default()
    };
    let close = Contents {
        close: Some(CloseKind::Application {
            error_code: courser_wire::ApplicationErrorCode(0),
        }),
        ..Contents::default()
    };
    let of = |challenge_ms| {
        let mut evidence = evidence(&[
            (Side::Server, PacketKind::OneRtt, Contents::default()),
            (Side::Server, PacketKind::OneRtt, challenge.clone()),
            (Side::Client, PacketKind::OneRtt, close.clone()),
        ]);
        let challenge = &mut evidence.datagrams[1];
        challenge.translated = Some(SocketAddr::from(([127, 0, 0, 1], 2)));
        challenge.at = Duration::from_millis(challenge_ms);
        evidence.datagrams[2].at = Duration::from_millis(1000);
        evidence.check_paths()
    };
    assert_fails(of(850), "1 PATH_CHALLENGE frames were not answered");
    assert_eq!(of(851), Ok(()));
    assert_eq!(of(1001), Ok(()));
}

#[test]
fn packets_of_another_version_are_found() {
    let mut evidence = evidence(&[
        (Side::Client, PacketKind::Initial, Contents::default()),
        (Side::Server, PacketKind::Initial, Contents::default()),
        (Side::Client, PacketKind::Handshake, Contents::default()),
        (Side::Server, PacketKind::Handshake, Contents::default()),
    ]);
    assert_eq!(evidence.check_version(), Ok(()));
    assert_fails(evidence.check_version_2(), "the server's Initial packets");
    for index in 1..4 {
        evidence.trace.packets[index].version = VERSION_2;
    }
    assert_eq!(evidence.check_version_2(), Ok(()));
    assert_fails(evidence.check_version(), "6b3343cf");
    evidence.trace.packets[2].version = VERSION_1;
    assert_fails(
        evidence.check_version_2(),
        "the client has Handshake packets",
    );
}

#[test]
fn requests_must_be_sent_in_early_packets() {
    let packet = |kind| (Side::Client, kind, Contents::default());
    let mut with = evidence(&[packet(PacketKind::ZeroRtt), packet(PacketKind::OneRtt)]);
    assert_eq!(with.check_zero_rtt(), Ok(()));
    with.trace.packets[1].len = 5001;
    assert_fails(with.check_zero_rtt(), "5001 bytes in 1-RTT packets");
    let without = evidence(&[packet(PacketKind::OneRtt)]);
    assert_fails(without.check_zero_rtt(), "no 0-RTT packet");
}

#[test]
fn packet_number_must_not_be_reset_by_a_retry() {
    let number = |number| Contents {
        number,
        ..Contents::default()
    };
    let of = |second, token: &[u8]| {
        let mut evidence = evidence(&[
            (Side::Client, PacketKind::Initial, number(0)),
            (Side::Server, PacketKind::Retry, Contents::default()),
            (Side::Client, PacketKind::Initial, number(second)),
        ]);
        evidence.trace.packets[1].token = b"token".to_vec();
        evidence.trace.packets[2].token = token.to_vec();
        evidence.check_retry()
    };
    assert_eq!(of(1, b"token"), Ok(()));
    assert_fails(of(0, b"token"), "reset the packet number");
    assert_fails(of(1, b"other"), "no Initial packet has the token");
}

#[test]
fn new_path_of_a_migration_needs_a_new_connection_id() {
    let answered = Contents {
        challenges: vec![[7; 8]],
        responses: vec![[7; 8]],
        ..Contents::default()
    };
    let of = |id: &[u8]| {
        let mut evidence = evidence(&[
            (Side::Server, PacketKind::OneRtt, Contents::default()),
            (Side::Client, PacketKind::OneRtt, Contents::default()),
            (Side::Client, PacketKind::OneRtt, answered.clone()),
            (Side::Server, PacketKind::OneRtt, answered.clone()),
            // The client may still use the first path.
            (Side::Client, PacketKind::OneRtt, Contents::default()),
        ]);
        let ids: [&[u8]; 5] = [&[], b"first", id, &[], b"first"];
        for (index, id) in ids.into_iter().enumerate() {
            let id = ConnectionId::new(id).expect("short");
            evidence.trace.packets[index].destination = id;
        }
        for index in [2, 3] {
            let path = SocketAddr::from(([127, 0, 0, 1], 2));
            evidence.datagrams[index].translated = Some(path);
        }
        evidence.check_migration()
    };
    assert_eq!(of(b"other"), Ok(()));
    assert_fails(of(b"first"), "has the previous ID");
}

#[test]
fn chacha20_has_to_be_the_only_suite_beside_the_renegotiation_signal() {
    let of = |suites: &[u16]| Evidence {
        trace: Trace::of_facts(FlowFacts {
            offered_suites: suites.to_vec(),
            ..FlowFacts::default()
        }),
        ..evidence(&[])
    };
    for suites in [&[0x1303][..], &[0x1303, 0x00ff]] {
        assert_eq!(of(suites).check_chacha20(), Ok(()), "{suites:x?}");
    }
    assert_fails(of(&[0x1303, 0x1301]).check_chacha20(), "[1303, 1301]");
    assert_fails(of(&[0x00ff]).check_chacha20(), "[[]]");
}
