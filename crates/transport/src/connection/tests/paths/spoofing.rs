//! Tests attackers that forge a move of the peer. RFC 9000 §9.3, attacks A53 to A56.

use super::*;

#[test]
fn spoofed_source_gets_three_times_its_bytes_and_the_client_stays() {
    for to in [victim(), address("10.0.0.1:9")] {
        let mut pair = Pair::connected();
        pair.link.filter = Some(Box::new(move |_, datagram| datagram.to != to));
        from_elsewhere(&mut pair, to, &[1]);
        assert_eq!(server_peer(&mut pair), to, "the highest number counts");
        pair.run_for(Duration::from_secs(5));
        assert_eq!(server_peer(&mut pair), client_address());
        assert!(is_validated(&mut pair));
        let (received, sent) = pair.ledger.of(to);
        assert!(sent <= 3 * received, "{sent} bytes for {received}");
        assert_eq!(moves(&pair), [to, client_address()]);
        pair.download(500_000);
        pair.run_for(RTT * 3);
        assert_eq!(pair.server.connection().stats().path.bytes_in_flight, 0);
    }
}

#[test]
fn racing_copies_of_all_packets_leave_the_connection_open() {
    // Attack A53: an attacker copies every packet of the client and is always faster. This cannot be
    // prevented (RFC 9000 §9.3.3), but the effect must end with the attack.
    for to in [victim(), address("10.0.0.1:9")] {
        for down in [true, false] {
            let mut pair = Pair::connected();
            pair.link.filter = Some(Box::new(move |_, datagram| datagram.to != to));
            let mut transfer = match down {
                true => Transfer::down(&mut pair, 300_000),
                false => Transfer::up(&mut pair, 300_000),
            };
            let (mut copied, begun) = (0, pair.now);
            while !transfer.step(&mut pair) {
                let is_attacked = pair.now - begun < Duration::from_secs(15);
                while is_attacked && copied < pair.client.sent.len() {
                    let copy = Datagram {
                        from: to,
                        ..pair.client.sent[copied].clone()
                    };
                    pair.deliver(copy);
                    copied += 1;
                }
                pair.step();
                assert!(
                    pair.now - begun < Duration::from_secs(60),
                    "{} bytes",
                    transfer.received()
                );
                let (received, sent) = pair.ledger.of(to);
                assert!(sent <= 3 * received, "{sent} bytes for {received}");
            }
            pair.run_for(Duration::from_secs(10));
            assert_eq!(server_peer(&mut pair), client_address(), "down {down}");
        }
    }
}

#[test]
fn move_back_and_forth_leaves_nothing_in_flight() {
    let mut pair = Pair::connected();
    let mut transfer = Transfer::down(&mut pair, 2_000_000);
    for round in 0..20 {
        for _ in 0..30 {
            pair.step();
            transfer.step(&mut pair);
        }
        pair.client.address = if round % 2 == 0 {
            other_host()
        } else {
            client_address()
        };
        ping(&mut pair);
    }
    assert!(
        transfer
            .finish(&mut pair, Duration::from_secs(60))
            .is_some()
    );
    pair.run_for(Duration::from_secs(3));
    let connection = pair.server.connection();
    assert_eq!(
        connection.packets.recovery.bytes_in_flight_of_all_paths(),
        0
    );
}

#[test]
fn small_probe_from_elsewhere_gets_a_small_answer() {
    let (mut pair, _) = Pair::watched_and_connected();
    let challenge = encode(&Frame::PathChallenge(PathChallenge { data: [5; 8] }));
    from_elsewhere(&mut pair, victim(), &challenge);
    let (received, sent) = pair.ledger.of(victim());
    assert!(
        sent > 0 && sent <= 3 * received,
        "{sent} bytes for {received}"
    );
}

#[test]
fn only_the_newest_of_many_challenges_is_answered() {
    // Attack A32: they all arrive before anything can be sent. More would reach limit K17.
    let (mut pair, eye) = Pair::watched_and_connected();
    for number in 0..1_500u64 {
        let data = number.to_be_bytes();
        let frame = encode(&Frame::PathChallenge(PathChallenge { data }));
        let bytes = forge(&mut pair.client, SpaceId::Application, &frame);
        let (from, to) = (client_address(), server_address());
        pair.deliver(Datagram {
            from,
            to,
            ecn: Ecn::NotEct,
            bytes,
        });
    }
    pair.drive();
    let sent = eye.server_sent(&pair);
    let answers = sent.iter().flat_map(Seen::frames);
    let answers = answers.filter_map(|frame| match frame {
        Frame::PathResponse(response) => Some(u64::from_be_bytes(response.data)),
        _ => None,
    });
    // Limit K06.
    assert_eq!(answers.collect::<Vec<_>>(), [1_497, 1_498, 1_499]);
}

#[test]
fn unsolicited_path_response_validates_no_path() {
    let mut pair = Pair::connected();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to == server_address()));
    pair.client.address = victim();
    ping(&mut pair);
    pair.run_for(RTT / 2);
    for data in 0..100 {
        let frame = Frame::PathResponse(PathResponse { data: [data; 8] });
        from_elsewhere(&mut pair, victim(), &encode(&frame));
    }
    assert!(!is_validated(&mut pair));
    assert!(!pair.server.connection().is_closed());
}

#[test]
fn client_drops_packets_from_addresses_it_has_not_sent_to() {
    let mut pair = Pair::connected();
    let received = pair.client.connection().stats().packets_received;
    let bytes = forge(&mut pair.server, SpaceId::Application, &[1]);
    let to = client_address();
    pair.deliver(Datagram {
        from: other_host(),
        to,
        ecn: Ecn::NotEct,
        bytes,
    });
    pair.drive();
    let connection = pair.client.connection();
    assert_eq!(connection.stats().packets_received, received);
    assert_eq!(connection.path().peer, server_address());
    pair.upload(10_000);
}

#[test]
fn forged_source_during_the_handshake_does_not_move_the_server() {
    // Attack A56: each datagram of the client's handshake in turn arrives from another address. The
    // first is excluded, because its source defines the client's address. After a forged move to another
    // port of the same host, the client's next packet moves the server back.
    let positions =
        (2..8).flat_map(|position| [(position, other_host()), (position, other_port())]);
    for (position, from) in positions {
        let mut pair = Pair::new();
        let mut count = 0;
        pair.link.filter = Some(Box::new(move |_, datagram| {
            if datagram.to == server_address() {
                count += 1;
                if count == position {
                    datagram.from = from;
                }
            }
            datagram.to != from
        }));
        pair.start();
        let done = pair.run_until(Duration::from_secs(10), |pair| {
            pair.client.has(&Event::Confirmed) && pair.server.has(&Event::Confirmed)
        });
        assert!(done, "{from} at {position}: {:?}", pair.client.events);
        let (received, sent) = pair.ledger.of(from);
        assert!(
            sent <= 3 * received,
            "{from} at {position}: {sent} for {received}"
        );
        assert_eq!(server_peer(&mut pair), client_address());
    }
}
