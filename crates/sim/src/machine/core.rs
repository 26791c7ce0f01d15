//! The state that all handles, tasks and sockets of a machine share.
//!
//! Tasks, wakers and their values are never polled, woken or dropped while the lock is held,
//! because they may call back.

use std::any::Any;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use courser_base::{Mutex, Time};
use courser_crypto::Rng;

use super::fingerprint::{EventKind, Fingerprint};
use super::network::{Network, NetworkCounters};
use super::notifier::Notifier;
use super::script::{Rule, Script};
use super::socket_faults::{FaultState, SocketFaults};
use super::tasks::{PendingTask, Ready, ReadyQueue, Tasks};
use super::timers::Timers;
use crate::packet::{Packet, TooBig};

/// The number of polls without time passing after which tasks are assumed to wake each other
/// endlessly. A burst of a thousand connections takes some ten thousand.
const POLLS_AT_ONE_TIME: u64 = 1_000_000;

/// The shared core of a machine.
pub(super) struct Core {
    state: Mutex<MachineState>,
    pub(super) ready: Arc<ReadyQueue>,
    /// A weak reference for objects that outlive the call that creates them, such as sockets.
    this: Weak<Self>,
}

/// The state under the lock.
pub(super) struct MachineState {
    pub(super) now: Time,
    pub(super) network: Network,
    pub(super) timers: Timers,
    pub(super) tasks: Tasks,
    /// The random numbers that choose the next task to poll.
    schedule: Rng,
    /// The random numbers for tasks. A separate generator, so that these do not change the
    /// schedule.
    pub(super) entropy: Rng,
    fingerprint: Fingerprint,
    polls: u64,
    polls_at_this_time: u64,
    name: String,
    replay_hint: String,
    script: Option<Arc<Script>>,
    pub(super) is_over: bool,
}

impl Core {
    pub(super) fn new(addresses: Vec<IpAddr>, seed: u64) -> Arc<Self> {
        let mut root = Rng::new(key_of(&addresses, seed));
        let [schedule, entropy, faults] = [root.fork(), root.fork(), root.fork()];
        let first = addresses.first().map(IpAddr::to_string);
        let state = MachineState {
            now: Time::ZERO,
            name: first.unwrap_or_else(|| "without address".to_owned()),
            network: Network::new(addresses, FaultState::new(SocketFaults::default(), faults)),
            timers: Timers::default(),
            tasks: Tasks::default(),
            schedule,
            entropy,
            fingerprint: Fingerprint::default(),
            polls: 0,
            polls_at_this_time: 0,
            replay_hint: format!("seed {seed:#x}"),
            script: None,
            is_over: false,
        };
        Arc::new_cyclic(|this| Self {
            state: Mutex::new(state),
            ready: Arc::default(),
            this: this.clone(),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, MachineState> {
        // No code of the application runs while the lock is held, so a panic leaves the state
        // consistent.
        self.state.lock()
    }

    /// Returns a handle for an object that outlives the call that creates it.
    pub(super) fn shared(&self) -> Arc<Self> {
        self.this
            .upgrade()
            .expect("the core exists while it is borrowed")
    }

    /// Delivers a packet to its socket, and wakes the task that waits for it.
    pub(super) fn receive(&self, now: Time, packet: Packet) {
        let mut state = self.lock();
        state.set_now(now);
        let now = state.now;
        state
            .fingerprint
            .add_packet(EventKind::Received, now, &packet);
        let woken = state.network.deliver(now, packet);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Receives the report of a router that a packet was too large.
    pub(super) fn packet_too_big(&self, now: Time, message: &TooBig) {
        let mut state = self.lock();
        state.set_now(now);
        let woken = state.network.on_packet_too_big(message);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Polls all ready tasks, and those that become ready.
    pub(super) fn run(self: &Arc<Self>, now: Time) {
        self.ready.set_running(true);
        self.advance(now);
        let _entered = courser::runtime::enter(self.clone());
        while self.poll_next() {}
        self.ready.set_running(false);
    }

    /// Advances the time and wakes the tasks that wait for it.
    fn advance(&self, now: Time) {
        let mut state = self.lock();
        state.set_now(now);
        let now = state.now;
        let mut woken = state.timers.take_due(now);
        while let Some(packet) = state.network.take_loopback(now) {
            state
                .fingerprint
                .add_packet(EventKind::Received, now, &packet);
            woken.extend(state.network.deliver(now, packet));
        }
        if state.network.faults.take_room(now) {
            woken.extend(state.network.take_senders(now));
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Polls one ready task. Returns false if no task is ready.
    fn poll_next(&self) -> bool {
        let mut state = self.lock();
        let MachineState {
            tasks,
            schedule,
            now,
            ..
        } = &mut *state;
        let Some(ready) = tasks.take_next(&self.ready, schedule, *now) else {
            return false;
        };
        state.on_poll(ready.number);
        let is_stuck = state.polls_at_this_time > POLLS_AT_ONE_TIME;
        drop(state);
        if is_stuck {
            self.report_livelock(&ready);
        }
        self.poll(ready);
        true
    }

    fn poll(&self, ready: Ready) {
        let Ready {
            number,
            mut task,
            waker,
        } = ready;
        let mut cx = Context::from_waker(&waker);
        // Code that catches the panic below cannot reach the task or its incomplete changes.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let poll = task.as_mut().poll(&mut cx);
            (poll, task)
        }));
        match outcome {
            Ok((Poll::Pending, task)) => {
                let unknown = self.lock().tasks.put_back(number, task);
                drop(unknown);
            }
            Ok((Poll::Ready(()), task)) => {
                let removed = self.lock().tasks.remove(number);
                drop((task, removed));
            }
            Err(payload) => self.report_panic(number, &*payload),
        }
    }

    fn report_panic(&self, number: u64, payload: &(dyn Any + Send)) -> ! {
        let mut state = self.lock();
        let text = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("(no text)");
        let removed = state.tasks.remove(number);
        let task = removed.map_or_else(|| format!("task {number}"), |task| task.to_string());
        let message = format!("{task} of {} panicked: {text}", state.situation());
        drop(state);
        panic!("{message}");
    }

    fn report_livelock(&self, ready: &Ready) -> ! {
        let state = self.lock();
        let task = state
            .tasks
            .pending()
            .find(|task| task.number == ready.number);
        let message = format!(
            "tasks of {} wake each other endlessly: {POLLS_AT_ONE_TIME} polls without time \
             passing, the next is for {}; a task that waits in a loop must sleep in it",
            state.situation(),
            task.map_or_else(String::new, PendingTask::to_string),
        );
        drop(state);
        panic!("{message}");
    }

    /// Returns the next packet for the world.
    pub(super) fn transmit(&self, now: Time) -> Option<Packet> {
        let mut state = self.lock();
        state.set_now(now);
        let now = state.now;
        let packet = state.network.transmit()?;
        state.fingerprint.add_packet(EventKind::Sent, now, &packet);
        let woken = state.network.take_senders(now);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        Some(packet)
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        let state = self.lock();
        if !self.ready.is_empty() {
            return Some(state.now);
        }
        let timers = state.timers.next_deadline();
        let loopback = state.network.next_loopback();
        let room = state.network.faults.next_room();
        timers.into_iter().chain(loopback).chain(room).min()
    }

    /// Drops all tasks and refuses new ones.
    pub(super) fn shut_down(self: &Arc<Self>) {
        let _entered = courser::runtime::enter(self.clone());
        let mut state = self.lock();
        state.is_over = true;
        let tasks = state.tasks.take_all();
        drop(state);
        drop(tasks);
        // Dropped tasks may have set timers and sent packets. These are removed as well.
        let mut state = self.lock();
        let rest = (state.timers.take_all(), state.network.take_all());
        drop(state);
        drop(rest);
    }

    pub(super) fn set_notifier(&self, notifier: Notifier) {
        self.ready.set_notifier(notifier);
    }

    pub(super) fn set_name(&self, name: String) {
        self.lock().name = name;
    }

    pub(super) fn name(&self) -> String {
        self.lock().name.clone()
    }

    pub(super) fn set_replay_hint(&self, hint: String) {
        self.lock().replay_hint = hint;
    }

    pub(super) fn set_receive_buffer(&self, bytes: usize) {
        self.lock().network.receive_buffer = bytes;
    }

    pub(super) fn set_socket_faults(&self, faults: SocketFaults) {
        self.lock().network.faults.set_faults(faults);
    }

    pub(super) fn set_script(&self, rules: Vec<Rule>) {
        let script = Arc::new(Script::new(rules));
        self.lock().script = Some(script);
    }

    /// Returns the rules for the calls of sockets, if there are any.
    pub(super) fn script(&self) -> Option<Arc<Script>> {
        self.lock().script.clone()
    }

    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.lock().network.addresses.clone()
    }

    pub(super) fn time(&self) -> Time {
        self.lock().now
    }

    pub(super) fn pending_tasks(&self) -> Vec<PendingTask> {
        self.lock().tasks.pending().cloned().collect()
    }

    pub(super) fn polls(&self) -> u64 {
        self.lock().polls
    }

    pub(super) fn fingerprint(&self) -> u64 {
        self.lock().fingerprint.value()
    }

    pub(super) fn network_counters(&self) -> NetworkCounters {
        self.lock().network.counters
    }
}

impl MachineState {
    /// Advances the time, which never goes back.
    fn set_now(&mut self, now: Time) {
        if now > self.now {
            self.now = now;
            self.polls_at_this_time = 0;
        }
    }

    fn on_poll(&mut self, task: u64) {
        self.fingerprint.add_poll(self.now, task);
        self.polls += 1;
        self.polls_at_this_time += 1;
    }

    /// Describes the machine, the time, and how to repeat the run.
    fn situation(&self) -> String {
        let at = Duration::from_nanos(self.now.as_nanos());
        format!("machine {} at {at:?} ({})", self.name, self.replay_hint)
    }
}

/// Returns the key of a machine's generators. It depends on the addresses too, because equal
/// connection IDs on two machines with the same seed would hide faults.
fn key_of(addresses: &[IpAddr], seed: u64) -> [u8; 32] {
    let mut hash = Fingerprint::default();
    addresses.iter().for_each(|ip| hash.add_address(*ip));
    let mut key = *b"courser virtual machine, seeded:";
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&hash.value().to_le_bytes());
    key
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.lock();
        f.debug_struct("Core")
            .field("addresses", &state.network.addresses)
            .field("now", &state.now)
            .field("tasks", &state.tasks)
            .finish_non_exhaustive()
    }
}
