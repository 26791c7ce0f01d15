use proptest::prelude::*;

use super::*;
use crate::testing::varints;

fn truncate(number: u64, len: usize) -> u64 {
    let mut buffer = [0; 4];
    let mut writer = Writer::new(&mut buffer);
    write(&mut writer, number, len);
    writer
        .written()
        .iter()
        .fold(0, |number, &byte| (number << 8) | u64::from(byte))
}

#[test]
fn rfc_9000_a2_examples_take_16_and_24_bits() {
    assert_eq!(encoded_len(0xac_5c02, Some(0xab_e8b3)), 2);
    assert_eq!(encoded_len(0xac_e8fe, Some(0xab_e8b3)), 3);
}

#[test]
fn rfc_9000_a3_example_expands() {
    assert_eq!(expand(0x9b32, 2, 0xa82f_30ea + 1), 0xa82f_9b32);
}

#[test]
fn length_covers_more_than_twice_the_distance_to_the_largest_acked() {
    for (distance, len) in [
        (0x7f, 1),
        (0x80, 2),
        (0x7fff, 2),
        (0x8000, 3),
        (0x7f_ffff, 3),
    ] {
        assert_eq!(encoded_len(1000 + distance, Some(1000)), len, "{distance}");
        assert!(1_u64 << (8 * len) > 2 * distance, "{distance}");
    }
    assert_eq!(encoded_len(0x80_0000, Some(0)), 4);
}

#[test]
fn length_covers_all_numbers_before_the_first_acknowledgment() {
    assert_eq!(encoded_len(0, None), 1);
    assert_eq!(encoded_len(0x7e, None), 1);
    assert_eq!(encoded_len(0x7f, None), 2);
}

#[test]
fn a_distance_beyond_32_bits_still_gives_four_bytes() {
    assert_eq!(encoded_len(MAX_PACKET_NUMBER, None), 4);
    assert_eq!(encoded_len(5, Some(9)), 1);
}

#[test]
fn writing_keeps_the_low_bytes() {
    assert_eq!(truncate(0x1122_3344_5566, 1), 0x66);
    assert_eq!(truncate(0x1122_3344_5566, 2), 0x5566);
    assert_eq!(truncate(0x1122_3344_5566, 3), 0x44_5566);
    assert_eq!(truncate(0x1122_3344_5566, 4), 0x3344_5566);
}

#[test]
#[should_panic(expected = "1 to 4 bytes")]
fn writing_five_bytes_panics() {
    write(&mut Writer::new(&mut [0; 8]), 0, 5);
}

#[test]
fn expansion_wraps_to_the_closest_number_on_either_side() {
    assert_eq!(expand(0x02, 1, 0x1fe), 0x202);
    assert_eq!(expand(0xfe, 1, 0x202), 0x1fe);
    assert_eq!(expand(0xff, 1, 0), 0xff);
    assert_eq!(expand(0, 4, 0), 0);
}

#[test]
fn expansion_prefers_the_larger_of_two_equally_close_numbers() {
    assert_eq!(expand(0x00, 1, 0x180), 0x200);
    assert_eq!(expand(0x80, 1, 0x100), 0x180);
}

#[test]
fn expansion_stays_within_packet_numbers_at_the_end_of_the_space() {
    assert_eq!(expand(0xff, 1, MAX_PACKET_NUMBER), MAX_PACKET_NUMBER);
    assert_eq!(
        expand(0, 1, MAX_PACKET_NUMBER + 1),
        MAX_PACKET_NUMBER - 0xff
    );
    assert_eq!(expand(0, 1, MAX_PACKET_NUMBER), MAX_PACKET_NUMBER - 0xff);
}

proptest! {
    #[test]
    fn receiver_expands_truncated_packet_numbers(
        acked in prop::option::of(varints()),
        ahead in 0..0x7fff_ffff_u64,
        received in any::<prop::sample::Index>(),
    ) {
        // The receiver has received the packets that it acknowledged, and maybe later ones.
        let next = acked.map_or(0, |acked| acked + 1);
        let number = (next + ahead).min(MAX_PACKET_NUMBER);
        prop_assume!(number >= next);
        let seen = received.index(usize::try_from(number - next + 1).unwrap()) as u64;
        let len = encoded_len(number, acked);
        prop_assert_eq!(expand(truncate(number, len), len, next + seen), number);
    }

    #[test]
    fn expansion_is_the_closest_candidate(
        truncated in any::<u64>(), len in 1..=4_usize, expected in varints(),
    ) {
        let window = 1_i128 << (8 * len);
        let number = i128::from(expand(truncated, len, expected));
        let low = i128::from(truncated) % window;
        prop_assert_eq!(number % window, low);
        prop_assert!(number <= i128::from(MAX_PACKET_NUMBER));
        let distance = |number: i128| (number - i128::from(expected)).abs();
        for other in [number - window, number + window] {
            if (0..=i128::from(MAX_PACKET_NUMBER)).contains(&other) {
                prop_assert!(distance(number) <= distance(other));
            }
        }
    }

    #[test]
    fn expansion_of_any_input_never_panics(truncated: u64, len: usize, expected: u64) {
        prop_assert!(expand(truncated, len, expected) <= MAX_PACKET_NUMBER);
    }
}
