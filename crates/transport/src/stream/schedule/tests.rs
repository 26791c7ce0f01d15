mod model;

use self::model::Model;
use super::turns::QUANTUM;
use super::*;

/// Returns the share of a stream without session and group.
fn plain(priority: i32) -> Share {
    Share {
        priority,
        ..Share::default()
    }
}

fn push(schedule: &mut Schedule, priority: i32, stream: u32) -> Place {
    schedule.push(0, &plain(priority), stream)
}

fn push_grouped(schedule: &mut Schedule, session: u32, group: u32, stream: u32) -> Place {
    let share = Share {
        session,
        group,
        ..Share::default()
    };
    schedule.push(0, &share, stream)
}

fn order(schedule: &mut Schedule) -> Vec<u32> {
    let mut order = Vec::new();
    while let Some(stream) = schedule.first() {
        order.push(stream);
        schedule.on_last_sent(1);
    }
    order
}

/// Returns the bytes of each of `count` streams that always have data, after so many packets of 1200 bytes.
fn bytes_sent(schedule: &mut Schedule, count: usize, packets: usize) -> Vec<u64> {
    let mut sent = vec![0; count];
    for _ in 0..packets {
        let stream = schedule.first().unwrap();
        sent[stream as usize] += 1200;
        schedule.on_sent(1200);
    }
    sent
}

#[test]
fn higher_priority_goes_first_and_equals_in_order() {
    let mut schedule = Schedule::default();
    for (priority, stream) in [(0, 1), (5, 2), (0, 3), (-1, 4), (5, 5)] {
        push(&mut schedule, priority, stream);
    }
    assert_eq!(order(&mut schedule), [2, 5, 1, 3, 4]);
    assert!(schedule.is_empty());
}

#[test]
fn turns_change_after_a_quantum() {
    let mut schedule = Schedule::default();
    for stream in [1, 2, 3] {
        push(&mut schedule, 0, stream);
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
    push(&mut schedule, 0, 1);
    push(&mut schedule, 0, 2);
    schedule.on_sent(10 * QUANTUM);
    assert_eq!(schedule.first(), Some(1));
    push(&mut schedule, 1, 3);
    assert_eq!(order(&mut schedule), [3, 1, 2]);
}

#[test]
fn new_turn_starts_with_a_full_quantum() {
    let mut schedule = Schedule::default();
    push(&mut schedule, 0, 1);
    push(&mut schedule, 0, 2);
    schedule.on_sent(QUANTUM - 1);
    schedule.on_last_sent(1);
    schedule.on_sent(QUANTUM - 1);
    assert_eq!(schedule.first(), Some(2));
}

#[test]
fn lower_priority_waits_however_long() {
    let mut schedule = Schedule::default();
    push(&mut schedule, 0, 1);
    push(&mut schedule, 1, 2);
    for _ in 0..10 {
        schedule.on_sent(QUANTUM);
        assert_eq!(schedule.first(), Some(2));
    }
}

#[test]
fn any_stream_can_be_taken_out() {
    let mut schedule = Schedule::default();
    let places = [(0, 1), (5, 2), (0, 3)].map(|(priority, stream)| {
        let place = push(&mut schedule, priority, stream);
        (priority, place)
    });
    schedule.remove(0, &plain(5), places[1].1);
    schedule.remove(0, &plain(5), places[0].1);
    assert_eq!(order(&mut schedule), [1, 3]);
}

#[test]
fn orders_take_all_64_bits() {
    let mut schedule = Schedule::default();
    for (stream, order) in [0, i64::MIN, i64::MAX, -1, 1 << 40].into_iter().enumerate() {
        let share = Share {
            order,
            ..Share::default()
        };
        schedule.push(0, &share, stream as u32);
    }
    assert_eq!(order(&mut schedule), [2, 4, 0, 3, 1]);
}

#[test]
fn sessions_share_by_bytes_whatever_their_numbers_of_streams() {
    let mut schedule = Schedule::default();
    for stream in 0..99 {
        push_grouped(&mut schedule, 1, stream % 7, stream);
    }
    push_grouped(&mut schedule, 2, 0, 99);
    let sent = bytes_sent(&mut schedule, 100, 10_000);
    let total: u64 = sent.iter().sum();
    assert!(sent[99].abs_diff(total / 2) <= 2 * QUANTUM, "{}", sent[99]);
}

#[test]
fn groups_of_a_session_share_by_bytes() {
    let mut schedule = Schedule::default();
    for stream in 0..8 {
        push_grouped(&mut schedule, 1, stream.min(2), stream);
    }
    let sent = bytes_sent(&mut schedule, 8, 9000);
    let third = sent.iter().sum::<u64>() / 3;
    let last: u64 = sent[2..].iter().sum();
    for group in [sent[0], sent[1], last] {
        assert!(group.abs_diff(third) <= 2 * QUANTUM, "{sent:?}");
    }
}

#[test]
fn order_is_within_its_group_and_priority_above_groups() {
    let mut schedule = Schedule::default();
    let share = |priority, group, order| Share {
        priority,
        group,
        order,
        ..Share::default()
    };
    schedule.push(0, &share(0, 1, 1), 0);
    schedule.push(0, &share(0, 1, 9), 1);
    schedule.push(0, &share(0, 2, 5), 2);
    schedule.push(0, &share(1, 3, -7), 3);
    assert_eq!(schedule.first(), Some(3), "priority");
    schedule.on_last_sent(100);
    let sent = bytes_sent(&mut schedule, 3, 100);
    assert_eq!(sent[0], 0, "a lower order of the group");
    assert!(sent[1].abs_diff(sent[2]) <= QUANTUM + 1200, "{sent:?}");
}

#[test]
fn class_of_a_session_can_change_while_its_streams_wait() {
    let mut schedule = Schedule::default();
    push_grouped(&mut schedule, 1, 0, 0);
    let place = push_grouped(&mut schedule, 1, 5, 1);
    push_grouped(&mut schedule, 2, 0, 2);
    schedule.move_session(2, 0, 3);
    assert_eq!(schedule.first(), Some(2));
    schedule.move_session(1, 0, 4);
    let share = Share {
        session: 1,
        group: 5,
        ..Share::default()
    };
    schedule.remove(4, &share, place);
    assert_eq!(order(&mut schedule), [0, 2]);
    assert!(schedule.is_empty());
}

#[test]
fn bytes_outside_of_streams_count_for_their_session() {
    let mut schedule = Schedule::default();
    push_grouped(&mut schedule, 1, 0, 0);
    push_grouped(&mut schedule, 2, 0, 1);
    let mut sent = [0_u64; 2];
    for _ in 0..3000 {
        let stream = schedule.first().unwrap() as usize;
        sent[stream] += 1200;
        schedule.on_sent(1200);
        // Session 1 sends half as many bytes in datagrams as all streams together.
        schedule.charge(0, 1, 600);
    }
    let total = 3000 * 1800;
    assert!(sent[1].abs_diff(total / 2) <= 4 * QUANTUM, "{sent:?}");
}

#[test]
fn nodes_exist_only_while_they_have_streams() {
    let mut schedule = Schedule::default();
    for stream in 0..1000 {
        push_grouped(&mut schedule, stream % 10, stream, stream);
    }
    assert_eq!(order(&mut schedule).len(), 1000);
    assert!(schedule.tree.is_none() && schedule.line.is_empty());
}

#[test]
fn long_line_takes_streams_in_its_middle_without_shifts() {
    let mut schedule = Schedule::default();
    // Each is first, so a deque in order would move nothing; the second half lies in the middle.
    let mut places = Vec::new();
    for stream in 0..20_000_u32 {
        let priority = if stream % 2 == 0 { 20_000 } else { 0 } - stream as i32;
        places.push((priority, push(&mut schedule, priority, stream)));
    }
    for (priority, place) in places.iter().step_by(2) {
        schedule.remove(0, &plain(*priority), *place);
    }
    let left = order(&mut schedule);
    assert_eq!(left.len(), 10_000);
    assert!(left.is_sorted());
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(Share),
        Remove(usize),
        Send(u64),
        SendLast(u64),
        Charge(u32, u64),
        SetClass(u32, i8),
    }

    fn share() -> impl Strategy<Value = Share> {
        let order = prop_oneof![Just(0), Just(i64::MIN), Just(i64::MAX), -3..3_i64];
        (0..2_i8, 0..3_u32, -1..2_i32, 0..3_u32, order).prop_map(
            |(class, session, priority, group, order)| Share {
                class,
                session,
                priority,
                group,
                order,
            },
        )
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => share().prop_map(Step::Push),
            2 => any::<prop::sample::Index>().prop_map(|index| Step::Remove(index.index(1 << 16))),
            8 => (1..20_000_u64).prop_map(Step::Send),
            3 => (0..20_000_u64).prop_map(Step::SendLast),
            1 => (0..3_u32, 1..100_000_u64).prop_map(|(session, len)| Step::Charge(session, len)),
            1 => (1..3_u32, -1..2_i8).prop_map(|(session, class)| Step::SetClass(session, class)),
        ]
    }

    proptest! {
        #[test]
        fn schedule_is_that_of_the_model(
            is_fair: bool,
            is_plain: bool,
            steps in proptest::collection::vec(step(), 1..600),
        ) {
            let mut schedule = Schedule::new(is_fair);
            let mut model = Model::new(is_fair);
            let mut classes = [0_i8; 3];
            let mut places = std::collections::BTreeMap::new();
            let mut next = 0;
            let class_of = |classes: &[i8; 3], share: &Share| match share.session {
                0 => share.class,
                session => classes[session as usize],
            };
            for step in steps {
                match step {
                    Step::Push(mut share) => {
                        if is_plain {
                            (share.session, share.group) = (0, 0);
                        }
                        let place = schedule.push(class_of(&classes, &share), &share, next);
                        model.push(class_of(&classes, &share), &share, next);
                        places.insert(next, (share, place));
                        next += 1;
                    }
                    Step::Remove(index) => {
                        let Some(&stream) = places.keys().nth(index % places.len().max(1)) else {
                            continue;
                        };
                        let (share, place) = places.remove(&stream).unwrap();
                        schedule.remove(class_of(&classes, &share), &share, place);
                        model.remove(stream);
                    }
                    Step::Send(len) => {
                        let Some(first) = schedule.first() else { continue };
                        if let Some(place) = schedule.on_sent(len) {
                            places.get_mut(&first).unwrap().1 = place;
                        }
                        model.on_sent(len);
                    }
                    Step::SendLast(len) => {
                        let Some(first) = schedule.first() else { continue };
                        places.remove(&first);
                        schedule.on_last_sent(len);
                        model.on_last_sent(len);
                    }
                    Step::Charge(session, len) => {
                        let class = classes[session as usize];
                        schedule.charge(class, session, len);
                        model.charge(class, session, len);
                    }
                    Step::SetClass(session, class) => {
                        let before = std::mem::replace(&mut classes[session as usize], class);
                        if class != before {
                            schedule.move_session(session, before, class);
                            model.move_session(session, class);
                        }
                    }
                }
                prop_assert_eq!(schedule.first(), model.first());
                prop_assert_eq!(schedule.is_empty(), places.is_empty());
            }
            let mut all: Vec<_> = schedule.all().collect();
            all.sort_unstable();
            prop_assert_eq!(all, places.keys().copied().collect::<Vec<_>>());
        }
    }
}

/// Returns the shares of the questions, and whether the stream 9 with each leads its group, and is preceded.
fn places(schedule: &Schedule, shares: &[Share]) -> Vec<(bool, bool)> {
    let place = |share| (schedule.is_led_by(0, share, 9), schedule.precede(0, share));
    shares.iter().map(place).collect()
}

#[test]
fn highest_of_a_group_leads_it_in_a_line_and_in_a_tree() {
    let share = |session, priority, group, order| Share {
        session,
        priority,
        group,
        order,
        ..Share::default()
    };
    let mut schedule = Schedule::default();
    schedule.push(0, &share(1, 0, 0, 5), 3);
    schedule.push(0, &share(1, 0, 0, 4), 4);
    let shares = [
        share(1, 0, 0, 6),
        share(1, 0, 0, 5),
        share(1, 0, 0, 4),
        share(1, 1, 0, -9),
        share(1, -1, 0, 9),
        share(2, 0, 0, 0),
    ];
    let expected = [
        (true, false),
        (false, false),
        (false, true),
        (true, false),
        (false, true),
        (true, false),
    ];
    assert_eq!(places(&schedule, &shares), expected, "a line");
    schedule.push(0, &share(7, 0, 0, 99), 5);
    assert!(schedule.tree.is_some());
    assert_eq!(places(&schedule, &shares), expected, "a tree");
    // A group beside it.
    assert_eq!(
        places(&schedule, &[share(1, 0, 2, -50)]),
        [(true, false)],
        "a group beside it"
    );
    // Its own place does not count.
    schedule.push(0, &share(1, 0, 0, 6), 9);
    assert!(schedule.is_led_by(0, &share(1, 0, 0, 6), 9));
}

#[test]
fn levels_of_keys_keep_the_order_of_class_and_priority() {
    let ends = [i32::MIN, -1, 0, 1, i32::MAX];
    let levels = [i8::MIN, -1, 0, 1, i8::MAX].map(|class| ends.map(|priority| (class, priority)));
    let levels: Vec<_> = levels.into_iter().flatten().collect();
    for (class, priority) in &levels {
        let key = Key::new(*class, *priority, 3, 0);
        assert_eq!(key.parts(), (*class, *priority, 3));
    }
    for pair in levels.windows(2) {
        let keys = [pair[0], pair[1]].map(|(class, priority)| Key::new(class, priority, 0, 0));
        assert!(keys[1] < keys[0], "{pair:?}");
    }
}
