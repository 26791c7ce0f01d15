//! Runtimes of programs, for courser.

use std::io;
use std::net::SocketAddr;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use courser_quic::runtime::{self, Task, Timer, UdpSocket};

use super::socket::SocketAdapter;
use super::traits::{AsyncTimer, Runtime};

/// Calls `run` inside a runtime. Nothing has to be entered for tokio.
pub(crate) fn entered<T>(runtime: &Arc<dyn Runtime>, run: impl FnOnce() -> T) -> T {
    let _entered = (!runtime.is_tokio()).then(|| runtime::enter(Adapter::shared(runtime.clone())));
    run()
}

/// A runtime of a program.
#[derive(Clone, Debug)]
struct Adapter(Arc<dyn Runtime>);

impl Adapter {
    fn shared(runtime: Arc<dyn Runtime>) -> Arc<dyn runtime::Runtime> {
        Arc::new(Self(runtime))
    }
}

impl runtime::Runtime for Adapter {
    fn now(&self) -> Instant {
        self.0.now()
    }

    fn spawn(&self, task: Task, _origin: &'static Location<'static>) {
        let inside = runtime::within(Self::shared(self.0.clone()), task);
        self.0.spawn(Box::pin(inside));
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(TimerAdapter {
            runtime: self.0.clone(),
            timer: self.0.new_timer(self.0.now()),
            deadline: None,
        })
    }

    fn bind(&self, address: SocketAddr) -> io::Result<Box<dyn UdpSocket>> {
        self.adopt(std::net::UdpSocket::bind(address)?)
    }

    fn adopt(&self, socket: std::net::UdpSocket) -> io::Result<Box<dyn UdpSocket>> {
        let socket = self.0.wrap_udp_socket(socket)?;
        Ok(Box::new(SocketAdapter::new(socket)))
    }
}

/// A timer of a program.
#[derive(Debug)]
struct TimerAdapter {
    runtime: Arc<dyn Runtime>,
    timer: Pin<Box<dyn AsyncTimer>>,
    deadline: Option<Instant>,
}

impl Timer for TimerAdapter {
    fn set(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        self.deadline = Some(deadline);
        self.timer.as_mut().reset(deadline);
        self.timer.as_mut().poll(cx)
    }

    fn is_elapsed(&self) -> bool {
        let now = self.runtime.now();
        self.deadline.is_none_or(|deadline| deadline <= now)
    }
}
