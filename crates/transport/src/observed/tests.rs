use super::observed_path::MAX_OBSERVED;
use super::*;
use crate::space::sent::FrameLists;

const RTT: Duration = Duration::from_millis(100);
const PATH: PathId = PathId::ZERO;

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 443))
}

fn both() -> Box<Observed> {
    let both = Some(AddressDiscovery::Both);
    Observed::agree(both, both).expect("agreed")
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// Returns the bytes of the frame that is written, of which there is one at most.
fn write(observed: &mut Observed, now: Time, path: PathId, peer: SocketAddr, room: usize) -> usize {
    observed.refresh(now, path, peer, RTT);
    let (mut room, mut lists) = (vec![0; room], FrameLists::default());
    let mut packet = PacketBuilder::new(&mut room, &mut lists);
    observed.write(now, path, peer, &mut packet);
    packet.len()
}

#[test]
fn ends_agree_on_each_direction_apart() {
    use AddressDiscovery::{Both, Provides, Receives};
    // Offers of both ends, and whether this end reports and accepts reports.
    for (own, peer, reports, claims) in [
        (None, Some(Both), false, false),
        (Some(Provides), None, false, false),
        (Some(Provides), Some(Provides), false, false),
        (Some(Provides), Some(Receives), true, false),
        (Some(Receives), Some(Receives), false, true),
        (Some(Receives), Some(Provides), false, true),
        (Some(Both), Some(Receives), true, true),
        (Some(Both), Some(Both), true, true),
    ] {
        let agreed = Observed::agree(own, peer);
        let found = agreed.map_or((false, false), |it| {
            (it.reports.is_some(), it.claims.is_some())
        });
        assert_eq!(found, (reports, claims), "{own:?}, {peer:?}");
    }
}

#[test]
fn each_path_gets_one_report() {
    let mut observed = both();
    for path in [PATH, PathId::new(1)] {
        assert_eq!(
            write(&mut observed, at(0), path, address(1), 10),
            0,
            "no room"
        );
        assert!(observed.is_due(path));
        assert_eq!(write(&mut observed, at(0), path, address(1), 100), 11);
        assert!(!observed.is_due(path));
        assert_eq!(write(&mut observed, at(9000), path, address(1), 100), 0);
    }
}

#[test]
fn changes_are_reported_once_a_second_and_round_trip() {
    let mut observed = both();
    assert_eq!(write(&mut observed, at(0), PATH, address(1), 100), 11);
    assert_eq!(write(&mut observed, at(10), PATH, address(2), 100), 0);
    assert_eq!(observed.next_timeout(), Some(at(1000)));
    // The peer moves on: only its last address counts.
    assert_eq!(write(&mut observed, at(999), PATH, address(3), 100), 0);
    assert_eq!(write(&mut observed, at(1000), PATH, address(3), 100), 11);
    assert_eq!(observed.next_timeout(), None);
    observed.refresh(at(1001), PATH, address(4), Duration::from_secs(3));
    assert_eq!(observed.next_timeout(), Some(at(4000)));
}

#[test]
fn probes_of_another_address_carry_no_report_of_the_one_in_use() {
    let mut observed = both();
    observed.refresh(at(0), PATH, address(1), RTT);
    let (mut room, mut lists) = (vec![0; 100], FrameLists::default());
    let mut packet = PacketBuilder::new(&mut room, &mut lists);
    observed.write(at(0), PATH, address(2), &mut packet);
    assert!(packet.is_empty());
}

#[test]
fn lost_report_is_repeated_on_its_path_unless_a_newer_one_exists() {
    let mut observed = both();
    let other = PathId::new(1);
    write(&mut observed, at(0), PATH, address(1), 100);
    write(&mut observed, at(0), other, address(1), 100);
    observed.on_lost(PATH, 0);
    assert!(observed.is_due(PATH) && !observed.is_due(other));
    assert_eq!(write(&mut observed, at(1), PATH, address(1), 100), 11);
    observed.on_lost(PATH, 0);
    observed.on_lost(other, 2);
    assert!(!observed.is_due(PATH) && !observed.is_due(other));
}

fn frame(sequence: u64, last: u8) -> ObservedAddress {
    ObservedAddress {
        sequence,
        address: address(last),
    }
}

#[test]
fn only_newer_claims_count() {
    let mut observed = both();
    assert_eq!(observed.on_frame(PATH, frame(5, 1)), Ok(true));
    for (sequence, last, is_change) in [(5, 2, false), (4, 2, false), (6, 1, false), (7, 2, true)] {
        let changes = observed.on_frame(PATH, frame(sequence, last));
        assert_eq!(changes, Ok(is_change), "{sequence}, {last}");
    }
    assert_eq!(
        observed.on_frame(PathId::new(1), frame(2, 9)),
        Ok(true),
        "its first"
    );
    let claims: Vec<_> = observed.claims().map(|it| it.address).collect();
    assert_eq!(claims, [address(2), address(9)]);
}

#[test]
fn claims_are_bounded_and_told_once() {
    let mut observed = both();
    for sequence in 0..10_000_u64 {
        let path = PathId::new(u32::try_from(sequence % 20).expect("small"));
        let last = u8::try_from(sequence % 251).expect("small");
        observed
            .on_frame(path, frame(sequence, last))
            .expect("asked for");
    }
    assert_eq!(observed.claims().count(), MAX_OBSERVED);
    for _ in 0..MAX_OBSERVED {
        assert!(observed.take_new().is_some());
    }
    assert_eq!(observed.take_new(), None);
}

#[test]
fn claim_that_was_not_asked_for_is_a_violation() {
    let own = Some(AddressDiscovery::Provides);
    let mut observed = Observed::agree(own, Some(AddressDiscovery::Both)).expect("agreed");
    let error = observed
        .on_frame(PATH, frame(0, 1))
        .expect_err("not asked for");
    assert_eq!(
        error.code,
        courser_wire::TransportErrorCode::PROTOCOL_VIOLATION
    );
}
