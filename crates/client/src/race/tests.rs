use super::*;

const V4: [u8; 4] = [192, 0, 2, 1];

fn v4(last: u8) -> SocketAddr {
    SocketAddr::from(([V4[0], V4[1], V4[2], last], 443))
}

fn v6(last: u16) -> SocketAddr {
    SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, last], 443))
}

const fn quic(address: SocketAddr) -> Option<Candidate> {
    Some(Candidate {
        transport: Transport::Quic,
        address,
    })
}

const fn tcp(address: SocketAddr) -> Option<Candidate> {
    Some(Candidate {
        transport: Transport::Tcp,
        address,
    })
}

fn race() -> (Race, Instant) {
    (Race::new(DEFAULT_DELAY), Instant::now())
}

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Returns all attempts with their start times in milliseconds if none completes.
fn schedule(race: &mut Race, start: Instant) -> Vec<(u128, Candidate)> {
    let mut begun = Vec::new();
    let mut now = start;
    loop {
        while let Some(candidate) = race.poll(now) {
            begun.push(((now - start).as_millis(), candidate));
        }
        match race.next_timeout() {
            Some(next) => now = next,
            None => return begun,
        }
    }
}

/// Returns all attempts of a race with two addresses in each lane if none completes.
fn schedule_of_both_lanes(mut race: Race, start: Instant) -> Vec<(u128, Option<Candidate>)> {
    race.add(Transport::Quic, &[v6(1), v4(1)]);
    race.add(Transport::Tcp, &[v6(1), v4(1)]);
    let begun = schedule(&mut race, start);
    let some = begun.into_iter().map(|(at, attempt)| (at, Some(attempt)));
    some.collect()
}

#[test]
fn both_lanes_advance_by_one_delay_and_tcp_starts_one_behind() {
    let (race, now) = race();
    assert_eq!(
        schedule_of_both_lanes(race, now),
        [
            (0, quic(v6(1))),
            (250, quic(v4(1))),
            (250, tcp(v6(1))),
            (500, tcp(v4(1))),
        ]
    );
}

#[test]
fn without_quic_tcp_starts_at_once() {
    let (mut race, now) = race();
    race.add(Transport::Tcp, &[v4(1)]);
    assert_eq!(race.next_timeout(), None);
    assert_eq!(race.poll(now), tcp(v4(1)));
    assert_eq!(race.poll(now), None);
}

#[test]
fn failure_of_quic_opens_the_lane_of_tcp() {
    let (mut race, now) = race();
    race.add(Transport::Quic, &[v4(1)]);
    race.add(Transport::Tcp, &[v4(1)]);
    assert_eq!(race.poll(now), quic(v4(1)));
    assert_eq!(race.poll(now + ms(20)), None);
    race.on_failed(Transport::Quic);
    assert_eq!(race.poll(now + ms(20)), tcp(v4(1)));
}

#[test]
fn failure_starts_the_next_attempt_of_its_lane_at_once() {
    let (mut race, now) = race();
    race.add(Transport::Tcp, &[v4(1), v4(2)]);
    assert_eq!(race.poll(now), tcp(v4(1)));
    assert_eq!(race.next_timeout(), Some(now + DEFAULT_DELAY));
    race.on_failed(Transport::Tcp);
    assert_eq!(race.poll(now + ms(1)), tcp(v4(2)));
}

#[test]
fn race_is_lost_only_when_all_have_failed() {
    let (mut race, now) = race();
    race.add(Transport::Quic, &[v4(1)]);
    race.add(Transport::Tcp, &[v4(1)]);
    assert!(race.poll(now).is_some());
    race.on_failed(Transport::Quic);
    assert!(!race.is_lost());
    assert!(race.poll(now).is_some());
    assert!(!race.is_lost());
    race.on_failed(Transport::Tcp);
    assert!(race.is_lost());
}

#[test]
fn later_addresses_join_the_race() {
    let (mut race, now) = race();
    race.add(Transport::Tcp, &[v4(1)]);
    assert_eq!(race.poll(now), tcp(v4(1)));
    race.add(Transport::Quic, &[v4(1)]);
    assert_eq!(race.poll(now + ms(30)), quic(v4(1)));
    race.add(Transport::Quic, &[v4(1)]);
    assert_eq!(race.poll(now + ms(2000)), None, "the same address twice");
}

#[test]
fn families_take_turns_beginning_with_the_preferred_one() {
    let given = [v4(1), v4(2), v4(3), v6(1)];
    assert_eq!(interleave(&given), [v4(1), v6(1), v4(2), v4(3)]);
    assert_eq!(interleave(&[v6(1), v6(2)]), [v6(1), v6(2)]);
    assert_eq!(interleave(&[]), []);
}

#[test]
fn delays_are_clamped_to_the_allowed_range() {
    let mut race = Race::new(Duration::ZERO);
    let now = Instant::now();
    race.add(Transport::Tcp, &[v4(1), v4(2)]);
    assert!(race.poll(now).is_some());
    assert_eq!(race.next_timeout(), Some(now + MIN_DELAY));
}

#[test]
fn at_most_ten_addresses_of_a_name_are_tried() {
    let (mut race, now) = race();
    let many: Vec<_> = (0..=255).map(v4).collect();
    race.add(Transport::Tcp, &many);
    assert_eq!(schedule(&mut race, now).len(), MAX_CANDIDATES);
}

#[test]
fn race_without_a_head_start_opens_both_lanes_at_once() {
    let (race, now) = race();
    let race = race.without_head_start();
    assert_eq!(
        schedule_of_both_lanes(race, now),
        [
            (0, quic(v6(1))),
            (0, tcp(v6(1))),
            (250, quic(v4(1))),
            (250, tcp(v4(1))),
        ]
    );
}
