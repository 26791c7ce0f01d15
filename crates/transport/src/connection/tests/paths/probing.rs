//! Tests the frames, pace and repetition of path validation. RFC 9000 §8.2, §9.

use super::*;
use crate::path::network_path::Path;
use crate::path::paths::Paths;

/// Returns the frames of the server's 1-RTT packets to `to`, from datagram `from` on.
fn frames_to(
    pair: &Pair,
    eye: &Eye,
    from: usize,
    to: SocketAddr,
    mut each: impl FnMut(&Frame<'_>),
) -> usize {
    let sent = eye.server_sent(pair);
    let there = sent
        .iter()
        .filter(|seen| seen.datagram >= from && pair.server.sent[seen.datagram].to == to);
    let mut packets = 0;
    for seen in there {
        packets += 1;
        seen.frames().for_each(|frame| each(&frame));
    }
    packets
}

fn assert_probes(pair: &Pair, eye: &Eye, from: usize, to: SocketAddr) {
    let packets = frames_to(pair, eye, from, to, |frame| {
        let is_probe = matches!(
            frame,
            Frame::PathChallenge(_)
                | Frame::PathResponse(_)
                | Frame::NewConnectionId(_)
                | Frame::Padding(_)
        );
        assert!(is_probe, "{frame:?} to {to}");
    });
    assert!(packets > 0, "no probe to {to}");
}

#[test]
fn paths_that_are_not_in_use_carry_probes_only() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let from = pair.server.sent.len();
    let mut transfer = Transfer::down(&mut pair, 200_000);
    transfer.step(&mut pair);
    from_elsewhere(&mut pair, other_host(), &padded_challenge([5; 8]));
    assert!(transfer.finish(&mut pair, Duration::from_secs(5)).is_some());
    assert_probes(&pair, &eye, from, other_host());
    // The server follows a move and asks at the old address.
    let from = pair.server.sent.len();
    rebind(&mut pair, other_port());
    ping(&mut pair);
    pair.run_for(RTT * 3 / 2);
    assert_eq!(server_peer(&mut pair), other_port());
    pair.download(200_000);
    assert_probes(&pair, &eye, from, client_address());
}

/// RFC 9000 §8.2.1, §8.2.4, §9.4: challenges are no more frequent than the Initials of a client
/// that gets no response.
#[test]
fn challenges_without_a_response_are_repeated_at_the_pace_of_probes() {
    let (mut pair, eye) = Pair::watched_and_connected();
    pair.client.address = other_host();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to == server_address()));
    let from = pair.server.sent.len();
    // An unanswered Initial is repeated after this time (RFC 9002 §6.2.2).
    let pto = TransportConfig::default().initial_rtt * 3;
    ping(&mut pair);
    let mut times: Vec<Time> = Vec::new();
    let end = pair.now + Duration::from_secs(4);
    let count = |pair: &Pair| {
        let mut challenges = 0;
        frames_to(pair, &eye, from, other_host(), |frame| {
            challenges += usize::from(is_challenge(frame));
        });
        challenges
    };
    while pair.now < end {
        pair.step();
        if count(&pair) > times.len() {
            times.push(pair.now);
            assert_eq!(count(&pair), times.len(), "one at a time");
        }
    }
    assert!(times.len() >= 3, "{times:?}");
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|&gap| gap >= pto), "{gaps:?}");
}

#[test]
fn lost_response_is_not_sent_again() {
    let (mut pair, eye) = Pair::watched_and_connected();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to == server_address()));
    let data = [3; 8];
    pair.frame_to_server(&Frame::PathChallenge(PathChallenge { data }));
    pair.server.connection().pings().request();
    pair.server.touch();
    pair.run_for(Duration::from_secs(3));
    assert!(pair.server.connection().stats().ptos > 0, "it was lost");
    let is_answer = |frame: &Frame<'_>| matches!(frame, Frame::PathResponse(it) if it.data == data);
    assert_eq!(sent_with(&pair, &eye, is_answer).len(), 1);
}

#[test]
fn response_on_another_path_validates_the_address() {
    let (mut pair, eye) = Pair::watched_and_connected();
    pair.client.address = other_host();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to == server_address()));
    ping(&mut pair);
    pair.run_for(RTT / 2);
    assert!(!is_validated(&mut pair));
    let mut asked = None;
    frames_to(&pair, &eye, 0, other_host(), |frame| {
        if let Frame::PathChallenge(PathChallenge { data }) = frame {
            asked = Some(*data);
        }
    });
    let data = asked.expect("a challenge");
    let response = encode(&Frame::PathResponse(PathResponse { data }));
    from_elsewhere(&mut pair, client_address(), &response);
    assert_eq!(server_peer(&mut pair), other_host());
    assert!(is_validated(&mut pair), "RFC 9000 §8.2.2");
}

/// RFC 9000 §9.3.2: there is no address left to which a CONNECTION_CLOSE could be sent.
#[test]
fn connection_without_a_validated_address_ends_without_a_packet() {
    let (mut pair, eye) = Pair::watched_and_connected();
    // The first address is no longer validated.
    let connection = pair.server.connection();
    let (tuple, key) = (connection.path(), connection.packets.recovery.path().key());
    connection.parts.paths = Paths::new(Path::new(tuple, key), RTT * 3);
    pair.client.address = other_host();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to == server_address()));
    ping(&mut pair);
    pair.run_for(RTT / 2);
    assert_eq!(server_peer(&mut pair), other_host());
    pair.run_for(Duration::from_secs(2));
    let over = Event::Lost(ConnectionError::TimedOut);
    assert!(pair.server.has(&over), "{:?}", pair.server.events);
    let closes = |frame: &Frame<'_>| matches!(frame, Frame::ConnectionClose(_));
    assert_eq!(sent_with(&pair, &eye, closes), []);
}
