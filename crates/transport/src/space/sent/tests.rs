use super::*;
use courser_base::Side;

fn stream(index: u64, offset: u64) -> SentFrame {
    let id = StreamId::new(Side::Client, Direction::Bidirectional, index);
    SentFrame::Stream {
        id,
        offset,
        len: 7,
        fin: true,
    }
}

fn collect(frames: &SentFrames, lists: &FrameLists) -> Vec<SentFrame> {
    let mut all = Vec::new();
    frames.for_each(lists, |frame| all.push(frame));
    all
}

#[test]
fn record_is_at_most_32_bytes() {
    assert!(size_of::<SentFrames>() <= 32);
}

#[test]
fn bulk_packet_needs_no_list() {
    let mut lists = FrameLists::default();
    lists.start();
    lists.push(stream(1, 9));
    lists.push(SentFrame::Ack { largest: 4 });
    let frames = lists.take();
    assert_eq!(lists.in_use(), 0);
    assert_eq!(
        collect(&frames, &lists),
        vec![stream(1, 9), SentFrame::Ack { largest: 4 }]
    );
}

#[test]
fn many_frames_share_a_recycled_list() {
    let mut lists = FrameLists::default();
    for _ in 0..10 {
        lists.start();
        let all = [
            stream(1, 0),
            stream(2, 0),
            SentFrame::MaxData { limit: 7 },
            SentFrame::HandshakeDone,
        ];
        for frame in all {
            lists.push(frame);
        }
        let frames = lists.take();
        assert_eq!(collect(&frames, &lists), all);
        assert!(!frames.is_only_stream());
        frames.release(&mut lists);
    }
    assert_eq!((lists.in_use(), lists.pool.lists.len()), (0, 1));
}
