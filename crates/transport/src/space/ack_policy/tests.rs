use super::*;

const DELAY: Duration = Duration::from_millis(25);

#[test]
fn one_packet_waits_for_the_delay() {
    let mut policy = AckPolicy::default();
    policy.on_ack_eliciting(Time::ZERO, DELAY, false);
    policy.on_batch_end();
    assert!(!policy.is_due() && policy.is_pending());
    assert_eq!(policy.deadline(), Some(Time::ZERO + DELAY));
    policy.on_timeout(Time::ZERO + DELAY);
    assert!(policy.is_due());
}

#[test]
fn second_packet_makes_it_due_at_the_end_of_the_batch() {
    let mut policy = AckPolicy::default();
    policy.on_ack_eliciting(Time::ZERO, DELAY, false);
    policy.on_ack_eliciting(Time::ZERO, DELAY, false);
    assert!(!policy.is_due());
    policy.on_batch_end();
    assert!(policy.is_due());
    policy.on_ack_sent(false);
    assert!(!policy.is_due() && !policy.is_pending() && policy.deadline().is_none());
}

#[test]
fn reordered_packet_is_acknowledged_at_once() {
    let mut policy = AckPolicy::default();
    policy.on_ack_eliciting(Time::ZERO, DELAY, true);
    assert!(policy.is_due());
}

#[test]
fn streak_of_pure_acks_asks_for_one_ping() {
    let mut policy = AckPolicy::default();
    let pings = (0..2 * STREAK)
        .filter(|_| policy.on_ack_sent(false))
        .count();
    assert_eq!(pings, 2);
    assert!(!policy.on_ack_sent(true));
}
