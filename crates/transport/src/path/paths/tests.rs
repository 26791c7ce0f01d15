use super::*;
use std::net::SocketAddr;

const PTO: Duration = Duration::from_millis(100);

fn tuple(last: u8, port: u16) -> FourTuple {
    FourTuple::to(SocketAddr::from(([127, 0, 0, last], port)))
}

fn paths() -> (Paths, TransportConfig) {
    let config = TransportConfig::default();
    let mut path = Path::new(at(0), tuple(1, 1), &config, 0);
    path.amplification.on_validated();
    (Paths::new(path), config)
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

#[test]
fn a_moved_peer_is_challenged_on_both_paths() {
    let (mut paths, config) = paths();
    let new = paths.add(at(0), tuple(2, 1), &config).expect("room");
    paths.migrate(at(0), new, PTO);
    assert_eq!(paths.active().tuple, tuple(2, 1));
    assert!(paths.active().validation.wants_challenge());
    assert_eq!(paths.wanting_probe(), Some(0));
    assert_eq!(
        paths.active().amplification.budget(),
        0,
        "three times nothing"
    );
}

#[test]
fn a_path_with_little_budget_does_not_hold_up_another() {
    let (mut paths, config) = paths();
    let poor = paths.add(at(0), tuple(2, 1), &config).expect("room");
    let rich = paths.add(at(1000), tuple(3, 1), &config).expect("room");
    for (index, received, sent) in [(poor, 400, 1137), (rich, 1200, 0)] {
        let path = paths.get_mut(index).expect("added");
        path.amplification.on_received(received);
        path.amplification.on_sent(sent);
        path.validation.on_challenge([1; 8]);
    }
    let budget = paths.get_mut(poor).expect("added").amplification.budget();
    assert_eq!(budget, MIN_DATAGRAM as u64 - 1);
    assert_eq!(paths.wanting_probe(), Some(rich));
}

#[test]
fn failed_validation_returns_to_the_last_validated_path() {
    let (mut paths, config) = paths();
    let new = paths.add(at(0), tuple(2, 1), &config).expect("room");
    paths.migrate(at(0), new, PTO);
    let mut outcome = PathsOutcome::Unchanged;
    // The old path answers its challenge, the new one does not.
    paths
        .get_mut(0)
        .expect("old")
        .validation
        .on_challenge_sent(at(0), [7; 8], true);
    assert!(!paths.on_path_response(at(0), [7; 8], PTO));
    for step in 1..=4 {
        outcome = paths.on_timeout(at(step * 100));
        if outcome != PathsOutcome::Unchanged {
            break;
        }
    }
    assert_eq!(outcome, PathsOutcome::Reverted);
    assert_eq!((paths.active().tuple, paths.len()), (tuple(1, 1), 1));
}

#[test]
fn validated_new_path_stays_and_the_old_one_goes() {
    let (mut paths, config) = paths();
    let new = paths.add(at(0), tuple(1, 9), &config).expect("room");
    paths.migrate(at(0), new, PTO);
    paths
        .active_mut()
        .validation
        .on_challenge_sent(at(0), [7; 8], true);
    assert!(paths.on_path_response(at(0), [7; 8], PTO));
    assert_eq!(paths.on_timeout(at(300)), PathsOutcome::Unchanged);
    assert_eq!((paths.active().tuple, paths.len()), (tuple(1, 9), 1));
}

#[test]
fn nothing_left_when_the_only_path_fails() {
    let config = TransportConfig::default();
    let mut paths = Paths::new(Path::new(at(0), tuple(1, 1), &config, 0));
    paths.active_mut().validation.start(at(0), PTO);
    assert_eq!(paths.on_timeout(at(300)), PathsOutcome::NoneLeft);
}

#[test]
fn port_change_keeps_congestion_state_and_address_change_does_not() {
    for (to, kept) in [(tuple(1, 9), true), (tuple(2, 1), false)] {
        let (mut paths, config) = paths();
        paths.active_mut().bytes_in_flight = 5000;
        let new = paths.add(at(0), to, &config).expect("room");
        paths.migrate(at(0), new, PTO);
        assert_eq!(paths.active().bytes_in_flight, if kept { 5000 } else { 0 });
        assert_eq!(paths.active().id == 0, kept);
    }
}

#[test]
fn a_flood_of_addresses_is_bounded_and_slowed() {
    let (mut paths, config) = paths();
    assert!(paths.add(at(0), tuple(2, 1), &config).is_some());
    assert!(
        paths.add(at(1), tuple(3, 1), &config).is_none(),
        "one per round trip"
    );
    for port in 0..100u16 {
        paths.add(at(1000 * u64::from(port) + 2000), tuple(4, port), &config);
        assert!(paths.len() <= MAX_PATHS);
    }
    assert_eq!(paths.active().tuple, tuple(1, 1));
}
