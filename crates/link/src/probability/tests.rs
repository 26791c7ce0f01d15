use super::*;

#[test]
fn never_and_always_are_exact() {
    for random in [0, 1, u64::MAX / 2, u64::MAX] {
        assert!(!Probability::NEVER.decides(random));
        assert!(Probability::ALWAYS.decides(random));
    }
}

#[test]
fn frequency_is_within_four_standard_deviations() {
    for parts in [1_000_000, 10_000_000, 300_000_000, 999_000_000] {
        let chance = Probability::from_parts_per_billion(parts);
        let numbers = Keyed::new(11, 0, Effect::Loss);
        let count = 400_000_u32;
        let hits = (1..=count).filter(|&index| chance.decides(numbers.first(index.into())));
        let hits = hits.count() as f64;
        let share = f64::from(parts) / 1e9;
        let expected = share * f64::from(count);
        let deviation = (expected * (1.0 - share)).sqrt();
        assert!(
            (hits - expected).abs() < 4.0 * deviation,
            "{parts}: {hits} hits, {expected} expected"
        );
    }
}

#[test]
fn effects_hops_and_seeds_decide_independently() {
    let chance = Probability::from_percent(50);
    let outcome = |seed, hop, effect| -> u64 {
        let numbers = Keyed::new(seed, hop, effect);
        (0..64).fold(0, |bits, at| {
            bits << 1 | u64::from(chance.decides(numbers.first(at)))
        })
    };
    let all = [
        outcome(1, 0, Effect::Loss),
        outcome(1, 0, Effect::Corrupt),
        outcome(1, 1, Effect::Loss),
        outcome(2, 0, Effect::Loss),
    ];
    for (at, one) in all.iter().enumerate() {
        for other in &all[at + 1..] {
            let differing = (one ^ other).count_ones();
            assert!(
                (12..=52).contains(&differing),
                "{differing} of 64 bits differ"
            );
        }
    }
    assert_eq!(outcome(1, 0, Effect::Loss), all[0]);
}

#[test]
fn scaled_numbers_stay_below_their_bound() {
    let mut numbers = Keyed::new(3, 0, Effect::Extend).numbers(1);
    let mut seen = [0_u32; 7];
    for _ in 0..7_000 {
        seen[usize::try_from(numbers.below(7)).expect("the number is below seven")] += 1;
    }
    assert!(
        seen.iter().all(|&count| (850..1150).contains(&count)),
        "{seen:?}"
    );
    assert_eq!(numbers.below(0), 0);
}
