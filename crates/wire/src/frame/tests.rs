use proptest::prelude::*;

use super::testing::{assert_vector, frames};
use super::*;
use crate::packet::PacketKind;
use crate::testing::{hex, hostile_bytes};

/// One frame of each kind, in the order of Table 3, then those of extensions.
const EACH: &str = "00 01 02 00 00 00 00 04 00 00 00 05 00 00 06 00 01 aa 07 01 aa 0a 00 01 aa
    10 01 11 00 01 12 01 14 01 15 00 01 16 01 18 01 00 01 aa 00000000000000000000000000000000
    19 00 1a 0102030405060708 1b 0102030405060708 1c 00 00 00 1d 00 00 1e 1f
    24 00 00 02 01 40af 00 01 40ff 03 3e 01 00 00 00 00 7e75 01 00 7e76 01 00 7e77 01 00
    7e78 01 01 00 01 aa 00000000000000000000000000000000 7e79 01 00 7e7a 01 7e7b 01 7e7c 01 00
    809f81a6 01 c0000201 01bb 803d7f90 01 c0000201 01bb 803d7f92 01 c0000201 01bb 803d7f94 01
    31 02 aabb 30 cc";

#[test]
fn sample_has_every_kind_of_frame() {
    let bytes = hex(EACH);
    let found: Vec<_> = frames(&bytes)
        .into_iter()
        .map(|frame| frame.unwrap().kind())
        .collect();
    for kind in FrameKind::ALL {
        assert!(found.contains(kind), "{kind:?} is missing in EACH");
    }
}

#[test]
fn ping_is_one_byte() {
    assert_vector(&Frame::Ping, "01");
}

#[test]
fn handshake_done_is_one_byte() {
    assert_vector(&Frame::HandshakeDone, "1e");
}

#[test]
fn all_but_ack_padding_and_close_are_ack_eliciting() {
    let bytes = hex(EACH);
    let not_eliciting: Vec<_> = frames(&bytes)
        .into_iter()
        .map(Result::unwrap)
        .filter(|frame| !frame.is_ack_eliciting())
        .map(|frame| frame.frame_type().value())
        .collect();
    assert_eq!(not_eliciting, [0x00, 0x02, 0x1c, 0x1d, 0x3e]);
}

#[test]
fn five_kinds_of_frames_are_probing() {
    let bytes = hex(EACH);
    let probing: Vec<_> = frames(&bytes)
        .into_iter()
        .map(Result::unwrap)
        .filter(Frame::is_probing)
        .map(|frame| frame.frame_type().value())
        .collect();
    assert_eq!(probing, [0x00, 0x18, 0x1a, 0x1b, 0x9f_81a6]);
}

#[test]
fn payload_can_hold_every_frame() {
    let bytes = hex(EACH);
    let found: Vec<_> = frames(&bytes).into_iter().map(Result::unwrap).collect();
    let mut buffer = vec![0; bytes.len()];
    let mut writer = Writer::new(&mut buffer);
    for frame in &found {
        assert!(is_permitted(frame.frame_type().value(), PacketKind::OneRtt));
        frame.encode(&mut writer);
    }
    assert_eq!(writer.written(), bytes);
}

#[test]
fn payload_truncated_anywhere_never_panics() {
    let bytes = hex(EACH);
    for end in 0..bytes.len() {
        let found = frames(&bytes[..end]);
        assert!(
            found.iter().rev().skip(1).all(Result::is_ok),
            "cut at {end}"
        );
    }
}

/// Checks that only the last item of a payload is an error, and that each frame before it decodes
/// to itself after it is encoded again.
fn assert_consistent(bytes: &[u8]) {
    let found = frames(bytes);
    assert!(found.len() <= bytes.len());
    assert!(found.iter().rev().skip(1).all(Result::is_ok));
    for frame in found.into_iter().flatten() {
        assert_eq!(frames(&testing::encode(&frame)), [Ok(frame)]);
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic_and_end(bytes in hostile_bytes(300)) {
        let found = frames(&bytes);
        prop_assert!(found.len() <= bytes.len());
        prop_assert!(found.iter().rev().skip(1).all(Result::is_ok));
    }

    #[test]
    fn every_type_survives_random_fields(frame_type in 0..0x40_u8, fields in hostile_bytes(80)) {
        let mut bytes = vec![frame_type];
        bytes.extend(&fields);
        assert_consistent(&bytes);
    }

    #[test]
    fn decoded_frames_round_trip(bytes in hostile_bytes(100)) {
        for frame in frames(&bytes).into_iter().flatten() {
            let again = testing::encode(&frame);
            prop_assert_eq!(frames(&again), [Ok(frame)]);
        }
    }

    #[test]
    fn a_flipped_bit_never_panics(index in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut bytes = hex(EACH);
        let index = index.index(bytes.len());
        bytes[index] ^= 1_u8 << bit;
        assert_consistent(&bytes);
    }
}
