use super::*;

const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
const CAFE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1));

fn origin(number: u16) -> Origin {
    Origin::https("example.org", number)
}

#[test]
fn failure_disables_quic_to_an_origin_for_a_while() {
    let (mut memory, now) = (UdpMemory::default(), Instant::now());
    assert!(memory.is_worth_trying(now, HOME, &origin(1)));
    memory.on_failed(now, HOME, &origin(1));
    assert!(!memory.is_worth_trying(now, HOME, &origin(1)));
    assert!(
        memory.is_worth_trying(now, HOME, &origin(2)),
        "another origin"
    );
    assert!(
        memory.is_worth_trying(now, CAFE, &origin(1)),
        "another network"
    );
    assert!(memory.is_worth_trying(now + FIRST_WAIT, HOME, &origin(1)));
}

#[test]
fn period_doubles_up_to_two_days() {
    let (mut memory, mut now) = (UdpMemory::default(), Instant::now());
    let mut wait = FIRST_WAIT;
    for failure in 0..40 {
        memory.on_failed(now, HOME, &origin(1));
        let just_before = now + wait - Duration::from_nanos(1);
        assert!(
            !memory.is_worth_trying(just_before, HOME, &origin(1)),
            "{failure}"
        );
        now += wait;
        assert!(memory.is_worth_trying(now, HOME, &origin(1)), "{failure}");
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

#[test]
fn success_forgets_failures() {
    let (mut memory, now) = (UdpMemory::default(), Instant::now());
    memory.on_failed(now, HOME, &origin(1));
    memory.on_failed(now, HOME, &origin(1));
    memory.on_worked(HOME, &origin(1));
    assert!(memory.is_worth_trying(now, HOME, &origin(1)));
    memory.on_failed(now, HOME, &origin(1));
    assert!(memory.is_worth_trying(now + FIRST_WAIT, HOME, &origin(1)));
}

#[test]
fn three_silent_origins_are_a_network_that_drops_udp() {
    let (mut memory, now) = (UdpMemory::default(), Instant::now());
    for number in [1, 1, 1, 2] {
        memory.on_failed(now, HOME, &origin(number));
    }
    assert!(
        memory.is_worth_trying(now, HOME, &origin(9)),
        "only two origins"
    );
    memory.on_failed(now, HOME, &origin(3));
    assert!(!memory.is_worth_trying(now, HOME, &origin(9)));
    assert!(memory.is_worth_trying(now, CAFE, &origin(9)));
    assert!(memory.is_worth_trying(now + FIRST_WAIT, HOME, &origin(9)));
    memory.on_worked(HOME, &origin(9));
    assert!(memory.is_worth_trying(now, HOME, &origin(10)));
}

#[test]
fn memory_is_bounded() {
    let (mut memory, now) = (UdpMemory::default(), Instant::now());
    for number in 0..5000_u16 {
        let [high, low] = number.to_be_bytes();
        memory.on_failed(now, IpAddr::from([10, 0, high, low]), &origin(number));
    }
    assert_eq!(memory.origins.len(), MAX_ENTRIES);
    assert_eq!(memory.networks.len(), MAX_ENTRIES);
    for number in 0..5000 {
        let name = format!("alternative-{number}.test:443");
        memory.on_alternative_failed(now, HOME, (&origin(1), &name));
    }
    assert_eq!(memory.alternatives.len(), MAX_ENTRIES);
}

#[test]
fn broken_alternative_is_avoided_in_one_network_without_disabling_quic() {
    const NAME: &str = "alternative.test:443";
    let (mut memory, now) = (UdpMemory::default(), Instant::now());
    let is_worth_trying = |memory: &UdpMemory, after, local, name| {
        memory
            .alternative_avoided_until(now + after, local, (&origin(1), name))
            .is_none()
    };
    memory.on_alternative_failed(now, HOME, (&origin(1), NAME));
    assert!(!is_worth_trying(&memory, Duration::ZERO, HOME, NAME));
    assert!(is_worth_trying(&memory, Duration::ZERO, CAFE, NAME));
    assert!(is_worth_trying(
        &memory,
        Duration::ZERO,
        HOME,
        "alternative.test:444"
    ));
    assert!(memory.is_worth_trying(now, HOME, &origin(1)));
    assert!(is_worth_trying(&memory, FIRST_WAIT, HOME, NAME));
    memory.on_alternative_failed(now, HOME, (&origin(1), NAME));
    assert!(!is_worth_trying(&memory, FIRST_WAIT, HOME, NAME));
    assert!(is_worth_trying(&memory, 2 * FIRST_WAIT, HOME, NAME));
    memory.on_alternative_worked(HOME, &origin(1), NAME);
    assert!(is_worth_trying(&memory, Duration::ZERO, HOME, NAME));
}

/// A hostile origin may announce the server of another one, whose certificate is not valid for the hostile one.
#[test]
fn alternative_that_fails_for_one_origin_is_used_for_others() {
    const NAME: &str = "alternative.test:443";
    let (mut memory, now) = (UdpMemory::default(), Instant::now());
    memory.on_alternative_failed(now, HOME, (&origin(1), NAME));
    let is_worth_trying = |origin| {
        let until = memory.alternative_avoided_until(now, HOME, (&origin, NAME));
        until.is_none()
    };
    assert!(!is_worth_trying(origin(1)));
    assert!(is_worth_trying(origin(2)));
}

#[test]
fn change_of_the_network_removes_all_entries() {
    let (mut memory, now) = (UdpMemory::default(), Instant::now());
    for number in 0..9 {
        memory.on_failed(now, HOME, &origin(number));
    }
    let alternative = (&origin(1), "alternative.test:443");
    memory.on_alternative_failed(now, HOME, alternative);
    memory.on_network_changed();
    assert!(memory.is_worth_trying(now, HOME, &origin(1)));
    let until = memory.alternative_avoided_until(now, HOME, alternative);
    assert!(until.is_none());
}
