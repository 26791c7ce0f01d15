use super::*;
use crate::space::sent::FrameLists;

const RTT: Duration = Duration::from_millis(10);

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// Returns the limits of a client whose server allows two bidirectional streams.
fn client() -> StreamLimits {
    let mut limits = StreamLimits::new(Side::Client, 8, 8);
    limits.on_limit(Direction::Bidirectional, 2);
    limits
}

/// Writes the frames that are due into a packet of `room` bytes, and returns them.
fn written(limits: &mut StreamLimits, room: usize) -> Vec<SentFrame> {
    let (mut bytes, mut lists) = (vec![0; room], FrameLists::default());
    let mut packet = PacketBuilder::new(&mut bytes, &mut lists);
    limits.write_frames(at(0), &mut packet);
    let ((_, frames), mut sent) = (packet.finish(), Vec::new());
    frames.for_each(&lists, |frame| sent.push(frame));
    sent
}

fn blocked(limit: u64) -> SentFrame {
    let direction = Direction::Bidirectional;
    SentFrame::StreamsBlocked { direction, limit }
}

#[test]
fn refused_stream_asks_once_for_a_larger_limit() {
    let mut limits = client();
    assert!(limits.open(Direction::Bidirectional).is_some());
    assert!(limits.open(Direction::Bidirectional).is_some());
    assert!(limits.has_own_exchanges() && !limits.is_blocked());
    assert_eq!(limits.open(Direction::Bidirectional), None);
    assert_eq!(limits.open(Direction::Bidirectional), None);
    assert!(limits.is_blocked());
    assert_eq!(written(&mut limits, 100), [blocked(2)]);
    assert_eq!(limits.due_frames(), 0);
    limits.on_streams_blocked_lost(Direction::Bidirectional);
    assert_eq!(written(&mut limits, 100), [blocked(2)]);
    limits.on_streams_blocked_acked(Direction::Bidirectional, 2);
    limits.on_streams_blocked_lost(Direction::Bidirectional);
    assert_eq!(limits.due_frames(), 0, "another copy was acknowledged");
}

#[test]
fn larger_limit_withdraws_the_frame_that_asks_for_it() {
    let mut limits = client();
    while limits.open(Direction::Bidirectional).is_some() {}
    assert_eq!(limits.due_frames(), 1);
    assert!(limits.on_limit(Direction::Bidirectional, 3));
    assert_eq!(limits.due_frames(), 0);
}

#[test]
fn frames_wait_for_a_packet_with_room() {
    let mut limits = client();
    while limits.open(Direction::Bidirectional).is_some() {}
    assert_eq!(written(&mut limits, 20), []);
    assert_eq!(written(&mut limits, 100), [blocked(2)]);
}

#[test]
fn ended_streams_raise_the_limit_of_their_direction() {
    let mut limits = StreamLimits::new(Side::Server, 8, 8);
    let id = StreamId::new(Side::Client, Direction::Unidirectional, 0);
    assert_eq!(limits.on_use(id), Ok(Use::New));
    assert_eq!(
        limits.open_count(Side::Client, Direction::Unidirectional),
        1
    );
    limits.on_retired(at(0), id, false);
    let raised = SentFrame::MaxStreams {
        direction: Direction::Unidirectional,
        limit: 9,
    };
    assert_eq!(written(&mut limits, 100), [raised]);
    limits.on_max_streams_lost(Direction::Unidirectional);
    assert_eq!(written(&mut limits, 100), [raised]);
    let old = StreamsBlocked {
        direction: Direction::Unidirectional,
        limit: 8,
    };
    limits.on_streams_blocked(at(9), RTT, old);
    assert_eq!(limits.due_frames(), 0, "the frame may be in flight");
    limits.on_streams_blocked(at(10), RTT, old);
    assert_eq!(written(&mut limits, 100), [raised]);
}

#[test]
fn stream_that_we_have_not_opened_is_an_error() {
    let mut limits = client();
    let own = limits.open(Direction::Bidirectional).unwrap();
    assert_eq!(limits.on_use(own), Ok(Use::Known));
    let next = StreamId::new(Side::Client, Direction::Bidirectional, 1);
    assert!(limits.on_use(next).is_err());
}

#[test]
fn no_frame_is_due_after_the_end() {
    let mut limits = StreamLimits::new(Side::Server, 1, 1);
    let id = StreamId::new(Side::Client, Direction::Bidirectional, 0);
    assert_eq!(limits.on_use(id), Ok(Use::New));
    limits.on_lost();
    assert_eq!(
        limits.accept(Direction::Bidirectional),
        Some((id, Use::Known))
    );
    limits.on_retired(at(0), id, false);
    assert_eq!(limits.due_frames(), 0);
}
