//! The runtime of an endpoint and its application: tokio, or a simulated world.
//!
//! An application that spawns, sleeps and reads the clock through this module runs on tokio and,
//! unchanged, on a virtual machine of `courser-sim`, where time is a number, the network is in
//! memory and one seed determines everything. [`Endpoint`](crate::Endpoint)s detect their runtime.
//!
//! | instead of | use |
//! |---|---|
//! | `tokio::spawn` | [`spawn`] |
//! | `tokio::task::spawn_blocking` | [`spawn_blocking`] |
//! | `tokio::time::sleep`, `sleep_until`, `timeout` | [`sleep`], [`sleep_until`], [`timeout`] |
//! | `tokio::time::interval`, `interval_at` | [`interval`], [`interval_at`] |
//! | `tokio::fs` | `std::fs` in [`spawn_blocking`] |
//! | `Instant::now()` | [`now`] |
//! | `SystemTime::now()` | [`unix_time`] |
//! | `rand::random()` and the like | [`random_seed`], and a generator that starts from it |
//!
//! Code that is independent of a runtime works anywhere: `tokio::sync`, `tokio::select!`,
//! `tokio::join!`, `tokio::io` on courser's streams, channels and combinators of `futures`. Code
//! that needs tokio's reactor or timer (`tokio::net`, `tokio::time`, `tokio::fs`) panics in a
//! world, where there is no tokio.
//!
//! ```
//! # extern crate courser_quic as courser;
//! use std::time::Duration;
//! use courser::runtime;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let begin = runtime::now();
//! let task = runtime::spawn(async {
//!     runtime::sleep(Duration::from_millis(5)).await;
//!     42
//! });
//! assert_eq!(task.await, Ok(42));
//! assert!(runtime::now() - begin >= Duration::from_millis(5));
//! # }
//! ```
//!
//! # Other runtimes
//!
//! To run courser on a runtime other than tokio, implement [`Runtime`] for it and start the program
//! with [`within`], or call [`enter`] around every poll. [`SystemSocket`] is the operating system's
//! socket with batches, ECN marks and local addresses, to which the runtime adds its notifications of
//! readiness. `examples/smol_echo.rs` is a whole runtime of this kind in a hundred lines. tokio does not
//! use these traits: it is called directly.
//!
//! Runtimes can be used side by side. An endpoint stays with the one that was current when it was
//! created; outside of tokio and of any entered runtime, creating one fails with an error that
//! states this.
//!
//! # Other transports
//!
//! An endpoint can send and receive through something else than a UDP socket of its runtime: see
//! [`UdpSocket`], and [`EndpointBuilder::transport`](crate::EndpointBuilder::transport).

mod current;
mod guard;
mod interval;
mod join;
mod peer_socket;
mod sleep;
mod socket;
mod system;
mod traits;
mod within;

use std::io;
use std::panic::Location;
use std::pin::pin;
use std::task::Context;
use std::time::{Duration, Instant};

pub use courser_base::Ecn;
pub use courser_udp::{
    PacketTooBig, Received, Transmit, UdpSocket as SystemSocket, UnreachableReport,
};

pub use self::current::{Entered, enter};
pub use self::interval::{Interval, MissedTicks, interval, interval_at};
pub use self::join::{JoinError, JoinHandle};
pub use self::sleep::{Elapsed, Sleep, sleep, sleep_until, timeout};
pub use self::traits::{Runtime, Task, Timer, UdpSocket, Work};
pub use self::within::{Within, within};

pub(crate) use self::current::Current;
#[doc(hidden)]
pub use self::peer_socket::PeerSocket;
pub(crate) use self::sleep::Alarm;
pub(crate) use self::socket::{Socket, Writability};

/// Spawns a task on the current runtime. It continues if the handle is dropped.
///
/// # Panics
/// Panics if there is no runtime, neither tokio's nor an [entered](enter) one.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match Current::get() {
        Current::Tokio => JoinHandle::of_tokio(tokio::spawn(future)),
        Current::Entered(runtime) => {
            let (handle, task) = JoinHandle::of_task(future);
            runtime.spawn(task, Location::caller());
            handle
        }
    }
}

/// Runs work that may block, such as `std::fs` or a long computation, where it delays no task.
///
/// On tokio this is `tokio::task::spawn_blocking`. In a world the work runs before this returns, at one point of
/// virtual time, so that runs can be repeated. There it must not wait for other tasks, because they do not run
/// meanwhile. The work continues if the handle is dropped, and cannot be aborted once it has begun.
///
/// ```
/// # extern crate courser_quic as courser;
/// use courser::runtime;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let manifest = runtime::spawn_blocking(|| std::fs::read_to_string("Cargo.toml")).await??;
/// assert!(manifest.contains("[package]"));
/// # Ok(()) }
/// ```
///
/// # Panics
/// Panics if there is no runtime, neither tokio's nor an [entered](enter) one. A panic of the work is a
/// [`JoinError`] on tokio; in a world it ends the run.
pub fn spawn_blocking<F, T>(work: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    match Current::get() {
        Current::Tokio => JoinHandle::of_tokio(tokio::task::spawn_blocking(work)),
        Current::Entered(runtime) => {
            let (handle, work) = JoinHandle::of_work(work);
            runtime.spawn_blocking(work);
            handle
        }
    }
}

/// Waits for a future on the calling thread, which must be allowed to block.
///
/// For synchronous callbacks: a certificate resolver, verifier or signer in a configuration with
/// [`ServerConfig::offload_tls`](crate::ServerConfig::offload_tls) or
/// [`ClientConfig::offload_tls`](crate::ClientConfig::offload_tls).
///
/// # Panics
/// Panics on threads that poll tasks, and outside of tokio. In a handshake, this ends its
/// connection.
pub fn block_on<F: Future>(future: F) -> F::Output {
    Current::get().block_on(future)
}

/// Returns the time on the current runtime's clock.
///
/// In a world it does not advance while a task computes. The value is meaningful only within the
/// process; differences are exact to the nanosecond.
pub fn now() -> Instant {
    Current::get().now()
}

/// Returns the time of day on the current runtime's calendar, since the beginning of 1970 (UTC).
pub fn unix_time() -> Duration {
    Current::get().unix_time()
}

/// Returns 32 unpredictable bytes, or in a world 32 bytes that its seed determines.
///
/// Each call returns different bytes.
///
/// # Errors
/// Returns an error if the system has no random numbers.
pub fn random_seed() -> io::Result<[u8; 32]> {
    Current::get().random_seed()
}

/// Has tokio wake the task after other tasks could run and the sockets were polled, unlike a wakeup by the task
/// itself. Returns false on other runtimes, where the caller wakes the task.
pub(crate) fn yield_to_others(cx: &mut Context<'_>) -> bool {
    let is_tokio = matches!(Current::get(), Current::Tokio);
    is_tokio && pin!(tokio::task::yield_now()).poll(cx).is_pending()
}

#[cfg(test)]
mod tests;
