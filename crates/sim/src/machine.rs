//! Machines that run applications written for courser's async API.
//!
//! A [`Machine`] is a [`Node`] of a world: it polls tasks, and whatever they do through
//! [`courser::runtime`] or an [`Endpoint`](courser::Endpoint) happens in virtual time and on
//! virtual sockets. The application is the same that runs on tokio:
//!
//! ```
//! use courser_base::Time;
//! use courser_sim::machine::Machine;
//! use courser_sim::node::Node;
//! use std::time::Duration;
//!
//! let machine = Machine::new(["10.0.0.1".parse().unwrap()], 42);
//! let mut handle = machine.spawn(async {
//!     let begin = courser::runtime::now();
//!     courser::runtime::sleep(Duration::from_secs(3600)).await;
//!     courser::runtime::now() - begin
//! });
//!
//! // What a world does; nobody waits for an hour here.
//! let mut node = machine.clone();
//! while let Some(now) = node.next_timeout() {
//!     node.run(now);
//! }
//! let slept = courser_sim::machine::result_of(&mut handle).unwrap();
//! assert_eq!(slept, Ok(Duration::from_secs(3600)));
//! ```
//!
//! # What decides
//!
//! Of the tasks that are ready, the seed draws the one to poll next. So it does for whatever
//! [`random_seed`](courser::runtime::random_seed) gives, the keys and connection IDs of endpoints
//! among it. Time stands still while tasks run. The same seed with the same calls gives the same
//! order of polls and the same packets at the same nanosecond, which
//! [`Machine::fingerprint`] tells.
//!
//! TLS draws from the system's random numbers, so bytes of packets differ between runs; their
//! lengths do not, with an Ed25519 key such as that of [`identity`](fn@crate::identity::identity).
//! (A P-256 signature is some bytes longer or shorter, by chance.)
//!
//! # What a task may use
//!
//! Anything that knows no runtime: `tokio::sync`, `tokio::select!`, `tokio::io` on courser's
//! streams, `futures`. Not `tokio::time`, `tokio::net`, `tokio::spawn` or `tokio::fs`, which panic
//! for want of a tokio; [`courser::runtime`] has what replaces them. What a thread of the user's
//! own wakes is polled, but at a point that no seed knows. `HashMap`'s order and
//! `SystemTime::now()` differ from run to run here as elsewhere.

mod bell;
mod bound;
mod clock;
mod core;
mod fingerprint;
mod network;
mod socket;
mod socket_faults;
mod tasks;
mod timers;

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use courser::runtime::{self, JoinError, JoinHandle};
use courser_base::Time;

pub(crate) use self::bell::{Bell, Bells};

pub use self::network::NetworkCounters;
pub use self::socket_faults::{SocketError, SocketFaults};
pub use self::tasks::PendingTask;

use self::core::Core;
use crate::node::Node;
use crate::packet::{Packet, TooBig};

/// A computer with addresses, a clock and tasks. Clones are the same machine.
///
/// When the last clone is gone, its tasks are dropped.
#[derive(Clone, Debug)]
pub struct Machine(Arc<Owner>);

/// Ends the tasks with the last handle: their endpoints hold the core, so it would never end.
#[derive(Debug)]
struct Owner(Arc<Core>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}

impl Machine {
    /// A machine with these addresses, whose decisions come from `seed`.
    ///
    /// It has `127.0.0.1` and `::1` too. Machines with the same seed and different addresses
    /// decide differently.
    pub fn new(addresses: impl IntoIterator<Item = IpAddr>, seed: u64) -> Self {
        let addresses = addresses.into_iter().collect();
        Self(Arc::new(Owner(Core::new(addresses, seed))))
    }

    /// Says how a run is repeated, for messages about a task that panicked. Default
    /// `seed 0x...` with the machine's own seed.
    #[must_use]
    pub fn with_replay_hint(self, hint: impl Into<String>) -> Self {
        self.core().set_replay_hint(hint.into());
        self
    }

    /// Gives it a name for messages. Default is its first address.
    #[must_use]
    pub fn with_name(self, name: impl Into<String>) -> Self {
        self.core().set_name(name.into());
        self
    }

    /// Sets how many bytes each socket bound from now on holds until they are read, each
    /// datagram with 256 bytes more for its own upkeep. Default 7 MiB.
    #[must_use]
    pub fn with_receive_buffer(self, bytes: usize) -> Self {
        self.core().set_receive_buffer(bytes);
        self
    }

    /// Has its sockets do this wrong. Default nothing.
    #[must_use]
    pub fn with_socket_faults(self, faults: SocketFaults) -> Self {
        self.set_socket_faults(faults);
        self
    }

    /// The same for a machine that runs.
    pub fn set_socket_faults(&self, faults: SocketFaults) {
        self.core().set_socket_faults(faults);
    }

    /// Starts a task. It runs when the world next comes to this machine.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // Not within `enter`: a closure would hide the caller's line.
        let _entered = runtime::enter(self.core().clone());
        runtime::spawn(future)
    }

    /// Calls `f` as if from a task, so that it may bind endpoints, spawn and read the clock.
    pub fn enter<T>(&self, f: impl FnOnce() -> T) -> T {
        let _entered = runtime::enter(self.core().clone());
        f()
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.core().name()
    }

    /// True for clones of one machine.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The addresses given to [`Machine::new`].
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.core().addresses()
    }

    /// The virtual time of the last call by the world.
    pub fn time(&self) -> Time {
        self.core().time()
    }

    /// Tasks that are not over, in the order in which they were spawned. Endpoints have one each.
    pub fn pending_tasks(&self) -> Vec<PendingTask> {
        self.core().pending_tasks()
    }

    /// How many times a task was polled.
    pub fn polls(&self) -> u64 {
        self.core().polls()
    }

    /// A number that stands for everything the machine did: which task it polled when, and which
    /// packets it received and sent when, with their addresses, marks and lengths.
    ///
    /// Two runs that differ anywhere in these have different numbers, but for a chance of
    /// 1 in 2^64.
    pub fn fingerprint(&self) -> u64 {
        self.core().fingerprint()
    }

    /// What became of packets on this machine.
    pub fn network_counters(&self) -> NetworkCounters {
        self.core().network_counters()
    }

    /// Rings when a task becomes ready while nobody runs the machine.
    pub(crate) fn set_bell(&self, bell: Bell) {
        self.core().set_bell(bell);
    }

    fn core(&self) -> &Arc<Core> {
        &self.0.0
    }
}

impl Node for Machine {
    fn receive(&mut self, now: Time, packet: Packet) {
        self.core().receive(now, packet);
    }

    fn packet_too_big(&mut self, now: Time, message: &TooBig) {
        self.core().packet_too_big(now, message);
    }

    /// Polls tasks until all wait.
    ///
    /// # Panics
    /// When a task panics, or when tasks wake each other for ever without time passing. The
    /// message names the task by the line that spawned it, and the seed.
    fn run(&mut self, now: Time) {
        self.core().run(now);
    }

    fn transmit(&mut self, now: Time) -> Option<Packet> {
        self.core().transmit(now)
    }

    fn next_timeout(&self) -> Option<Time> {
        self.core().next_timeout()
    }
}

/// The result of a task, if it is over; `None` while it is not.
///
/// # Panics
/// When the result was taken before.
pub fn result_of<T>(handle: &mut JoinHandle<T>) -> Option<Result<T, JoinError>> {
    match Pin::new(handle).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

#[cfg(test)]
mod tests;
