use super::*;

fn with(numbers: &[u64]) -> Received {
    let mut received = Received::default();
    for &number in numbers {
        received.insert(number, Time::from_nanos(number), Ecn::NotEct);
    }
    received
}

#[test]
fn a_number_is_a_duplicate_once_seen() {
    let received = with(&[0, 1, 5]);
    assert!(received.is_duplicate(5));
    assert!(!received.is_duplicate(3));
    assert_eq!((received.largest(), received.expected()), (Some(5), 6));
}

#[test]
fn gaps_are_missing_until_their_packets_arrive_late() {
    let arrivals = |numbers: &[u64]| {
        let Arrivals { missing, late } = with(numbers).arrivals();
        (missing, late)
    };
    assert_eq!(arrivals(&[]), (0, 0));
    // The first number is random.
    assert_eq!(arrivals(&[700, 701, 702]), (0, 0));
    assert_eq!(arrivals(&[700, 703, 706]), (4, 0));
    assert_eq!(arrivals(&[700, 703, 706, 701, 705]), (2, 2));
    assert_eq!(arrivals(&[700, 698]), (1, 1));
}

#[test]
fn arrivals_survive_forgotten_ranges() {
    let mut received = with(&[0, 1, 4, 5, 9]);
    received.on_ack_acknowledged(9);
    let arrivals = received.arrivals();
    assert_eq!((arrivals.missing, arrivals.late), (5, 0));
}

#[test]
fn ranges_are_bounded_and_forgotten_numbers_refused() {
    let mut received = Received::default();
    for number in 0..=(MAX_RANGES as u64) {
        received.insert(number * 2, Time::ZERO, Ecn::NotEct);
    }
    assert_eq!(received.ranges().len(), MAX_RANGES);
    assert!(
        received.is_duplicate(0),
        "range 0 was dropped: it may have been processed"
    );
    assert!(!received.is_duplicate(1 + 2));
}

#[test]
fn acknowledged_ranges_are_dropped_but_never_the_largest() {
    let mut received = with(&[0, 1, 2, 10, 11, 20]);
    received.on_ack_acknowledged(11);
    assert_eq!(received.ranges().iter().collect::<Vec<_>>(), vec![20..21]);
    received.on_ack_acknowledged(20);
    assert_eq!(received.largest(), Some(20));
    assert!(received.is_duplicate(5));
}

#[test]
fn late_number_keeps_time_of_the_largest() {
    let mut received = with(&[7]);
    received.insert(3, Time::from_nanos(99), Ecn::Ce);
    assert_eq!(received.largest_time(), Time::from_nanos(7));
    assert_eq!(received.ecn().map(|counts| counts.ce), Some(1));
    assert_eq!(received.ranges().len(), 2);
}
