//! Values of users, whose drop waits until the thread holds no lock.
//!
//! Dropping a value of a user runs code of the user: the owner of a buffer that gives its memory back,
//! a sink that flushes a file, the waker of another executor. Under a lock such code could deadlock by
//! calling the library again, and would delay everything that the lock protects. These types wrap such
//! values. While the thread has a [`Hold`], a wrapped value that ends is put into a list of the thread
//! instead of being dropped. The list is emptied when the last hold of the thread ends, unless the holder
//! passes it on with [`route`]. Without a hold, values are dropped where they end.
//!
//! The list belongs to the thread and not to the lock, because values end in many places: deep in a
//! connection, in a table that is cleared, or while a panic unwinds. None of these places needs code for it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::task::{Context, RawWakerVTable, Waker};

use bytes::Bytes;

thread_local! {
    static THREAD: Thread = const {
        Thread {
            holds: Cell::new(0),
            owner: Cell::new(0),
            waiting: Cell::new(0),
            is_dropping: Cell::new(false),
            tasks: Cell::new(0),
            is_waking: Cell::new(false),
        }
    };
    static LIST: RefCell<VecDeque<Remains>> = const { RefCell::new(VecDeque::new()) };
    static TASKS: RefCell<VecDeque<Waker>> = const { RefCell::new(VecDeque::new()) };
}

/// The state of a thread. It has no destructor, so that access costs little.
struct Thread {
    /// Locks that the thread holds.
    holds: Cell<u32>,
    /// The owner of values that end now.
    owner: Cell<u64>,
    /// Number of values in the list.
    waiting: Cell<usize>,
    /// The thread is dropping values of the list.
    is_dropping: Cell<bool>,
    /// Number of tasks to wake.
    tasks: Cell<usize>,
    /// The thread is waking tasks.
    is_waking: Cell<bool>,
}

/// Capacity of the list that a thread keeps.
const KEPT: usize = 1024;

/// Proof that the thread holds a lock under which no code of users may run.
///
/// When the last one ends, the thread wakes the tasks of [`wake`], and then drops what has ended since.
/// Release the lock before.
#[derive(Debug)]
#[must_use = "the hold ends when it is dropped"]
pub struct Hold {
    // A hold counts for the thread that began it, so it must not move to another one.
    not_send: PhantomData<*const ()>,
}

/// Begins a hold. Call it when the lock is taken.
#[inline]
pub fn hold() -> Hold {
    THREAD.with(|thread| thread.holds.set(thread.holds.get() + 1));
    Hold {
        not_send: PhantomData,
    }
}

impl Drop for Hold {
    #[inline]
    fn drop(&mut self) {
        THREAD.with(|thread| {
            let holds = thread.holds.get() - 1;
            thread.holds.set(holds);
            if holds == 0 {
                release(thread);
            }
        });
    }
}

/// Returns a number other than 0 that no other running thread has.
#[inline]
pub fn thread_number() -> usize {
    THREAD.with(|thread| std::ptr::from_ref(thread).addr())
}

/// Names the owner of the values that end on this thread from now on; 0 is no owner.
#[inline]
pub fn set_owner(owner: u64) {
    THREAD.with(|thread| thread.owner.set(owner));
}

/// Returns true if values of this thread wait to be dropped.
#[inline]
pub fn has_waiting() -> bool {
    THREAD.with(|thread| thread.waiting.get() > 0)
}

/// Drops `value` when the last hold of this thread ends, or at once if there is none.
pub fn defer<T: Send + 'static>(value: T) {
    put(value, true, |value| Kind::Other(Box::new(value)));
}

/// Calls `run` when the last hold of this thread ends, or at once if there is none.
pub fn run(run: impl FnOnce() + Send + 'static) {
    struct Run<F: FnOnce()>(Option<F>);
    impl<F: FnOnce()> Drop for Run<F> {
        fn drop(&mut self) {
            if let Some(run) = self.0.take() {
                run();
            }
        }
    }
    defer(Run(Some(run)));
}

/// Wakes a task when the last hold of this thread ends, or at once if there is none.
#[inline]
pub fn wake(waker: Waker) {
    if THREAD.with(|thread| thread.holds.get()) == 0 {
        return waker.wake();
    }
    let mut waker = Some(waker);
    let _ = TASKS.try_with(|tasks| {
        tasks.borrow_mut().extend(waker.take());
        THREAD.with(|thread| thread.tasks.set(thread.tasks.get() + 1));
    });
    // The thread is ending and has no list any more.
    waker.into_iter().for_each(Waker::wake);
}

/// Adds values that [`route`] removed from the list of another thread to the list of this one, which must
/// have a [`Hold`].
pub fn take_over(remains: impl IntoIterator<Item = Remains>) {
    remains.into_iter().for_each(push);
}

/// Removes waiting values and passes them to `take`. Keeps those of the owner `own`, and those that any
/// thread may drop once it has released its locks. With `None`, values of all owners are removed.
///
/// `take` must not drop them.
#[cold]
pub fn route(own: Option<u64>, mut take: impl FnMut(Remains)) {
    for _ in 0..THREAD.with(|thread| thread.waiting.get()) {
        let Some(remains) = pop() else { return };
        if remains.is_light || Some(remains.owner) == own {
            push(remains);
        } else {
            take(remains);
        }
    }
}

/// A value of a user that has ended and waits to be dropped.
#[must_use = "dropping it runs code of users"]
pub struct Remains {
    owner: u64,
    /// Any thread may drop it after it has released its locks.
    is_light: bool,
    kind: Kind,
}

#[expect(dead_code, reason = "the values are only dropped")]
enum Kind {
    Bytes(Bytes),
    Waker(Waker),
    Other(Box<dyn Send>),
}

impl Remains {
    /// Returns the owner, as named by [`set_owner`].
    pub fn owner(&self) -> u64 {
        self.owner
    }

    /// Drops the value and catches a panic of its code, because the thread that drops it serves other
    /// connections as well.
    pub fn end(self) {
        contain(|| drop(self.kind));
    }
}

impl fmt::Debug for Remains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remains")
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

/// Drops a value that ends, now or when the thread has released its locks.
#[inline]
fn put<T>(value: T, is_light: bool, kind: impl FnOnce(T) -> Kind) {
    match THREAD.with(|thread| (thread.holds.get() > 0).then(|| thread.owner.get())) {
        Some(owner) => push(Remains {
            owner,
            is_light,
            kind: kind(value),
        }),
        None => drop(value),
    }
}

/// Adds to the list. Drops the value if the thread is ending and has no list any more.
fn push(remains: Remains) {
    let mut remains = Some(remains);
    let _ = LIST.try_with(|list| {
        list.borrow_mut().extend(remains.take());
        THREAD.with(|thread| thread.waiting.set(thread.waiting.get() + 1));
    });
}

fn pop() -> Option<Remains> {
    let first = LIST.try_with(|list| list.borrow_mut().pop_front()).ok()??;
    THREAD.with(|thread| thread.waiting.set(thread.waiting.get() - 1));
    Some(first)
}

/// Wakes the tasks, and drops the values. The tasks come first, because the drop of a value may take long
/// or wait for one of them.
#[inline]
fn release(thread: &Thread) {
    if thread.tasks.get() > 0 && !thread.is_waking.get() {
        wake_all(thread);
    }
    if thread.waiting.get() > 0 && !thread.is_dropping.get() {
        drop_all(thread);
    }
}

/// Wakes the tasks in order. Code of wakers may call the library, whose holds leave further tasks to this
/// loop.
fn wake_all(thread: &Thread) {
    thread.is_waking.set(true);
    while let Ok(Some(waker)) = TASKS.try_with(|tasks| tasks.borrow_mut().pop_front()) {
        thread.tasks.set(thread.tasks.get() - 1);
        contain(|| waker.wake());
    }
    thread.is_waking.set(false);
}

/// Runs code of a user and catches its panics.
fn contain(run: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    }
}

/// Drops the values in order. Their code may call the library, whose holds add values to the list but
/// leave them to this loop: otherwise a long list could exhaust the stack.
#[cold]
fn drop_all(thread: &Thread) {
    thread.is_dropping.set(true);
    while let Some(remains) = pop() {
        remains.end();
    }
    thread.is_dropping.set(false);
    let _ = LIST.try_with(|list| {
        if list.borrow().capacity() > KEPT {
            list.borrow_mut().shrink_to(KEPT);
        }
    });
}

/// Bytes of a user, whose memory may have an owner with code of its own ([`Bytes::from_owner`]).
#[derive(Clone, Debug, Default)]
pub struct ForeignBytes(Bytes);

impl ForeignBytes {
    /// Wraps bytes, whose drop waits for the end of a [`Hold`].
    pub fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// Shortens the bytes to the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }
}

impl Deref for ForeignBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for ForeignBytes {
    #[inline]
    fn drop(&mut self) {
        let bytes = mem::take(&mut self.0);
        // True only for the last handle of memory without an owner: freeing it runs no code of the user.
        if !bytes.is_unique() {
            put(bytes, false, Kind::Bytes);
        }
    }
}

/// A waker, which may belong to an executor of the user.
#[derive(Debug)]
pub struct ForeignWaker(Option<Waker>);

impl ForeignWaker {
    /// Wraps a waker, whose drop waits for the end of a [`Hold`].
    pub fn new(waker: Waker) -> Self {
        Self(Some(waker))
    }

    /// Wraps a clone of the waker of a task. Call it before the lock is taken.
    pub fn of(cx: &Context<'_>) -> Self {
        Self::new(cx.waker().clone())
    }

    /// Returns the waker, which must not be cloned or woken under a lock.
    pub fn as_waker(&self) -> &Waker {
        self.0.as_ref().unwrap_or(Waker::noop())
    }

    /// Wakes the task, after the release of the locks that the thread holds.
    pub fn wake(self) {
        wake(self.into_inner());
    }

    /// Returns the waker, whose drop is then not deferred any more.
    pub fn into_inner(mut self) -> Waker {
        self.0.take().unwrap_or_else(|| Waker::noop().clone())
    }
}

impl Drop for ForeignWaker {
    #[inline]
    fn drop(&mut self) {
        if let Some(waker) = self.0.take() {
            put(waker, true, Kind::Waker);
        }
    }
}

/// The waker of the task that is polled. It is cloned only if the task has to wait: most polls are ready,
/// and an unneeded clone costs as much as a lock.
///
/// A clone runs code of the executor, which must not happen under a lock. So this clones the waker at
/// once, unless it is of the kind named by [`allow_clones_of`].
#[derive(Debug)]
pub struct TaskWaker<'a> {
    waker: &'a Waker,
    clone: Option<ForeignWaker>,
}

impl<'a> TaskWaker<'a> {
    /// Borrows the waker of a task. Call it before the lock is taken.
    #[inline]
    pub fn of(cx: &Context<'a>) -> Self {
        let waker = cx.waker();
        let may_wait = ptr::eq(waker.vtable(), PLAIN.load(Ordering::Relaxed));
        Self {
            waker,
            clone: (!may_wait).then(|| ForeignWaker::new(waker.clone())),
        }
    }

    /// Returns a waker to keep. It may be called under a lock.
    #[inline]
    pub fn take(&mut self) -> ForeignWaker {
        let cloned = self.clone.take();
        cloned.unwrap_or_else(|| ForeignWaker::new(self.waker.clone()))
    }
}

/// The kind of wakers that [`TaskWaker`] clones under a lock.
static PLAIN: AtomicPtr<RawWakerVTable> = AtomicPtr::new(ptr::null_mut());

/// Allows clones of all wakers of the same kind under a lock: for a runtime whose wakers count references
/// and do nothing else when they are cloned. Each call replaces the kind of the previous one.
pub fn allow_clones_of(waker: &Waker) {
    let table = ptr::from_ref(waker.vtable()).cast_mut();
    if PLAIN.load(Ordering::Relaxed) != table {
        PLAIN.store(table, Ordering::Relaxed);
    }
}

/// A hook of a user: a sink, a controller.
///
/// `LIGHT` is true for a value that holds hooks of users only indirectly, and whose drop takes little time.
/// Any thread that has released its locks drops it.
pub struct Foreign<T: Send + 'static, const LIGHT: bool = false>(Option<T>);

impl<T: Send + 'static, const LIGHT: bool> Foreign<T, LIGHT> {
    /// Wraps a value, whose drop waits for the end of a [`Hold`].
    pub fn new(value: T) -> Self {
        Self(Some(value))
    }
}

impl<T: Send + 'static, const LIGHT: bool> Deref for Foreign<T, LIGHT> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_ref().expect("present until it is dropped")
    }
}

impl<T: Send + 'static, const LIGHT: bool> DerefMut for Foreign<T, LIGHT> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("present until it is dropped")
    }
}

impl<T: Send + fmt::Debug + 'static, const LIGHT: bool> fmt::Debug for Foreign<T, LIGHT> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Send + 'static, const LIGHT: bool> Drop for Foreign<T, LIGHT> {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            put(value, LIGHT, |value| Kind::Other(Box::new(value)));
        }
    }
}

#[cfg(test)]
mod tests;
