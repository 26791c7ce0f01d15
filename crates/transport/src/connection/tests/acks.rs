//! Tests when acknowledgements are sent, their content, and which are refused. RFC 9000 §13.

use crate::acknowledger::received::MAX_RANGES;
use courser_wire::frame::{Ack, Frame};
use courser_wire::packet::PacketKind;

use super::frames::raw;
use super::*;
use crate::testing::client_address;
use crate::testing::eye::Seen;
use crate::testing::forgery::Forgery;
use crate::testing::link::Datagram;

mod optimistic;

const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

fn ack_of(packet: &Seen) -> Option<Ack<'_>> {
    packet.frames().find_map(|frame| match frame {
        Frame::Ack(ack) => Some(ack),
        _ => None,
    })
}

/// Encodes a frame that acknowledges `largest` and `more` numbers below it.
fn ack(largest: u64, more: u64) -> Vec<u8> {
    raw(&[0x02, largest, 0, 0, more])
}

fn next_number(end: &mut crate::testing::End) -> u64 {
    end.connection().packets.recovery.first_unused_number()
}

/// Lets the server send PINGs until it has skipped a number, which is returned.
fn skip_a_number(pair: &mut Pair) -> u64 {
    let skipped = pair.server.connection().packets.recovery.skip_at();
    assert!(
        next_number(&mut pair.server) <= skipped,
        "it is yet to come"
    );
    while next_number(&mut pair.server) <= skipped + 3 {
        pair.server.connection().pings().request();
        pair.server.touch();
        pair.drive();
    }
    skipped
}

#[test]
fn acknowledging_unsent_packets_is_a_protocol_violation() {
    for beyond in [0, 1, 1000, 1 << 40] {
        let mut pair = Pair::connected();
        let largest = next_number(&mut pair.server) + beyond;
        pair.forge_to_server(SpaceId::Application, &ack(largest, 0));
        assert_eq!(pair.server_error(), Some(0x0a), "{beyond} beyond the next");
        pair.run_for(RTT);
        assert_eq!(
            pair.close_received_by_client(),
            Some(0x0a),
            "{beyond} beyond the next"
        );
    }
}

#[test]
fn acknowledging_unsent_packets_is_refused_during_the_handshake() {
    let mut pair = Pair::new();
    pair.start();
    assert!(pair.run_until(RTT, |pair| pair.server.handle.is_some()));
    pair.forge_to_client(SpaceId::Initial, &ack(50, 0));
    assert_eq!(pair.client_error(), Some(0x0a));
    let mut pair = Pair::new();
    pair.start();
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    pair.forge_to_server(SpaceId::Handshake, &ack(50, 0));
    assert_eq!(pair.server_error(), Some(0x0a));
}

#[test]
fn acknowledging_a_skipped_number_is_a_protocol_violation() {
    let mut pair = Pair::connected();
    pair.link.filter = Some(Box::new(|_, _| false));
    let skipped = skip_a_number(&mut pair);
    pair.forge_to_server(SpaceId::Application, &ack(skipped, 0));
    assert_eq!(pair.server_error(), Some(0x0a));
}

#[test]
fn range_over_a_skipped_number_is_a_protocol_violation() {
    let mut pair = Pair::connected();
    pair.link.filter = Some(Box::new(|_, _| false));
    let skipped = skip_a_number(&mut pair);
    pair.forge_to_server(SpaceId::Application, &ack(skipped + 2, 1));
    assert_eq!(pair.server_error(), None, "packets that were sent");
    pair.forge_to_server(SpaceId::Application, &ack(skipped + 2, 3));
    assert_eq!(
        pair.server_error(),
        Some(0x0a),
        "and the skipped number between them"
    );
}

#[test]
fn number_about_to_be_skipped_counts_as_never_sent() {
    let mut pair = Pair::connected();
    pair.link.filter = Some(Box::new(|_, _| false));
    let skipped = pair.server.connection().packets.recovery.skip_at();
    while next_number(&mut pair.server) < skipped {
        pair.server.connection().pings().request();
        pair.server.touch();
        pair.drive();
    }
    // A request that leads to no packet must not use up the number.
    pair.server.touch();
    pair.drive();
    pair.forge_to_server(SpaceId::Application, &ack(skipped, 0));
    assert_eq!(pair.server_error(), Some(0x0a));
}

#[test]
fn old_and_repeated_acknowledgements_are_harmless() {
    let mut pair = Pair::connected();
    let largest = next_number(&mut pair.server) - 1;
    for _ in 0..3 {
        pair.forge_to_server(SpaceId::Application, &ack(largest, 0));
        pair.forge_to_server(SpaceId::Application, &ack(0, 0));
    }
    assert_eq!(pair.server_error(), None);
}

/// Lets the server send `count` PINGs whose acknowledgements get lost. Returns the first number.
fn unanswered_pings(pair: &mut Pair, count: u64) -> u64 {
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to == client_address()));
    let first = next_number(&mut pair.server);
    while next_number(&mut pair.server) < first + count {
        pair.server.connection().pings().request();
        pair.server.touch();
        pair.drive();
    }
    first
}

#[test]
fn acknowledgement_of_known_packets_gives_no_round_trip_sample() {
    let mut pair = Pair::connected();
    let sample = |pair: &mut Pair| {
        let path = pair.server.connection().stats().path;
        (path.latest_rtt, path.rtt)
    };
    let first = unanswered_pings(&mut pair, 3);
    let before = sample(&mut pair);
    pair.run_for(Duration::from_millis(30));
    pair.forge_to_server(SpaceId::Application, &ack(first + 2, 0));
    let of_the_newest = sample(&mut pair);
    assert_eq!(of_the_newest.0, Duration::from_millis(30), "{before:?}");
    pair.run_for(Duration::from_millis(2));
    pair.forge_to_server(SpaceId::Application, &ack(first + 2, 0));
    assert_eq!(sample(&mut pair), of_the_newest, "nothing is new");
    pair.forge_to_server(SpaceId::Application, &ack(first + 2, 2));
    assert_eq!(sample(&mut pair), of_the_newest, "the largest is not new");
    assert_eq!(pair.server_error(), None);
}

#[test]
fn acknowledgement_of_acknowledgements_gives_no_round_trip_sample() {
    let mut pair = Pair::connected();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to == client_address()));
    let number = next_number(&mut pair.server);
    for _ in 0..2 {
        pair.forge_to_server(SpaceId::Application, &[0x01]);
    }
    assert_eq!(next_number(&mut pair.server), number + 1, "an ACK");
    let in_flight = pair.server.connection().stats().path.bytes_in_flight;
    assert_eq!(in_flight, 0, "it asks for no acknowledgement");
    let before = pair.server.connection().stats().path.latest_rtt;
    pair.run_for(Duration::from_millis(33));
    pair.forge_to_server(SpaceId::Application, &ack(number, 0));
    let after = pair.server.connection().stats().path.latest_rtt;
    assert_eq!(after, before);
    assert_ne!(after, Duration::from_millis(33));
}

#[test]
fn packets_that_are_not_processed_in_full_are_not_acknowledged() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let acknowledges = |pair: &Pair, number: u64| {
        let sent = eye.server_sent(pair);
        let one_rtt = sent.iter().filter(|seen| seen.kind == PacketKind::OneRtt);
        one_rtt
            .filter_map(ack_of)
            .any(|ack| ack.ranges().any(|range| range.contains(&number)))
    };
    let broken = next_number(&mut pair.client);
    let mut bytes = Forgery::of(&[0x01]).seal(&mut pair.client, SpaceId::Application);
    *bytes.last_mut().expect("not empty") ^= 1;
    pair.send_to_server(bytes);
    let whole = next_number(&mut pair.client);
    pair.forge_to_server(SpaceId::Application, &[0x01]);
    pair.run_for(MAX_ACK_DELAY);
    assert!(acknowledges(&pair, whole));
    assert!(!acknowledges(&pair, broken), "it did not open");
    let wrong = next_number(&mut pair.client);
    pair.forge_to_server(SpaceId::Application, &[0x01, 0x1e]);
    pair.run_for(RTT);
    assert_eq!(pair.server_error(), Some(0x0a), "only servers send 0x1e");
    assert!(!acknowledges(&pair, wrong), "its second frame is an error");
}

#[test]
fn lone_packet_is_acknowledged_within_the_announced_delay() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let sent = eye.server_sent(&pair).len();
    let number = next_number(&mut pair.client);
    pair.forge_to_server(SpaceId::Application, &[0x01]);
    pair.run_for(MAX_ACK_DELAY - Duration::from_millis(1));
    assert_eq!(eye.server_sent(&pair).len(), sent);
    pair.run_for(Duration::from_millis(1));
    let all = eye.server_sent(&pair);
    assert_eq!(all.len(), sent + 1);
    let ack = ack_of(&all[sent]).expect("an ACK");
    assert!(ack.largest >= number);
    let delay = Duration::from_micros(ack.delay << 3);
    assert!(
        delay.abs_diff(MAX_ACK_DELAY) < Duration::from_micros(10),
        "{delay:?}"
    );
}

/// RFC 9000 §13.2.5: the delay begins when the packet arrives, not when it was sent.
#[test]
fn time_on_the_path_is_no_acknowledgement_delay() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let pings: Vec<_> = (0..2)
        .map(|_| Forgery::of(&[0x01]).seal(&mut pair.client, SpaceId::Application))
        .collect();
    pair.run_for(20 * MAX_ACK_DELAY);
    let sent = eye.server_sent(&pair).len();
    pair.send_batch_to_server(&pings);
    let all = eye.server_sent(&pair);
    let ack = ack_of(&all[sent]).expect("an ACK");
    assert_eq!(ack.delay, 0, "it is acknowledged at once");
}

#[test]
fn second_packet_is_acknowledged_at_once() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let sent = eye.server_sent(&pair).len();
    let pings: Vec<_> = (0..2)
        .map(|_| Forgery::of(&[0x01]).seal(&mut pair.client, SpaceId::Application))
        .collect();
    pair.send_batch_to_server(&pings);
    assert_eq!(eye.server_sent(&pair).len(), sent + 1);
}

#[test]
fn batch_of_packets_gets_one_acknowledgement() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let sent = eye.server_sent(&pair).len();
    let number = next_number(&mut pair.client);
    let pings: Vec<_> = (number..number + 30)
        .map(|number| eye.forge_client(&mut pair, 0, &Forgery::of(&[0x01]).number(number)))
        .collect();
    pair.send_batch_to_server(&pings);
    pair.run_for(RTT / 4);
    let all = eye.server_sent(&pair);
    assert_eq!(all.len(), sent + 1);
    assert_eq!(ack_of(&all[sent]).expect("an ACK").largest, number + 29);
}

#[test]
fn gaps_late_packets_and_congestion_marks_are_acknowledged_at_once() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let number = next_number(&mut pair.client);
    let mut sent = eye.server_sent(&pair).len();
    for (case, number) in [("behind a gap", number + 1), ("late", number)] {
        let packet = Forgery::of(&[0x01]).number(number);
        let bytes = eye.forge_client(&mut pair, 0, &packet);
        pair.send_to_server(bytes);
        assert_eq!(eye.server_sent(&pair).len(), sent + 1, "{case}");
        sent += 1;
    }
    let bytes = eye.forge_client(&mut pair, 0, &Forgery::of(&[0x01]).number(number + 2));
    let (from, to) = (pair.client.address, pair.server.address);
    pair.deliver(Datagram {
        from,
        to,
        ecn: courser_base::Ecn::Ce,
        bytes,
    });
    pair.drive();
    let all = eye.server_sent(&pair);
    assert_eq!(all.len(), sent + 1, "marked");
    assert_eq!(
        ack_of(&all[sent])
            .and_then(|ack| ack.ecn)
            .expect("counts")
            .ce,
        1
    );
}

#[test]
fn marks_of_forged_and_duplicate_packets_are_not_counted() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let (from, to, ecn) = (
        pair.client.address,
        pair.server.address,
        courser_base::Ecn::Ce,
    );
    let number = next_number(&mut pair.client);
    let bytes = eye.forge_client(&mut pair, 0, &Forgery::of(&[0x01]).number(number));
    let mut forged = bytes.clone();
    *forged.last_mut().expect("not empty") ^= 1;
    for bytes in [forged.clone(), bytes.clone(), bytes, forged] {
        pair.deliver(Datagram {
            from,
            to,
            ecn,
            bytes,
        });
        pair.drive();
    }
    let all = eye.server_sent(&pair);
    let counts = ack_of(all.last().expect("sent"))
        .and_then(|ack| ack.ecn)
        .expect("counts");
    assert_eq!(counts.ce, 1, "neither forged ones nor repetitions");
}

#[test]
fn ack_only_packets_are_not_acknowledged() {
    let mut pair = Pair::connected();
    pair.run_for(Duration::from_secs(1));
    let before = (pair.client.sent.len(), pair.server.sent.len());
    let number = next_number(&mut pair.server) - 1;
    for _ in 0..10 {
        pair.forge_to_server(SpaceId::Application, &ack(number, 0));
        pair.run_for(RTT * 2);
    }
    assert_eq!((pair.client.sent.len(), pair.server.sent.len()), before);
}

#[test]
fn ack_only_packet_follows_an_ack_eliciting_packet_only_once() {
    let mut pair = Pair::connected();
    let before = pair.server.sent.len();
    for round in 1..=5 {
        pair.forge_to_server(SpaceId::Application, &[0x01]);
        pair.run_for(RTT * 4);
        assert_eq!(pair.server.sent.len(), before + round);
    }
}

#[test]
fn long_streak_of_ack_only_packets_requests_an_acknowledgement() {
    // Limit K29: a PING after 19.
    let (mut pair, eye) = Pair::watched_and_connected();
    let begun = eye.server_sent(&pair).len();
    for _ in 0..100 {
        pair.forge_to_server(SpaceId::Application, &[0x01]);
        pair.run_for(RTT * 3);
    }
    let sent = eye.server_sent(&pair)[begun..].to_vec();
    let pings = sent
        .iter()
        .filter(|packet| packet.is_ack_eliciting())
        .count();
    assert!(
        (4..=6).contains(&pings),
        "{pings} PINGs in {} packets",
        sent.len()
    );
    let longest = sent.split(Seen::is_ack_eliciting).map(<[Seen]>::len).max();
    assert!(longest <= Some(19), "{longest:?}");
    assert!(
        sent.len() <= 101,
        "no loop of acknowledgements: {}",
        sent.len()
    );
}

#[test]
fn acknowledgements_stay_in_their_packet_number_space() {
    for seed in 0..6 {
        let setup = crate::testing::Setup {
            seed,
            ..Default::default()
        };
        let (setup, eye) = setup.with_eye();
        let mut pair = Pair::with(setup);
        pair.link.loss = 100;
        pair.connect();
        let (client, server) = (eye.client_sent(&pair), eye.server_sent(&pair));
        for (ours, theirs) in [(&client, &server), (&server, &client)] {
            for packet in ours {
                let Some(ack) = ack_of(packet) else { continue };
                let same = |other: &&Seen| other.kind == packet.kind;
                for number in ack.ranges().flatten() {
                    let known = theirs
                        .iter()
                        .filter(same)
                        .any(|other| other.number == number);
                    assert!(known, "seed {seed}: {number} in {:?}", packet.kind);
                }
            }
        }
    }
}

#[test]
fn handshake_packets_are_acknowledged_at_once() {
    let (mut pair, eye) = Pair::watched();
    pair.start();
    assert!(pair.run_until(RTT, |pair| pair.server.handle.is_some()));
    let first = eye.server_sent(&pair);
    assert_eq!(first[0].kind, PacketKind::Initial);
    assert!(ack_of(&first[0]).is_some(), "with the first answer");
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    let sent = eye.client_sent(&pair);
    let handshake = sent
        .iter()
        .find(|packet| packet.kind == PacketKind::Handshake);
    assert!(
        handshake.is_some_and(|packet| ack_of(packet).is_some()),
        "with the Finished"
    );
}

#[test]
fn ranges_that_the_peer_has_received_are_left_out() {
    let (mut pair, eye) = Pair::watched_and_connected();
    // The gaps never close.
    for _ in 0..20 {
        pair.client
            .connection()
            .forging_number(SpaceId::Application);
        pair.forge_to_server(SpaceId::Application, &[0x01]);
    }
    let sent = eye.server_sent(&pair);
    let last = sent.last().expect("sent");
    assert!(ack_of(last).expect("an ACK").ranges().count() > 10);
    pair.forge_to_server(SpaceId::Application, &ack(last.number, 0));
    pair.forge_to_server(SpaceId::Application, &[0x01]);
    pair.forge_to_server(SpaceId::Application, &[0x01]);
    pair.run_for(RTT * 2);
    let sent = eye.server_sent(&pair);
    let last = ack_of(sent.last().expect("sent"))
        .expect("an ACK")
        .ranges()
        .count();
    assert!(last <= 3, "{last} ranges");
}

#[test]
fn ranges_in_one_frame_are_bounded() {
    // Limit K03: 1024 are kept, 32 sent as a rule, the newest ones.
    let (mut pair, eye) = Pair::watched_and_connected();
    for _ in 0..MAX_RANGES + 50 {
        pair.client
            .connection()
            .forging_number(SpaceId::Application);
        pair.forge_to_server(SpaceId::Application, &[0x01]);
    }
    let newest = next_number(&mut pair.client) - 1;
    let sent = eye.server_sent(&pair);
    let ack = ack_of(sent.last().expect("sent")).expect("an ACK");
    assert_eq!((ack.largest, ack.ranges().count()), (newest, 32));
    assert_eq!(
        pair.server
            .connection()
            .parts
            .acknowledger
            .received()
            .ranges()
            .len(),
        MAX_RANGES
    );
}

#[test]
fn very_late_packet_is_acknowledged_despite_many_gaps() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let late = pair
        .client
        .connection()
        .forging_number(SpaceId::Application);
    for _ in 0..100 {
        pair.client
            .connection()
            .forging_number(SpaceId::Application);
        pair.forge_to_server(SpaceId::Application, &[0x01]);
    }
    let bytes = eye.forge_client(&mut pair, 0, &Forgery::of(&[0x01]).number(late));
    pair.send_to_server(bytes);
    let sent = eye.server_sent(&pair);
    let ack = ack_of(sent.last().expect("sent")).expect("an ACK");
    assert!(ack.ranges().any(|range| range.contains(&late)));
    // Once is enough: the next frame has the usual number of ranges again.
    pair.forge_to_server(SpaceId::Application, &[0x01]);
    pair.forge_to_server(SpaceId::Application, &[0x01]);
    let sent = eye.server_sent(&pair);
    let ack = ack_of(sent.last().expect("sent")).expect("an ACK");
    assert_eq!(ack.ranges().count(), 32);
}
