//! The runtime that an endpoint and its application run on: tokio, or a simulated world.
//!
//! An application that spawns, sleeps and reads the clock through this module runs on tokio and,
//! without a change, on a virtual machine of `courser-sim`, where time is a number, the network
//! is in memory and one seed decides everything. [`Endpoint`](crate::Endpoint)s find out by
//! themselves where they are.
//!
//! | instead of | use |
//! |---|---|
//! | `tokio::spawn` | [`spawn`] |
//! | `tokio::time::sleep`, `sleep_until`, `timeout` | [`sleep`], [`sleep_until`], [`timeout`] |
//! | `Instant::now()` | [`now`] |
//! | `SystemTime::now()` | [`unix_time`] |
//! | `rand::random()` and the like | [`random_seed`], and a generator that starts from it |
//!
//! Whatever knows no runtime works anywhere: `tokio::sync`, `tokio::select!`, `tokio::join!`,
//! `tokio::io` on courser's streams, channels and combinators of `futures`. What asks tokio's
//! reactor or its timer (`tokio::net`, `tokio::time`, `tokio::fs`) panics in a world, since there
//! is no tokio there.
//!
//! ```
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
//! # A runtime of one's own
//!
//! Who implements [`Runtime`] and [`enter`]s it around every poll has courser run on it. tokio
//! itself does not go through these traits: its calls are direct ones.

mod current;
mod door;
mod join;
mod sleep;
mod socket;
mod system;

use std::io;
use std::panic::Location;
use std::time::{Duration, Instant};

pub use courser_base::Ecn;
pub use courser_udp::{PacketTooBig, Received, Transmit};

pub use self::current::{Entered, enter};
pub use self::door::{Runtime, Task, Timer, UdpSocket, Work};
pub use self::join::{JoinError, JoinHandle};
pub use self::sleep::{Elapsed, Sleep, sleep, sleep_until, timeout};

pub(crate) use self::current::Current;
pub(crate) use self::sleep::Alarm;
pub(crate) use self::socket::{Socket, Writability};

/// Starts a task on the current runtime. It goes on if the handle is dropped.
///
/// # Panics
/// When there is no runtime: neither tokio's nor an [entered](enter) one.
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

/// Waits for a future on the calling thread, which has to be one that may block.
///
/// For code that others call and that cannot be async: a certificate resolver, verifier or signer
/// in a configuration with [`ServerConfig::offload_tls`](crate::ServerConfig::offload_tls) or
/// [`ClientConfig::offload_tls`](crate::ClientConfig::offload_tls).
///
/// # Panics
/// On a thread that polls tasks, and outside of tokio. A panic in a handshake ends its connection.
pub fn block_on<F: Future>(future: F) -> F::Output {
    Current::get().block_on(future)
}

/// The time on the current runtime's clock.
///
/// In a world it stands still while a task computes. The value has no meaning outside the
/// process; differences are exact to the nanosecond.
pub fn now() -> Instant {
    Current::get().now()
}

/// The time of day on the current runtime's calendar, since the beginning of 1970 (UTC).
pub fn unix_time() -> Duration {
    Current::get().unix_time()
}

/// 32 bytes that nobody can guess, or in a world 32 bytes that its seed decides.
///
/// Each call gives others.
///
/// # Errors
/// When the system has no random numbers.
pub fn random_seed() -> io::Result<[u8; 32]> {
    Current::get().random_seed()
}

#[cfg(test)]
mod tests;
