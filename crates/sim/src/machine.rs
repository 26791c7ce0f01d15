//! Machines that run applications written for courser's async API.
//!
//! A [`Machine`] is a [`Node`] of a world that polls tasks. Everything that they do through
//! [`courser::runtime`] or an [`Endpoint`](courser::Endpoint) happens in virtual time and on
//! virtual sockets. The same application also runs on tokio:
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
//! // As a world does. Real time does not pass.
//! let mut node = machine.clone();
//! while let Some(now) = node.next_timeout() {
//!     node.run(now);
//! }
//! let slept = courser_sim::machine::result_of(&mut handle).unwrap();
//! assert_eq!(slept, Ok(Duration::from_secs(3600)));
//! ```
//!
//! # Decisions
//!
//! The seed determines which of the ready tasks is polled next. It also determines the results of
//! [`random_seed`](courser::runtime::random_seed), including the keys and connection IDs of
//! endpoints. Time stands still while tasks run. The same seed with the same calls gives the same
//! order of polls and the same packets at the same nanosecond, which [`Machine::fingerprint`]
//! reflects.
//!
//! TLS uses random numbers of the system, so the bytes of packets differ between runs. Their
//! lengths do not if the key is an Ed25519 key, such as that of
//! [`identity`](fn@crate::identity::identity). (P-256 signatures vary by some bytes.)
//!
//! # Restrictions on tasks
//!
//! Tasks may use everything that needs no runtime: `tokio::sync`, `tokio::select!`, `tokio::io` on
//! courser's streams, `futures`. They must not use `tokio::time`, `tokio::net`, `tokio::spawn` or
//! `tokio::fs`, which panic without a tokio runtime. [`courser::runtime`] has replacements, and
//! [`Machine::directory`] a place for files. A task
//! that another thread wakes is polled too, but at a time that does not follow from the seed. The
//! order of a `HashMap` and the result of `SystemTime::now()` differ between runs, as in any
//! program.

mod bound;
mod clock;
mod core;
mod directory;
mod environment;
mod fingerprint;
mod network;
mod notifier;
mod script;
mod socket;
mod socket_faults;
mod tasks;
mod timers;

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use courser::runtime::{self, JoinError, JoinHandle};
use courser_base::{Mutex, Time};

pub(crate) use self::notifier::{Notifier, Notifiers};

pub use self::network::NetworkCounters;
pub use self::script::{Call, Effect, Rule, When};
pub use self::socket_faults::{SocketError, SocketFaults};
pub use self::tasks::PendingTask;

use self::core::Core;
use self::directory::Directory;
use crate::node::Node;
use crate::packet::{Packet, TooBig};

/// A computer with addresses, a clock and tasks. Clones are handles to the same machine.
///
/// Its tasks are dropped with the last handle.
#[derive(Clone, Debug)]
pub struct Machine(Arc<Owner>);

/// Drops the tasks with the last handle. Their endpoints hold the core, which would otherwise never
/// be dropped.
#[derive(Debug)]
struct Owner {
    core: Arc<Core>,
    /// Created at first use, and dropped after the tasks that may use it.
    directory: Mutex<Option<Directory>>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.core.shut_down();
    }
}

impl Machine {
    /// Creates a machine with these addresses, whose decisions follow from `seed`.
    ///
    /// It also has `127.0.0.1` and `::1`. Machines with the same seed and different addresses make
    /// different decisions.
    pub fn new(addresses: impl IntoIterator<Item = IpAddr>, seed: u64) -> Self {
        let addresses = addresses.into_iter().collect();
        Self(Arc::new(Owner {
            core: Core::new(addresses, seed),
            directory: Mutex::new(None),
        }))
    }

    /// Sets the text that explains how to repeat a run, which messages about a panicked task
    /// contain. The default is `seed 0x...` with the seed of the machine.
    #[must_use]
    pub fn with_replay_hint(self, hint: impl Into<String>) -> Self {
        self.core().set_replay_hint(hint.into());
        self
    }

    /// Sets the name for messages. The default is the first address.
    #[must_use]
    pub fn with_name(self, name: impl Into<String>) -> Self {
        self.core().set_name(name.into());
        self
    }

    /// Sets the size of the receive buffer of sockets bound from now on, in bytes. Each datagram
    /// counts 256 bytes in addition to its payload. The default is 7 MiB.
    #[must_use]
    pub fn with_receive_buffer(self, bytes: usize) -> Self {
        self.core().set_receive_buffer(bytes);
        self
    }

    /// Sets the faults of its sockets. The default is none.
    #[must_use]
    pub fn with_socket_faults(self, faults: SocketFaults) -> Self {
        self.set_socket_faults(faults);
        self
    }

    /// Sets the faults of the sockets of a running machine.
    pub fn set_socket_faults(&self, faults: SocketFaults) {
        self.core().set_socket_faults(faults);
    }

    /// Sets the rules that change the results of socket calls. They apply to sockets bound from now
    /// on, before the faults. The default is none.
    #[must_use]
    pub fn with_socket_script(self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.set_socket_script(rules);
        self
    }

    /// Sets the rules for sockets that a running machine binds from now on.
    pub fn set_socket_script(&self, rules: impl IntoIterator<Item = Rule>) {
        self.core().set_script(rules.into_iter().collect());
    }

    /// Returns the number of calls that the rules have changed.
    pub fn scripted_calls(&self) -> u64 {
        self.core().script().map_or(0, |script| script.applied())
    }

    /// Spawns a task. It runs when the world next runs this machine.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // Does not call `enter`, because a closure would hide the caller's line.
        let _entered = runtime::enter(self.core().clone());
        runtime::spawn(future)
    }

    /// Calls `f` as if from a task, so that it may bind endpoints, spawn tasks and read the clock.
    pub fn enter<T>(&self, f: impl FnOnce() -> T) -> T {
        let _entered = runtime::enter(self.core().clone());
        f()
    }

    /// Returns a directory for the files of this machine, which is created empty at the first call and removed with
    /// the machine.
    ///
    /// It is a real one, below the system's directory for temporary files, so that `std::fs` and every library
    /// can use it. Pass its path to the program under test. Access takes no virtual time. Runs can be repeated as
    /// long as the program does not depend on what file systems do not define, such as the order of `read_dir` or
    /// times of files.
    ///
    /// ```
    /// use courser::runtime;
    ///
    /// let mut world = courser_sim::World::new(1);
    /// let machine = world.machine("disk", [10, 0, 0, 1]);
    /// let path = machine.directory()?.join("state");
    /// let bytes = machine.spawn(async move {
    ///     runtime::spawn_blocking(move || {
    ///         std::fs::write(&path, "42")?;
    ///         std::fs::read(&path)
    ///     })
    ///     .await
    /// });
    /// assert_eq!(world.run_until_done(bytes)???, b"42");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of the system if the directory cannot be created.
    pub fn directory(&self) -> io::Result<PathBuf> {
        let mut directory = self.0.directory.lock();
        let directory = match &mut *directory {
            Some(directory) => directory,
            none => none.insert(Directory::create()?),
        };
        Ok(directory.path().to_owned())
    }

    /// Returns the name that messages use.
    pub fn name(&self) -> String {
        self.core().name()
    }

    /// Returns true for clones of one machine.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the addresses given to [`Machine::new`].
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.core().addresses()
    }

    /// Returns the virtual time of the last call by the world.
    pub fn time(&self) -> Time {
        self.core().time()
    }

    /// Returns the tasks that have not ended, in the order of spawning. Endpoints have one each.
    pub fn pending_tasks(&self) -> Vec<PendingTask> {
        self.core().pending_tasks()
    }

    /// Returns the number of polls of tasks.
    pub fn polls(&self) -> u64 {
        self.core().polls()
    }

    /// Returns a hash of all events on the machine: the task and time of each poll, and the time of
    /// each packet sent or received with its addresses, mark and length.
    ///
    /// Two runs that differ in any of these have different hashes, except with a probability of 1
    /// in 2^64.
    pub fn fingerprint(&self) -> u64 {
        self.core().fingerprint()
    }

    /// Returns the counters of packets on this machine.
    pub fn network_counters(&self) -> NetworkCounters {
        self.core().network_counters()
    }

    /// Sets the notifier for tasks that become ready while the machine does not run.
    pub(crate) fn set_notifier(&self, notifier: Notifier) {
        self.core().set_notifier(notifier);
    }

    fn core(&self) -> &Arc<Core> {
        &self.0.core
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
    /// If a task panics, or if tasks wake each other endlessly without time passing. The message
    /// names the seed and the line that spawned the task.
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

/// Returns the result of a task, or `None` if it has not ended.
///
/// # Panics
/// If the result was taken before.
pub fn result_of<T>(handle: &mut JoinHandle<T>) -> Option<Result<T, JoinError>> {
    match Pin::new(handle).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

#[cfg(test)]
mod tests;
