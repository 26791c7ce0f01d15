use proptest::prelude::*;

use super::*;

#[test]
fn million_packets_at_an_odd_rate_take_exactly_their_time() {
    // 7 bytes per second short of 10^9 / 7: nothing divides evenly.
    let rate = 142_857_136;
    let mut transmitter = Transmitter::new(Rate::from_bytes_per_second(rate));
    let mut end = Time::ZERO;
    let packets = 1_000_000_u64;
    for _ in 0..packets {
        end = transmitter.send(end, 1_228);
    }
    let exact = u128::from(packets) * 1_228 * 1_000_000_000 / u128::from(rate);
    assert_eq!(u128::from(end.as_nanos()), exact);
}

#[test]
fn idle_time_gives_no_extra_capacity() {
    let mut transmitter = Transmitter::new(Rate::from_bytes_per_second(1_000_000));
    assert_eq!(
        transmitter.send(Time::ZERO, 1_000),
        Time::from_nanos(1_000_000)
    );
    let late = Time::from_nanos(5_000_000);
    assert_eq!(transmitter.send(late, 1_000), Time::from_nanos(6_000_000));
}

#[test]
fn new_rate_applies_from_the_next_packet_on() {
    let mut transmitter = Transmitter::new(Rate::from_bytes_per_second(1_000));
    let free = transmitter.send(Time::ZERO, 1_000);
    transmitter.set_rate(Rate::from_bytes_per_second(1_000_000));
    assert_eq!(transmitter.free_at(), free);
    assert_eq!(
        transmitter.send(free, 1_000),
        Time::from_nanos(1_001_000_000)
    );
}

proptest! {
    #[test]
    fn rounding_errors_do_not_add_up_in_a_busy_period(
        rate in 1_u64..2_000_000_000_000,
        sizes in proptest::collection::vec(1_u64..66_000, 1..200),
    ) {
        let mut transmitter = Transmitter::new(Rate::from_bytes_per_second(rate));
        let mut end = Time::ZERO;
        for size in &sizes {
            end = transmitter.send(end, *size);
        }
        let total: u64 = sizes.iter().sum();
        let exact = u128::from(total) * 1_000_000_000 / u128::from(rate);
        prop_assert_eq!(u128::from(end.as_nanos()), exact);
    }

    #[test]
    fn any_rate_and_size_do_not_overflow(rate: u64, size in 0_u64..70_000) {
        let mut transmitter = Transmitter::new(Rate::from_bytes_per_second(rate));
        for _ in 0..3 {
            let start = transmitter.free_at();
            prop_assert!(transmitter.send(start, size) >= start);
        }
    }
}
