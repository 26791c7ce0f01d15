use courser_base::Side;
use courser_wire::Direction;

use super::*;
use crate::stream::schedule::Level;

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
    assert_eq!(budget.write_limits(5000).connection, SEND_BUFFER_MIN - 1000);
    assert_eq!(
        budget.write_limits(5000).credit,
        4000,
        "unsent bytes claim credit"
    );
    budget.on_sent(600);
    assert_eq!(budget.write_limits(4400).credit, 4000);
    budget.on_acked(500);
    assert_eq!(budget.write_limits(0).connection, SEND_BUFFER_MIN - 500);
    budget.on_written(SEND_BUFFER_MIN - 500);
    assert_eq!(budget.write_limits(0).connection, 0);
    assert_eq!(budget.write_limits(0).reserve, SEND_BUFFER_MIN / RESERVES);
    budget.on_discarded(SEND_BUFFER_MIN - 500, SEND_BUFFER_MIN - 500);
    budget.on_discarded(500, 400);
    assert_eq!((budget.retained(), budget.unsent()), (0, 0));
    assert_eq!(budget.acked(), 500);
}

#[test]
fn limits_follow_the_congestion_window_within_the_configuration() {
    let mut budget = budget();
    assert!(!budget.on_congestion_window(12_000));
    assert_eq!(budget.write_limits(0).connection, SEND_BUFFER_MIN);
    assert!(budget.on_congestion_window(1 << 20));
    assert_eq!(budget.write_limits(0).connection, 4 << 20);
    assert_eq!(budget.unsent_limit(), 256 << 10);
    assert!(budget.set_max(100_000));
    assert_eq!(budget.write_limits(0).connection, 100_000);
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
        assert_eq!(budget.write_limits(0).connection, limit, "{acked}");
    }
}

#[test]
fn a_quarter_of_little_memory_is_the_limit() {
    let mut budget = budget();
    budget.on_congestion_window(1 << 20);
    budget.set_memory_left(1 << 20);
    assert_eq!(budget.write_limits(0).connection, 256 << 10);
    assert_eq!(budget.write_limits(0).reserve, 256 << 10);
    budget.set_memory_left(0);
    assert_eq!(budget.write_limits(0).connection, MIN_FAIR_SHARE);
}

fn of_session(session: u32, index: u64) -> Writer {
    Writer {
        id: id(index),
        session,
        level: Level::default(),
    }
}

fn plain(index: u64) -> Writer {
    of_session(0, index)
}

#[test]
fn writers_wait_in_turn_until_a_quarter_is_free() {
    let mut budget = budget();
    assert_eq!(budget.writers_to_wake(), 0, "none waits");
    budget.on_written(SEND_BUFFER_MIN);
    for index in [1, 0, 1, 2, 3] {
        budget.wait(plain(index), false);
    }
    budget.on_acked(SEND_BUFFER_MIN / 4 - 1);
    assert_eq!(budget.writers_to_wake(), 0);
    budget.on_acked(1);
    assert_eq!(budget.writers_to_wake(), 2, "for 32 KiB");
    assert_eq!(budget.next_writer(), Some(id(1)));
    assert_eq!(budget.next_writer(), Some(id(0)));
    // One has written and waits for more, the other one has got nothing.
    budget.wait(plain(1), false);
    budget.wait(plain(0), true);
    budget.on_acked(SEND_BUFFER_MIN / 4 * 3);
    assert_eq!(budget.writers_to_wake(), 4, "all");
    let order: Vec<_> = std::iter::from_fn(|| budget.next_writer()).collect();
    assert_eq!(order, [0, 2, 3, 1].map(id));
    assert_eq!(budget.writers_to_wake(), 0);
}

#[test]
fn urgent_writers_are_woken_first() {
    let mut budget = budget();
    let of_level = |index, class, priority| Writer {
        level: Level { class, priority },
        ..plain(index)
    };
    budget.wait(of_level(0, 0, 5), false);
    budget.wait(of_level(1, 0, 9), false);
    budget.wait(of_level(2, 1, 0), false);
    budget.wait(of_level(3, 0, 9), false);
    budget.wait(of_level(4, 0, 5), true);
    let order: Vec<_> = std::iter::from_fn(|| budget.next_writer()).collect();
    assert_eq!(order, [2, 1, 3, 4, 0].map(id));
}

#[test]
fn writers_of_several_sessions_are_woken_in_turns() {
    let mut budget = budget();
    for (session, index) in [(1, 0), (1, 1), (1, 2), (1, 3), (7, 10), (7, 11)] {
        budget.wait(of_session(session, index), false);
    }
    let mut next = || budget.next_writer();
    assert_eq!([next(), next(), next()], [0, 10, 1].map(|at| Some(id(at))));
    // One that comes has its turn in the next round, and one that has got nothing is first.
    budget.wait(of_session(9, 20), false);
    budget.wait(of_session(1, 1), true);
    let order: Vec<_> = std::iter::from_fn(|| budget.next_writer()).collect();
    assert_eq!(order, [1, 11, 2, 20, 3].map(id));
}
