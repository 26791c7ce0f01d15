use super::*;

#[test]
fn ticks_are_round_numbers() {
    assert_eq!(
        linear(0.0, 30.0, 6),
        (vec![0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0], 0)
    );
    assert_eq!(linear(0.0, 1.0, 5).0.len(), 6);
    assert_eq!(linear(0.0, 1.0, 5).1, 1);
}

#[test]
fn ticks_stay_inside_the_range() {
    let (ticks, _) = linear(3.3, 17.8, 7);
    assert_eq!(ticks, [4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0]);
    let (ticks, _) = linear(-1.5, 1.5, 3);
    assert_eq!(ticks, [-1.0, 0.0, 1.0]);
}

#[test]
fn narrow_range_far_from_zero_has_ticks() {
    let (ticks, decimals) = linear(1e6, 1e6 + 0.001, 5);
    assert!((4..=7).contains(&ticks.len()), "{ticks:?}");
    assert_eq!(decimals, 4, "{ticks:?}");
}

#[test]
fn unusable_range_has_no_ticks() {
    for (low, high) in [
        (1.0, 1.0),
        (2.0, 1.0),
        (f64::NAN, 1.0),
        (0.0, f64::INFINITY),
    ] {
        assert!(linear(low, high, 5).0.is_empty(), "{low} to {high}");
    }
    assert!(linear(0.0, f64::MAX, 5).0.len() <= MAX_TICKS);
    assert!(linear(0.0, f64::MIN_POSITIVE, 5).0.len() <= MAX_TICKS);
}

#[test]
fn logarithmic_ticks_are_powers_of_ten() {
    let ticks = logarithmic(1.0, 1e6, 7);
    assert_eq!(ticks.len(), 7);
    assert!((ticks[6] - 1e6).abs() < 1e-3);
}

#[test]
fn few_decades_have_intermediate_ticks() {
    let ticks = logarithmic(1.0, 100.0, 8);
    let expected = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];
    assert_eq!(ticks.len(), expected.len(), "{ticks:?}");
    for (tick, expected) in ticks.iter().zip(expected) {
        assert!((tick - expected).abs() < 1e-9, "{ticks:?}");
    }
}

#[test]
fn many_decades_are_thinned() {
    let ticks = logarithmic(1e-300, 1e300, 6);
    assert!((4..=8).contains(&ticks.len()), "{ticks:?}");
}

#[test]
fn axis_ends_at_a_round_number() {
    assert!((round_up(93.0, 0.0, 5) - 100.0).abs() < 1e-9);
    assert!((round_up(100.0, 0.0, 5) - 100.0).abs() < 1e-9);
    assert!((round_up(0.41, 0.0, 5) - 0.5).abs() < 1e-9);
}
