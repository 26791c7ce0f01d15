use super::*;

#[test]
fn values_have_the_prefix_of_their_size() {
    assert_eq!(Unit::Seconds.format(0.0125), "12.5 ms");
    assert_eq!(Unit::Seconds.format(0.000_002), "2 µs");
    assert_eq!(Unit::Seconds.format(30.0), "30 s");
    assert_eq!(Unit::Bytes.format(1_460_000.0), "1.46 MB");
    assert_eq!(Unit::Bytes.format(999.0), "999 B");
    assert_eq!(Unit::Bytes.format(1000.0), "1 kB");
    assert_eq!(Unit::BitsPerSecond.format(20e6), "20 Mbit/s");
    assert_eq!(Unit::Share.format(0.972), "97.2 %");
    assert_eq!(Unit::Plain.format(1234.0), "1234");
}

#[test]
fn zero_is_written_in_the_base_unit() {
    assert_eq!(Unit::Seconds.format(0.0), "0 s");
    assert_eq!(Unit::Bytes.format(0.0), "0 B");
    assert_eq!(Unit::Share.format(0.0), "0 %");
}

#[test]
fn values_that_are_not_finite_are_a_dash() {
    assert_eq!(Unit::Bytes.format(f64::NAN), "–");
    assert_eq!(Unit::Bytes.format(f64::INFINITY), "–");
}

#[test]
fn whole_numbers_keep_their_digits() {
    assert_eq!(significant(100.0), "100");
    assert_eq!(significant(10.0), "10");
    assert_eq!(significant(0.5), "0.5");
    assert_eq!(significant(0.4245), "0.424");
    assert_eq!(significant(0.001_236), "0.00124");
    assert_eq!(significant(-3.0), "-3");
}
