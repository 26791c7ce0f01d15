//! The shards of an endpoint, and what is asked of all of them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use courser_transport::{EndpointConfig, ShardPlace};
use courser_udp::Steering;

use crate::error::ConfigError;
use crate::runtime::{Current, Socket};
use crate::shard::clock::Clock;
use crate::shard::driver::Driver;
use crate::shard::lock::{Locked, Shard};
use crate::shard::state::ShardState;
use crate::shard::wakers::{List, Ticket};

/// Never empty, and as many from the beginning to the end.
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

/// The sockets of an endpoint, one for each shard.
#[derive(Debug)]
pub(crate) struct Sockets {
    pub(crate) each: Vec<Socket>,
    pub(crate) rule: Option<Steering>,
    pub(crate) note: Option<String>,
}

impl Sockets {
    /// One socket, for one shard. `reason` tells why there cannot be more.
    pub(crate) fn one(socket: Socket, requested: usize, reason: &str) -> Self {
        let note = format!("the endpoint has one shard instead of {requested}: {reason}");
        Self {
            each: vec![socket],
            rule: None,
            note: (requested > 1).then_some(note),
        }
    }

    /// Binds a socket for each of `count` shards.
    pub(crate) fn bind(
        runtime: &Current,
        address: SocketAddr,
        count: usize,
        rule: Option<Steering>,
    ) -> std::io::Result<Self> {
        if count == 1 {
            return runtime.bind(address).map(|socket| Self::one(socket, 1, ""));
        }
        let Some(mut group) = runtime.bind_group(address, count, rule)? else {
            let reason = "the runtime has sockets of its own";
            return runtime
                .bind(address)
                .map(|socket| Self::one(socket, count, reason));
        };
        if group.sockets.len() == 1
            && let Some(socket) = group.sockets.pop()
        {
            let refused = group
                .unshared
                .map_or_else(String::new, |it| format!(": {it}"));
            let reason = format!("the system does not let sockets share a port{refused}");
            return Ok(Self::one(runtime.adopt_udp(socket)?, count, &reason));
        }
        let each = group.sockets.into_iter().map(|it| runtime.adopt_udp(it));
        let cause = match (rule, group.unsteered) {
            (None, _) => Some("connection IDs have no place for the shard".to_owned()),
            (Some(_), Some(error)) => Some(format!("the system refuses the filter: {error}")),
            (Some(_), None) => None,
        };
        let note = cause.map(|cause| {
            format!("datagrams of clients that have moved are handed on between shards ({cause})")
        });
        Ok(Self {
            each: each.collect::<std::io::Result<_>>()?,
            rule,
            note,
        })
    }
}

/// Returns the rule for the connection IDs of an endpoint, if they have a place for the shard.
pub(crate) fn rule_of(config: &EndpointConfig) -> Option<Steering> {
    let (id_len, offset) = config.shard_place()?;
    Some(Steering {
        id_len: u8::try_from(id_len).ok()?,
        offset: u8::try_from(offset).ok()?,
    })
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
        sockets: Sockets,
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
            unreachable!("never empty")
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

    /// Does something to each shard under its lock, one after the other.
    pub(crate) fn each(&self, mut change: impl FnMut(&mut Locked<'_>)) {
        self.all.iter().for_each(|shard| change(&mut shard.lock()));
    }

    /// Adds up something of each shard.
    pub(crate) fn sum<T>(
        &self,
        mut of: impl FnMut(&Locked<'_>) -> T,
        add: impl Fn(&mut T, T),
    ) -> T {
        let (first, others) = self.all.split_first().expect("never empty");
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
            // A hook that drops this under the lock leaves its place behind.
            if ticket.is_some() && !shard.is_held_here() {
                shard.lock().waiters(self.list).forget(ticket);
            }
        }
    }
}

#[cfg(test)]
mod tests;
