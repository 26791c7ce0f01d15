use std::collections::HashSet;

use super::*;

fn rng() -> Rng {
    Rng::new([7; 32])
}

#[test]
fn ids_have_the_length_that_was_asked_for() {
    for len in 0..=ConnectionId::MAX_LEN {
        let generator = RandomIdGenerator::new(len).unwrap();
        assert_eq!(generator.length(), len);
        assert_eq!(generator.generate(&mut rng()).len(), len, "length {len}");
    }
}

#[test]
fn ids_above_the_maximum_are_refused() {
    assert_eq!(RandomIdGenerator::new(ConnectionId::MAX_LEN + 1), None);
}

#[test]
fn default_is_eight_bytes() {
    assert_eq!(RandomIdGenerator::default().generate(&mut rng()).len(), 8);
}

#[test]
fn ids_do_not_repeat() {
    let (generator, mut rng) = (RandomIdGenerator::default(), rng());
    let ids: HashSet<_> = (0..100_000).map(|_| generator.generate(&mut rng)).collect();
    assert_eq!(ids.len(), 100_000);
}

/// Each bit of an ID is set with even odds and independently of the previous ID, so that two IDs
/// cannot be linked.
#[test]
fn bits_of_ids_are_even_and_independent() {
    let (generator, mut rng) = (RandomIdGenerator::default(), rng());
    let (mut ones, mut equal_to_last) = ([0u32; 64], [0u32; 64]);
    let mut last = 0u64;
    const DRAWS: u32 = 20_000;
    for _ in 0..DRAWS {
        let bytes = generator.generate(&mut rng);
        let bits = u64::from_be_bytes(*bytes.first_chunk().unwrap());
        for bit in 0..64 {
            ones[bit] += u32::from(bits >> bit & 1 == 1);
            equal_to_last[bit] += u32::from((bits ^ last) >> bit & 1 == 0);
        }
        last = bits;
    }
    // Six standard deviations of a fair coin are 424.
    for bit in 0..64 {
        assert!(
            ones[bit].abs_diff(DRAWS / 2) < 424,
            "bit {bit}: {}",
            ones[bit]
        );
        assert!(
            equal_to_last[bit].abs_diff(DRAWS / 2) < 424,
            "bit {bit} depends on the previous id"
        );
    }
}
