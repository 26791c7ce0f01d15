use std::collections::HashSet;

use courser_wire::packet;

use super::*;

const TOKEN: ResetToken = *b"a token, 16 byte";

fn rng() -> Rng {
    Rng::new([3; 32])
}

#[test]
fn short_triggers_are_not_answered() {
    for len in 0..MIN_TRIGGER_LEN {
        assert_eq!(
            build(len, &TOKEN, &mut rng()),
            None,
            "trigger of {len} bytes"
        );
    }
}

#[test]
fn reset_is_shorter_than_its_trigger() {
    let mut rng = rng();
    for len in (MIN_TRIGGER_LEN..2000).chain([65_535]) {
        let reset = build(len, &TOKEN, &mut rng).unwrap();
        assert!(
            reset.len() >= MIN_LEN && reset.len() < len,
            "trigger of {len} bytes"
        );
    }
}

#[test]
fn reset_looks_like_a_short_header_packet() {
    let mut rng = rng();
    let mut first_bytes = HashSet::new();
    for len in 43..1200 {
        let reset = build(len, &TOKEN, &mut rng).unwrap();
        let packet = packet::decode(&reset, 0, 8).expect("an ordinary packet");
        assert_eq!(packet.kind, courser_wire::PacketKind::OneRtt);
        first_bytes.insert(reset[0]);
    }
    assert_eq!(first_bytes.len(), 64, "all bits but two are unpredictable");
}

#[test]
fn reset_ends_in_the_token() {
    let reset = build(100, &TOKEN, &mut rng()).unwrap();
    assert_eq!(token_of(&reset), Some(TOKEN));
}

#[test]
fn length_is_not_constant() {
    let mut rng = rng();
    let lens: HashSet<_> = (0..1000)
        .map(|_| build(1200, &TOKEN, &mut rng).unwrap().len())
        .collect();
    assert_eq!(lens.len(), MAX_EXTRA + 1);
}

/// Two endpoints that both lost their state and mistake each other's resets for packets.
#[test]
fn two_endpoints_without_state_stop_answering_each_other() {
    let mut rng = rng();
    for start in 0..1500 {
        let (mut len, mut packets) = (start, 0);
        while let Some(reset) = build(len, &TOKEN, &mut rng) {
            len = reset.len();
            packets += 1;
        }
        // The first has at most 106 bytes, and the last one 42.
        assert!(packets <= 65, "{packets} packets after {start} bytes");
    }
}

#[test]
fn datagrams_below_the_minimum_have_no_token() {
    for len in 0..MIN_LEN {
        assert_eq!(token_of(&vec![0; len]), None, "{len} bytes");
    }
    assert_eq!(token_of(&[0; MIN_LEN]), Some([0; 16]));
}

#[test]
fn token_is_found_behind_any_header() {
    for first_byte in 0..=255 {
        let mut datagram = vec![first_byte; 84];
        datagram.extend(TOKEN);
        assert_eq!(
            token_of(&datagram),
            Some(TOKEN),
            "first byte {first_byte:#x}"
        );
    }
}
