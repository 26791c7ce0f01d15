//! The shards of an endpoint, and calls that act on all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use courser_transport::ShardPlace;
use courser_udp::Steering;

use crate::error::ConfigError;
use crate::runtime::Current;
use crate::shard::clock::Clock;
use crate::shard::driver::Driver;
use crate::shard::lock::{Locked, Shard};
use crate::shard::shard_sockets::ShardSockets;
use crate::shard::state::ShardState;
use crate::shard::wakers::{List, Ticket};

/// The shards of an endpoint: at least one, and always the same number.
#[derive(Debug)]
pub(crate) struct Shards {
    all: Box<[Arc<Shard>]>,
    /// The shard whose turn it is, of those that take turns.
    turn: AtomicUsize,
    /// The rule by which datagrams find their shard, for sockets that are bound later.
    rule: Option<Steering>,
    /// The reason why there are fewer shards than requested, or why they cost more.
    note: Option<String>,
}

/// Checks a number of shards.
pub(crate) fn check(count: usize) -> Result<(), ConfigError> {
    let most = courser_transport::MAX_SHARDS;
    if (1..=most).contains(&count) {
        return Ok(());
    }
    Err(ConfigError::Transport(courser_transport::ConfigError {
        field: "shards",
        message: format!("is {count}, allowed is 1 to {most}"),
    }))
}

impl Shards {
    /// Starts a shard on each socket.
    #[track_caller]
    pub(crate) fn start(
        runtime: &Current,
        sockets: ShardSockets,
        endpoints: Vec<courser_transport::Endpoint>,
    ) -> Self {
        let count = endpoints.len();
        debug_assert_eq!(count, sockets.each.len(), "one socket each");
        let clock = Clock::new(runtime);
        let parts = sockets.each.into_iter().zip(endpoints);
        let all: Box<[_]> = parts
            .zip(ShardPlace::of_all(count))
            .map(|((socket, endpoint), place)| {
                let clock = clock.clone();
                let state = ShardState::new(endpoint, socket, clock, count, place.clone());
                Arc::new(Shard::new(state, runtime.clone(), place))
            })
            .collect();
        for shard in &all {
            runtime.spawn(Driver::new(shard.clone()));
        }
        Self {
            all,
            turn: AtomicUsize::new(0),
            rule: sockets.rule,
            note: sockets.note,
        }
    }

    pub(crate) fn all(&self) -> &[Arc<Shard>] {
        &self.all
    }

    /// Returns the first shard, which is the only one unless more were requested.
    pub(crate) fn first(&self) -> &Arc<Shard> {
        &self.all[0]
    }

    /// Returns the shard whose turn it is to get a connection, of those that have not failed.
    pub(crate) fn next(&self) -> &Arc<Shard> {
        let [first, others @ ..] = &*self.all else {
            unreachable!("an endpoint has a shard")
        };
        for _ in others {
            let shard = &self.all[self.next_turn()];
            if !shard.place.as_ref().is_some_and(ShardPlace::has_failed) {
                return shard;
            }
        }
        match others {
            [] => first,
            _ => &self.all[self.next_turn()],
        }
    }

    fn next_turn(&self) -> usize {
        self.turn.fetch_add(1, Ordering::Relaxed) % self.all.len()
    }

    pub(crate) fn rule(&self) -> Option<Steering> {
        self.rule
    }

    pub(crate) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Changes each shard under its lock, one after the other.
    pub(crate) fn each(&self, mut change: impl FnMut(&mut Locked<'_>)) {
        self.all.iter().for_each(|shard| change(&mut shard.lock()));
    }

    /// Adds up a value of each shard.
    pub(crate) fn sum<T>(
        &self,
        mut of: impl FnMut(&Locked<'_>) -> T,
        add: impl Fn(&mut T, T),
    ) -> T {
        let (first, others) = self.all.split_first().expect("an endpoint has a shard");
        let mut sum = of(&first.lock());
        for shard in others {
            add(&mut sum, of(&shard.lock()));
        }
        sum
    }
}

/// Waits in a list of each of several shards until a condition holds in one of them. Leaves the lists when
/// it is dropped.
#[derive(Debug)]
pub(crate) struct WaitAny<'a, F> {
    shards: &'a [Arc<Shard>],
    list: List,
    tickets: Vec<Ticket>,
    /// The shard that is asked first, so that all have their turn.
    first: usize,
    check: F,
}

impl<'a, F> WaitAny<'a, F> {
    pub(crate) fn new(shards: &'a Shards, list: List, check: F) -> Self {
        Self {
            first: shards.next_turn(),
            tickets: vec![None; shards.all.len()],
            shards: &shards.all,
            list,
            check,
        }
    }
}

impl<'a, T, F> Future for WaitAny<'a, F>
where
    F: FnMut(&mut Locked<'_>) -> Poll<T> + Unpin,
{
    type Output = (&'a Arc<Shard>, T);

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let count = this.shards.len();
        for number in (this.first..this.first + count).map(|number| number % count) {
            let (shard, ticket) = (&this.shards[number], &mut this.tickets[number]);
            let poll = shard.poll_list(this.list, ticket, cx, &mut this.check);
            if let Poll::Ready(value) = poll {
                return Poll::Ready((shard, value));
            }
        }
        Poll::Pending
    }
}

impl<F> Drop for WaitAny<'_, F> {
    fn drop(&mut self) {
        for (shard, ticket) in self.shards.iter().zip(&mut self.tickets) {
            // A hook that drops this under the lock leaves the waker registered.
            if ticket.is_some() && !shard.is_held_here() {
                shard.lock().waiters(self.list).forget(ticket);
            }
        }
    }
}

#[cfg(test)]
mod tests;
