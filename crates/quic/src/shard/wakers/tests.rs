use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use courser_base::Side;

use super::*;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns a waker as a task registers it.
fn foreign(waker: &Waker) -> ForeignWaker {
    ForeignWaker::new(waker.clone())
}

fn counting() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (count.clone(), Waker::from(count))
}

fn stream(index: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Bidirectional, index)
}

#[test]
fn ticket_survives_a_wakeup_and_is_used_again() {
    let (count, waker) = counting();
    let (mut waiters, mut woken, mut ticket) = (Waiters::default(), Vec::new(), None);
    for _ in 0..3 {
        waiters.register(&mut ticket, foreign(&waker));
        waiters.wake_all(&mut woken);
        assert_eq!(waiters.wakers.len(), 1);
    }
    woken.drain(..).for_each(Waker::wake);
    assert_eq!(count.0.load(Ordering::Relaxed), 3);
    waiters.forget(&mut ticket);
    assert_eq!((waiters.wakers.len(), ticket), (0, None));
}

#[test]
fn task_that_stopped_waiting_is_not_woken() {
    let (_, waker) = counting();
    let (mut waiters, mut woken) = (Waiters::default(), Vec::new());
    let (mut first, mut second) = (None, None);
    waiters.register(&mut first, foreign(&waker));
    waiters.register(&mut second, foreign(&waker));
    waiters.forget(&mut first);
    waiters.wake_all(&mut woken);
    assert_eq!(woken.len(), 1);
}

#[test]
fn end_of_a_stream_wakes_only_its_own_waiters() {
    let (_, waker) = counting();
    let (mut wakers, mut woken) = (ConnectionWakers::default(), Vec::new());
    let mut tickets = [None; 4];
    for (index, ticket) in tickets.iter_mut().enumerate() {
        wakers.wait_for_end(stream(index as u64 % 2), ticket, foreign(&waker));
    }
    wakers.wake_finished(stream(1), &mut woken);
    assert_eq!(woken.len(), 2);
    wakers.forget_end(stream(1), tickets[1].expect("the waker is registered"));
    wakers.forget_end(stream(1), tickets[3].expect("the waker is registered"));
    assert_eq!(wakers.ends.len(), 2);
    wakers.forget_end(stream(0), tickets[0].expect("the waker is registered"));
    wakers.wake_all(&mut woken);
    assert_eq!(woken.len(), 3);
}

#[test]
fn stop_code_is_kept_for_the_ticket_that_waited() {
    let (_, waker) = counting();
    let (mut wakers, mut woken) = (ConnectionWakers::default(), Vec::new());
    let (mut first, mut second) = (None, None);
    wakers.wait_for_end(stream(0), &mut first, foreign(&waker));
    wakers.wait_for_end(stream(1), &mut second, foreign(&waker));
    wakers.wake_stopped(stream(0), 7u8.into(), &mut woken);
    assert_eq!(woken.len(), 1);
    assert_eq!(wakers.stop_code(stream(0), first), Some(7u8.into()));
    assert_eq!(wakers.stop_code(stream(1), second), None);
}

#[test]
fn code_of_a_stopped_stream_is_kept_until_its_handle_is_gone() {
    let (mut wakers, id) = (ConnectionWakers::default(), stream(0));
    assert_eq!(wakers.stop_code(id, None), None);
    for was_finished in [false, true] {
        wakers.on_stopped(id, 9u8.into(), was_finished);
        assert_eq!(wakers.stop_code(id, None), Some(9u8.into()));
        wakers.forget_writer(id);
        assert_eq!(wakers.stop_code(id, None), None);
    }
}

#[test]
fn wakers_of_streams_keep_their_memory() {
    let (_, waker) = counting();
    let (mut wakers, mut woken) = (ConnectionWakers::default(), Vec::new());
    wakers.wait_to_read(stream(0), foreign(&waker));
    let capacity = wakers.readers.capacity();
    for index in 0..1000 {
        wakers.wake_reader(stream(index), &mut woken);
        wakers.wait_to_read(stream(index + 1), foreign(&waker));
    }
    assert_eq!(wakers.readers.capacity(), capacity);
}

#[test]
fn end_wakes_readers_then_writers_in_the_order_of_streams() {
    let mut wakers = ConnectionWakers::default();
    // Twenty at a time: a table's own order is this one by a chance of 1 in 20!.
    let waiting: Vec<Waker> = (0..40).map(|_| counting().1).collect();
    for index in (0..20u32).rev() {
        let id = stream(index.into());
        wakers.wait_to_read(id, foreign(&waiting[index as usize]));
        wakers.wait_to_write(id, foreign(&waiting[index as usize + 20]));
    }
    let mut woken = Vec::new();
    wakers.wake_all(&mut woken);
    assert_eq!(woken.len(), waiting.len());
    assert!(
        woken
            .iter()
            .zip(&waiting)
            .all(|(one, other)| one.will_wake(other))
    );
}
