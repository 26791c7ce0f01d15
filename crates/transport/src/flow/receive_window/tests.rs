use courser_wire::TransportErrorCode;

use super::*;

const NOW: Time = Time::ZERO;
const SLOW: Duration = Duration::ZERO;

#[test]
fn bytes_above_limit_are_an_error() {
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
    assert!(!window.is_update_due());
    assert_eq!(window.announce(NOW, SLOW), 10);
    window.on_consumed(1);
    assert!(window.is_update_due());
    assert_eq!(window.announce(NOW, SLOW), 15);
    assert!(!window.is_update_due());
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
    assert!(!window.is_update_due());
    assert_eq!(window.announce(NOW, SLOW), MAX_VARINT);
}

#[test]
fn zero_window_needs_no_update() {
    let mut window = ReceiveWindow::new(0, 0);
    assert!(!window.is_update_due());
    assert_eq!(window.announce(NOW, SLOW), 0);
    assert!(window.check(1).is_err());
}

const RTT: Duration = Duration::from_millis(10);

/// Receives a frame of `len` bytes, `ordered` of which can be read with it, that moves the highest
/// offset by `additional`.
fn frame(window: &mut ReceiveWindow, now: Time, len: u64, ordered: u64, additional: u64) {
    window.check(additional).expect("within the limit");
    window.on_received(now, additional);
    window.on_arrived(now, len, ordered);
}

/// The first of 800 bytes is lost. The bytes behind it arrive at once and cannot be read.
#[test]
fn lost_packet_does_not_stop_growth() {
    let mut window = ReceiveWindow::new(800, 10_000);
    frame(&mut window, NOW, 50, 0, 100);
    frame(&mut window, NOW, 200, 0, 200);
    assert!(!window.is_update_due(), "more than half is left");
    frame(&mut window, NOW, 100, 0, 100);
    assert!(window.is_update_due());
    assert_eq!(window.announce(NOW, RTT), 1600);
    assert!(!window.is_update_due(), "asked once per eighth");
}

#[test]
fn slow_data_behind_a_gap_earns_no_credit() {
    let mut window = ReceiveWindow::new(800, 10_000);
    for step in 0..4 {
        let now = NOW + RTT * step * 2;
        frame(&mut window, now, 100, 0, 110);
    }
    assert!(window.is_update_due());
    assert_eq!(window.announce(NOW + RTT * 7, RTT), 800);
}

/// The application keeps the window full, and one packet is missing as well.
#[test]
fn loss_causes_no_growth_for_slow_reader() {
    let mut window = ReceiveWindow::new(800, 10_000);
    frame(&mut window, NOW, 101, 101, 101);
    frame(&mut window, NOW, 400, 0, 410);
    assert!(!window.is_update_due(), "101 bytes can be read");
    window.on_consumed(1);
    assert!(window.is_update_due(), "an eighth can be read");
}

#[test]
fn without_gap_only_reading_earns_credit() {
    let mut window = ReceiveWindow::new(800, 10_000);
    for _ in 0..8 {
        frame(&mut window, NOW, 100, 100, 100);
        assert!(!window.is_update_due());
    }
}

/// Limit K16: claiming an offset costs the peer nothing, so it earns no credit.
#[test]
fn large_offsets_earn_no_credit() {
    let mut window = ReceiveWindow::new(800, 10_000);
    frame(&mut window, NOW, 1, 0, 400);
    frame(&mut window, NOW, 1, 0, 400);
    assert!(!window.is_update_due());
    assert_eq!(window.announce(NOW, RTT), 800);
}

#[test]
fn discarded_data_cannot_be_read() {
    let mut window = ReceiveWindow::new(800, 10_000);
    frame(&mut window, NOW, 200, 100, 300);
    frame(&mut window, NOW, 100, 100, 100);
    assert_eq!((window.readable(), window.unconsumed()), (200, 400));
    window.on_discarded(300, 100);
    assert_eq!((window.readable(), window.unconsumed()), (100, 100));
    window.on_consumed(100);
    assert_eq!((window.readable(), window.unconsumed()), (0, 0));
}

/// RFC 9204 §2.2.1: held bytes earn no credit until they are released.
#[test]
fn held_bytes_are_credited_when_they_are_released() {
    let mut window = ReceiveWindow::new(100, 100);
    window.on_received(NOW, 90);
    window.on_consumed(90);
    window.hold(40);
    assert!(window.is_update_due());
    assert_eq!(window.announce(NOW, SLOW), 150);
    window.on_received(NOW, 49);
    window.on_consumed(49);
    assert!(!window.is_update_due(), "139 consumed, 99 credited");
    assert_eq!(window.announce(NOW, SLOW), 150);
    window.release(40);
    assert!(window.is_update_due());
    assert_eq!(window.announce(NOW, SLOW), 239);
}

/// Held bytes may depend on bytes that have yet to arrive.
#[test]
fn half_a_window_is_granted_whatever_is_held() {
    let mut window = ReceiveWindow::new(100, 100);
    for round in 1..=10 {
        let room = window.limit() - window.received();
        assert!(room >= 50, "{room} in round {round}");
        window.on_received(NOW, room);
        window.on_consumed(room);
        window.hold(room);
        assert!(window.is_update_due());
        window.announce(NOW, SLOW);
    }
}
