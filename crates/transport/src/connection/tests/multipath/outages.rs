//! Paths that die, and links that return. RFC 10069 §3.4, §5.7.

use super::*;

const UNSTABLE: TransportErrorCode = TransportErrorCode::PATH_UNSTABLE_OR_POOR;

/// Returns the longest time without new bytes in `time`, while the client sends without end.
fn longest_stall(pair: &mut Pair, transfer: &mut Transfer, time: Duration) -> Duration {
    let (end, step) = (pair.now + time, Duration::from_millis(1));
    let (mut longest, mut last, mut before) = (Duration::ZERO, pair.now, transfer.received());
    while pair.now < end {
        let is_lost = |event: &Event| matches!(event, Event::Lost(_));
        let lost = |end: &End| end.events.iter().find(|event| is_lost(event)).cloned();
        assert_eq!((lost(&pair.client), lost(&pair.server)), (None, None));
        transfer.step(pair);
        pair.run_for(step);
        if transfer.received() > before {
            longest = longest.max(pair.now - last);
            (last, before) = (pair.now, transfer.received());
        }
    }
    longest.max(pair.now - last)
}

/// Removes the filter of [`cut`].
fn mend(pair: &mut Pair) {
    pair.link.filter = None;
}

fn endless(pair: &mut Pair) -> Transfer {
    pair.link.rate = Some(2_000_000);
    pair.link.queue = Some(80_000);
    Transfer::up(pair, 400_000_000)
}

#[test]
fn silent_path_is_left_after_one_probe_timeout_and_given_up_after_five_seconds() {
    for dead in [client_address(), second_socket()] {
        let mut pair = with_two_paths();
        let mut transfer = endless(&mut pair);
        longest_stall(&mut pair, &mut transfer, Duration::from_secs(1));
        cut(&mut pair, dead);
        let stall = longest_stall(&mut pair, &mut transfer, Duration::from_secs(4));
        // A probe timeout with the queue of the link, and a round trip.
        assert!(stall < RTT * 8, "{stall:?} without {dead}");
        let path = if dead == client_address() {
            PathId::ZERO
        } else {
            ONE
        };
        let closed = Event::PathClosed {
            path,
            code: UNSTABLE,
        };
        assert!(pair.client.has(&Event::PathSuspect(path)) && !pair.client.has(&closed));
        longest_stall(&mut pair, &mut transfer, Duration::from_secs(2));
        assert!(pair.client.has(&closed) && pair.server.has(&closed));
        assert_eq!((pair.client_error(), pair.server_error()), (None, None));
    }
}

#[test]
fn receiver_follows_the_sender_away_from_a_silent_path_and_back() {
    let mut pair = with_two_paths();
    let mut transfer = endless(&mut pair);
    longest_stall(&mut pair, &mut transfer, Duration::from_secs(1));
    cut(&mut pair, second_socket());
    longest_stall(&mut pair, &mut transfer, Duration::from_secs(2));
    let status = |pair: &mut Pair| {
        let list = pair.server.connection().several_paths().list();
        list.iter()
            .find(|path| path.id == ONE)
            .map(|path| path.peer_status)
    };
    assert_eq!(status(&mut pair), Some(PathPreference::Backup));
    let list = pair.client.connection().several_paths().list();
    assert_eq!(
        list[1].own_status,
        PathPreference::Available,
        "as the application wants it"
    );
    assert!(list[1].is_suspect);
    mend(&mut pair);
    longest_stall(&mut pair, &mut transfer, Duration::from_secs(2));
    assert!(pair.client.has(&Event::PathRecovered(ONE)));
    assert_eq!(status(&mut pair), Some(PathPreference::Available));
}

/// The other statuses are those of the application again.
#[test]
fn backup_path_is_announced_as_available_while_it_is_the_only_one() {
    let mut pair = with_two_paths();
    let mut paths = pair.client.connection().several_paths();
    assert!(paths.set_status(ONE, PathPreference::Backup));
    pair.client.touch();
    let mut transfer = endless(&mut pair);
    longest_stall(&mut pair, &mut transfer, Duration::from_secs(1));
    cut(&mut pair, client_address());
    let stall = longest_stall(&mut pair, &mut transfer, Duration::from_secs(2));
    assert!(stall < RTT * 8, "{stall:?}");
    let statuses = |pair: &mut Pair| {
        let list = pair.server.connection().several_paths().list();
        [list[0].peer_status, list[1].peer_status]
    };
    let (available, backup) = (PathPreference::Available, PathPreference::Backup);
    assert_eq!(statuses(&mut pair), [backup, available]);
    mend(&mut pair);
    longest_stall(&mut pair, &mut transfer, Duration::from_secs(2));
    assert_eq!(statuses(&mut pair), [available, backup]);
}

#[test]
fn link_that_returns_is_in_use_again_within_two_seconds() {
    for (dead, seconds) in [
        (second_socket(), 2),
        (second_socket(), 4),
        (second_socket(), 9),
        (client_address(), 15),
        (second_socket(), 25),
    ] {
        let mut pair = with_two_paths();
        let mut transfer = endless(&mut pair);
        longest_stall(&mut pair, &mut transfer, Duration::from_secs(1));
        cut(&mut pair, dead);
        longest_stall(&mut pair, &mut transfer, Duration::from_secs(seconds));
        mend(&mut pair);
        longest_stall(&mut pair, &mut transfer, Duration::from_millis(1500));
        let before = pair.client.sent.len();
        longest_stall(&mut pair, &mut transfer, Duration::from_millis(500));
        let sent = sent_by_client(&pair, before);
        assert!(
            sent.iter().all(|bytes| *bytes > 5_000),
            "{sent:?} after {seconds} s without {dead}"
        );
        assert_eq!((pair.client_error(), pair.server_error()), (None, None));
    }
}

#[test]
fn path_that_the_application_closes_is_not_opened_again() {
    let mut pair = with_two_paths();
    let now = pair.now;
    let mut paths = pair.client.connection().several_paths();
    assert!(paths.close(now, ONE, UNSTABLE));
    pair.client.touch();
    pair.run_for(Duration::from_secs(20));
    let list = pair.client.connection().several_paths().list();
    assert_eq!(list.len(), 1, "{list:?}");
}

/// A pair that can exchange packets on no path keeps the paths, and then uses all of them again.
#[test]
fn last_path_is_never_given_up() {
    let mut pair = with_two_paths();
    let mut transfer = endless(&mut pair);
    longest_stall(&mut pair, &mut transfer, Duration::from_secs(1));
    pair.link.filter = Some(Box::new(|_, _| false));
    longest_stall(&mut pair, &mut transfer, Duration::from_secs(12));
    for end in [&mut pair.client, &mut pair.server] {
        let list = end.connection().several_paths().list();
        assert!(list.len() == 2 && list.iter().all(|path| !path.is_closing));
    }
    mend(&mut pair);
    longest_stall(&mut pair, &mut transfer, Duration::from_secs(2));
    let before = pair.client.sent.len();
    longest_stall(&mut pair, &mut transfer, Duration::from_millis(500));
    let sent = sent_by_client(&pair, before);
    assert!(sent.iter().all(|bytes| *bytes > 100_000), "{sent:?}");
}

/// Packets of the client arrive on the second path, and those of the server do not (fault F67).
#[test]
fn path_that_works_one_way_does_not_stall_the_connection() {
    let mut pair = with_two_paths();
    let mut transfer = endless(&mut pair);
    longest_stall(&mut pair, &mut transfer, Duration::from_secs(1));
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to != second_socket()));
    let stall = longest_stall(&mut pair, &mut transfer, Duration::from_secs(8));
    assert!(stall < RTT * 8, "{stall:?}");
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

/// Both links are down in turn, never at the same time (fault F69).
#[test]
fn links_that_flap_in_turn_stall_the_connection_for_a_timeout_at_most() {
    let mut pair = with_two_paths();
    let mut transfer = endless(&mut pair);
    longest_stall(&mut pair, &mut transfer, Duration::from_secs(1));
    for turn in 0..8 {
        let dead = [client_address(), second_socket()][turn % 2];
        cut(&mut pair, dead);
        let stall = longest_stall(&mut pair, &mut transfer, Duration::from_secs(2));
        assert!(
            stall < Duration::from_millis(1200),
            "{stall:?} in turn {turn}"
        );
    }
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

#[test]
fn path_that_never_answers_is_closed_and_its_id_is_replaced() {
    let mut pair = pair();
    cut(&mut pair, second_socket());
    for id in 1..5 {
        let id = PathId::new(id);
        assert_eq!(open(&mut pair), Ok(id));
        pair.run_for(Duration::from_secs(4));
        let closed = Event::PathClosed {
            path: id,
            code: UNSTABLE,
        };
        assert!(pair.client.has(&closed), "{id}");
    }
    // No state of them is left.
    pair.run_for(Duration::from_secs(5));
    for end in [&mut pair.client, &mut pair.server] {
        assert_eq!(end.connection().several_paths().list().len(), 1);
    }
}
