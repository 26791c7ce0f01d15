use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::Wake;

use super::*;

/// Reports its drop, and whether the thread held a lock at that time.
struct ReportsDrop(u8, Sender<(u8, bool)>);

impl AsRef<[u8]> for ReportsDrop {
    fn as_ref(&self) -> &[u8] {
        b"bytes"
    }
}

impl Drop for ReportsDrop {
    fn drop(&mut self) {
        let is_held = THREAD.with(|thread| thread.holds.get() > 0);
        self.1.send((self.0, is_held)).expect("the receiver exists");
    }
}

fn reporter() -> (impl Fn(u8) -> ReportsDrop, Receiver<(u8, bool)>) {
    let (sender, ends) = channel();
    (move |number| ReportsDrop(number, sender.clone()), ends)
}

#[test]
fn values_are_dropped_where_they_end_without_a_hold() {
    let (reporter, ends) = reporter();
    drop(Foreign::<_>::new(reporter(1)));
    drop(ForeignBytes::new(Bytes::from_owner(reporter(2))));
    defer(reporter(3));
    let dropped: Vec<_> = ends.try_iter().map(|(number, _)| number).collect();
    assert_eq!(dropped, [1, 2, 3]);
}

#[test]
fn values_are_dropped_in_order_after_the_outermost_hold() {
    let (reporter, ends) = reporter();
    let outer = hold();
    let inner = hold();
    drop(ForeignBytes::new(Bytes::from_owner(reporter(1))));
    drop(Foreign::<_, true>::new(reporter(2)));
    drop(inner);
    defer(reporter(3));
    assert!(ends.try_recv().is_err(), "under a lock");
    drop(outer);
    let all: Vec<_> = ends.try_iter().collect();
    assert_eq!(all, [(1, false), (2, false), (3, false)]);
    assert!(!has_waiting());
}

#[test]
fn bytes_without_an_owner_are_freed_at_once() {
    let _hold = hold();
    drop(ForeignBytes::new(Bytes::from(vec![1; 100])));
    assert!(!has_waiting());
}

#[test]
fn values_of_other_owners_can_be_passed_on() {
    let (reporter, ends) = reporter();
    let hold = hold();
    for owner in 1..4 {
        set_owner(owner);
        drop(Foreign::<_>::new(reporter(
            u8::try_from(owner).expect("the number fits into a byte"),
        )));
    }
    defer(reporter(4));
    let mut passed = Vec::new();
    route(Some(2), |remains| passed.push(remains));
    let owners: Vec<_> = passed.iter().map(Remains::owner).collect();
    assert_eq!(owners, [1, 3]);
    drop(hold);
    let dropped: Vec<_> = ends.try_iter().map(|(number, _)| number).collect();
    assert_eq!(
        dropped,
        [2, 4],
        "the owner's value, and the one that any thread may drop"
    );
    drop(passed);
    assert_eq!(ends.try_iter().count(), 2);
}

/// Takes a lock when it is dropped, and drops the next value under it.
struct Chain(u32, Sender<(u32, usize)>);

impl Drop for Chain {
    fn drop(&mut self) {
        let place = 0u8;
        let stack = std::ptr::from_ref(&place).addr();
        self.1.send((self.0, stack)).expect("the receiver exists");
        if let Some(next) = self.0.checked_sub(1) {
            let _hold = hold();
            drop(Foreign::<_>::new(Chain(next, self.1.clone())));
        }
    }
}

#[test]
fn drops_that_cause_drops_do_not_nest() {
    let (sender, ends) = channel();
    let first = hold();
    drop(Foreign::<_>::new(Chain(10_000, sender)));
    drop(first);
    let ends: Vec<_> = ends.try_iter().collect();
    assert_eq!(ends.len(), 10_001);
    let depth = |&(_, stack): &(u32, usize)| stack;
    let (lowest, highest) = (ends.iter().map(depth).min(), ends.iter().map(depth).max());
    assert_eq!(lowest, highest, "the stack grew");
}

/// Counts how often its task is woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Reports when it is dropped how often a task had been woken.
struct ReportsWakes(Arc<Woken>, Sender<usize>);

impl Drop for ReportsWakes {
    fn drop(&mut self) {
        let woken = self.0.0.load(Relaxed);
        self.1.send(woken).expect("the receiver exists");
    }
}

/// A drop that takes long must not delay other tasks.
#[test]
fn tasks_are_woken_before_values_are_dropped() {
    let (task, (sender, seen)) = (Arc::new(Woken::default()), channel());
    let hold = hold();
    defer(ReportsWakes(task.clone(), sender));
    wake(Waker::from(task.clone()));
    assert_eq!(task.0.load(Relaxed), 0, "under a lock");
    drop(hold);
    assert_eq!(seen.try_recv(), Ok(1));
}

/// The drop of a value may wait for a task that it has woken.
#[test]
fn tasks_woken_by_a_drop_run_before_it_returns() {
    struct Wakes(ReportsWakes);
    impl Drop for Wakes {
        fn drop(&mut self) {
            let hold = hold();
            wake(Waker::from(self.0.0.clone()));
            drop(hold);
            let woken = self.0.0.0.load(Relaxed);
            self.0.1.send(woken).expect("the receiver exists");
        }
    }
    let (task, (sender, seen)) = (Arc::new(Woken::default()), channel());
    let hold = hold();
    defer(Wakes(ReportsWakes(task, sender)));
    drop(hold);
    assert_eq!(seen.try_recv(), Ok(1));
}

#[test]
fn panic_in_a_drop_affects_no_other_code() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("a panic in the drop of a value");
        }
    }
    let (reporter, ends) = reporter();
    let hold = hold();
    drop(Foreign::<_>::new(Panics));
    drop(Foreign::<_>::new(reporter(1)));
    drop(hold);
    assert_eq!(ends.try_recv(), Ok((1, false)));
}

#[test]
fn wakers_end_after_the_hold() {
    struct Wakes(#[expect(dead_code, reason = "dropped with the waker")] ReportsDrop);
    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {}
    }
    let (reporter, ends) = reporter();
    let hold = hold();
    drop(ForeignWaker::new(Waker::from(Arc::new(Wakes(reporter(1))))));
    assert!(ends.try_recv().is_err());
    drop(hold);
    assert_eq!(ends.try_recv(), Ok((1, false)));
}

#[test]
fn only_wakers_of_the_known_kind_are_cloned_late() {
    struct Counts;
    impl std::task::Wake for Counts {
        fn wake(self: std::sync::Arc<Self>) {}
    }
    let counts = std::sync::Arc::new(Counts);
    let waker = Waker::from(counts.clone());
    let owners = || std::sync::Arc::strong_count(&counts);
    let alone = owners();
    let cx = Context::from_waker(&waker);
    assert_eq!((TaskWaker::of(&cx), owners()).1, alone + 1, "at once");
    allow_clones_of(&waker);
    let mut task = TaskWaker::of(&cx);
    assert_eq!(owners(), alone);
    let kept = task.take();
    assert_eq!(owners(), alone + 1);
    drop((task, kept));
    assert_eq!(owners(), alone);
}
