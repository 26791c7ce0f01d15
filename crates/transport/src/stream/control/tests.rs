use super::*;

#[test]
fn request_is_kept_until_the_frame_is_sent() {
    let (mut queue, mut pending) = (ControlQueue::default(), PendingFrames::default());
    assert!(queue.is_empty());
    queue.request(3, &mut pending, ControlFrame::Reset);
    queue.request(3, &mut pending, ControlFrame::Reset);
    queue.request(3, &mut pending, ControlFrame::Credit);
    assert!(pending.has(ControlFrame::Reset) && pending.has(ControlFrame::Credit));
    assert_eq!(queue.first(), Some(3));
    queue.withdraw(&mut pending, ControlFrame::Reset);
    assert!(!queue.is_empty());
    queue.withdraw(&mut pending, ControlFrame::Credit);
    queue.withdraw(&mut pending, ControlFrame::Credit);
    assert!(queue.is_empty());
    queue.pop_first(&mut pending);
    assert_eq!(queue.first(), None);
}

#[test]
fn entry_of_ended_stream_is_used_for_next_stream() {
    let (mut queue, mut pending) = (ControlQueue::default(), PendingFrames::default());
    queue.request(3, &mut pending, ControlFrame::Stop);
    queue.withdraw_all(&mut pending);
    queue.withdraw_all(&mut pending);
    assert!(queue.is_empty());
    queue.request(3, &mut pending, ControlFrame::Blocked);
    assert!(!queue.is_empty());
    assert_eq!(queue.queue.len(), 1);
    queue.withdraw(&mut pending, ControlFrame::Blocked);
    queue.pop_first(&mut pending);
    assert_eq!(queue.queue.len(), 0);
}
