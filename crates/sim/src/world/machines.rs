//! Machines that run tasks, and waiting for their tasks.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use courser::runtime::{JoinError, JoinHandle};
use courser_base::Time;

use super::{LinkPair, NodeId, Stall, World};
use crate::link::DuplexSpec;
use crate::machine::{Machine, result_of};
use crate::nat::{Behind, NatKind};

/// The limit of [`World::run_until_done`] in virtual time.
const DEFAULT_LIMIT: Duration = Duration::from_secs(3600);

impl World {
    /// Adds a machine that runs tasks, see [`machine`](crate::machine).
    ///
    /// Its seed follows from that of the world and from `name`.
    ///
    /// # Panics
    /// If another machine has this address.
    pub fn machine(&mut self, name: &str, address: impl Into<IpAddr>) -> Machine {
        let address = address.into();
        let machine = Machine::new([address], self.seed_for(name))
            .with_name(name)
            .with_replay_hint(format!("World::new({:#x})", self.seed()));
        let id = self.add(name, address, machine.clone());
        machine.set_notifier(self.notifiers.notifier(id));
        machine
    }

    /// Adds a machine that runs tasks behind a NAT of its own. The world knows the address `public` only, and links lead to
    /// the returned node.
    ///
    /// # Panics
    /// If another machine has this address.
    pub fn machine_behind(
        &mut self,
        name: &str,
        private: IpAddr,
        public: IpAddr,
        kind: NatKind,
    ) -> (Machine, NodeId) {
        let address = match kind {
            NatKind::None => public,
            _ => private,
        };
        let machine = Machine::new([address], self.seed_for(name))
            .with_name(name)
            .with_replay_hint(format!("World::new({:#x})", self.seed()));
        let seed = self.seed_for(&format!("{name} nat"));
        let behind = Behind::new(machine.clone(), kind, public, seed);
        let id = self.add(name, public, behind);
        machine.set_notifier(self.notifiers.notifier(id));
        (machine, id)
    }

    /// Connects two machines with a new link. Its `forward` direction leads from `a` to `b`. Both
    /// directions have the effects of `spec`, such as `"50ms,5%"`.
    ///
    /// # Panics
    /// If one of them does not belong to this world.
    pub fn join_machines(&mut self, a: &Machine, b: &Machine, spec: &DuplexSpec) -> LinkPair {
        let (a, b) = (self.id_of(a), self.id_of(b));
        self.connect(a, b, spec)
    }

    /// Returns the ID of a machine in this world, for links that it shares with others.
    ///
    /// # Panics
    /// If it does not belong to this world.
    pub fn id_of(&self, machine: &Machine) -> NodeId {
        let address = machine.addresses().first().copied();
        let id = address.and_then(|address| self.addresses.get(&address));
        let id = id.copied().filter(|id| {
            let here = self.node::<Machine>(*id);
            here.is_some_and(|here| here.is_same(machine))
        });
        id.unwrap_or_else(|| panic!("machine {} belongs to another world", machine.name()))
    }

    /// Runs the world until a task has ended, and returns its result. Other tasks continue when the
    /// world runs again.
    ///
    /// # Errors
    /// [`NotDone`] if the task can no longer end, takes more than an hour of virtual time, or was
    /// aborted.
    ///
    /// # Panics
    /// If any task panics. The message names the task and the seed.
    pub fn run_until_done<T>(&mut self, handle: JoinHandle<T>) -> Result<T, NotDone> {
        self.run_until_done_within(DEFAULT_LIMIT, handle)
    }

    /// Runs the world as [`World::run_until_done`] does, with a limit in virtual time from now.
    ///
    /// # Errors
    /// As for [`World::run_until_done`].
    ///
    /// # Panics
    /// As for [`World::run_until_done`].
    pub fn run_until_done_within<T>(
        &mut self,
        limit: Duration,
        mut handle: JoinHandle<T>,
    ) -> Result<T, NotDone> {
        let is_done = self.run_until(limit, |_| handle.is_finished());
        let is_done = is_done.map_err(|stall| self.not_done(Cause::Stall(stall)))?;
        if is_done && let Some(result) = result_of(&mut handle) {
            return result.map_err(|error| self.not_done(Cause::Task(error)));
        }
        let has_more = self.timetable.next_time().is_some();
        Err(self.not_done(if has_more {
            Cause::Limit(limit)
        } else {
            Cause::Deadlock
        }))
    }

    /// Makes machines ready with a task that has become ready.
    pub(super) fn make_woken_machines_ready(&mut self) {
        for id in self.notifiers.take() {
            // A machine that was called since then has nothing left to do.
            if self.is_due(id) {
                self.make_ready(id);
            }
        }
    }

    fn not_done(&self, cause: Cause) -> NotDone {
        let nodes = (0..self.machines.len()).map(NodeId);
        let machines = nodes.filter_map(|id| self.node::<Machine>(id));
        let mut last_event = Time::ZERO;
        let mut pending = Vec::new();
        for machine in machines {
            last_event = last_event.max(machine.time());
            let tasks = machine.pending_tasks();
            pending.extend(tasks.iter().map(|task| {
                let last_poll = Duration::from_nanos(task.last_poll.as_nanos());
                format!("{}: {task}, since {last_poll:?}", machine.name())
            }));
        }
        NotDone {
            cause,
            last_event,
            pending,
            seed: self.seed,
        }
    }
}

/// A task that has not ended, with the reason and the tasks that wait.
#[derive(Clone, PartialEq, Eq)]
pub struct NotDone {
    cause: Cause,
    last_event: Time,
    pending: Vec<String>,
    seed: u64,
}

#[derive(Clone, PartialEq, Eq)]
enum Cause {
    Deadlock,
    Limit(Duration),
    Stall(Stall),
    Task(JoinError),
}

impl NotDone {
    /// Returns true if nothing can happen any more: no packet is in flight, no timer is set, and
    /// every task waits.
    pub fn is_deadlock(&self) -> bool {
        self.cause == Cause::Deadlock
    }

    /// Returns true if the limit of time was reached although events continue.
    pub fn is_timeout(&self) -> bool {
        matches!(self.cause, Cause::Limit(_))
    }

    /// Returns the time of the last event of a machine.
    pub fn last_event(&self) -> Time {
        self.last_event
    }

    /// Returns the tasks that have not ended, each with its machine, the line that spawned it and
    /// the time since which it waits.
    pub fn pending(&self) -> &[String] {
        &self.pending
    }
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = Duration::from_nanos(self.last_event.as_nanos());
        match &self.cause {
            Cause::Deadlock => {
                write!(f, "the task waits forever: no event is left after {last:?}")?
            }
            Cause::Limit(limit) => write!(f, "the task has not ended after {limit:?}")?,
            Cause::Stall(stall) => write!(f, "{stall}")?,
            Cause::Task(error) => write!(f, "{error}")?,
        }
        write!(f, "; replay with World::new({:#x})", self.seed)?;
        if !self.pending.is_empty() {
            write!(f, "; tasks that wait:")?;
        }
        const SHOWN: usize = 20;
        for task in self.pending.iter().take(SHOWN) {
            write!(f, "\n  {task}")?;
        }
        match self.pending.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

/// Prints the same as [`Display`](fmt::Display), for `unwrap`.
impl fmt::Debug for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for NotDone {}

#[cfg(test)]
mod tests;
