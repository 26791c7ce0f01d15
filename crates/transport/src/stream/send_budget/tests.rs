use courser_base::Side;
use courser_wire::Direction;

use super::*;

fn budget() -> SendBudget {
    SendBudget::new(&StreamsConfig::default())
}

fn id(index: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Unidirectional, index)
}

#[test]
fn room_shrinks_by_what_is_kept_and_grows_with_acknowledgements() {
    let mut budget = budget();
    budget.on_written(1000);
    assert_eq!((budget.retained(), budget.unsent()), (1000, 1000));
    assert_eq!(
        budget.write_limits(5000, 0).connection,
        SEND_BUFFER_MIN - 1000
    );
    assert_eq!(
        budget.write_limits(5000, 0).credit,
        4000,
        "unsent bytes claim credit"
    );
    budget.on_sent(600);
    assert_eq!(budget.write_limits(4400, 0).credit, 4000);
    budget.on_acked(500);
    assert_eq!(budget.write_limits(0, 0).connection, SEND_BUFFER_MIN - 500);
    budget.on_written(SEND_BUFFER_MIN - 500);
    assert_eq!(budget.write_limits(0, 0).connection, 0);
    assert_eq!(
        budget.write_limits(0, 0).reserve,
        SEND_BUFFER_MIN / RESERVES
    );
    budget.on_discarded(SEND_BUFFER_MIN - 500, SEND_BUFFER_MIN - 500);
    budget.on_discarded(500, 400);
    assert_eq!((budget.retained(), budget.unsent()), (0, 0));
    assert_eq!(budget.acked(), 500);
}

#[test]
fn limits_follow_the_congestion_window_within_the_configuration() {
    let mut budget = budget();
    assert!(!budget.on_congestion_window(12_000));
    assert_eq!(budget.write_limits(0, 0).connection, SEND_BUFFER_MIN);
    assert!(budget.on_congestion_window(1 << 20));
    assert_eq!(budget.write_limits(0, 0).connection, 4 << 20);
    assert_eq!(budget.unsent_limit(), 256 << 10);
    assert!(budget.set_max(100_000));
    assert_eq!(budget.write_limits(0, 0).connection, 100_000);
    assert_eq!(budget.unsent_limit(), 100_000);
    assert!(!budget.on_congestion_window(2 << 20));
}

/// Attack A24: a peer that acknowledges nothing holds little.
#[test]
fn least_limit_grows_with_the_bytes_acknowledged() {
    let mut budget = budget();
    for (acked, limit) in [
        (0, SEND_BUFFER_MIN),
        (100_000, SEND_BUFFER_MIN + 100_000),
        (10 << 20, SEND_BUFFER_USUAL),
    ] {
        budget.on_written(acked);
        budget.on_sent(acked);
        budget.on_acked(acked);
        budget.on_congestion_window(12_000);
        assert_eq!(budget.write_limits(0, 0).connection, limit, "{acked}");
    }
}

#[test]
fn a_quarter_of_little_memory_is_the_limit() {
    let mut budget = budget();
    budget.on_congestion_window(1 << 20);
    budget.set_memory_left(1 << 20);
    assert_eq!(budget.write_limits(0, 0).connection, 256 << 10);
    assert_eq!(budget.write_limits(0, 0).reserve, 256 << 10);
    budget.set_memory_left(0);
    assert_eq!(budget.write_limits(0, 0).connection, MIN_FAIR_SHARE);
}

#[test]
fn writers_wait_in_turn_until_a_quarter_is_free() {
    let mut budget = budget();
    budget.on_written(SEND_BUFFER_MIN);
    budget.wait(0, id(1));
    budget.wait(0, id(0));
    budget.wait(0, id(1));
    assert!(!budget.can_wake_writers());
    budget.on_acked(SEND_BUFFER_MIN / 4);
    assert!(budget.can_wake_writers());
    assert_eq!(budget.next_writers(), [id(1), id(0)]);
    assert!(!budget.can_wake_writers(), "none waits");
}

#[test]
fn writers_of_several_sessions_are_woken_in_turns() {
    let mut budget = budget();
    budget.on_written(SEND_BUFFER_MIN / 2);
    for (session, index) in [(1, 0), (1, 1), (1, 2), (1, 3), (7, 10), (7, 11)] {
        budget.wait(session, id(index));
    }
    assert_eq!(budget.next_writers(), [id(0), id(10)]);
    assert_eq!(budget.next_writers(), [id(11), id(1)], "the other is first");
    budget.wait(7, id(10));
    // Little is left, so that no later acknowledgement may come.
    budget.on_sent(budget.unsent());
    budget.on_acked(budget.retained());
    assert_eq!(budget.next_writers().len(), 3);
    assert!(!budget.can_wake_writers());
}

#[test]
fn sessions_that_send_hold_equal_parts() {
    let mut budget = budget();
    let connection =
        |budget: &SendBudget, session| budget.write_limits(1 << 30, session).connection;
    assert_eq!(connection(&budget, 1), SEND_BUFFER_MIN, "alone");
    budget.on_written(SEND_BUFFER_MIN / 2);
    budget.on_held(1, 0, SEND_BUFFER_MIN / 2);
    assert_eq!(connection(&budget, 1), SEND_BUFFER_MIN / 2);
    budget.wait(1, id(0));
    budget.wait(2, id(1));
    assert_eq!(connection(&budget, 1), 0, "another one waits");
    assert_eq!(connection(&budget, 2), SEND_BUFFER_MIN / 2);
    assert_eq!(connection(&budget, 0), SEND_BUFFER_MIN / 2, "requests");
    assert_eq!(budget.next_writers(), [id(1)]);
    budget.on_held(1, SEND_BUFFER_MIN / 2, 0);
    assert_eq!(connection(&budget, 1), SEND_BUFFER_MIN / 2);
}

#[test]
fn leading_writers_are_bounded() {
    let mut budget = budget();
    for index in 0..100 {
        budget.wait(0, id(index));
        budget.wait_to_lead(id(index), |_| true);
        budget.wait_to_lead(id(index), |_| true);
    }
    assert_eq!(budget.leads().len(), 16);
    budget.wait_to_lead(id(20), |other| other == id(3));
    assert_eq!(budget.leads(), [id(3), id(20)], "others have left");
    assert_eq!(budget.next_lead(), Some(id(3)));
}
