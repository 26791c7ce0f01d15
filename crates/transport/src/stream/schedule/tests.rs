use super::*;

fn order(schedule: &mut Schedule) -> Vec<u32> {
    let mut order = Vec::new();
    while let Some(stream) = schedule.first() {
        order.push(stream);
        schedule.pop_first();
    }
    order
}

#[test]
fn higher_priority_goes_first_and_equals_in_order() {
    let mut schedule = Schedule::default();
    for (priority, stream) in [(0, 1), (5, 2), (0, 3), (-1, 4), (5, 5)] {
        schedule.push(priority, stream);
    }
    assert_eq!(order(&mut schedule), [2, 5, 1, 3, 4]);
    assert!(schedule.is_empty());
}

#[test]
fn turns_change_after_a_quantum() {
    let mut schedule = Schedule::default();
    for stream in [1, 2, 3] {
        schedule.push(0, stream);
    }
    let mut turns = Vec::new();
    for _ in 0..4 {
        turns.push(schedule.first().unwrap());
        for _ in 0..4 {
            assert_eq!(schedule.first(), turns.last().copied());
            schedule.on_sent(QUANTUM / 4);
        }
    }
    assert_eq!(turns, [1, 2, 3, 1]);
}

#[test]
fn stream_of_an_unfair_order_keeps_its_turn_until_a_higher_priority_comes() {
    let mut schedule = Schedule::new(false);
    schedule.push(0, 1);
    schedule.push(0, 2);
    schedule.on_sent(10 * QUANTUM);
    assert_eq!(schedule.first(), Some(1));
    schedule.push(1, 3);
    assert_eq!(order(&mut schedule), [3, 1, 2]);
}

#[test]
fn new_turn_starts_with_a_full_quantum() {
    let mut schedule = Schedule::default();
    schedule.push(0, 1);
    schedule.push(0, 2);
    schedule.on_sent(QUANTUM - 1);
    schedule.pop_first();
    schedule.on_sent(QUANTUM - 1);
    assert_eq!(schedule.first(), Some(2));
}

#[test]
fn lower_priority_waits_however_long() {
    let mut schedule = Schedule::default();
    schedule.push(0, 1);
    schedule.push(1, 2);
    for _ in 0..10 {
        schedule.on_sent(QUANTUM);
        assert_eq!(schedule.first(), Some(2));
    }
}

#[test]
fn any_stream_can_be_taken_out() {
    let mut schedule = Schedule::default();
    for (priority, stream) in [(0, 1), (5, 2), (0, 3)] {
        schedule.push(priority, stream);
    }
    schedule.remove(5, 2);
    schedule.remove(0, 99);
    schedule.remove(7, 1);
    assert_eq!(order(&mut schedule), [1, 3]);
}
