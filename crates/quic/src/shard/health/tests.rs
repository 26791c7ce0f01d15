use super::*;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn broken() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

fn closed() -> io::Error {
    // EBADF or ERROR_INVALID_HANDLE.
    io::Error::from_raw_os_error(if cfg!(windows) { 6 } else { 9 })
}

/// Fails so many sends, the first of them at `millis`.
fn fail(health: &mut Health, millis: u64, count: u32) {
    (0..count).for_each(|_| health.on_error(at(millis), Call::Send, broken()));
}

fn events(health: &mut Health) -> Vec<SocketEvent> {
    std::iter::from_fn(|| health.take_event()).collect()
}

/// Limit K290.
#[test]
fn socket_on_which_every_call_fails_for_seconds_is_opened_again() {
    let mut health = Health::default();
    fail(&mut health, 0, MIN_FAILURES - 1);
    assert_eq!(health.next_attempt(), None, "too few failures");
    fail(&mut health, 1999, 1);
    assert_eq!(health.next_attempt(), Some(at(2000)));
    assert!(!health.is_due(at(1999)) && health.is_due(at(2000)));
    assert!(!health.is_lost(), "the socket remains in use");
    health.on_reopened(at(2000));
    assert_eq!(health.next_attempt(), None);
    assert!(!health.is_due(at(60_000)));
}

#[test]
fn one_success_of_the_same_direction_clears_the_socket() {
    let mut health = Health::default();
    fail(&mut health, 0, 10);
    health.on_received();
    assert!(
        health.is_due(at(2000)),
        "it may be shut down for sending only"
    );
    health.on_sent();
    assert!(!health.is_due(at(9000)));
    let receive = |health: &mut Health| {
        (0..10).for_each(|_| health.on_error(at(0), Call::Receive, broken()));
    };
    receive(&mut health);
    health.on_sent();
    assert!(health.is_due(at(2000)));
    health.on_received();
    assert!(!health.is_due(at(9000)));
}

/// Limit K290. A single one of these errors does not concern the socket: `ECONNREFUSED`, `EIO`, `EINVAL`.
#[test]
fn socket_of_which_nothing_can_be_received_is_opened_again_and_reported() {
    for kind in [
        io::ErrorKind::ConnectionRefused,
        io::ErrorKind::InvalidInput,
        io::ErrorKind::PermissionDenied,
    ] {
        let mut health = Health::default();
        let mut fail = |millis| health.on_error(at(millis), Call::Receive, kind.into());
        (0..20).for_each(|step| fail(step * 100));
        assert_eq!(health.next_attempt(), Some(at(2000)), "{kind}");
        assert_eq!(events(&mut health), [], "{kind}: it may be an answer");
        health.on_error(at(2000), Call::Receive, kind.into());
        assert!(health.is_due(at(2000)));
        let reported = events(&mut health);
        assert!(
            matches!(
                reported[..],
                [SocketEvent::Failed {
                    call: Call::Receive,
                    ..
                }]
            ),
            "{kind}: {reported:?}"
        );
        health.on_reopened(at(2000));
        let reported = events(&mut health);
        let [SocketEvent::Reopened { cause }] = &reported[..] else {
            panic!("{kind}: {reported:?}");
        };
        assert_eq!(*cause, io::Error::from(kind).to_string());
    }
}

#[test]
fn refusals_and_missing_memory_do_not_open_a_socket_again() {
    let mut health = Health::default();
    for millis in 0..5000 {
        let refused = io::ErrorKind::ConnectionRefused.into();
        health.on_error(at(millis), Call::Receive, refused);
        health.on_received();
        let memory = io::ErrorKind::OutOfMemory.into();
        health.on_error(at(millis), Call::Receive, memory);
    }
    assert_eq!(health.next_attempt(), None);
}

/// A route that is missing, a firewall, a full queue: a new socket would have them too.
#[test]
fn errors_of_paths_never_open_a_socket_again() {
    let mut health = Health::default();
    for kind in [
        io::ErrorKind::NetworkUnreachable,
        io::ErrorKind::PermissionDenied,
        io::ErrorKind::AddrNotAvailable,
        io::ErrorKind::OutOfMemory,
        io::ErrorKind::ConnectionRefused,
    ] {
        (0..1000).for_each(|millis| health.on_error(at(millis), Call::Send, kind.into()));
    }
    assert_eq!(health.next_attempt(), None);
    assert!(!health.is_lost());
}

/// Limit K290.
#[test]
fn pauses_between_attempts_grow() {
    let mut health = Health::default();
    let mut pauses = Vec::new();
    let mut now = at(0);
    for _ in 0..9 {
        (0..MIN_FAILURES).for_each(|_| health.on_error(now, Call::Send, broken()));
        let due = health.next_attempt().expect("the socket is broken");
        pauses.push((due - now).as_secs());
        now = due;
        health.on_reopened(now);
    }
    assert_eq!(pauses, [2, 2, 4, 8, 16, 32, 64, 64, 64]);
    // After a time without trouble, the next one is soon.
    now += RESET_AFTER + Duration::from_secs(1);
    (0..MIN_FAILURES).for_each(|_| health.on_error(now, Call::Send, broken()));
    health.on_reopened(health.next_attempt().expect("the socket is broken"));
    (0..MIN_FAILURES).for_each(|_| health.on_error(now, Call::Send, broken()));
    let due = health.next_attempt().expect("the socket is broken");
    assert!(due - now <= 2 * PATIENCE, "{:?}", due - now);
}

#[test]
fn socket_that_cannot_be_opened_again_is_used_as_it_is() {
    let mut health = Health::default();
    fail(&mut health, 0, 10);
    let in_use = || io::Error::from(io::ErrorKind::AddrInUse);
    for attempt in 0..20 {
        let due = health.next_attempt().expect("the socket is broken");
        let outlook = health.on_not_reopened(due, &in_use(), false);
        assert!(matches!(outlook, Outlook::Wait), "{attempt}");
        assert!(health.next_attempt() > Some(due), "{attempt}");
    }
    // A socket of the application is not tried a second time.
    let given = io::Error::from(io::ErrorKind::Unsupported);
    let now = health.next_attempt().expect("the socket is broken");
    assert!(matches!(
        health.on_not_reopened(now, &given, false),
        Outlook::Wait
    ));
    assert_eq!(health.next_attempt(), None);
    health.on_other_socket();
    fail(&mut health, 0, 10);
    assert!(health.is_due(at(2000)), "the next one was not given");
}

/// Limit K290.
#[test]
fn lost_socket_is_opened_at_once_and_given_up_after_eight_attempts() {
    let mut health = Health::default();
    health.on_error(at(7), Call::Receive, closed());
    assert!(health.is_lost() && health.is_due(at(7)));
    assert_eq!(health.has_lost_descriptor(), cfg!(any(unix, windows)));
    let mut now = at(7);
    let mut attempts = 0;
    let reason = loop {
        attempts += 1;
        match health.on_not_reopened(now, &io::ErrorKind::AddrInUse.into(), false) {
            Outlook::Wait => now = health.next_attempt().expect("the socket is lost"),
            Outlook::Release => panic!("the socket is kept"),
            Outlook::Over(reason) => break reason,
        }
    };
    assert_eq!(attempts, MAX_ATTEMPTS);
    assert_eq!((now - at(7)).as_millis(), 6350);
    assert!(reason.contains("the socket failed"), "{reason}");
}

#[test]
fn lost_socket_that_was_given_is_over_at_once() {
    let mut health = Health::default();
    health.on_error(at(0), Call::Send, closed());
    let given = io::Error::new(io::ErrorKind::Unsupported, "supplied by the application");
    let Outlook::Over(reason) = health.on_not_reopened(at(0), &given, false) else {
        panic!("another attempt follows");
    };
    assert!(reason.contains("supplied by the application"), "{reason}");
}

/// Limit K291.
#[test]
fn each_kind_of_error_is_reported_once_a_minute() {
    let mut health = Health::default();
    let unreachable = || io::Error::from(io::ErrorKind::NetworkUnreachable);
    for millis in 0..59_999 {
        health.on_error(at(millis), Call::Send, unreachable());
    }
    health.on_error(at(59_999), Call::Receive, broken());
    assert!(health.take_change() && !health.take_change());
    let reported = events(&mut health);
    assert!(
        matches!(
            &reported[..],
            [
                SocketEvent::Failed {
                    call: Call::Send,
                    cause: ErrorCause::Unreachable,
                    failures: 1,
                    ..
                },
                SocketEvent::Failed {
                    call: Call::Receive,
                    failures: 1,
                    ..
                },
            ]
        ),
        "{reported:?}"
    );
    health.on_error(at(60_000), Call::Send, unreachable());
    let reported = events(&mut health);
    let [event @ SocketEvent::Failed { failures, .. }] = &reported[..] else {
        panic!("{reported:?}");
    };
    assert_eq!(*failures, 59_999);
    assert!(
        event
            .to_string()
            .starts_with("cannot send datagrams, 59999 times")
    );
}

#[test]
fn probes_that_are_too_large_and_replies_of_peers_are_not_reported() {
    let mut health = Health::default();
    let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
    health.on_error(at(0), Call::Send, refused());
    health.on_error(at(0), Call::Receive, refused());
    // The next call has nothing to report.
    health.on_received();
    health.on_error(at(0), Call::Receive, io::ErrorKind::HostUnreachable.into());
    assert!(!health.take_change());
    assert_eq!(events(&mut health), []);
}

/// Each kind has at most one event that waits for a reader.
#[test]
fn events_without_a_reader_are_bounded() {
    let mut health = Health::default();
    for minute in 0..100 {
        for kind in [io::ErrorKind::NetworkDown, io::ErrorKind::BrokenPipe] {
            health.on_error(at(minute * 60_000), Call::Send, kind.into());
        }
        health.on_reopened(at(minute * 60_000));
    }
    assert_eq!(events(&mut health).len(), 3);
}

/// The runtime has one socket for each address: the broken one is dropped for the next one.
#[test]
fn broken_socket_is_dropped_before_the_next_one_is_bound() {
    let mut health = Health::default();
    fail(&mut health, 0, 10);
    let in_use = || io::Error::from(io::ErrorKind::AddrInUse);
    let outlook = health.on_not_reopened(at(2000), &in_use(), true);
    assert!(matches!(outlook, Outlook::Release));
    assert!(health.is_lost() && !health.has_lost_descriptor());
    assert_eq!(health.next_attempt(), Some(at(2050)));
    health.on_reopened(at(2050));
    assert!(!health.is_lost() && health.next_attempt().is_none());
}
