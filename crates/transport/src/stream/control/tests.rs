use super::*;

#[test]
fn wish_is_kept_until_it_is_fulfilled() {
    let (mut queue, mut wanted) = (ControlQueue::default(), Wanted::default());
    assert!(queue.is_empty());
    queue.want(3, &mut wanted, Control::Reset);
    queue.want(3, &mut wanted, Control::Reset);
    queue.want(3, &mut wanted, Control::Credit);
    assert!(wanted.has(Control::Reset) && wanted.has(Control::Credit));
    assert_eq!(queue.first(), Some(3));
    queue.unwant(&mut wanted, Control::Reset);
    assert!(!queue.is_empty());
    queue.unwant(&mut wanted, Control::Credit);
    queue.unwant(&mut wanted, Control::Credit);
    assert!(queue.is_empty());
    queue.pop_first(&mut wanted);
    assert_eq!(queue.first(), None);
}

#[test]
fn entry_left_behind_by_an_ended_stream_serves_the_next_one() {
    let (mut queue, mut wanted) = (ControlQueue::default(), Wanted::default());
    queue.want(3, &mut wanted, Control::Stop);
    queue.unwant_all(&mut wanted);
    queue.unwant_all(&mut wanted);
    assert!(queue.is_empty());
    queue.want(3, &mut wanted, Control::Blocked);
    assert!(!queue.is_empty());
    assert_eq!(queue.queue.len(), 1);
    queue.unwant(&mut wanted, Control::Blocked);
    queue.pop_first(&mut wanted);
    assert_eq!(queue.queue.len(), 0);
}
