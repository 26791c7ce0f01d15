//! Tests Version Negotiation in both directions. RFC 9000 §6.

use courser_wire::packet::version_negotiation;

use super::*;

/// A version that no end supports.
const OTHER: u32 = 0x709a_50c4;

/// Returns a datagram of an unsupported version.
fn unknown(from: u16, len: usize) -> Datagram {
    let mut datagram = FirstDatagram {
        len,
        ..FirstDatagram::new(from)
    }
    .initial();
    datagram.bytes[1..5].copy_from_slice(&OTHER.to_be_bytes());
    datagram
}

/// Returns a Version Negotiation packet from the server to the client.
fn negotiation(pair: &Pair, source: &[u8], versions: &[u32]) -> Datagram {
    let first = packet::decode(&pair.client.sent[0].bytes, 0, 8).expect("the client's Initial");
    let mut bytes = vec![0; version_negotiation::encoded_len(&first.source, source, versions)];
    let mut writer = courser_wire::Writer::new(&mut bytes);
    version_negotiation::encode(&mut writer, 0, &first.source, source, versions);
    let (from, to) = (pair.server.address, pair.client.address);
    Datagram {
        from,
        to,
        ecn: Ecn::NotEct,
        bytes,
    }
}

fn original_destination(pair: &Pair) -> courser_wire::ConnectionId {
    packet::decode(&pair.client.sent[0].bytes, 0, 8)
        .expect("the client's Initial")
        .destination
}

#[test]
fn unknown_version_is_answered_with_swapped_ids() {
    let mut pair = Pair::new();
    let answers = answers(&mut pair, unknown(1, 1200));
    let [answer] = &answers[..] else {
        panic!("one answer, not {}", answers.len())
    };
    let parts = version_negotiation::decode(&answer.bytes).expect("Version Negotiation");
    assert_eq!(parts.source, &FirstDatagram::new(1).destination[..]);
    assert_eq!(parts.destination, &FirstDatagram::new(1).source[..]);
    let versions: Vec<_> = parts.versions().collect();
    assert!(
        versions.contains(&1) && !versions.contains(&OTHER),
        "{versions:x?}"
    );
    assert_eq!(pair.server.endpoint.stats().version_negotiations_sent, 1);
    assert_clean(&pair.server, "server");
}

#[test]
fn short_datagram_of_an_unknown_version_is_dropped() {
    let mut pair = Pair::new();
    assert!(answers(&mut pair, unknown(1, 1199)).is_empty());
}

#[test]
fn endpoint_without_a_server_answers_no_version() {
    let mut pair = Pair::new();
    pair.server.endpoint.set_server_config(None);
    assert!(answers(&mut pair, unknown(1, 1200)).is_empty());
}

#[test]
fn version_negotiation_is_never_answered() {
    let mut pair = Pair::new();
    let mut datagram = unknown(1, 1400);
    datagram.bytes[1..5].fill(0);
    assert!(answers(&mut pair, datagram).is_empty());
}

#[test]
fn answers_to_one_network_are_limited() {
    let mut pair = Pair::new();
    slow_replies(&mut pair);
    let answered = (0..200)
        .filter(|_| !answers(&mut pair, unknown(1, 1200)).is_empty())
        .count();
    assert_eq!(answered, 50, "limit K19");
    assert!(
        !answers(&mut pair, unknown(0x0100, 1200)).is_empty(),
        "another network"
    );
}

#[test]
fn ports_of_other_services_get_no_answer() {
    let mut pair = Pair::new();
    for port in [
        0, 7, 17, 19, 53, 111, 123, 137, 138, 161, 389, 500, 1900, 3702, 5353, 5355, 11211,
    ] {
        let mut datagram = unknown(1, 1200);
        datagram.from.set_port(port);
        assert!(
            answers(&mut pair, datagram).is_empty(),
            "version answered to port {port}"
        );
        let mut datagram = FirstDatagram::new(1).initial();
        datagram.from.set_port(port);
        assert!(
            answers(&mut pair, datagram).is_empty(),
            "Initial answered to port {port}"
        );
        assert_clean(&pair.server, "server");
    }
}

#[test]
fn client_ends_the_attempt_when_its_version_is_not_offered() {
    let mut pair = Pair::new();
    catch_first_flight(&mut pair);
    let source = original_destination(&pair);
    let datagram = negotiation(&pair, &source, &[OTHER, 0x1a2a_3a4a]);
    pair.deliver(datagram);
    pair.drive();
    let offered = vec![OTHER, 0x1a2a_3a4a];
    assert_eq!(
        lost(&pair.client),
        Some(&ConnectionError::VersionMismatch {
            supported: courser_wire::Versions::V1,
            offered,
        })
    );
    assert_clean(&pair.client, "client");
}

#[test]
fn server_of_another_version_ends_the_attempt_after_one_round_trip() {
    // The server offers only versions that the client does not support, and vice versa.
    let mut pair = pair_with(|server| server.versions = courser_wire::Versions::V1);
    pair.link.filter = Some(Box::new(|_, datagram| {
        let version: &[u8] = if datagram.to.port() == 4433 {
            &OTHER.to_be_bytes()
        } else {
            &[0; 4]
        };
        datagram.bytes[1..5].copy_from_slice(version);
        let len = datagram.bytes.len();
        let supported = datagram.bytes[len - 8..].starts_with(&[0, 0, 0, 1]);
        if version == [0; 4] && supported {
            datagram.bytes[len - 8..len - 4].copy_from_slice(&OTHER.to_be_bytes());
        }
        true
    }));
    let begun = pair.now;
    pair.start();
    assert!(pair.run_until(Duration::from_secs(1), |pair| lost(&pair.client).is_some()));
    assert_eq!(pair.now - begun, RTT);
    let Some(ConnectionError::VersionMismatch { .. }) = lost(&pair.client) else {
        panic!("{:?}", pair.client.events)
    };
}

#[test]
fn negotiation_that_lists_our_version_is_discarded() {
    let mut pair = Pair::new();
    catch_first_flight(&mut pair);
    let source = original_destination(&pair);
    let datagram = negotiation(&pair, &source, &[OTHER, 1]);
    pair.deliver(datagram);
    pair.drive();
    assert_eq!(lost(&pair.client), None);
    assert!(pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.has(&Event::Confirmed)
    }));
}

#[test]
fn error_contains_at_most_64_versions_and_all_are_compared() {
    let versions: Vec<u32> = (0..65).map(|number| OTHER + number).collect();
    let mut pair = Pair::new();
    catch_first_flight(&mut pair);
    let source = original_destination(&pair);
    let with_ours = [&versions[..64], &[1]].concat();
    let datagram = negotiation(&pair, &source, &with_ours);
    pair.deliver(datagram);
    pair.drive();
    assert_eq!(lost(&pair.client), None, "RFC 9000 §6.2");
    let datagram = negotiation(&pair, &source, &versions);
    pair.deliver(datagram);
    pair.drive();
    let offered = versions[..64].to_vec();
    assert_eq!(
        lost(&pair.client),
        Some(&ConnectionError::VersionMismatch {
            supported: courser_wire::Versions::V1,
            offered,
        })
    );
}

#[test]
fn negotiation_that_does_not_echo_our_ids_is_discarded() {
    let mut pair = Pair::new();
    catch_first_flight(&mut pair);
    let mut source = original_destination(&pair).to_vec();
    source[0] ^= 1;
    let datagram = negotiation(&pair, &source, &[OTHER]);
    pair.deliver(datagram);
    let datagram = negotiation(&pair, &[], &[OTHER]);
    pair.deliver(datagram);
    pair.drive();
    assert_eq!(lost(&pair.client), None);
}

#[test]
fn negotiation_is_discarded_at_every_step_after_the_servers_first_packet() {
    for step in 0..40 {
        let mut pair = Pair::new();
        pair.start();
        pair.drive();
        let source = original_destination(&pair);
        let first_answer = pair.now + RTT;
        pair.run_until(RTT, |_| false);
        assert_eq!(pair.now, first_answer);
        pair.run_for(Duration::from_millis(step * 3));
        let datagram = negotiation(&pair, &source, &[OTHER]);
        pair.deliver(datagram);
        let done = pair.run_until(Duration::from_secs(2), |pair| {
            pair.client.has(&Event::Confirmed)
        });
        assert!(
            done && lost(&pair.client).is_none(),
            "step {step}: {:?}",
            pair.client.events
        );
    }
}

#[test]
fn negotiation_after_a_retry_is_discarded() {
    let mut pair = pair_with(|server| server.retry = crate::RetryPolicy::Always);
    pair.start();
    pair.drive();
    let source = original_destination(&pair);
    pair.run_for(RTT);
    assert!(kind_of(&pair.server.sent[0]) == PacketKind::Retry);
    let datagram = negotiation(&pair, &source, &[OTHER]);
    pair.deliver(datagram);
    assert!(pair.run_until(Duration::from_secs(2), |pair| {
        pair.client.has(&Event::Confirmed)
    }));
}

#[test]
fn two_servers_do_not_answer_each_other_after_a_forged_datagram() {
    // Each answer is delivered to the other end as if it were a request: attack A10.
    let (mut one, mut other) = (Pair::new(), Pair::new());
    let mut exchanged = 0;
    let mut at = unknown(1, 1400);
    for round in 0..10 {
        let pair = if round % 2 == 0 { &mut one } else { &mut other };
        let Some(answer) = answers(pair, at.clone()).pop() else {
            break;
        };
        exchanged += 1;
        at = Datagram {
            from: pair.server.address,
            to: pair.server.address,
            ..answer
        };
        at.from.set_port(40_000);
    }
    assert!(exchanged <= 3, "{exchanged} packets");
}
