use std::num::NonZeroU8;

use courser_base::FourTuple;

use super::*;
use crate::space::sent::FrameLists;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, last], 5000))
}

fn own() -> SocketAddr {
    SocketAddr::from(([203, 0, 113, 1], 4433))
}

fn end(side: Side) -> Traversal {
    let mut end = Traversal::new(side, 4, 2);
    assert_eq!(end.offer(at(0), own()), Ok(true));
    end
}

fn add(sequence: u64, last: u8) -> AddAddress {
    AddAddress {
        sequence,
        address: address(last),
    }
}

fn reach_out(round: u64, address: SocketAddr) -> ReachOut {
    ReachOut { round, address }
}

/// Returns the frames that wait.
fn written(end: &mut Traversal) -> Vec<u8> {
    let (mut room, mut lists) = (vec![0; 1000], FrameLists::default());
    let mut packet = PacketBuilder::new(&mut room, &mut lists);
    end.write_frames(&mut packet);
    let len = packet.len();
    room.truncate(len);
    room
}

/// Sends all probes that are due, with permits of the endpoint, and returns their targets.
fn probe(end: &mut Traversal, now: Time) -> Vec<SocketAddr> {
    let mut targets = Vec::new();
    while let Some(target) = end.next_probe(now, 1 << 20) {
        let data = end.stats.probes_sent.to_be_bytes();
        end.begin_probe(now, target, data);
        targets.push(target);
    }
    targets
}

#[test]
fn frames_of_the_wrong_side_are_violations() {
    let (mut client, mut server) = (end(Side::Client), end(Side::Server));
    assert!(
        client
            .on_reach_out(at(0), reach_out(1, address(1)))
            .is_err()
    );
    assert!(server.on_add_address(at(0), add(1, 1)).is_err());
    assert!(
        server
            .on_remove_address(RemoveAddress { sequence: 1 })
            .is_err()
    );
}

#[test]
fn server_announces_as_many_addresses_as_the_client_takes() {
    let mut server = end(Side::Server);
    assert_eq!(server.offer(at(0), own()), Ok(false), "known");
    assert_eq!(server.offer(at(0), address(1)), Ok(true));
    let refused = server.offer(at(0), address(2));
    assert_eq!(refused, Err(CandidateError::TooMany { limit: 2 }));
    assert_eq!(written(&mut server).len(), 2 * 11);
    assert!(server.withdraw(own()) && !server.withdraw(own()));
    assert_eq!(written(&mut server).len(), 5, "REMOVE_ADDRESS");
    assert!(
        server.offer(at(0), address(2)).is_err(),
        "the client may not know yet"
    );
    server.on_lost(SentFrame::RemoveAddress { sequence: 0 });
    assert_eq!(written(&mut server).len(), 5);
    server.on_acked(SentFrame::RemoveAddress { sequence: 0 });
    assert_eq!(server.offer(at(0), address(2)), Ok(true));
    server.on_lost(SentFrame::AddAddress { sequence: 1 });
    assert_eq!(written(&mut server).len(), 2 * 11);
}

#[test]
fn client_keeps_as_many_addresses_as_it_takes_and_counts_others() {
    let mut client = end(Side::Client);
    for (sequence, last) in [
        (1, 1),
        (1, 2),
        (2, 2),
        (3, 2),
        (3, 3),
        (4, 4),
        (5, 5),
        (1, 1),
    ] {
        client
            .on_add_address(at(0), add(sequence, last))
            .expect("allowed");
    }
    let announced: Vec<_> = client.announced().collect();
    assert_eq!(announced, [1, 2, 3, 4].map(address));
    assert_eq!(
        client.stats().frames_ignored,
        3,
        "of other content, or too many"
    );
    client
        .on_remove_address(RemoveAddress { sequence: 99 })
        .expect("ignored");
    client
        .on_remove_address(RemoveAddress { sequence: 2 })
        .expect("allowed");
    assert_eq!(client.announced().count(), 3);
}

#[test]
fn client_starts_rounds_with_pauses_until_an_address_answers() {
    let mut client = end(Side::Client);
    assert_eq!(
        client.request_round(at(0)),
        Err(CandidateError::NoCandidates)
    );
    client.on_add_address(at(0), add(1, 1)).expect("allowed");
    let mut begun = Vec::new();
    while begun.len() < 5 {
        let now = client.next_timeout().expect("a round follows");
        client.on_timeout(now);
        if client.stats().rounds as usize > begun.len() {
            begun.push((now - Time::ZERO).as_secs());
            assert!(!written(&mut client).is_empty(), "REACH_OUT");
        }
        probe(&mut client, now);
    }
    // A round takes seven seconds, more than the first pause.
    assert_eq!(begun, [0, 7, 17, 37, 77]);
    let target = probe(&mut client, at(77_000));
    assert!(target.is_empty(), "sent before");
    let last = (client.stats().probes_sent - 1).to_be_bytes();
    assert!(!client.on_response(address(2), last), "from elsewhere");
    assert!(client.on_response(address(1), last));
    assert_eq!(client.found().len(), 1);
    client.on_timeout(at(100_000));
    assert_eq!(client.next_timeout(), None, "a direct path exists");
}

#[test]
fn later_round_ends_the_probes_of_the_one_before_and_waits() {
    let mut server = end(Side::Server);
    server
        .on_reach_out(at(0), reach_out(1, address(1)))
        .expect("allowed");
    assert_eq!(probe(&mut server, at(0)), [address(1)]);
    server
        .on_reach_out(at(10), reach_out(2, address(2)))
        .expect("allowed");
    server
        .on_reach_out(at(10), reach_out(1, address(3)))
        .expect("ignored");
    assert!(probe(&mut server, at(4999)).is_empty());
    assert_eq!(probe(&mut server, at(5000)), [address(2)]);
    server
        .on_reach_out(at(5001), reach_out(2, address(2)))
        .expect("a repetition");
    assert!(probe(&mut server, at(5001)).is_empty());
}

#[test]
fn more_addresses_in_a_round_than_are_taken_are_a_violation() {
    let mut server = end(Side::Server);
    let loopback = SocketAddr::from(([127, 0, 0, 1], 5000));
    server
        .on_reach_out(at(0), reach_out(1, loopback))
        .expect("refused silently");
    for last in 1..4 {
        server
            .on_reach_out(at(0), reach_out(1, address(last)))
            .expect("allowed");
    }
    assert_eq!(server.stats().addresses_refused, 1);
    assert!(
        server
            .on_reach_out(at(0), reach_out(1, address(4)))
            .is_err()
    );
}

/// Attack A216, N-5: the peer asks for probes as fast as it can for ten minutes.
#[test]
fn hostile_client_gets_72_probes_a_minute_and_none_to_bystanders() {
    let mut server = Traversal::new(Side::Server, 8, 8);
    server.offer(at(0), own()).expect("allowed");
    server
        .offer(at(0), SocketAddr::from(([192, 168, 1, 2], 4433)))
        .expect("allowed");
    let mut endpoint = EndpointPermits::default();
    let mut sent: Vec<(u64, SocketAddr)> = Vec::new();
    let mut round = 0;
    for millis in (0..600_000_u64).step_by(10) {
        let now = at(millis);
        if millis % 130 == 0 {
            round += 1;
            let last = u8::try_from(round % 250).expect("small");
            for target in [
                SocketAddr::from(([127, 0, 0, 1], 5000)),
                SocketAddr::from(([10, 0, 0, last], 5000)),
                SocketAddr::from(([224, 0, 0, 1], 5000)),
                SocketAddr::from(([169, 254, 1, 1], 5000)),
                SocketAddr::from(([198, 51, 100, last], 53)),
                address(last),
                SocketAddr::from(([192, 168, 1, last], 5000)),
                SocketAddr::from(([192, 0, 2, last], 443)),
            ] {
                server
                    .on_reach_out(now, reach_out(round, target))
                    .expect("allowed");
            }
        }
        if server.on_timeout(now) {
            server.probe_ids().clear();
        }
        while let Some(target) = server.next_probe(now, 1 << 30) {
            if endpoint.take(now, target) {
                server.begin_probe(now, target, [0; 8]);
                sent.push((millis, target));
            } else {
                server.postpone(now, target);
            }
        }
    }
    for (begin, _) in &sent {
        let within = sent
            .iter()
            .filter(|(it, _)| (*begin..begin + 60_000).contains(it));
        assert!(within.count() <= 72, "from {begin} ms");
    }
    assert!(sent.len() > 100, "{}", sent.len());
    for (_, target) in &sent {
        let is_global = target.ip() == address(target.port() as u8).ip()
            || matches!(target.ip(), IpAddr::V4(ip) if [198, 192].contains(&ip.octets()[0]));
        assert!(is_global && target.port() != 53, "{target}");
    }
    assert!(server.round.len() <= 8 && server.found().is_empty());
}

#[test]
fn probes_stay_within_three_times_what_arrived() {
    let mut server = end(Side::Server);
    for last in 1..5 {
        server
            .on_reach_out(at(0), reach_out(1, address(last)))
            .expect("allowed");
    }
    assert_eq!(
        server.next_probe(at(0), 33),
        None,
        "100 bytes exceed three times 33"
    );
    assert_eq!(server.next_probe(at(100), 34), Some(address(1)));
    server.begin_probe(at(100), address(1), [1; 8]);
    assert_eq!(server.next_probe(at(100), 34), None);
    assert!(server.next_probe(at(200), 1200).is_some());
}

#[test]
fn client_probes_the_address_from_which_it_is_probed() {
    let mut client = end(Side::Client);
    let place = |last| Place::from(FourTuple::to(address(last)));
    client.on_challenge(at(0), place(9), [9; 8]);
    assert!(probe(&mut client, at(0)).is_empty(), "no round runs");
    client.on_add_address(at(0), add(1, 1)).expect("allowed");
    client.on_timeout(at(0));
    assert_eq!(probe(&mut client, at(0)), [address(1)]);
    client.on_challenge(at(0), place(9), [9; 8]);
    assert_eq!(probe(&mut client, at(0)), [address(9)]);
    assert_eq!(
        client.begin_response(),
        Some(place(9)),
        "one for each challenge"
    );
    assert_eq!(client.begin_response(), Some(place(9)));
    assert_eq!(client.begin_response(), None);
    for last in 0..255 {
        client.on_challenge(at(0), place(last), [last; 8]);
    }
    assert!(client.round.len() <= MAX_TARGETS);
    let mut responses = 0;
    while client.begin_response().is_some() {
        responses += 1;
    }
    assert_eq!(responses, 16);
}

#[test]
fn limit_of_candidates_fits_its_parameter() {
    assert!(NonZeroU8::new(MAX_CANDIDATES).is_some());
}
