use super::super::controller::Controller;
use super::super::tests::{Flow, MTU, ms};
use super::*;

/// RFC 9002 §7.3.2.
#[test]
fn congestion_halves_the_window() {
    let mut flow = Flow::new(NewReno::new(MTU));
    flow.rounds(3, ms(50), 2);
    assert_eq!(flow.controller.window(), 96_000);
    flow.lose();
    assert_eq!(flow.controller.window(), 48_000);
    assert_eq!(flow.controller.ssthresh(), Some(48_000));
}

/// RFC 9002 §7.3.3.
#[test]
fn avoidance_adds_one_datagram_per_window() {
    let mut flow = Flow::new(NewReno::new(MTU));
    flow.lose();
    for round in 1..50 {
        let before = flow.controller.window();
        flow.round(ms(50), round);
        assert_eq!(
            flow.controller.window(),
            before + u64::from(MTU),
            "round {round}"
        );
    }
}

#[test]
fn one_ack_never_adds_two_datagrams() {
    let mut flow = Flow::new(NewReno::new(MTU));
    flow.lose();
    let before = flow.controller.window();
    flow.ack(flow.now, 9, u64::MAX);
    assert_eq!(flow.controller.window(), before + u64::from(MTU));
}

/// RFC 9002 §7.2.
#[test]
fn window_never_falls_below_two_datagrams() {
    let mut flow = Flow::new(NewReno::new(MTU));
    for _ in 0..20 {
        flow.lose();
    }
    assert_eq!(flow.controller.window(), 2400);
}
