//! Tests valid and invalid headers. RFC 9000 §12.2, §12.3, §14.1, §17.

use crate::acknowledger::received::MAX_RANGES;
use courser_wire::MAX_PACKET_NUMBER;
use courser_wire::packet::PacketKind;
use courser_wire::version::VERSION_1;

use super::*;
use crate::testing::forgery::Forgery;

fn processed(end: &mut crate::testing::End) -> u64 {
    end.connection().stats().packets_received
}

fn dropped(end: &mut crate::testing::End) -> u64 {
    end.connection().stats().packets_dropped
}

/// Returns a PING in an otherwise valid packet.
fn ping() -> Forgery {
    Forgery::of(&[0x01])
}

/// Asserts that the server drops the datagram and its connection survives.
fn assert_server_drops(case: &str, pair: &mut Pair, bytes: Vec<u8>) {
    let before = processed(&mut pair.server);
    pair.send_to_server(bytes);
    assert_eq!(pair.server_error(), None, "{case}");
    assert_eq!(processed(&mut pair.server), before, "{case}");
}

fn assert_client_drops(case: &str, pair: &mut Pair, bytes: Vec<u8>) {
    let before = processed(&mut pair.client);
    pair.send_to_client(bytes);
    assert_eq!(pair.client_error(), None, "{case}");
    assert_eq!(processed(&mut pair.client), before, "{case}");
}

#[test]
fn reserved_bits_that_are_not_zero_are_a_protocol_violation() {
    for (space, bits) in [
        (SpaceId::Initial, 0x04),
        (SpaceId::Initial, 0x08),
        (SpaceId::Handshake, 0x04),
        (SpaceId::Handshake, 0x08),
        (SpaceId::Application, 0x08),
        (SpaceId::Application, 0x10),
    ] {
        let made = || match space {
            SpaceId::Initial => with_initial_keys(),
            SpaceId::Handshake => with_handshake_keys(),
            SpaceId::Application => Pair::connected(),
        };
        let case = format!("{bits:#x} in {space:?}");
        let mut pair = made();
        pair.client_forges(space, &ping().flip(bits));
        assert_eq!(pair.server_error(), Some(0x0a), "{case}");
        pair.run_for(RTT);
        assert_eq!(pair.close_received_by_client(), Some(0x0a), "{case}");
        let mut pair = made();
        pair.server_forges(space, &ping().flip(bits));
        assert_eq!(pair.client_error(), Some(0x0a), "{case}");
        pair.run_for(RTT);
        assert_eq!(pair.close_received_by_server(), Some(0x0a), "{case}");
    }
}

#[test]
fn reserved_bits_of_a_packet_that_is_not_authentic_are_ignored() {
    let mut pair = Pair::connected();
    let mut bytes = ping()
        .flip(0x18)
        .seal(&mut pair.client, SpaceId::Application);
    *bytes.last_mut().expect("not empty") ^= 1;
    assert_server_drops("broken tag", &mut pair, bytes);
}

#[test]
fn fixed_bit_of_zero_drops_the_packet() {
    let mut pair = with_initial_keys();
    let bytes = ping().flip(0x40).seal(&mut pair.client, SpaceId::Initial);
    assert_server_drops("Initial", &mut pair, bytes);
    let bytes = ping().flip(0x40).seal(&mut pair.server, SpaceId::Initial);
    assert_client_drops("Initial", &mut pair, bytes);
    let mut pair = with_handshake_keys();
    let bytes = ping().flip(0x40).seal(&mut pair.client, SpaceId::Handshake);
    assert_server_drops("Handshake", &mut pair, bytes);
    let mut pair = Pair::connected();
    let bytes = ping()
        .flip(0x40)
        .seal(&mut pair.client, SpaceId::Application);
    assert_server_drops("1-RTT", &mut pair, bytes);
    let bytes = ping()
        .flip(0x40)
        .seal(&mut pair.server, SpaceId::Application);
    assert_client_drops("1-RTT", &mut pair, bytes);
}

#[test]
fn client_drops_packets_of_another_version_and_answers_nothing() {
    // The tag covers the version, so these packets are valid apart from the version.
    let other = |version| ping().version(version);
    let mut pair = with_initial_keys();
    let bytes = other(VERSION_1).seal(&mut pair.server, SpaceId::Initial);
    let before = processed(&mut pair.client);
    pair.send_to_client(bytes);
    assert_eq!(
        processed(&mut pair.client),
        before + 1,
        "the version in use"
    );
    let sent = pair.client.sent.len();
    for version in [0x0a1a_2a3a, 0xff00_0020] {
        let bytes = other(version).seal(&mut pair.server, SpaceId::Initial);
        assert_client_drops("Initial", &mut pair, bytes);
    }
    assert_eq!(pair.client.sent.len(), sent);
    let mut pair = with_handshake_keys();
    let bytes = other(0x0a1a_2a3a).seal(&mut pair.server, SpaceId::Handshake);
    let sent = pair.client.sent.len();
    assert_client_drops("Handshake", &mut pair, bytes);
    assert_eq!(pair.client.sent.len(), sent);
}

#[test]
fn connection_ids_above_20_bytes_drop_the_packet() {
    let mut pair = with_initial_keys();
    let mut bytes = ping().seal(&mut pair.client, SpaceId::Initial);
    bytes[5] = 21;
    assert_server_drops("destination", &mut pair, bytes);
    let mut bytes = ping().seal(&mut pair.client, SpaceId::Initial);
    bytes[5 + 1 + 8] = 21;
    assert_server_drops("source", &mut pair, bytes);
}

#[test]
fn length_past_the_datagram_drops_the_packet() {
    let mut pair = with_handshake_keys();
    let mut bytes = Forgery::of(&[0x01; 50]).seal(&mut pair.client, SpaceId::Handshake);
    bytes.pop();
    assert_server_drops("one byte short", &mut pair, bytes);
}

#[test]
fn initial_in_a_datagram_below_1200_bytes_is_dropped() {
    let mut pair = with_initial_keys();
    let mut bytes = ping().unpadded().seal(&mut pair.client, SpaceId::Initial);
    assert_server_drops("alone", &mut pair, bytes.clone());
    bytes.resize(1199, 0);
    assert_server_drops("1199 bytes", &mut pair, bytes);
    let before = processed(&mut pair.server);
    let mut bytes = ping().unpadded().seal(&mut pair.client, SpaceId::Initial);
    bytes.resize(1200, 0);
    pair.send_to_server(bytes);
    assert_eq!(
        processed(&mut pair.server),
        before + 1,
        "1200 bytes are enough"
    );
}

#[test]
fn initial_behind_another_packet_in_a_small_datagram_is_dropped() {
    let mut pair = with_initial_keys();
    let small = ping().unpadded().seal(&mut pair.client, SpaceId::Initial);
    let bytes = [&small[..], &small].concat();
    assert_server_drops("both", &mut pair, bytes);
}

#[test]
fn packets_with_a_changed_source_id_are_dropped() {
    let other = Forgery::of(&[0x01]).source(&[0xee; 8]);
    let mut pair = with_initial_keys();
    let bytes = other.seal(&mut pair.client, SpaceId::Initial);
    assert_server_drops("Initial of the client", &mut pair, bytes);
    pair.server_forges(SpaceId::Initial, &ping());
    assert_eq!(processed(&mut pair.client), 1, "the first one is accepted");
    let bytes = other.seal(&mut pair.server, SpaceId::Initial);
    assert_client_drops("Initial of the server", &mut pair, bytes);
    let mut pair = with_handshake_keys();
    let bytes = other.seal(&mut pair.client, SpaceId::Handshake);
    assert_server_drops("Handshake of the client", &mut pair, bytes);
    let bytes = other.seal(&mut pair.server, SpaceId::Handshake);
    assert_client_drops("Handshake of the server", &mut pair, bytes);
}

#[test]
fn later_initials_do_not_change_the_destination_id() {
    let mut pair = with_initial_keys();
    pair.server_forges(SpaceId::Initial, &ping());
    let chosen = pair.client.connection().ids().destination();
    pair.server_forges(SpaceId::Initial, &ping().source(&[0xee; 8]));
    assert_eq!(pair.client.connection().ids().destination(), chosen);
}

#[test]
fn server_initial_with_a_token_is_dropped() {
    let mut pair = with_initial_keys();
    let bytes = ping()
        .token(b"token")
        .seal(&mut pair.server, SpaceId::Initial);
    assert_client_drops("token", &mut pair, bytes);
}

#[test]
fn early_data_packets_are_dropped_by_both_ends() {
    // Type 0b10 becomes 0b01.
    let mut pair = with_handshake_keys();
    let bytes = ping().flip(0x30).seal(&mut pair.client, SpaceId::Handshake);
    assert_server_drops("server", &mut pair, bytes);
    let bytes = ping().flip(0x30).seal(&mut pair.server, SpaceId::Handshake);
    assert_client_drops("client", &mut pair, bytes);
}

#[test]
fn coalesced_packet_for_another_id_is_ignored() {
    let mut pair = with_handshake_keys();
    let first = ping().seal(&mut pair.client, SpaceId::Handshake);
    let foreign = ping()
        .destination(&[0xaa; 8])
        .seal(&mut pair.client, SpaceId::Handshake);
    let last = ping().seal(&mut pair.client, SpaceId::Handshake);
    let before = processed(&mut pair.server);
    pair.send_to_server([first, foreign, last].concat());
    assert_eq!(processed(&mut pair.server), before + 2);
    assert_eq!(pair.server_error(), None);
}

#[test]
fn packets_behind_one_that_does_not_open_are_processed() {
    let mut pair = with_handshake_keys();
    let mut broken = ping().seal(&mut pair.client, SpaceId::Handshake);
    *broken.last_mut().expect("not empty") ^= 1;
    let good = ping().seal(&mut pair.client, SpaceId::Handshake);
    let before = (processed(&mut pair.server), dropped(&mut pair.server));
    pair.send_to_server([broken, good].concat());
    assert_eq!(processed(&mut pair.server), before.0 + 1);
    assert_eq!(dropped(&mut pair.server), before.1 + 1);
}

#[test]
fn unknown_version_in_the_middle_of_a_datagram_is_not_answered() {
    let mut pair = with_handshake_keys();
    let good = ping().seal(&mut pair.client, SpaceId::Handshake);
    let mut unknown = good.clone();
    unknown[1..5].copy_from_slice(&0x1a2a_3a4a_u32.to_be_bytes());
    let before = processed(&mut pair.server);
    pair.send_to_server([good, unknown, vec![0; 1200]].concat());
    assert_eq!(processed(&mut pair.server), before + 1);
    assert_eq!(pair.server.endpoint.stats().version_negotiations_sent, 0);
}

#[test]
fn packet_too_short_for_a_sample_is_dropped() {
    let mut pair = Pair::connected();
    let whole = ping().seal(&mut pair.client, SpaceId::Application);
    for len in 1..1 + 8 + 4 + 16 {
        assert_server_drops(&format!("{len} bytes"), &mut pair, whole[..len].to_vec());
    }
    assert_server_drops("an empty datagram", &mut pair, Vec::new());
    assert!(!pair.server.connection().is_closed());
}

#[test]
fn packet_number_is_processed_once() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let opens_stream = Forgery::of(&[0x0a, 0, 1, 7]);
    let bytes = opens_stream.seal(&mut pair.client, SpaceId::Application);
    pair.send_to_server(bytes.clone());
    assert_server_drops("again", &mut pair, bytes);
    // Different content with the same number is as authentic, and as late.
    let number = pair
        .client
        .connection()
        .packets
        .recovery
        .first_unused_number()
        - 1;
    let close = Forgery::of(&[0x1c, 0, 0, 0]).number(number);
    let bytes = eye.forge_client(&mut pair, 0, &close);
    assert_server_drops("other content", &mut pair, bytes);
}

#[test]
fn duplicate_that_is_not_authentic_counts_as_forged_not_as_duplicate() {
    let mut pair = Pair::connected();
    let mut bytes = ping().seal(&mut pair.client, SpaceId::Application);
    pair.send_to_server(bytes.clone());
    *bytes.last_mut().expect("not empty") ^= 1;
    let before = pair.server.connection().packets.protection.failures();
    assert_server_drops("broken", &mut pair, bytes);
    assert_eq!(
        pair.server.connection().packets.protection.failures(),
        before + 1
    );
}

#[test]
fn packets_below_the_remembered_ranges_are_dropped() {
    let mut pair = Pair::connected();
    let late = ping().seal(&mut pair.client, SpaceId::Application);
    for _ in 0..MAX_RANGES + 6 {
        // Sends every other number, for more ranges than are remembered (limit K03).
        pair.client
            .connection()
            .forging_number(SpaceId::Application);
        let bytes = Forgery::of(&[0x00]).seal(&mut pair.client, SpaceId::Application);
        pair.send_to_server(bytes);
    }
    assert_server_drops("late", &mut pair, late);
}

#[test]
fn connection_without_packet_numbers_ends_without_a_packet() {
    let mut pair = Pair::connected();
    let recovery = &mut pair.client.connection().packets.recovery;
    recovery.skip_to_number(MAX_PACKET_NUMBER);
    let sent = pair.client.sent.len();
    pair.client.connection().pings().request();
    pair.client.touch();
    pair.run_for(RTT);
    assert!(
        pair.client
            .events
            .iter()
            .any(|event| matches!(event, Event::Lost(_)))
    );
    assert_eq!(pair.client.sent.len(), sent, "not a packet more");
}

/// RFC 9000 §12.3. The connection has no number for a CONNECTION_CLOSE frame either.
#[test]
fn packets_after_the_last_number_are_answered_with_a_stateless_reset() {
    let mut pair = Pair::connected();
    let recovery = &mut pair.server.connection().packets.recovery;
    recovery.skip_to_number(MAX_PACKET_NUMBER);
    pair.server.connection().pings().request();
    pair.server.touch();
    pair.run_for(RTT);
    let is_lost = |event: &Event| matches!(event, Event::Lost(_));
    assert!(pair.server.events.iter().any(is_lost));
    assert!(!pair.client.events.iter().any(is_lost));
    let sent = pair.server.sent.len();
    pair.client.connection().pings().request();
    pair.client.touch();
    pair.run_for(RTT * 2);
    let reset = Event::Lost(ConnectionError::Reset);
    assert!(pair.client.has(&reset), "{:?}", pair.client.events);
    assert_eq!(pair.server.sent.len(), sent + 1);
}

#[test]
fn sent_headers_are_valid() {
    for seed in 0..8 {
        let (setup, eye) = crate::testing::Setup {
            seed,
            ..Default::default()
        }
        .with_eye();
        let mut pair = Pair::with(setup);
        pair.link.loss = 150;
        pair.connect();
        for (sent, is_client) in [
            (eye.client_sent(&pair), true),
            (eye.server_sent(&pair), false),
        ] {
            let mut last = std::collections::HashMap::new();
            for packet in &sent {
                let case = format!("seed {seed}, client {is_client}: {packet:?}");
                let reserved = if packet.kind == PacketKind::OneRtt {
                    0x18
                } else {
                    0x0c
                };
                assert_eq!(packet.first_byte & reserved, 0, "{case}");
                assert_eq!(packet.first_byte & 0x40, 0x40, "{case}");
                assert!(packet.token.is_empty(), "{case}");
                assert!(
                    last.insert(packet.kind, packet.number) < Some(packet.number),
                    "{case}"
                );
                let number_len = usize::from(packet.first_byte & 0x03) + 1;
                assert!(
                    number_len + packet.payload.len() >= 4,
                    "long enough for a sample: {case}"
                );
                let is_initial = packet.kind == PacketKind::Initial;
                if is_initial && (is_client || packet.is_ack_eliciting()) {
                    assert!(packet.datagram_len >= 1200, "{case}");
                }
            }
            for pair in sent
                .windows(2)
                .filter(|pair| pair[0].datagram == pair[1].datagram)
            {
                assert_eq!(pair[0].destination, pair[1].destination, "seed {seed}");
            }
        }
    }
}

#[test]
fn spin_bit_of_the_peer_is_ignored() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let (before, sent) = (processed(&mut pair.server), pair.server.sent.len());
    for bits in [0x20, 0, 0x20, 0x20] {
        pair.client_forges(SpaceId::Application, &ping().flip(bits));
        pair.run_for(RTT * 2);
    }
    assert_eq!(pair.server_error(), None);
    assert_eq!(processed(&mut pair.server), before + 4);
    assert!(pair.server.sent.len() > sent, "acknowledgements");
    for packet in eye.server_sent(&pair) {
        let is_short = packet.kind == PacketKind::OneRtt;
        assert!(!is_short || packet.first_byte & 0x20 == 0, "{packet:?}");
    }
}
