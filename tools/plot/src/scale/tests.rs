use super::*;

#[test]
fn ends_of_the_data_are_the_ends_of_the_axis() {
    let scale = Scale::new(&Axis::time(), Some((2.0, 12.0)), false).over(100.0, 200.0);
    assert!((scale.pixel(2.0) - 100.0).abs() < 1e-9);
    assert!((scale.pixel(12.0) - 200.0).abs() < 1e-9);
    assert!((scale.pixel(7.0) - 150.0).abs() < 1e-9);
    assert!((scale.value(0.5) - 7.0).abs() < 1e-9);
}

#[test]
fn logarithmic_axis_has_equal_steps_for_equal_ratios() {
    let axis = Axis::new("size", Unit::Bytes).logarithmic();
    let scale = Scale::new(&axis, Some((1.0, 100.0)), true).over(0.0, 100.0);
    assert!((scale.pixel(10.0) - 50.0).abs() < 1e-9);
    assert!(scale.pixel(0.0).is_nan());
    let texts: Vec<_> = scale.ticks(3).into_iter().map(|tick| tick.text).collect();
    assert_eq!(texts, ["1 B", "10 B", "100 B"]);
}

#[test]
fn ranges_are_never_empty_or_reversed() {
    let data = [
        None,
        Some((0.0, 0.0)),
        Some((5.0, 5.0)),
        Some((-3.0, -3.0)),
        Some((1e300, 1e308)),
        Some((-1e308, 1e308)),
    ];
    for range in data {
        for axis in [
            Axis::time(),
            Axis::time().logarithmic(),
            Axis::time().from(9.0).to(3.0),
        ] {
            let scale = Scale::new(&axis, range, true).over(0.0, 100.0);
            assert!(scale.low() < scale.high(), "{range:?} {axis:?}");
            assert!(
                (scale.high() - scale.low()).is_finite(),
                "{range:?} {axis:?}"
            );
        }
    }
}

#[test]
fn ticks_are_written_in_one_prefix() {
    let scale = Scale::new(
        &Axis::new("queue", Unit::Bytes),
        Some((0.0, 93_000.0)),
        true,
    );
    let axis = Axis::new("queue", Unit::Bytes);
    let scale = scale.rounded(&axis, 5).over(0.0, 100.0);
    assert_eq!(scale.symbol(), "kB");
    let texts: Vec<_> = scale.ticks(5).into_iter().map(|tick| tick.text).collect();
    assert_eq!(texts, ["0", "20", "40", "60", "80", "100"]);
}
