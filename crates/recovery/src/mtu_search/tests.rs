use proptest::prelude::*;

use super::*;

const ROOM: u64 = u64::MAX;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// Returns a search after a full datagram was sent.
fn started(max: u16, interface: Option<u16>) -> MtuSearch {
    let mut search = MtuSearch::new(BASE_MTU, max);
    if let Some(size) = interface {
        search.set_interface_mtu(size);
    }
    search.on_full_datagram_sent(at(0));
    search
}

/// Runs the search on a path that carries `carried` bytes. Returns the number of probes sent.
fn run(search: &mut MtuSearch, now: Time, carried: u16) -> usize {
    let mut probes = 0;
    while let Some(size) = search.next_probe(now, ROOM, u64::MAX) {
        probes += 1;
        assert!(probes < 100, "the search does not end");
        assert!(size > search.mtu() && size <= search.limit(), "{size}");
        let number = search.on_probe_sent(size);
        assert_eq!(
            search.next_probe(now, ROOM, u64::MAX),
            None,
            "one probe is in flight"
        );
        if size <= carried {
            assert!(search.on_probe_acked(size));
        } else {
            search.on_probe_lost(number);
        }
    }
    probes
}

#[test]
fn no_probe_is_due_before_a_full_datagram() {
    let mut search = MtuSearch::new(BASE_MTU, 65_507);
    assert_eq!(search.next_probe(at(0), ROOM, u64::MAX), None);
    search.on_full_datagram_sent(at(0));
    assert!(search.wants_probe());
}

/// Returns a search on a path in use, over which no full datagram was sent.
fn in_use(max: u16, interface: Option<u16>) -> MtuSearch {
    let mut search = MtuSearch::new(BASE_MTU, max);
    if let Some(size) = interface {
        search.set_interface_mtu(size);
    }
    search.on_path_used(at(0));
    search
}

#[test]
fn path_in_use_is_searched_up_to_ethernet() {
    // The interface, the largest size that the path carries, and the result after a number of probes.
    for (interface, carried, found, most) in [
        (Some(1472), 1472, 1472, 1),
        (Some(1392), 1392, 1392, 1),
        (Some(65_507), 65_507, 1472, 3),
        (Some(8973), 1472, 1472, 3),
        (Some(8973), 1452, 1452, 7),
        (None, 1472, 1472, 3),
        (Some(1472), 1200, 1200, 24),
    ] {
        let mut search = in_use(65_507, interface);
        let probes = run(&mut search, at(0), carried);
        assert_eq!(search.mtu(), found, "{interface:?}, {carried}");
        assert!(probes <= most, "{probes} probes: {interface:?}, {carried}");
        search.on_path_used(at(599_999));
        assert!(!search.wants_probe(), "{interface:?}, {carried}");
    }
}

#[test]
fn full_datagram_extends_the_search_beyond_ethernet() {
    let mut search = in_use(65_507, Some(65_507));
    run(&mut search, at(0), 65_507);
    assert_eq!(search.mtu(), 1472);
    search.on_full_datagram_sent(at(1));
    assert_eq!(run(&mut search, at(1), 65_507), 1);
    assert_eq!(search.mtu(), 65_507);
}

#[test]
fn full_datagram_during_the_search_extends_it() {
    let mut search = in_use(65_507, Some(8973));
    assert_eq!(search.next_probe(at(0), ROOM, u64::MAX), Some(1452));
    search.on_probe_sent(1452);
    search.on_full_datagram_sent(at(0));
    assert!(search.on_probe_acked(1452));
    assert_eq!(search.next_probe(at(0), ROOM, u64::MAX), Some(8973));
}

#[test]
fn full_datagram_is_no_reason_to_repeat_a_search_that_failed_below_ethernet() {
    let mut search = in_use(65_507, Some(8973));
    run(&mut search, at(0), 1392);
    search.on_full_datagram_sent(at(1));
    assert!(!search.wants_probe());
    let raised = at(1) + PMTU_RAISE_TIMER;
    search.on_full_datagram_sent(raised);
    assert_eq!(search.next_probe(raised, ROOM, u64::MAX), Some(8973));
}

#[test]
fn a_path_with_the_mtu_of_the_interface_takes_one_probe() {
    let mut search = started(65_507, Some(1472));
    assert_eq!(run(&mut search, at(0), 1472), 1);
    assert_eq!(search.mtu(), 1472);
    search.on_full_datagram_sent(at(3_600_000));
    assert!(!search.wants_probe(), "no larger size is left");
}

#[test]
fn likely_sizes_below_the_interface_are_found_exactly() {
    for carried in LIKELY.into_iter().filter(|size| *size < 1472) {
        let mut search = started(65_507, Some(1472));
        let probes = run(&mut search, at(0), carried);
        assert_eq!(search.mtu(), carried);
        assert!(probes <= 24, "{probes} probes for {carried}");
    }
}

#[test]
fn without_an_interface_ethernet_is_tried_first_and_jumbo_frames_next() {
    let mut search = started(65_507, None);
    let mut sizes = Vec::new();
    while let Some(size) = search.next_probe(at(0), ROOM, u64::MAX) {
        sizes.push(size);
        search.on_probe_sent(size);
        search.on_probe_acked(size);
    }
    assert_eq!(sizes, [1452, 1464, 1472, 8952, 8972, 65_488, 65_507]);
}

#[test]
fn interface_mtu_is_requested_once_if_unknown() {
    let mut search = started(65_507, None);
    assert!(search.needs_interface_mtu());
    assert!(!search.needs_interface_mtu());
    assert!(!started(65_507, Some(1472)).needs_interface_mtu());
    assert!(!MtuSearch::disabled(1400).needs_interface_mtu());
}

#[test]
fn learning_the_interface_mtu_late_keeps_the_probe_in_flight() {
    let mut search = started(65_507, None);
    assert_eq!(search.next_probe(at(0), ROOM, u64::MAX), Some(1452));
    search.on_probe_sent(1452);
    search.set_interface_mtu(1472);
    assert_eq!(search.probe_in_flight(), Some(1452));
    assert!(search.on_probe_acked(1452));
    assert_eq!(search.next_probe(at(0), ROOM, u64::MAX), Some(1472));
}

#[test]
fn probe_larger_than_the_interface_mtu_is_cancelled() {
    let mut search = started(65_507, None);
    search.next_probe(at(0), ROOM, u64::MAX);
    search.on_probe_sent(1452);
    search.set_interface_mtu(1400);
    assert_eq!(search.probe_in_flight(), None);
    search.on_full_datagram_sent(at(0));
    assert_eq!(search.next_probe(at(0), ROOM, u64::MAX), Some(1400));
}

#[test]
fn search_on_a_path_of_the_base_size_keeps_the_base_size() {
    let mut search = started(65_507, Some(1472));
    run(&mut search, at(0), BASE_MTU);
    assert_eq!(search.mtu(), BASE_MTU);
}

#[test]
fn single_losses_of_probes_do_not_lower_the_result() {
    let mut search = started(65_507, Some(1472));
    for _ in 1..MAX_PROBES {
        assert_eq!(search.next_probe(at(0), ROOM, u64::MAX), Some(1472));
        let number = search.on_probe_sent(1472);
        search.on_probe_lost(number);
    }
    assert_eq!(search.next_probe(at(0), ROOM, u64::MAX), Some(1472));
    search.on_probe_sent(1472);
    assert!(search.on_probe_acked(1472));
    assert_eq!(search.mtu(), 1472);
}

#[test]
fn third_loss_refuses_a_size_and_repeated_reports_count_once() {
    let mut search = started(65_507, Some(1472));
    let mut number = 0;
    for _ in 0..MAX_PROBES {
        assert_eq!(search.next_probe(at(0), ROOM, u64::MAX), Some(1472));
        number = search.on_probe_sent(1472);
        search.on_probe_lost(number);
        search.on_probe_lost(number);
    }
    let next = search
        .next_probe(at(0), ROOM, u64::MAX)
        .expect("a smaller size is probed");
    assert!(next < 1472);
    search.on_probe_sent(next);
    search.on_probe_lost(number);
    assert!(!search.wants_probe(), "the new probe is still in flight");
}

#[test]
fn larger_path_is_found_after_the_raise_timer() {
    let mut search = started(65_507, Some(1472));
    run(&mut search, at(0), 1372);
    let raised = at(0) + PMTU_RAISE_TIMER;
    search.on_full_datagram_sent(at(599_999));
    assert!(!search.wants_probe());
    search.on_full_datagram_sent(raised);
    assert_eq!(run(&mut search, raised, 1472), 1);
    assert_eq!(search.mtu(), 1472);
}

#[test]
fn probe_waits_for_room_while_a_smaller_size_is_probed() {
    let mut search = started(65_507, Some(65_507));
    assert_eq!(search.next_probe(at(0), 1100, u64::MAX), None);
    assert_eq!(search.awaited_room(), 65_507);
    assert_eq!(search.next_probe(at(0), 12_000, u64::MAX), Some(8972));
    assert_eq!(search.awaited_room(), 0);
    search.on_probe_sent(8972);
    assert!(search.on_probe_acked(8972));
    assert_eq!(
        search.next_probe(at(0), 12_000, u64::MAX),
        None,
        "the next probe does not fit"
    );
    assert_eq!(search.next_probe(at(0), 70_000, u64::MAX), Some(65_507));
}

#[test]
fn limit_of_the_peer_applies_to_present_and_future_sizes() {
    let mut search = MtuSearch::new(1400, 65_507);
    search.set_peer_limit(1300);
    assert_eq!((search.mtu(), search.limit()), (1300, 1300));
    search.on_full_datagram_sent(at(0));
    assert_eq!(search.next_probe(at(0), ROOM, u64::MAX), None);
}

#[test]
fn interface_below_the_base_size_is_ignored() {
    for size in [0, 68, 552, 1199] {
        let mut search = started(1472, Some(size));
        assert_eq!(search.limit(), 1472, "{size}");
        run(&mut search, at(0), 1472);
        assert_eq!(search.mtu(), 1472);
    }
}

#[test]
fn disabled_search_keeps_its_size_for_any_events() {
    let mut search = MtuSearch::disabled(1400);
    search.on_full_datagram_sent(at(0));
    search.set_interface_mtu(1300);
    assert_eq!(search.next_probe(at(0), ROOM, u64::MAX), None);
    for round in 0..50 {
        assert!(!search.on_lost(at(round + 1), 1400, at(round)));
    }
    assert!(!search.on_probe_timeout(9));
    assert_eq!(search.mtu(), 1400);
    assert!(!search.is_error());
}

fn at_1472() -> MtuSearch {
    let mut search = started(65_507, Some(1472));
    run(&mut search, at(0), 1472);
    search
}

#[test]
fn three_rounds_of_lost_large_packets_are_a_black_hole() {
    let mut search = at_1472();
    assert!(!search.on_lost(at(100), 1472, at(50)));
    search.on_acked(60);
    assert!(!search.on_lost(at(200), 1472, at(150)));
    search.on_acked(1199);
    assert!(search.on_lost(at(300), 1472, at(250)));
    assert_eq!(search.mtu(), BASE_MTU);
    search.on_full_datagram_sent(at(301));
    run(&mut search, at(301), 1252);
    assert_eq!(search.mtu(), 1252);
}

#[test]
fn repeated_reports_of_one_burst_are_one_round() {
    let mut search = at_1472();
    for report in 0..50 {
        assert!(!search.on_lost(at(100 + report), 1472, at(50)), "{report}");
    }
    assert_eq!(search.mtu(), 1472);
}

#[test]
fn acknowledgement_of_a_large_packet_resets_the_rounds() {
    let mut search = at_1472();
    for round in 1..100 {
        let now = at(100 * round);
        assert!(!search.on_lost(now, 1472, at(100 * round - 50)));
        if round % 2 == 0 {
            search.on_acked(1472);
        }
    }
    assert_eq!(search.mtu(), 1472);
}

/// Finds a black hole of the present size.
fn lose_all(search: &mut MtuSearch, from: u64) {
    let size = search.mtu();
    for round in 1..=u64::from(BLACK_HOLE_ROUNDS) {
        let now = from + 100 * round;
        search.on_lost(at(now), size, at(now - 50));
    }
    assert_eq!(search.mtu(), BASE_MTU, "{from}");
    search.on_full_datagram_sent(at(from + 301));
}

/// Fault F174: a path that becomes narrow in steps. Each size is found at once, and first one that carries QUIC inside.
#[test]
fn path_that_shrinks_again_is_searched_below_the_size_that_was_lost() {
    let mut search = at_1472();
    lose_all(&mut search, 0);
    assert_eq!(search.next_probe(at(301), 10_000, u64::MAX), Some(1472));
    let number = search.on_probe_sent(1472);
    search.on_probe_lost(number);
    assert_eq!(
        search.next_probe(at(301), 10_000, u64::MAX),
        Some(NESTED_SIZE)
    );
    search.on_probe_sent(NESTED_SIZE);
    assert!(search.on_probe_acked(NESTED_SIZE));
    run(&mut search, at(301), 1372);
    assert_eq!(search.mtu(), 1372);
    lose_all(&mut search, 1000);
    assert_eq!(
        search.next_probe(at(1301), 10_000, u64::MAX),
        Some(NESTED_SIZE)
    );
    run(&mut search, at(1301), 1300);
    assert!((1295..=1300).contains(&search.mtu()), "{}", search.mtu());
    // Probes pass, and packets do not: each time the search ends below.
    lose_all(&mut search, 2000);
    let largest = search.mtu();
    run(&mut search, at(2301), 1472);
    assert!(search.mtu() < 1300, "{largest}");
    search.on_path_used(at(2300) + HOLE_BAR);
    run(&mut search, at(2300) + HOLE_BAR, 1472);
    assert_eq!(search.mtu(), 1472);
}

#[test]
fn another_interface_ends_the_bar_of_a_black_hole() {
    for (size, passes) in [(1400, true), (1472, false)] {
        let mut search = at_1472();
        search.set_interface_mtu(1472);
        run(&mut search, at(0), 1472);
        lose_all(&mut search, 0);
        run(&mut search, at(301), 1472);
        lose_all(&mut search, 1000);
        search.set_interface_mtu(size);
        search.on_full_datagram_sent(at(1302));
        run(&mut search, at(1302), 1472);
        assert_eq!(search.mtu() == size, passes, "{}", search.mtu());
    }
}

#[test]
fn second_probe_timeout_falls_back_and_one_probe_restores_the_size() {
    let mut search = at_1472();
    assert!(!search.on_probe_timeout(1));
    assert!(search.on_probe_timeout(2));
    assert_eq!(search.mtu(), BASE_MTU);
    assert!(!search.on_probe_timeout(3), "the size is the base size");
    search.on_full_datagram_sent(at(5000));
    assert_eq!(run(&mut search, at(5000), 1472), 1);
    assert_eq!(search.mtu(), 1472);
}

#[test]
fn probe_acknowledged_after_the_fall_does_not_raise_the_size() {
    let mut search = started(65_507, None);
    let size = search
        .next_probe(at(0), ROOM, u64::MAX)
        .expect("a probe is due");
    search.on_probe_sent(size);
    search.on_probe_acked(size);
    let next = search
        .next_probe(at(0), ROOM, u64::MAX)
        .expect("another probe is due");
    search.on_probe_sent(next);
    assert!(search.on_probe_timeout(2));
    assert!(!search.on_probe_acked(next));
    assert_eq!(search.mtu(), BASE_MTU);
}

#[test]
fn base_size_that_never_arrives_is_an_error_until_acknowledged() {
    let mut search = started(1472, Some(1472));
    let mut rounds = 0;
    while !search.is_error() {
        rounds += 1;
        assert!(rounds < 100);
        search.on_lost(at(100 * rounds), BASE_MTU, at(100 * rounds - 50));
        search.on_acked(64);
    }
    assert_eq!(rounds, u64::from(ERROR_ROUNDS));
    assert_eq!(search.next_probe(at(9999), ROOM, u64::MAX), None);
    search.on_acked(BASE_MTU);
    assert!(!search.is_error());
}

proptest! {
    #[test]
    fn the_found_size_is_close_to_the_largest_that_passes(
        carried in BASE_MTU..=65_507_u16,
        interface in prop::option::of(BASE_MTU..=65_507_u16),
        max in BASE_MTU..=65_507_u16,
    ) {
        let mut search = started(max, interface);
        let probes = run(&mut search, at(0), carried);
        let best = carried.min(search.limit());
        prop_assert!(search.mtu() <= best);
        prop_assert!(best - search.mtu() <= RESOLUTION, "{} for {best}", search.mtu());
        prop_assert!(probes <= 60, "{probes}");
    }

    #[test]
    fn bounds_hold_for_any_order_of_events(events in prop::collection::vec((0..10_u8, any::<u16>()), 0..200)) {
        let mut search = MtuSearch::new(BASE_MTU, 9000);
        let mut numbers = vec![0];
        let mut now = at(0);
        for (event, value) in events {
            now += Duration::from_millis(u64::from(value));
            match event {
                0 => search.on_full_datagram_sent(now),
                1 => if let Some(size) = search.next_probe(now, ROOM, u64::MAX) {
                    prop_assert!(size > search.mtu() && size <= search.limit());
                    numbers.push(search.on_probe_sent(size));
                },
                2 => { search.on_probe_acked(value); }
                3 => {
                        search.on_probe_lost(numbers[usize::from(value) % numbers.len()]);
                    }
                4 => search.on_acked(value),
                5 => { search.on_lost(now, value, now); }
                6 => { search.on_probe_timeout(u32::from(value % 4)); }
                7 => search.set_interface_mtu(value),
                8 => search.on_path_used(now),
                _ => search.set_peer_limit(value.max(BASE_MTU)),
            }
            prop_assert!((BASE_MTU..=9000).contains(&search.mtu()));
            prop_assert!(search.mtu() <= search.limit().max(BASE_MTU));
        }
    }
}

#[test]
fn packet_too_big_selects_the_next_probe() {
    let mut search = started(65_507, Some(8972));
    assert_eq!(search.next_probe(at(0), ROOM, u64::MAX), Some(8972));
    let number = search.on_probe_sent(8972);
    assert!(!search.on_packet_too_big(at(1), 8972, 1380));
    search.on_probe_lost(number);
    assert_eq!(search.mtu(), BASE_MTU, "a claim does not raise the size");
    assert_eq!(search.next_probe(at(2), ROOM, u64::MAX), Some(1380));
    search.on_probe_sent(1380);
    assert!(search.on_probe_acked(1380));
    assert_eq!(
        search.next_probe(at(3), ROOM, u64::MAX),
        None,
        "the search is complete"
    );
    assert_eq!(search.mtu(), 1380);
}

#[test]
fn false_packet_too_big_costs_three_probes() {
    let mut search = started(65_507, Some(8972));
    search.next_probe(at(0), ROOM, u64::MAX);
    let number = search.on_probe_sent(8972);
    search.on_packet_too_big(at(1), 8972, 1400);
    search.on_probe_lost(number);
    // The path carries 1372 bytes.
    run(&mut search, at(2), 1372);
    assert_eq!(search.mtu(), 1372);
}

#[test]
fn packet_too_big_lowers_the_size_until_the_raise_timer() {
    let mut search = started(65_507, Some(1472));
    run(&mut search, at(0), 1472);
    assert!(search.on_packet_too_big(at(10), 1472, 1372));
    assert_eq!(search.mtu(), 1372);
    search.on_full_datagram_sent(at(20));
    assert!(!search.wants_probe());
    search.on_full_datagram_sent(at(10) + PMTU_RAISE_TIMER);
    assert!(search.wants_probe());
}

/// RFC 9000 §14.2.1: conformance rules 9000-231 and 9000-233.
#[test]
fn claims_below_the_base_size_and_contradictions_are_ignored() {
    for claimed in [0, 68, 576, 1199, 1472, 1473, u16::MAX] {
        let mut search = started(65_507, Some(1472));
        run(&mut search, at(0), 1472);
        assert!(
            !search.on_packet_too_big(at(10), 1472, claimed),
            "{claimed}"
        );
        assert_eq!(search.mtu(), 1472, "{claimed}");
        search.on_full_datagram_sent(at(20));
        assert_eq!(search.next_probe(at(20), ROOM, u64::MAX), None, "{claimed}");
    }
}

#[test]
fn packet_too_big_leaves_a_fixed_size() {
    let mut search = MtuSearch::disabled(1400);
    assert!(!search.on_packet_too_big(at(0), 1400, 1300));
    assert_eq!(search.mtu(), 1400);
}

proptest! {
    /// ICMP messages never raise the size or lower it below the base, and the search ends.
    #[test]
    fn icmp_messages_never_raise_the_size(
        messages in proptest::collection::vec((0_u16..9000, 0_u16..9000), 0..40),
        carried in 1200_u16..9000,
    ) {
        let mut search = started(65_507, Some(8972));
        for (size, claimed) in messages {
            let before = search.mtu();
            search.on_packet_too_big(at(1), size, claimed);
            prop_assert!(search.mtu() <= before);
            prop_assert!(search.mtu() >= BASE_MTU);
            if let Some(size) = search.next_probe(at(1), ROOM, u64::MAX) {
                let number = search.on_probe_sent(size);
                if size <= carried {
                    search.on_probe_acked(size);
                } else {
                    search.on_probe_lost(number);
                }
            }
        }
        run(&mut search, at(2), carried);
        prop_assert!(search.mtu() <= carried);
    }
}

#[test]
fn lost_jumbo_probes_are_a_small_part_of_delivered_bytes() {
    let mut search = started(65_507, Some(8972));
    assert!(search.can_afford(8972, 0));
    let size = search
        .next_probe(at(0), ROOM, u64::MAX)
        .expect("the size of the interface is probed");
    let number = search.on_probe_sent(size);
    search.on_probe_lost(number);
    assert!(!search.can_afford(8972, 64 * 8972 - 1));
    assert!(search.can_afford(8972, 64 * 8972));
}

#[test]
fn lost_probes_of_usual_sizes_do_not_delay_the_next() {
    let mut search = started(1472, None);
    let size = search
        .next_probe(at(0), ROOM, u64::MAX)
        .expect("a usual size is probed");
    let number = search.on_probe_sent(size);
    search.on_probe_lost(number);
    assert!(search.can_afford(8972, 0));
}

/// A NAT that often rebinds loses packets of all sizes.
#[test]
fn losses_before_and_after_an_address_change_are_not_added_up() {
    let mut search = started(1472, Some(1472));
    for round in 1..100 {
        search.on_lost(at(100 * round), BASE_MTU, at(100 * round - 50));
        search.on_acked(64);
        if round % u64::from(ERROR_ROUNDS - 1) == 0 {
            search.on_peer_address_changed();
        }
        assert!(!search.is_error(), "round {round}");
    }
}

/// Returns a search that has found 1472 bytes and lost such datagrams before a timeout.
fn in_doubt() -> MtuSearch {
    let mut search = MtuSearch::new(1472, 1472);
    assert!(!search.on_lost(Time::from_nanos(1_000_000_000), 1472, Time::ZERO));
    search.on_lost_before_timeout(1472);
    search
}

#[test]
fn loss_revealed_by_a_probe_of_the_base_size_makes_larger_datagrams_doubtful() {
    let search = in_doubt();
    assert_eq!((search.size_in_use(), search.mtu()), (BASE_MTU, 1472));
    let mut small = MtuSearch::new(BASE_MTU, 1472);
    small.on_lost_before_timeout(BASE_MTU);
    assert!(!small.wants_probe());
    let mut fixed = MtuSearch::disabled(1472);
    fixed.on_lost_before_timeout(1472);
    assert_eq!(fixed.size_in_use(), 1472);
}

#[test]
fn probe_of_the_present_size_ends_the_doubt() {
    let mut search = in_doubt();
    let now = Time::from_nanos(2_000_000_000);
    assert_eq!(search.next_probe(now, 1000, u64::MAX), None);
    assert_eq!(search.awaited_room(), 1472);
    assert_eq!(search.next_probe(now, 10_000, u64::MAX), Some(1472));
    search.on_probe_sent(1472);
    assert!(!search.wants_probe(), "one probe is in flight");
    assert!(!search.on_probe_acked(1472), "the size does not rise");
    assert_eq!(search.size_in_use(), 1472);
    let mut late = in_doubt();
    late.on_acked(1472);
    assert_eq!(late.size_in_use(), 1472);
}

#[test]
fn two_lost_probes_confirm_the_black_hole() {
    let mut search = in_doubt();
    let now = Time::from_nanos(2_000_000_000);
    for falls in [false, true] {
        assert_eq!(search.next_probe(now, 10_000, u64::MAX), Some(1472));
        let number = search.on_probe_sent(1472);
        assert_eq!(search.on_probe_lost(number), falls);
    }
    assert_eq!(search.mtu(), BASE_MTU);
    search.on_full_datagram_sent(now);
    assert!(
        search.next_probe(now, 10_000, u64::MAX) > Some(BASE_MTU),
        "the search begins again"
    );
}

/// Returns a search over a path that carries up to 9000 bytes, of which `carried` pass.
fn paced(pace: MtuSearchPace, carried: u16) -> (MtuSearch, usize) {
    let mut search = MtuSearch::new(BASE_MTU, 9000).with_pace(pace);
    search.on_full_datagram_sent(at(0));
    let probes = run(&mut search, at(0), carried);
    (search, probes)
}

#[test]
fn raise_interval_decides_when_a_larger_size_is_tried_again() {
    let (mut search, _) = paced(
        MtuSearchPace {
            raise_interval: Duration::from_secs(5),
            ..MtuSearchPace::default()
        },
        1400,
    );
    search.on_path_used(at(4999));
    assert!(!search.wants_probe());
    search.on_path_used(at(5000));
    assert!(search.wants_probe());
}

#[test]
fn coarse_resolution_needs_fewer_probes_and_is_that_far_from_the_size_of_the_path() {
    for carried in [1200, 1300, 1333, 1471, 1999, 5000, 8999] {
        let (fine, probes_of_fine) = paced(MtuSearchPace::default(), carried);
        for resolution in [0, 1, 50, 400, u16::MAX] {
            let pace = MtuSearchPace {
                resolution,
                ..MtuSearchPace::default()
            };
            let (search, probes) = paced(pace, carried);
            let missed = carried - search.mtu();
            assert!(
                missed < resolution.max(1),
                "{carried} {resolution}: {missed}"
            );
            if resolution >= 50 {
                assert!(probes <= probes_of_fine && search.mtu() <= fine.mtu());
            }
        }
    }
}

#[test]
fn delay_after_a_black_hole_replaces_the_usual_one() {
    for (delay, is_searched) in [(None, true), (Some(Duration::from_secs(9)), false)] {
        let pace = MtuSearchPace {
            black_hole_delay: delay,
            ..MtuSearchPace::default()
        };
        let (mut search, _) = paced(pace, 1400);
        let falls = |search: &mut MtuSearch, from: u64| {
            (1..=3)
                .any(|n| search.on_lost(at(from + n * 100), search.mtu(), at(from + n * 100 - 1)))
        };
        assert!(falls(&mut search, 1000));
        search.on_path_used(at(1300));
        assert_eq!(search.wants_probe(), is_searched, "{delay:?}");
        search.on_path_used(at(1300 + 9000));
        assert!(search.wants_probe(), "{delay:?}");
    }
}
