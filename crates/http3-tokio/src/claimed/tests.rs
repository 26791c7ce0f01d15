use super::*;

fn frame(stream: Option<u64>, len: usize) -> ExtensionFrame {
    ExtensionFrame {
        stream: stream.map(StreamId::from_value),
        frame_type: 0x1000,
        payload: vec![0; len].into(),
    }
}

#[test]
fn integers_are_read_when_they_are_complete() {
    for (bytes, value) in [
        (&[0x25][..], 37),
        (&[0x7b, 0xbd], 15_293),
        (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
        (
            &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
            151_288_809_941_952_652,
        ),
    ] {
        for len in 0..bytes.len() {
            let mut part = Bytes::copy_from_slice(&bytes[..len]);
            assert_eq!(take_varint(&mut part), None);
            assert_eq!(part.len(), len);
        }
        let mut whole = Bytes::from([bytes, b"rest"].concat());
        assert_eq!(take_varint(&mut whole), Some(value));
        assert_eq!(whole, "rest");
    }
}

/// K203, A122.
#[test]
fn waiting_frames_are_limited_in_number_and_bytes() {
    let queue = Queue::default();
    let mut woken = Vec::new();
    for _ in 0..256 {
        assert_eq!(queue.add_frame(frame(None, 1), &mut woken), Ok(()));
    }
    for (stream, scope) in [(None, Scope::Connection), (Some(0), Scope::Stream)] {
        let error = queue
            .add_frame(frame(stream, 1), &mut woken)
            .expect_err("full");
        assert_eq!((error.code, error.scope), (Code::EXCESSIVE_LOAD, scope));
    }
    let queue = Queue::default();
    assert_eq!(queue.add_frame(frame(None, 65_536), &mut woken), Ok(()));
    assert!(queue.add_frame(frame(None, 1), &mut woken).is_err());
    let cx = Context::from_waker(Waker::noop());
    assert!(queue.poll_frame(&cx, &mut None).is_ready());
    assert_eq!(queue.add_frame(frame(None, 1), &mut woken), Ok(()));
}

#[test]
fn waiting_task_is_woken_by_a_frame_and_by_the_end() {
    let queue = Queue::default();
    let cx = Context::from_waker(Waker::noop());
    let mut ticket = None;
    assert!(queue.poll_frame(&cx, &mut ticket).is_pending());
    let mut woken = Vec::new();
    assert_eq!(queue.add_frame(frame(None, 1), &mut woken), Ok(()));
    assert_eq!(woken.len(), 1);
    queue.on_end();
    assert_eq!(
        queue.poll_frame(&cx, &mut ticket),
        Poll::Ready(Some(frame(None, 1)))
    );
    assert_eq!(queue.poll_frame(&cx, &mut ticket), Poll::Ready(None));
}
