//! Waiting in a list of the shard until a condition holds.

use std::pin::Pin;
use std::task::{Context, Poll};

use crate::shard::lock::{Locked, Shard};
use crate::shard::wakers::{List, Ticket};

/// Waits until `check` is ready. Leaves the list when it is dropped.
#[derive(Debug)]
pub(crate) struct Wait<'a, F> {
    shard: &'a Shard,
    list: List,
    ticket: Ticket,
    check: F,
}

impl<'a, F> Wait<'a, F> {
    /// Waits in `list`, whose owner must outlive the borrow.
    pub(crate) fn new(shard: &'a Shard, list: List, check: F) -> Self {
        Self {
            shard,
            list,
            ticket: None,
            check,
        }
    }
}

impl<T, F> Future for Wait<'_, F>
where
    F: FnMut(&mut Locked<'_>) -> Poll<T> + Unpin,
{
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        this.shard
            .poll_list(this.list, &mut this.ticket, cx, &mut this.check)
    }
}

impl<F> Drop for Wait<'_, F> {
    fn drop(&mut self) {
        // A hook that drops this under the lock leaves the waker registered.
        if self.ticket.is_some() && !self.shard.is_held_here() {
            let mut locked = self.shard.lock_for(self.list.connection());
            locked.waiters(self.list).forget(&mut self.ticket);
        }
    }
}
