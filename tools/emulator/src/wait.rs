//! Waits for sockets and points in time, as precisely as the machine allows.

use std::time::Duration;

use courser_udp::UdpSocket;

/// Waits until a socket has datagrams to receive, or until `timeout` expires. Writes to `ready` which sockets
/// have datagrams, and returns true if any has.
#[cfg(unix)]
pub(crate) fn wait_readable<'a>(
    sockets: impl Iterator<Item = &'a UdpSocket>,
    timeout: Duration,
    ready: &mut Vec<bool>,
) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut all: Vec<PollFd<'a>> = sockets
        .map(|socket| PollFd::new(socket, PollFlags::IN))
        .collect();
    ready.clear();
    let timeout = Timespec::try_from(timeout).unwrap_or(Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    });
    // After a signal, no socket counts as ready, and the caller reads the clock.
    let found = poll(&mut all, Some(&timeout)).unwrap_or(0);
    ready.extend(all.iter().map(|fd| found > 0 && !fd.revents().is_empty()));
    found > 0
}

/// Waits briefly, and marks all sockets as ready, because this system has no call that waits for many sockets.
#[cfg(not(unix))]
pub(crate) fn wait_readable<'a>(
    sockets: impl Iterator<Item = &'a UdpSocket>,
    timeout: Duration,
    ready: &mut Vec<bool>,
) -> bool {
    std::thread::sleep(timeout.min(Duration::from_millis(1)));
    ready.clear();
    ready.extend(sockets.map(|_| true));
    true
}

/// Waits until a socket can send again, for a millisecond at most.
#[cfg(unix)]
pub(crate) fn wait_writable(socket: &UdpSocket) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: 1_000_000,
    };
    // The next attempt to send shows the result.
    let _ = poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&timeout));
}

#[cfg(not(unix))]
pub(crate) fn wait_writable(_: &UdpSocket) {
    std::thread::sleep(Duration::from_millis(1));
}

/// Sets the timer slack of this thread to the minimum, so that the kernel does not wake it up to 50 us late.
#[cfg(target_os = "linux")]
pub(crate) fn wake_exactly() {
    // If this fails, the thread wakes later, which the report shows as lateness.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn wake_exactly() {}
