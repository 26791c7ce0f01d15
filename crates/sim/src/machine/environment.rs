//! The runtime of the tasks of a machine.

use std::io;
use std::net::SocketAddr;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use courser::runtime::{Runtime, Task, Timer, UdpSocket};

use super::clock;
use super::core::Core;
use super::script::Scripted;
use super::socket::VirtualSocket;
use super::timers::Key;

impl Runtime for Core {
    fn now(&self) -> Instant {
        clock::instant_of(self.time())
    }

    fn unix_time(&self) -> Duration {
        clock::unix_time(self.time())
    }

    fn spawn(&self, task: Task, origin: &'static Location<'static>) {
        let mut state = self.lock();
        if state.is_over {
            drop(state);
            drop(task);
            return;
        }
        let now = state.now;
        state.tasks.insert(task, origin, (now, &self.ready));
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(VirtualTimer {
            core: self.shared(),
            key: None,
        })
    }

    fn bind(&self, address: SocketAddr) -> io::Result<Box<dyn UdpSocket>> {
        let core = self.shared();
        let script = self.script();
        if let Some(script) = &script {
            script.on_bind()?;
        }
        let mut state = self.lock();
        if state.is_over {
            return Err(io::Error::other("the machine was dropped"));
        }
        let id = state.network.bind(address)?;
        drop(state);
        let socket = Box::new(VirtualSocket::new(core, id));
        Ok(match script {
            Some(script) => Box::new(Scripted::new(socket, script)),
            None => socket,
        })
    }

    fn random_seed(&self) -> io::Result<[u8; 32]> {
        Ok(self.lock().entropy.array())
    }

    fn is_repeatable(&self) -> bool {
        true
    }
}

/// A timer of a machine, cancelled when it is dropped.
struct VirtualTimer {
    core: Arc<Core>,
    key: Option<Key>,
}

impl VirtualTimer {
    fn cancel(&mut self) {
        if let Some(key) = self.key.take() {
            let waker = self.core.lock().timers.cancel(key);
            drop(waker);
        }
    }
}

impl Timer for VirtualTimer {
    fn set(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        self.cancel();
        let deadline = clock::time_of(deadline);
        let mut state = self.core.lock();
        if deadline <= state.now {
            return Poll::Ready(());
        }
        self.key = Some(state.timers.set(deadline, cx.waker().clone()));
        Poll::Pending
    }

    fn is_elapsed(&self) -> bool {
        let state = self.core.lock();
        self.key.is_none_or(|key| !state.timers.is_waiting(key))
    }
}

impl Drop for VirtualTimer {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl std::fmt::Debug for VirtualTimer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VirtualTimer").finish_non_exhaustive()
    }
}
