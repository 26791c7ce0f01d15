//! Wakes a runtime beside a blocked worker.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use tokio::runtime::Handle;

/// Gives the runtime a little work all the time. The blocked worker of tokio may be the one that waits for sockets
/// and timers, and another one replaces it only when there is work.
pub struct Wakes {
    _stop: Sender<()>,
}

impl Wakes {
    pub fn start() -> Self {
        let (_stop, stopped) = channel();
        let runtime = Handle::current();
        std::thread::spawn(move || {
            while stopped.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout) {
                drop(runtime.spawn(async {}));
            }
        });
        Self { _stop }
    }
}
