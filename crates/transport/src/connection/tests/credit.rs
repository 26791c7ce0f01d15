//! Tests repeated requests for credit and repeated announcements of it. RFC 9000 §4.1, §19.12 to §19.14.

use courser_wire::frame::Frame;

use super::*;
use crate::testing::eye::Eye;

fn frames_of(
    pair: &Pair,
    eye: &Eye,
    is_client: bool,
    wanted: impl Fn(&Frame<'_>) -> bool,
) -> usize {
    let sent = match is_client {
        true => eye.client_sent(pair),
        false => eye.server_sent(pair),
    };
    sent.iter().filter(|packet| packet.has(&wanted)).count()
}

/// Creates a client that has filled the window of a stream and received acknowledgements for all of
/// it.
fn blocked() -> (Pair, Eye) {
    let (mut pair, eye) = Pair::watched_and_connected();
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Unidirectional).expect("room");
    for _ in 0..200 {
        let streams = pair.client.connection().streams();
        while streams.write(id, &[5; 4096]).is_ok() {}
        pair.client.touch();
        pair.run_for(RTT / 4);
    }
    let recovery = &pair.client.connection().packets.recovery;
    assert!(!recovery.is_waiting(SpaceId::Application));
    (pair, eye)
}

fn is_stream_blocked(frame: &Frame<'_>) -> bool {
    matches!(frame, Frame::StreamDataBlocked(_))
}

#[test]
fn blocked_sender_repeats_its_report_while_nothing_is_in_flight() {
    let (mut pair, eye) = blocked();
    let mut counts = Vec::new();
    for _ in 0..4 {
        pair.run_for(Duration::from_secs(2));
        counts.push(frames_of(&pair, &eye, true, is_stream_blocked));
    }
    assert!(counts[0] > 1 && counts[3] > counts[0], "{counts:?}");
    pair.run_for(Duration::from_secs(600));
    let all = frames_of(&pair, &eye, true, is_stream_blocked);
    assert!(all <= 10, "{all} repetitions");
}

/// The peer has not received a limit that was raised long ago. It is announced again, but at most
/// once per round trip, however often the peer asks.
#[test]
fn limit_is_repeated_once_per_round_trip_for_a_peer_that_missed_it() {
    let frames = [
        // DATA_BLOCKED, STREAM_DATA_BLOCKED for stream 0, STREAMS_BLOCKED.
        (&[0x14, 0][..], 0x10),
        (&[0x15, 0, 0], 0x11),
        (&[0x16, 0], 0x12),
        (&[0x17, 0], 0x13),
    ];
    for (asked, answer) in frames {
        let (mut pair, eye) = Pair::watched_and_connected();
        let streams = pair.client.connection().streams();
        let id = streams.open(Direction::Bidirectional).expect("room");
        assert_eq!(streams.write(id, b"x"), Ok(1));
        pair.client.touch();
        pair.run_for(RTT * 2);
        let is_answer = |frame: &Frame<'_>| frame.frame_type().value() == answer;
        let count = |pair: &Pair| frames_of(pair, &eye, false, is_answer);
        assert_eq!(count(&pair), 0);
        for _ in 0..5 {
            pair.forge_to_server(SpaceId::Application, asked);
        }
        assert_eq!(count(&pair), 1, "asked with {asked:x?}");
        pair.run_for(RTT * 2);
        pair.forge_to_server(SpaceId::Application, asked);
        assert_eq!(count(&pair), 2, "asked with {asked:x?} a round trip later");
        assert_eq!(pair.server_error(), None);
    }
}

#[test]
fn peer_at_its_limit_gets_no_credit_frame() {
    let (mut pair, eye) = blocked();
    pair.run_for(Duration::from_secs(5));
    let is_credit = |frame: &Frame<'_>| {
        matches!(
            frame,
            Frame::MaxData(_) | Frame::MaxStreamData(_) | Frame::MaxStreams(_)
        )
    };
    assert!(frames_of(&pair, &eye, true, is_stream_blocked) > 1);
    assert_eq!(frames_of(&pair, &eye, false, is_credit), 0);
}

/// A path loses every second packet of ours, and probes repeat the lost frames. Once a probe has
/// arrived, nothing is left to repeat. Before this was fixed, loss and probe triggered each other
/// until the peer took it for an attack.
#[test]
fn frames_of_a_probe_are_repeated_only_until_one_arrives() {
    let (mut pair, eye) = Pair::watched_and_connected();
    let streams = pair.client.connection().streams();
    while streams.open(Direction::Bidirectional).is_some() {}
    while streams.open(Direction::Unidirectional).is_some() {}
    let mut passes = true;
    pair.link.filter = Some(Box::new(move |_, datagram| {
        if datagram.to.port() == 4433 {
            passes = !passes;
        }
        passes || datagram.to.port() != 4433
    }));
    let sent = pair.client.sent.len();
    pair.client.touch();
    pair.run_for(Duration::from_secs(10));
    let is_blocked = |frame: &Frame<'_>| matches!(frame, Frame::StreamsBlocked(_));
    let all = frames_of(&pair, &eye, true, is_blocked);
    assert!((2..20).contains(&all), "{all} times");
    assert!(
        pair.client.sent.len() - sent < 60,
        "{}",
        pair.client.sent.len()
    );
}
