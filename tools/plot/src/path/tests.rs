use super::*;

#[test]
fn moves_are_relative_and_short() {
    let mut path = Path::default();
    path.move_to(10.0, 20.0);
    path.line_to(11.5, 20.0);
    path.line_to(11.5, 18.0);
    path.line_to(12.0, 18.5);
    path.line_to(12.5, 18.2);
    path.line_to(12.5, 18.2);
    path.close();
    assert_eq!(path.as_str(), "M10 20h1.5v-2l.5 .5l.5-.3z");
}

#[test]
fn rounding_does_not_add_up() {
    let mut path = Path::default();
    path.move_to(0.0, 0.0);
    for step in 1..=1000 {
        path.line_to(f64::from(step) * 0.04, 0.0);
    }
    let sum: f64 = path.as_str()[4..]
        .split('h')
        .filter(|text| !text.is_empty())
        .map(|text| text.parse::<f64>().expect("a number"))
        .sum();
    assert!((sum - 40.0).abs() < 0.06, "{sum}");
}

#[test]
fn pixels_have_one_decimal() {
    assert_eq!(pixels(0.0), "0");
    assert_eq!(pixels(-0.04), "0");
    assert_eq!(pixels(-0.26), "-.3");
    assert_eq!(pixels(719.96), "720");
}
