use std::time::Duration;

use courser_base::Time;

use super::*;

const NOW: Time = Time::from_nanos(1_000_000_000);

/// A path that carries `megabits` per second with a round trip of `rtt` ms, and has room for `room` full datagrams.
fn path(megabits: u64, rtt: u64, room: u64) -> PathView {
    PathView {
        id: 0,
        rtt: Duration::from_millis(rtt),
        room: room * 1200,
        window: megabits * 125 * rtt,
        is_growing: false,
        size: 1200,
        ready_at: Time::ZERO,
    }
}

fn paced(path: PathView, millis: u64) -> PathView {
    PathView {
        ready_at: NOW + Duration::from_millis(millis),
        ..path
    }
}

const BULK: PathDemand = PathDemand {
    bytes: 100_000_000,
    credit: 100_000_000,
};

fn small(bytes: u64) -> PathDemand {
    PathDemand { bytes, ..BULK }
}

type Case<'a> = (&'static str, &'a [PathView], PathDemand, PathChoice);

fn check_earliest(cases: &[Case<'_>]) {
    for (name, paths, demand, choice) in cases {
        let chosen = Earliest::new().choose(NOW, paths, demand);
        assert_eq!(chosen, *choice, "{name}");
    }
}

#[test]
fn earliest_decides_by_arrival() {
    use PathChoice::{Send, Wait};
    let (fast, slow) = (path(50, 20, 10), path(30, 60, 10));
    let full = PathView { room: 0, ..fast };
    let (soon, late) = (paced(fast, 1), paced(fast, 50));
    let none_of_both = [full, PathView { room: 100, ..slow }];
    let takes_both = "a transfer takes the slow one too";
    let waits = "100 kB wait no longer than they take";
    let pacer = "a pause of the pacer is shorter";
    let transfer = "a transfer does not wait for the pacer";
    check_earliest(&[
        ("the faster one", &[slow, fast], BULK, Send(1)),
        (takes_both, &[full, slow], BULK, Send(1)),
        ("small data waits", &[full, slow], small(20_000), Wait),
        (waits, &[full, slow], small(100_000), Wait),
        ("more do not", &[full, slow], small(200_000), Send(1)),
        (pacer, &[soon, slow], small(3000), Wait),
        ("a long pause is not", &[late, slow], small(3000), Send(1)),
        (transfer, &[soon, slow], BULK, Send(1)),
        ("all are full", &none_of_both, BULK, Wait),
        ("there is none", &[], BULK, Wait),
    ]);
}

#[test]
fn earliest_leaves_credit_to_the_fast_path() {
    use PathChoice::{Send, Wait};
    let (fast, slow) = (path(50, 20, 10), path(30, 60, 10));
    let full = PathView { room: 0, ..fast };
    let growing = PathView {
        is_growing: true,
        ..full
    };
    let (far, near) = (path(10, 400, 10), path(50, 21, 10));
    let credit = |credit| PathDemand { credit, ..BULK };
    let (low, some) = (credit(200_000), credit(900_000));
    check_earliest(&[
        ("credit is for the fast one", &[full, far], low, Wait),
        ("little does not matter here", &[full, near], low, Send(1)),
        ("some suffices", &[full, slow], some, Send(1)),
        (
            "a window that grows needs more",
            &[growing, slow],
            some,
            Wait,
        ),
    ]);
}

#[test]
fn fastest_decides_by_round_trip_alone() {
    use PathChoice::{Send, Wait};
    let (fast, slow) = (path(50, 20, 10), path(30, 60, 10));
    let full = PathView { room: 0, ..fast };
    let cases: [(&[PathView], PathDemand, PathChoice); 4] = [
        (&[slow, fast], BULK, Send(1)),
        (&[full, slow], small(2000), Send(1)),
        (&[paced(fast, 1), slow], small(2000), Send(1)),
        (&[full], BULK, Wait),
    ];
    for (paths, demand, choice) in cases {
        assert_eq!(Fastest.choose(NOW, paths, &demand), choice, "{paths:?}");
    }
}

#[test]
fn times_and_bytes_follow_from_a_window_per_round_trip() {
    let path = path(80, 10, 0);
    assert_eq!(path.time_to_send(10_000_000), Duration::from_secs(1));
    assert_eq!(path.sent_in(Duration::from_secs(1)), 10_000_000);
    let growing = PathView {
        is_growing: true,
        ..path
    };
    assert_eq!(growing.sent_in(Duration::from_millis(20)), 800_000);
    assert_eq!(growing.sent_in(Duration::ZERO), 0);
    let none = PathView {
        rtt: Duration::ZERO,
        window: 0,
        ..path
    };
    assert_eq!(none.time_to_send(1000), Duration::ZERO);
    assert_eq!(none.sent_in(Duration::MAX), 0);
}
