//! Requests of each end for acknowledgements. draft-ietf-quic-ack-frequency-12.

use courser_wire::frame::{AckFrequency, Frame};

use super::*;
use crate::testing::eye::{Eye, Seen};
use crate::testing::forge::encode;
use crate::testing::{Setup, steady};

fn setup(client: bool, server: bool) -> Setup {
    let mut setup = Setup::default();
    setup.client.ack_frequency = client;
    let mut transport = steady();
    transport.ack_frequency = server;
    setup.server.transport = Arc::new(transport);
    setup
}

/// Creates a pair on a link of 100 Mbit/s and 40 ms, with an observer.
fn on_a_link(client: bool, server: bool) -> (Pair, Eye) {
    let (setup, eye) = setup(client, server).with_eye();
    let mut pair = Pair::with(setup);
    pair.connect();
    pair.link.delay = RTT;
    pair.link.rate = Some(12_500_000);
    (pair, eye)
}

fn requests(sent: &[Seen]) -> Vec<AckFrequency> {
    let frames = sent.iter().flat_map(|seen| seen.frames());
    frames
        .filter_map(|frame| match frame {
            Frame::AckFrequency(frame) => Some(frame),
            _ => None,
        })
        .collect()
}

fn request(sequence: u64, threshold: u64, delay: u64, reordering: u64) -> Vec<u8> {
    encode(&Frame::AckFrequency(AckFrequency {
        sequence,
        ack_eliciting_threshold: threshold,
        requested_max_ack_delay: delay,
        reordering_threshold: reordering,
    }))
}

#[test]
fn acks_of_a_long_transfer_are_thinned_without_delaying_it() {
    let mut results = Vec::new();
    for extension in [false, true] {
        let (mut pair, _) = on_a_link(extension, extension);
        let time = pair.upload(16_000_000);
        let acks = pair.server.connection().stats().acks_sent;
        let packets = pair.client.connection().stats().packets_sent;
        results.push((time, packets / acks));
    }
    let [(plain_time, plain), (time, thinned)] = results[..] else {
        panic!("two runs");
    };
    assert!((1..=2).contains(&plain), "every second packet: {plain}");
    assert!(thinned >= 8, "{thinned} packets an ACK");
    assert!(
        time < plain_time * 21 / 20,
        "{time:?}, before {plain_time:?}"
    );
}

#[test]
fn requested_thresholds_rise_and_stay_within_the_offer() {
    let (mut pair, eye) = on_a_link(true, true);
    pair.upload(16_000_000);
    let requests = requests(&eye.client_sent(&pair));
    assert!(!requests.is_empty() && requests.len() < 40, "{requests:?}");
    for (expected, frame) in (0..).zip(&requests) {
        assert_eq!(frame.sequence, expected);
        assert!((1000..=25_000).contains(&frame.requested_max_ack_delay));
        assert!(frame.reordering_threshold >= 3);
    }
    let last = requests.last().expect("not empty");
    let delay = Duration::from_micros(last.requested_max_ack_delay);
    assert_eq!(
        pair.client.connection().packets.recovery.max_ack_delay(),
        delay
    );
}

#[test]
fn peer_without_the_extension_gets_no_requests() {
    let (mut pair, eye) = on_a_link(true, false);
    pair.upload(8_000_000);
    assert_eq!(requests(&eye.client_sent(&pair)), []);
    let (mut pair, eye) = on_a_link(false, true);
    pair.upload(8_000_000);
    assert_eq!(requests(&eye.client_sent(&pair)), []);
}

#[test]
fn loss_is_repaired_as_fast_while_acks_are_thinned() {
    let mut times = Vec::new();
    for extension in [false, true] {
        let (mut pair, _) = on_a_link(extension, extension);
        let mut data = 0;
        pair.link.filter = Some(Box::new(move |_, datagram| {
            data += usize::from(datagram.bytes.len() > 1000);
            data % 1000 != 999
        }));
        times.push(pair.upload(16_000_000));
    }
    assert!(times[1] < times[0] * 11 / 10, "{times:?}");
}

#[test]
fn probes_after_a_timeout_request_an_immediate_ack() {
    for extension in [false, true] {
        let (setup, eye) = setup(extension, extension).with_eye();
        let mut pair = Pair::with(setup);
        pair.connect();
        let before = eye.client_sent(&pair).len();
        pair.link.filter = Some(Box::new(|_, _| false));
        pair.client.connection().pings().request();
        pair.client.touch();
        pair.run_for(Duration::from_secs(1));
        assert!(pair.client.connection().stats().ptos > 0);
        let sent = eye.client_sent(&pair);
        let urgent = sent[before..]
            .iter()
            .filter(|seen| seen.has(|frame| *frame == Frame::ImmediateAck))
            .count();
        assert_eq!(urgent > 0, extension, "{urgent} frames");
    }
}

#[test]
fn immediate_ack_is_answered_without_delay() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let sent = eye.server_sent(&pair).len();
    pair.forge_to_server(SpaceId::Application, &encode(&Frame::ImmediateAck));
    assert_eq!(eye.server_sent(&pair).len(), sent + 1);
    pair.forge_to_server(SpaceId::Application, &encode(&Frame::Ping));
    assert_eq!(eye.server_sent(&pair).len(), sent + 1);
}

#[test]
fn requested_threshold_is_applied() {
    let (mut pair, eye) = Pair::watched_and_connected();
    pair.forge_to_server(SpaceId::Application, &request(0, 9, 25_000, 0));
    pair.forge_to_server(SpaceId::Application, &encode(&Frame::ImmediateAck));
    let sent = eye.server_sent(&pair).len();
    for _ in 0..30 {
        pair.forge_to_server(SpaceId::Application, &encode(&Frame::Ping));
    }
    assert_eq!(eye.server_sent(&pair).len(), sent + 3);
}

#[test]
fn delays_that_were_not_offered_are_a_protocol_violation() {
    for delay in [0, 999, 1 << 24, courser_wire::MAX_VARINT] {
        let mut pair = Pair::connected();
        pair.forge_to_server(SpaceId::Application, &request(0, 9, delay, 3));
        assert_eq!(pair.server_error(), Some(0x0a), "{delay} us");
    }
    let largest = courser_wire::MAX_VARINT;
    for fair in [
        request(largest, largest, 1000, largest),
        request(0, 0, 16_383_000, 0),
    ] {
        let mut pair = Pair::connected();
        pair.forge_to_server(SpaceId::Application, &fair);
        pair.upload(100_000);
        assert_eq!(pair.server_error(), None);
    }
}

#[test]
fn frames_of_the_extension_are_unknown_where_it_is_not_offered() {
    for (frame_type, frame) in [
        (0xaf, request(0, 9, 25_000, 3)),
        (0x1f, encode(&Frame::ImmediateAck)),
    ] {
        let mut pair = Pair::with(setup(true, false));
        pair.connect();
        pair.forge_to_server(SpaceId::Application, &frame);
        assert_eq!(pair.server_error(), Some(0x07), "{frame_type:#x}");
    }
}

#[test]
fn frames_of_the_extension_before_1rtt_are_a_protocol_violation() {
    for frame in [request(0, 9, 25_000, 3), encode(&Frame::ImmediateAck)] {
        let mut pair = with_handshake_keys();
        pair.forge_to_server(SpaceId::Handshake, &frame);
        assert_eq!(pair.server_error(), Some(0x0a));
    }
}

/// Either frame is limited like others without progress (attack A25).
#[test]
fn flood_of_either_frame_ends_the_connection() {
    let mut sequence = 0;
    for is_request in [false, true] {
        let mut pair = Pair::connected();
        for _ in 0..=crate::connection::watchdog::suspicion::BURST {
            sequence += 1;
            let frame = match is_request {
                true => request(sequence, 9, 25_000, 3),
                false => encode(&Frame::ImmediateAck),
            };
            pair.forge_to_server(SpaceId::Application, &frame);
        }
        assert_eq!(pair.server_error(), Some(0x0a), "limit K17");
    }
}

#[test]
fn second_timeout_sends_a_ping_instead_of_immediate_ack() {
    let (setup, eye) = setup(true, true).with_eye();
    let mut pair = Pair::with(setup);
    pair.connect();
    pair.link.loss = 1000;
    let seen = eye.client_sent(&pair).len();
    pair.client.connection().pings().request();
    pair.client.touch();
    pair.run_for(Duration::from_secs(5));
    assert!(pair.client.connection().stats().ptos > 3);
    let sent = eye.client_sent(&pair);
    let asks = |packet: &Seen, wanted: fn(&Frame<'_>) -> bool| packet.has(wanted);
    let immediate = |frame: &Frame<'_>| matches!(frame, Frame::ImmediateAck);
    let ping = |frame: &Frame<'_>| matches!(frame, Frame::Ping);
    let probes = &sent[seen + 1..];
    let with = probes.iter().filter(|it| asks(it, immediate)).count();
    assert_eq!(with, 1, "only the first timeout sends IMMEDIATE_ACK");
    assert!(probes.iter().filter(|it| asks(it, ping)).count() >= 3);
}
