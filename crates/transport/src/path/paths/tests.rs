use super::*;
use std::net::SocketAddr;

const PTO: Duration = Duration::from_millis(100);

fn tuple(last: u8, port: u16) -> FourTuple {
    FourTuple::to(SocketAddr::from(([127, 0, 0, last], port)))
}

const RTT: Duration = Duration::from_millis(333);

fn paths() -> Paths {
    let mut path = Path::new(tuple(1, 1), 0);
    path.amplification.on_validated();
    Paths::new(path, Duration::ZERO)
}

/// Adds a path with a key that no other path has.
fn add(paths: &mut Paths, now: Time, tuple: FourTuple) -> Option<PathIndex> {
    let key = 100 * u32::from(tuple.peer.port()) + u32::from(paths.next_new_at != Time::ZERO);
    paths.add(now, tuple, RTT, || key)
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

#[test]
fn moved_peer_is_challenged_on_both_paths() {
    let mut paths = paths();
    let new = add(&mut paths, at(0), tuple(2, 1)).expect("room");
    paths.migrate(at(0), new, PTO);
    assert_eq!(paths.active().tuple(), tuple(2, 1));
    assert!(paths.active().validation.is_challenge_due());
    assert_eq!(paths.next_to_probe(), Some(0));
    assert_eq!(
        paths.active().amplification.budget(),
        0,
        "no bytes were received"
    );
}

#[test]
fn path_without_budget_does_not_delay_another() {
    let mut paths = paths();
    let poor = add(&mut paths, at(0), tuple(2, 1)).expect("room");
    let rich = add(&mut paths, at(1000), tuple(3, 1)).expect("room");
    for (index, received, sent) in [(poor, 400, 1137), (rich, 1200, 0)] {
        let path = paths.get_mut(index).expect("added");
        path.amplification.on_received(received);
        path.amplification.on_sent(sent);
        path.validation.on_challenge([1; 8]);
    }
    let budget = paths.get_mut(poor).expect("added").amplification.budget();
    assert_eq!(budget, MIN_DATAGRAM as u64 - 1);
    assert_eq!(paths.next_to_probe(), Some(rich));
}

#[test]
fn failed_validation_returns_to_the_last_validated_path() {
    let mut paths = paths();
    let new = add(&mut paths, at(0), tuple(2, 1)).expect("room");
    paths.migrate(at(0), new, PTO);
    let mut outcome = PathsOutcome::Unchanged;
    // The old path answers its challenge, the new one does not.
    paths
        .get_mut(0)
        .expect("old")
        .validation
        .on_challenge_sent(at(0), [7; 8], true);
    assert_eq!(
        paths.on_path_response(at(0), [7; 8], PTO).map(|it| it.path),
        Some(0)
    );
    for step in 1..=4 {
        outcome = paths.run_timers(at(step * 100));
        if outcome != PathsOutcome::Unchanged {
            break;
        }
    }
    assert_eq!(outcome, PathsOutcome::Reverted);
    assert_eq!((paths.active().tuple(), paths.len()), (tuple(1, 1), 1));
}

#[test]
fn validated_new_path_stays_and_the_old_one_is_removed() {
    let mut paths = paths();
    let new = add(&mut paths, at(0), tuple(1, 9)).expect("room");
    paths.migrate(at(0), new, PTO);
    paths
        .active_mut()
        .validation
        .on_challenge_sent(at(0), [7; 8], true);
    let active = paths.active_index();
    assert_eq!(
        paths.on_path_response(at(0), [7; 8], PTO).map(|it| it.path),
        Some(active)
    );
    assert_eq!(paths.run_timers(at(300)), PathsOutcome::Unchanged);
    assert_eq!((paths.active().tuple(), paths.len()), (tuple(1, 9), 1));
}

#[test]
fn no_path_is_left_when_the_only_one_fails() {
    let mut paths = Paths::new(Path::new(tuple(1, 1), 0), Duration::ZERO);
    paths.active_mut().validation.start(at(0), PTO);
    assert_eq!(paths.run_timers(at(300)), PathsOutcome::NoneLeft);
}

#[test]
fn port_change_keeps_the_state_and_address_change_does_not() {
    for (to, kept) in [(tuple(1, 9), true), (tuple(2, 1), false)] {
        let mut paths = paths();
        let new = add(&mut paths, at(0), to).expect("room");
        paths.migrate(at(0), new, PTO);
        assert_eq!(paths.active().key == 0, kept);
    }
}

#[test]
fn removed_path_returns_its_key_and_id() {
    let mut paths = paths();
    let new = add(&mut paths, at(0), tuple(1, 9)).expect("room");
    let key = paths.get_mut(new).expect("added").key;
    paths.get_mut(new).expect("added").peer_id = Some(7);
    paths.migrate(at(0), new, PTO);
    let outcomes = (1..=4).map(|step| paths.run_timers(at(step * 100)));
    assert!(outcomes.into_iter().any(|it| it == PathsOutcome::Reverted));
    assert_eq!(paths.active().key, 0, "the path to return to");
    let peer_id = Some(7);
    assert_eq!(paths.take_removed(), Some(RemovedPath { key, peer_id }));
    assert_eq!(paths.take_removed(), None);
}

#[test]
fn flood_of_addresses_is_bounded_and_limited_in_rate() {
    let mut paths = paths();
    assert!(add(&mut paths, at(0), tuple(2, 1)).is_some());
    assert!(
        add(&mut paths, at(1), tuple(3, 1)).is_none(),
        "one per round trip"
    );
    for port in 0..100u16 {
        add(
            &mut paths,
            at(1000 * u64::from(port) + 2000),
            tuple(4, port),
        );
        assert!(paths.len() <= MAX_PATHS);
    }
    assert_eq!(paths.active().tuple(), tuple(1, 1));
}
