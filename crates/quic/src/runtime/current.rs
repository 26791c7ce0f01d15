//! Detection of the runtime, once per endpoint and by the current thread.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_udp::{SocketGroup, Steering};

use super::socket::Socket;
use super::system;
use super::traits::{Runtime, Task, Work};

thread_local! {
    static ENTERED: RefCell<Option<Arc<dyn Runtime>>> = const { RefCell::new(None) };
}

/// Makes `runtime` the current one of this thread until the result is dropped.
///
/// Nested calls restore the previous runtime.
#[must_use = "the runtime is left as soon as this is dropped"]
pub fn enter(runtime: Arc<dyn Runtime>) -> Entered {
    let before = ENTERED.replace(Some(runtime));
    Entered {
        before,
        not_send: PhantomData,
    }
}

/// Keeps the thread inside a runtime while it lives; see [`enter`].
pub struct Entered {
    before: Option<Arc<dyn Runtime>>,
    // It changes the state of its own thread when it is dropped.
    not_send: PhantomData<*const ()>,
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").finish_non_exhaustive()
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        // The replaced value may be the last handle, and dropping it may look for the current
        // runtime, so it is dropped after the cell is free again.
        let _ended = ENTERED.replace(self.before.take());
    }
}

/// The runtime of the calling thread.
///
/// It is an enum, not a trait object, so that tokio's path of datagrams has no dynamic calls.
#[derive(Clone, Debug)]
pub(crate) enum Current {
    Tokio,
    Entered(Arc<dyn Runtime>),
}

impl Current {
    pub(crate) fn get() -> Self {
        ENTERED.with_borrow(|entered| match entered {
            Some(runtime) => Self::Entered(runtime.clone()),
            None => Self::Tokio,
        })
    }

    /// Returns an error if there is no runtime, rather than panic later.
    pub(crate) fn require() -> io::Result<Self> {
        let current = Self::get();
        if let Self::Tokio = current {
            system::require()?;
        }
        Ok(current)
    }

    pub(crate) fn now(&self) -> Instant {
        match self {
            Self::Tokio => Instant::now(),
            Self::Entered(runtime) => runtime.now(),
        }
    }

    pub(crate) fn unix_time(&self) -> Duration {
        match self {
            Self::Tokio => system::unix_time(),
            Self::Entered(runtime) => runtime.unix_time(),
        }
    }

    pub(crate) fn random_seed(&self) -> io::Result<[u8; 32]> {
        match self {
            Self::Tokio => system::random_seed(),
            Self::Entered(runtime) => runtime.random_seed(),
        }
    }

    pub(crate) fn is_repeatable(&self) -> bool {
        match self {
            Self::Tokio => false,
            Self::Entered(runtime) => runtime.is_repeatable(),
        }
    }

    /// Spawns a task without a handle.
    #[track_caller]
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::Tokio => drop(tokio::spawn(task)),
            Self::Entered(runtime) => runtime.spawn(Box::pin(task) as Task, Location::caller()),
        }
    }

    /// Runs work that may block where it delays no task.
    pub(crate) fn spawn_blocking(&self, work: Work) {
        match self {
            Self::Tokio => drop(tokio::task::spawn_blocking(work)),
            Self::Entered(runtime) => runtime.spawn_blocking(work),
        }
    }

    pub(super) fn block_on<F: Future>(&self, future: F) -> F::Output {
        match self {
            Self::Tokio => tokio::runtime::Handle::current().block_on(future),
            Self::Entered(_) => panic!("block_on needs tokio, and the current runtime is another"),
        }
    }

    pub(crate) fn bind(&self, address: SocketAddr) -> io::Result<Socket> {
        match self {
            Self::Tokio => Socket::of_system(courser_udp::UdpSocket::bind(address)?),
            Self::Entered(runtime) => Ok(Socket::bound(runtime.bind(address)?, runtime.clone())),
        }
    }

    /// Binds several sockets to one address. Returns `None` if the runtime has sockets of its own.
    pub(crate) fn bind_group(
        &self,
        address: SocketAddr,
        count: usize,
        rule: Option<Steering>,
    ) -> io::Result<Option<SocketGroup>> {
        let count = u16::try_from(count).map_err(|_| io::ErrorKind::InvalidInput)?;
        match self {
            Self::Tokio => SocketGroup::bind(address, count, rule).map(Some),
            Self::Entered(_) => Ok(None),
        }
    }

    /// Adopts a socket of a group.
    pub(crate) fn adopt_udp(&self, socket: courser_udp::UdpSocket) -> io::Result<Socket> {
        Socket::of_system(socket)
    }

    /// Adopts a socket of the system.
    pub(crate) fn adopt(&self, socket: std::net::UdpSocket) -> io::Result<Socket> {
        match self {
            Self::Tokio => Socket::of_system(courser_udp::UdpSocket::from_std(socket)?),
            Self::Entered(runtime) => Ok(Socket::of_runtime(runtime.adopt(socket)?)),
        }
    }
}
