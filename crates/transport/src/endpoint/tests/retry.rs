//! Tests Retry and its tokens. RFC 9000 §8.1.2, §17.2.5.

use courser_base::Side;
use courser_wire::frame::Frame;
use courser_wire::packet::{encode_retry, retry, retry_parts};
use courser_wire::{ConnectionId, TransportErrorCode, VERSION_1, Writer};

use super::*;
use crate::config::RetryPolicy;
use crate::endpoint::admission::tokens::validation_token::SystemSeconds;
use crate::testing::eye::{Eye, Seen};

const INVALID_TOKEN: u64 = TransportErrorCode::INVALID_TOKEN.value();

fn always() -> Pair {
    pair_with(|server| server.retry = RetryPolicy::Always)
}

fn initials(sent: &[Datagram]) -> Vec<packet::Packet> {
    sent.iter()
        .filter_map(|datagram| packet::decode(&datagram.bytes, 0, 8).ok())
        .filter(|packet| packet.kind == PacketKind::Initial)
        .collect()
}

/// Returns a client that has just received a Retry, and its answer.
fn retried(pair: &mut Pair) -> FirstDatagram {
    let first_datagram = FirstDatagram::new(1);
    let answers = answers(pair, first_datagram.initial());
    let [answer] = &answers[..] else {
        panic!("one Retry, not {}", answers.len())
    };
    assert_eq!(kind_of(answer), PacketKind::Retry);
    let token = retry_parts(&answer.bytes).expect("a Retry").token.to_vec();
    let packet = packet::decode(&answer.bytes, 0, 8).expect("a Retry");
    assert_eq!(packet.destination, first_datagram.source);
    assert_ne!(
        packet.source, first_datagram.destination,
        "RFC 9000 §17.2.5.1"
    );
    FirstDatagram {
        destination: packet.source,
        token,
        ..first_datagram
    }
}

/// Returns true if the server admits the client as one with a validated address.
fn is_admitted(pair: &mut Pair, first_datagram: &FirstDatagram) -> bool {
    let before = pair.server.endpoint.stats().waiting;
    assert!(answers(pair, first_datagram.initial()).is_empty());
    pair.server.endpoint.stats().waiting == before + 1
}

fn gets_invalid_token(pair: &mut Pair, first_datagram: &FirstDatagram) -> bool {
    let answers = answers(pair, first_datagram.initial());
    let codes: Vec<_> = answers
        .iter()
        .filter_map(|it| close_code(it, &first_datagram.destination))
        .collect();
    codes == [INVALID_TOKEN]
}

#[test]
fn handshake_with_a_retry_takes_one_more_round_trip() {
    let mut pair = always();
    pair.start();
    let begun = pair.now;
    assert!(pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.has(&Event::Connected)
    }));
    assert_eq!(pair.now - begun, RTT * 2);
    assert!(pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.has(&Event::Confirmed)
    }));
    let stats = pair.server.endpoint.stats();
    assert_eq!((stats.accepted, stats.connections), (1, 1));
}

#[test]
fn client_uses_the_id_and_token_of_a_retry_and_keeps_its_own_id() {
    let mut pair = always();
    pair.connect();
    let retry = packet::decode(&pair.server.sent[0].bytes, 0, 8).expect("a Retry");
    let token = retry_parts(&pair.server.sent[0].bytes)
        .expect("a Retry")
        .token
        .to_vec();
    let sent = initials(&pair.client.sent);
    let (before, after): (Vec<_>, Vec<_>) = sent.iter().partition(|packet| packet.token.is_empty());
    assert_eq!(before.len(), 2, "a ClientHello of two packets");
    assert!(after.len() >= 2, "and once more");
    let answers =
        pair.client.sent.iter().filter(|it| {
            packet::decode(&it.bytes, 0, 8).is_ok_and(|packet| !packet.token.is_empty())
        });
    for datagram in answers.take(2) {
        let packet = packet::decode(&datagram.bytes, 0, 8).expect("an Initial");
        assert_eq!(datagram.bytes[packet.token.clone()], token);
        assert_eq!(packet.destination, retry.source);
        assert_eq!(packet.source, before[0].source);
        assert!(datagram.bytes.len() >= 1200);
    }
}

/// RFC 9000 §17.2.5.1. Two Initials of a client in one datagram get one Retry.
#[test]
fn each_datagram_gets_one_retry_with_a_new_id() {
    for seed in 1..20 {
        let mut pair = always();
        let first_datagram = FirstDatagram::new(seed);
        let mut datagram = first_datagram.initial();
        let copy = datagram.bytes.clone();
        datagram.bytes.extend_from_slice(&copy);
        let answers = answers(&mut pair, datagram);
        let [answer] = &answers[..] else {
            panic!("one Retry, not {}", answers.len())
        };
        assert_eq!(kind_of(answer), PacketKind::Retry);
        let packet = packet::decode(&answer.bytes, 0, 8).expect("a Retry");
        assert_eq!(packet.end, answer.bytes.len(), "nothing behind it");
        assert_ne!(packet.source, first_datagram.destination);
        assert_eq!(packet.destination, first_datagram.source);
    }
}

/// The token is not stored for later connections (RFC 9000 §8.1.3).
#[test]
fn token_of_a_retry_is_used_by_one_connection() {
    let mut pair = always();
    let store = Arc::new(crate::config::MemoryTokenStore::default());
    pair.client_config.tokens = Some(store);
    pair.connect();
    let first = retry_parts(&pair.server.sent[0].bytes).expect("a Retry");
    let token = first.token.to_vec();
    let from = pair.client.sent.len();
    for _ in 0..3 {
        pair.client.events.clear();
        pair.server.events.clear();
        pair.connect();
    }
    let tokens = |from: usize| {
        let datagrams = pair.client.sent[from..].iter();
        datagrams.filter_map(|datagram| {
            let packet = packet::decode(&datagram.bytes, 0, 8).ok()?;
            (packet.kind == PacketKind::Initial).then(|| datagram.bytes[packet.token].to_vec())
        })
    };
    assert!(tokens(0).any(|sent| sent == token), "the first answered it");
    assert!(tokens(from).any(|sent| !sent.is_empty()));
    assert!(tokens(from).all(|sent| sent != token));
}

#[test]
fn packet_numbers_continue_and_the_client_hello_is_unchanged_after_a_retry() {
    let mut setup = Setup::default();
    setup.server.retry = RetryPolicy::Always;
    let (setup, eye) = setup.with_eye();
    let mut pair = Pair::with(setup);
    pair.connect();
    let sent = eye.client_sent(&pair);
    let initials: Vec<_> = sent
        .iter()
        .filter(|seen| seen.kind == PacketKind::Initial)
        .collect();
    let numbers: Vec<_> = initials.iter().take(4).map(|seen| seen.number).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    let hello = |tokens: bool| -> Vec<u8> {
        let mut bytes = Vec::new();
        for seen in initials
            .iter()
            .filter(|seen| seen.token.is_empty() != tokens)
        {
            for frame in seen.frames() {
                if let courser_wire::frame::Frame::Crypto(crypto) = frame {
                    let start = usize::try_from(crypto.offset).expect("small");
                    bytes.resize(bytes.len().max(start + crypto.data.len()), 0);
                    bytes[start..start + crypto.data.len()].copy_from_slice(crypto.data);
                }
            }
        }
        bytes
    };
    assert_eq!(hello(false), hello(true));
}

#[test]
fn genuine_token_admits_the_client_with_a_validated_address() {
    let mut pair = waiting_pair(|server| server.retry = RetryPolicy::Always);
    let first_datagram = retried(&mut pair);
    assert!(is_admitted(&mut pair, &first_datagram));
    let incoming = pair.server.endpoint.poll_incoming().expect("it waits");
    assert!(incoming.is_address_validated() && !incoming.may_retry());
    assert_eq!(
        *incoming.original_destination(),
        FirstDatagram::new(1).destination
    );
    let incoming = pair
        .server
        .endpoint
        .retry(pair.now, incoming)
        .expect_err("one Retry is enough");
    pair.server.endpoint.ignore(incoming);
    assert_clean(&pair.server, "server");
}

#[test]
fn token_of_another_address_or_connection_is_invalid() {
    let mut pair = always();
    let genuine = retried(&mut pair);
    let mut port = genuine.clone();
    port.address.set_port(40_001);
    let address = FirstDatagram {
        address: FirstDatagram::new(2).address,
        ..genuine.clone()
    };
    let destination = FirstDatagram {
        destination: id(&[9; 8]),
        ..genuine.clone()
    };
    for (name, first_datagram) in [
        ("port", port),
        ("address", address),
        ("destination", destination),
    ] {
        assert!(
            gets_invalid_token(&mut pair, &first_datagram),
            "another {name}"
        );
    }
    assert_clean(&pair.server, "server");
}

#[test]
fn token_expires_after_ten_seconds() {
    let mut pair = waiting_pair(|server| server.retry = RetryPolicy::Always);
    let first_datagram = retried(&mut pair);
    pair.now += Duration::from_secs(10);
    assert!(is_admitted(&mut pair, &first_datagram));
    let mut pair = waiting_pair(|server| server.retry = RetryPolicy::Always);
    let first_datagram = retried(&mut pair);
    pair.now += Duration::from_secs(11);
    assert!(gets_invalid_token(&mut pair, &first_datagram));
    assert_clean(&pair.server, "server");
}

#[test]
fn lifetime_of_a_token_is_the_one_that_the_program_sets() {
    for (seconds, is_valid) in [(30, true), (31, false)] {
        let mut pair = waiting_pair(|server| {
            server.retry = RetryPolicy::Always;
            server.retry_token_lifetime = Duration::from_secs(30);
        });
        let first_datagram = retried(&mut pair);
        pair.now += Duration::from_secs(seconds);
        match is_valid {
            true => assert!(is_admitted(&mut pair, &first_datagram)),
            false => assert!(gets_invalid_token(&mut pair, &first_datagram)),
        }
    }
}

#[test]
fn every_flipped_bit_of_a_token_is_detected() {
    let mut pair = always();
    let genuine = retried(&mut pair);
    for bit in 0..genuine.token.len() * 8 {
        // Avoids the limit for refusals (K19), which is not under test.
        pair.now += Duration::from_millis(21);
        let epoch = 1_700_000_000 - pair.now.as_nanos() / 1_000_000_000;
        pair.server.endpoint.admission.tokens_mut().epoch = SystemSeconds(epoch);
        let mut first_datagram = genuine.clone();
        first_datagram.token[bit / 8] ^= 1 << (bit % 8);
        if bit < 8 {
            // The token is not one of ours, so the client must validate its address like others.
            let answers = answers(&mut pair, first_datagram.initial());
            assert_eq!(
                answers.iter().map(kind_of).collect::<Vec<_>>(),
                [PacketKind::Retry]
            );
            continue;
        }
        assert!(gets_invalid_token(&mut pair, &first_datagram), "bit {bit}");
    }
    assert_clean(&pair.server, "server");
}

#[test]
fn tokens_of_any_length_are_handled() {
    let mut pair = always();
    let genuine = retried(&mut pair);
    for len in (0..600).filter(|&len| len != genuine.token.len()) {
        pair.now += Duration::from_millis(21);
        let mut token = genuine.token.clone();
        token.resize(len, 0xa5);
        let first_datagram = FirstDatagram {
            token,
            ..genuine.clone()
        };
        let answers = answers(&mut pair, first_datagram.initial());
        assert!(answers.len() <= 1, "length {len}");
    }
    assert_eq!(pair.server.endpoint.stats().accepted, 0);
}

#[test]
fn replayed_answer_to_a_retry_creates_no_second_connection() {
    let mut pair = waiting_pair(|server| server.retry = RetryPolicy::Always);
    let first_datagram = retried(&mut pair);
    assert!(is_admitted(&mut pair, &first_datagram));
    for _ in 0..1000 {
        assert!(answers(&mut pair, first_datagram.initial()).is_empty());
    }
    let stats = pair.server.endpoint.stats();
    assert_eq!((stats.waiting, stats.half_open), (1, 1));
    assert!(
        waiting_bytes(&pair.server.endpoint) <= 8 * 1200,
        "limit per client"
    );
}

#[test]
fn client_with_an_invalid_token_gets_invalid_token() {
    let mut pair = always();
    // The server restarts with other keys while the client answers.
    pair.start();
    assert!(pair.run_until(RTT, |pair| pair.client.sent.len() > 2));
    let server = Some(Arc::clone(&pair.server_config));
    pair.server.endpoint = Endpoint::new(EndpointConfig::from_seed([77; 32]), server, [78; 32]);
    assert!(pair.run_until(Duration::from_secs(1), |pair| lost(&pair.client).is_some()));
    match lost(&pair.client) {
        Some(ConnectionError::ConnectionClosed(close)) => {
            assert_eq!(close.code, TransportErrorCode::INVALID_TOKEN);
        }
        other => panic!("{other:?}"),
    }
}

/// Returns a Retry for the client's first Initial, genuine but for the changes. With the token "-"
/// it has none.
fn forged_retry(
    pair: &Pair,
    source: &[u8],
    token: &[u8],
    original: Option<ConnectionId>,
) -> Datagram {
    let first = packet::decode(&pair.client.sent[0].bytes, 0, 8).expect("the client's Initial");
    let source = if source.is_empty() {
        first.destination
    } else {
        id(source)
    };
    let mut bytes = vec![0; retry::encoded_retry_len(&first.source, &source, token)];
    let mut writer = Writer::new(&mut bytes);
    encode_retry(&mut writer, VERSION_1, &first.source, &source, token);
    let written = writer.position();
    bytes.truncate(written - usize::from(token == b"-"));
    let original = original.unwrap_or(first.destination);
    let tag = courser_crypto::retry_integrity::tag(&original, &bytes);
    bytes.extend_from_slice(&tag);
    let (from, to) = (pair.server.address, pair.client.address);
    Datagram {
        from,
        to,
        ecn: Ecn::NotEct,
        bytes,
    }
}

fn tokens_sent(pair: &Pair) -> usize {
    initials(&pair.client.sent)
        .iter()
        .filter(|packet| !packet.token.is_empty())
        .count()
}

#[test]
fn client_discards_retries_that_break_a_rule() {
    let mut pair = Pair::new();
    catch_first_flight(&mut pair);
    let cases = [
        ("without a token", forged_retry(&pair, &[3; 8], b"-", None)),
        (
            "with the ID it was sent to",
            forged_retry(&pair, &[], b"token", None),
        ),
        (
            "with a bad tag",
            forged_retry(&pair, &[3; 8], b"token", Some(id(&[1; 8]))),
        ),
    ];
    for (name, datagram) in cases {
        pair.deliver(datagram);
        pair.drive();
        assert_eq!(tokens_sent(&pair), 0, "a Retry {name}");
    }
    // Every bit of a genuine Retry is protected.
    let genuine = forged_retry(&pair, &[3; 8], b"token", None);
    for bit in 8..genuine.bytes.len() * 8 {
        let mut datagram = genuine.clone();
        datagram.bytes[bit / 8] ^= 1 << (bit % 8);
        pair.deliver(datagram);
        pair.drive();
        assert_eq!(tokens_sent(&pair), 0, "bit {bit}");
    }
    pair.deliver(genuine);
    pair.drive();
    assert_eq!(tokens_sent(&pair), 2, "the genuine one is accepted");
    assert_eq!(lost(&pair.client), None);
}

/// Returns the bytes of CRYPTO data in the Initials that carry a token.
fn crypto_behind_tokens(pair: &Pair, eye: &Eye) -> usize {
    let sent = eye.client_sent(pair);
    let with_token = sent.iter().filter(|seen| !seen.token.is_empty());
    let frames = with_token.flat_map(Seen::frames);
    frames
        .map(|frame| match frame {
            Frame::Crypto(crypto) => crypto.data.len(),
            _ => 0,
        })
        .sum()
}

#[test]
fn retry_with_a_token_too_long_for_an_initial_is_discarded() {
    for len in [1025, 1150, 1300] {
        let mut pair = Pair::new();
        let flight = catch_first_flight(&mut pair);
        let datagram = forged_retry(&pair, &[3; 8], &vec![7; len], None);
        pair.deliver(datagram);
        pair.drive();
        assert_eq!(tokens_sent(&pair), 0, "{len} bytes");
        for datagram in flight {
            pair.deliver(datagram);
        }
        assert!(
            pair.run_until(RTT * 3, |pair| pair.client.has(&Event::Confirmed)),
            "{len} bytes: packets of the server are accepted"
        );
    }
}

#[test]
fn longest_accepted_token_of_a_retry_leaves_space_for_crypto_data() {
    let (setup, eye) = Setup::default().with_eye();
    let mut pair = Pair::with(setup);
    catch_first_flight(&mut pair);
    let datagram = forged_retry(&pair, &[3; 20], &[7; 1024], None);
    pair.deliver(datagram);
    pair.drive();
    assert!(tokens_sent(&pair) > 0);
    let per_packet = crypto_behind_tokens(&pair, &eye) / tokens_sent(&pair);
    assert!(per_packet >= 64, "{per_packet} bytes of CRYPTO data");
}

#[test]
fn second_retry_is_discarded() {
    let mut pair = Pair::new();
    catch_first_flight(&mut pair);
    for token in [b"first", b"other"] {
        let datagram = forged_retry(&pair, &[3; 8], token, None);
        pair.deliver(datagram);
        pair.drive();
    }
    assert_eq!(tokens_sent(&pair), 2);
}

#[test]
fn retry_after_a_packet_of_the_server_is_discarded() {
    let mut pair = Pair::new();
    pair.start();
    pair.drive();
    // The first datagram of the server has arrived, the rest has not.
    let mut count = 0;
    pair.link.filter = Some(Box::new(move |_, datagram| {
        count += usize::from(datagram.to.port() != 4433);
        datagram.to.port() == 4433 || count == 1
    }));
    pair.run_for(RTT);
    let datagram = forged_retry(&pair, &[3; 8], b"token", None);
    pair.deliver(datagram);
    pair.link.filter = None;
    assert!(pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.has(&Event::Confirmed)
    }));
    assert_eq!(tokens_sent(&pair), 0);
}

#[test]
fn retry_that_the_server_did_not_send_is_detected() {
    // RFC 9000 §7.3: the server's transport parameters do not confirm it.
    let mut pair = Pair::new();
    let flight = catch_first_flight(&mut pair);
    let original = packet::decode(&flight[0].bytes, 0, 8)
        .expect("an Initial")
        .destination;
    let datagram = forged_retry(&pair, &[3; 8], b"token", None);
    pair.deliver(datagram);
    assert!(pair.run_until(Duration::from_secs(5), |pair| lost(&pair.client).is_some()));
    assert_eq!(
        pair.client_error(),
        Some(TransportErrorCode::TRANSPORT_PARAMETER_ERROR.value())
    );
    assert_ne!(original, id(&[3; 8]));
}

#[test]
fn initials_of_a_server_with_a_token_are_discarded() {
    let mut pair = Pair::new();
    let flight = catch_first_flight(&mut pair);
    let first = packet::decode(&flight[0].bytes, 0, 8).expect("an Initial");
    let forged = FirstDatagram {
        destination: first.destination,
        token: b"token".to_vec(),
        ..FirstDatagram::new(1)
    };
    let mut datagram = forged.sealed_as(Side::Server);
    (datagram.from, datagram.to) = (pair.server.address, pair.client.address);
    pair.deliver(datagram);
    assert!(pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.has(&Event::Confirmed)
    }));
}

#[test]
fn new_clients_get_a_retry_under_load_until_it_has_halved() {
    let mut pair = waiting_pair(|server| retry_from(server, 4));
    for number in 0..4 {
        assert!(
            answers(&mut pair, FirstDatagram::new(number).initial()).is_empty(),
            "client {number}"
        );
    }
    let answer = answers(&mut pair, FirstDatagram::new(4).initial());
    assert_eq!(
        answer.iter().map(kind_of).collect::<Vec<_>>(),
        [PacketKind::Retry]
    );
    for left in [3, 2, 1] {
        let incoming = pair.server.endpoint.poll_incoming().expect("clients wait");
        pair.server.endpoint.ignore(incoming);
        let answer = answers(&mut pair, FirstDatagram::new(100 + left).initial());
        assert_eq!(answer.is_empty(), left == 1, "{left} half-open");
    }
}

#[test]
fn honest_client_connects_to_a_loaded_server() {
    let mut pair = waiting_pair(|server| retry_from(server, 4));
    for number in 0..4 {
        answers(&mut pair, FirstDatagram::new(number).initial());
    }
    let held: Vec<_> = std::iter::from_fn(|| pair.server.endpoint.poll_incoming()).collect();
    pair.accepts = true;
    pair.start();
    assert!(pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.has(&Event::Confirmed)
    }));
    assert_eq!(
        pair.server.endpoint.stats().retries_sent,
        2,
        "one for each Initial"
    );
    held.into_iter()
        .for_each(|incoming| pair.server.endpoint.ignore(incoming));
    assert_eq!(pair.server.endpoint.stats().half_open, 0);
}

#[test]
fn policy_never_sends_no_retry_under_load() {
    let mut pair = waiting_pair(|server| {
        retry_from(server, 4);
        server.retry = RetryPolicy::Never;
    });
    for number in 0..20 {
        assert!(answers(&mut pair, FirstDatagram::new(number).initial()).is_empty());
    }
    assert_eq!(pair.server.endpoint.stats().waiting, 20);
}

#[test]
fn application_can_send_a_retry() {
    let mut pair = waiting_pair(|server| server.retry = RetryPolicy::Never);
    pair.start();
    pair.run_for(RTT / 2);
    let incoming = pair
        .server
        .endpoint
        .poll_incoming()
        .expect("the client waits");
    assert!(incoming.may_retry() && !incoming.is_address_validated());
    pair.server
        .endpoint
        .retry(pair.now, incoming)
        .expect("it may");
    assert_clean_but_reply(&pair.server);
    pair.accepts = true;
    assert!(pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.has(&Event::Confirmed)
    }));
}

fn assert_clean_but_reply(end: &End) {
    let stats = end.endpoint.stats();
    assert_eq!(
        (stats.waiting, stats.half_open, end.endpoint.router.len()),
        (0, 0, 0)
    );
    assert_eq!(end.endpoint.stateless.queued(), 1);
}

/// Fault F08: a damaged packet is dropped, and the next copy establishes the connection.
#[test]
fn damaged_retry_token_does_not_end_the_attempt() {
    let mut pair = waiting_pair(|server| server.retry = RetryPolicy::Always);
    let first_datagram = retried(&mut pair);
    let mut damaged = first_datagram.initial();
    let packet = packet::decode(&damaged.bytes, 0, 8).expect("an Initial");
    damaged.bytes[packet.token.end - 1] ^= 1;
    let dropped = pair.server.endpoint.stats().datagrams_dropped;
    assert!(answers(&mut pair, damaged).is_empty());
    assert_eq!(pair.server.endpoint.stats().datagrams_dropped, dropped + 1);
    assert!(is_admitted(&mut pair, &first_datagram));
}
