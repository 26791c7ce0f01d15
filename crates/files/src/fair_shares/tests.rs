use std::net::IpAddr;

use super::*;

fn address(text: &str) -> Option<ScopedIp> {
    Some(text.parse::<IpAddr>().expect(text).into())
}

/// Takes as many units as this address may have.
fn fill<W>(queue: &mut FairShares<W>, text: &str) -> Vec<Unit> {
    std::iter::from_fn(|| queue.take(address(text))).collect()
}

#[test]
fn one_address_leaves_units_to_others() {
    let mut queue = FairShares::<()>::new(384, 0);
    let first = fill(&mut queue, "192.0.2.1");
    assert_eq!(first.len(), 300, "a few more than three quarters");
    let second = fill(&mut queue, "198.51.100.1");
    assert_eq!(second.len(), 63, "three quarters of the rest");
    for unit in first.into_iter().chain(second) {
        queue.release(unit);
    }
    assert_eq!(queue.used(), 0);
    assert!(queue.used.by_source.is_empty());
}

#[test]
fn networks_of_one_site_and_of_one_allocation_leave_units_to_others() {
    for (networks, other) in [
        (
            (0..64).map(|it| format!("192.0.{it}.1")).collect(),
            "198.51.100.1",
        ),
        (
            (0..64)
                .map(|it| format!("2001:db8:0:{it:x}00::1"))
                .collect(),
            "2001:db9::1",
        ),
        (
            (0..64)
                .map(|it| format!("2001:db8:{it:x}::1"))
                .collect::<Vec<_>>(),
            "2001:db9::1",
        ),
    ] {
        let mut queue = FairShares::<()>::new(384, 0);
        let mut taken = Vec::new();
        loop {
            let before = taken.len();
            taken.extend(networks.iter().flat_map(|it| fill(&mut queue, it)));
            if taken.len() == before {
                break;
            }
        }
        assert!((340..384).contains(&taken.len()), "{}", taken.len());
        assert!(!fill(&mut queue, other).is_empty(), "{networks:?}");
    }
}

#[test]
fn the_last_unit_is_for_a_source_that_holds_none() {
    for capacity in 2..16 {
        let mut queue = FairShares::<()>::new(capacity, 0);
        let first = fill(&mut queue, "192.0.2.1");
        assert!(first.len() < capacity, "{capacity}");
        assert!(queue.take(address("192.0.2.2")).is_none() || capacity > 4);
        assert!(!fill(&mut queue, "198.51.100.1").is_empty(), "{capacity}");
    }
    let mut queue = FairShares::<()>::new(1, 0);
    assert_eq!(fill(&mut queue, "192.0.2.1").len(), 1);
}

#[test]
fn clients_without_an_address_are_limited_by_the_maximum() {
    let mut queue = FairShares::new(3, 2);
    let units: Vec<_> = std::iter::from_fn(|| queue.take(None)).collect();
    assert_eq!(units.len(), 3);
    assert!(queue.wait(None, 'a').is_some());
    assert!(queue.wait(None, 'b').is_some());
    assert!(queue.wait(None, 'c').is_none());
}

#[test]
fn sources_in_the_queue_take_turns() {
    let mut queue = FairShares::new(4, 100);
    let mut held: Vec<_> = (1..=4)
        .map(|it| queue.take(address(&format!("203.{it}.0.1"))).expect("left"))
        .collect();
    for number in 0..6 {
        assert!(
            queue
                .wait(address("192.0.2.1"), ("first", number))
                .is_some()
        );
    }
    for number in 0..2 {
        assert!(
            queue
                .wait(address("198.51.100.1"), ("second", number))
                .is_some()
        );
    }
    assert!(queue.next_waiter().is_none(), "none is left");
    let mut order = Vec::new();
    while let Some(unit) = held.pop() {
        queue.release(unit);
        if let Some((waiter, unit)) = queue.next_waiter() {
            order.push(waiter);
            held.insert(0, unit);
        }
    }
    let expected = [
        ("first", 0),
        ("second", 0),
        ("first", 1),
        ("second", 1),
        ("first", 2),
        ("first", 3),
        ("first", 4),
        ("first", 5),
    ];
    assert_eq!(order, expected);
    assert_eq!((queue.used(), queue.waiting()), (0, 0));
    assert!(queue.turns.is_empty() && queue.places.is_empty());
}

#[test]
fn sources_with_their_share_are_skipped() {
    let mut queue = FairShares::new(4, 100);
    let mut held = fill(&mut queue, "192.0.2.1");
    assert_eq!(held.len(), 3);
    assert!(queue.wait(address("192.0.2.1"), "greedy").is_some());
    assert!(queue.next_waiter().is_none());
    let other = queue.take(address("198.51.100.1")).expect("left");
    assert!(queue.wait(address("198.51.100.1"), "honest").is_some());
    queue.release(other);
    let (waiter, _other) = queue.next_waiter().expect("honest");
    assert_eq!(waiter, "honest");
    assert!(queue.next_waiter().is_none());
    queue.release(held.pop().expect("held"));
    queue.release(held.pop().expect("held"));
    assert_eq!(queue.next_waiter().map(|it| it.0), Some("greedy"));
}

#[test]
fn one_address_leaves_places_in_the_queue_to_others() {
    let mut queue = FairShares::new(1, 400);
    let _unit = queue.take(address("203.0.113.1")).expect("left");
    let places = |queue: &mut FairShares<()>, text| {
        std::iter::from_fn(|| queue.wait(address(text), ())).collect::<Vec<_>>()
    };
    let first = places(&mut queue, "192.0.2.1");
    assert_eq!(first.len(), 300);
    assert_eq!(places(&mut queue, "198.51.100.1").len(), 75);
    for place in first {
        queue.leave(place);
        queue.leave(place);
    }
    assert_eq!(queue.waiting(), 75);
    assert_eq!(queue.turns.len(), 1);
}

#[test]
fn many_sources_with_their_share_do_not_hide_others() {
    let mut queue = FairShares::new(64, 10_000);
    let mut held = Vec::new();
    for number in 0..500 {
        let text = format!("192.0.{}.{}", number / 256, number % 256);
        held.extend(fill(&mut queue, &text));
        assert!(queue.wait(address(&text), false).is_some());
    }
    held.extend(fill(&mut queue, "198.51.100.1"));
    assert_eq!(queue.used(), 63);
    assert!(queue.wait(address("203.0.113.1"), true).is_some());
    let found = (0..8).find_map(|_| queue.next_waiter());
    assert!(found.is_some_and(|(is_other, _)| is_other));
}
