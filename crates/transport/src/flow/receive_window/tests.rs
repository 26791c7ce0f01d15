use courser_wire::TransportErrorCode;

use super::*;

const NOW: Time = Time::ZERO;
const SLOW: Duration = Duration::ZERO;

#[test]
fn up_to_the_limit_is_fine_and_one_more_is_not() {
    let mut window = ReceiveWindow::new(10, 10);
    assert!(window.check(10).is_ok());
    window.on_received(NOW, 10);
    let error = window.check(1).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::FLOW_CONTROL_ERROR);
    assert_eq!(error.reason, "offset 11 exceeds limit 10");
    assert!(window.check(u64::MAX).is_err());
}

#[test]
fn more_is_announced_at_half_a_window() {
    let mut window = ReceiveWindow::new(10, 10);
    window.on_received(NOW, 10);
    window.on_consumed(4);
    assert!(!window.wants_update());
    assert_eq!(window.announce(NOW, SLOW), 10);
    window.on_consumed(1);
    assert!(window.wants_update());
    assert_eq!(window.announce(NOW, SLOW), 15);
    assert!(!window.wants_update());
    assert_eq!(
        (window.received(), window.unconsumed(), window.limit()),
        (10, 5, 15)
    );
}

#[test]
fn growing_window_announces_the_grown_size() {
    let mut window = ReceiveWindow::new(10, 100);
    window.on_received(NOW, 5);
    window.on_consumed(5);
    assert_eq!(window.announce(NOW, Duration::from_millis(1)), 25);
}

#[test]
fn limit_stops_at_the_largest_varint() {
    let mut window = ReceiveWindow::new(u64::MAX, u64::MAX);
    assert_eq!(window.limit(), MAX_VARINT);
    window.on_received(NOW, MAX_VARINT);
    window.on_consumed(MAX_VARINT);
    assert!(!window.wants_update());
    assert_eq!(window.announce(NOW, SLOW), MAX_VARINT);
}

#[test]
fn zero_window_asks_for_nothing_useless() {
    let mut window = ReceiveWindow::new(0, 0);
    assert!(!window.wants_update());
    assert_eq!(window.announce(NOW, SLOW), 0);
    assert!(window.check(1).is_err());
}
