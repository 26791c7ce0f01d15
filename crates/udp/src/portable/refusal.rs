//! Control messages that the system refuses: ECN marks and source addresses.
//!
//! Old kernels, sandboxes and some drivers fail a send call because of a control message that only
//! improves it. The same datagrams are sent again without it in the same call, and if that works the
//! message is left out from then on. The system call is an argument, so that tests can simulate such
//! a kernel.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::counters::AtomicCounters;

/// The control messages of a send call that it can do without.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extras {
    /// The ECN mark is part of the call.
    pub(crate) mark: bool,
    /// The source address that is part of the call.
    pub(crate) source: Option<IpAddr>,
}

/// The control messages that the system has refused on one socket.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    marks: Refused,
    sources: Refused,
}

impl Refusals {
    /// Returns false once marks are left out.
    #[inline]
    pub(crate) fn can_mark(&self) -> bool {
        !self.marks.is_final()
    }

    /// Returns false once source addresses are left out.
    pub(crate) fn can_choose_source(&self) -> bool {
        !self.sources.is_final()
    }

    /// Records that the system refused to mark the datagrams of a socket.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "sets no options")
    )]
    pub(crate) fn on_mark_option_refused(&self, counters: &AtomicCounters) {
        if self.marks.refuse() {
            counters.on_mark_fallback();
        }
    }

    /// Sends with the given control messages, and without them if they prove to be the cause of an
    /// error. `call` makes one attempt. `is_local` returns true if an address belongs to this machine:
    /// one that does not is refused for a reason, and no other may take its place.
    ///
    /// Returns the first error if no attempt succeeds.
    #[inline]
    pub(crate) fn send<T>(
        &self,
        requested: Extras,
        counters: &AtomicCounters,
        is_local: impl FnOnce(IpAddr) -> bool,
        mut call: impl FnMut(Extras) -> io::Result<T>,
    ) -> io::Result<T> {
        let extras = Extras {
            mark: requested.mark && self.can_mark(),
            source: requested.source.filter(|_| self.can_choose_source()),
        };
        match call(extras) {
            Ok(sent) => {
                if extras.mark {
                    self.marks.on_accepted();
                }
                if extras.source.is_some() {
                    self.sources.on_accepted();
                }
                Ok(sent)
            }
            Err(error) if may_be_refusal(&error) && extras != NO_EXTRAS => {
                self.send_without((extras, error), counters, is_local, call)
            }
            Err(error) => Err(error),
        }
    }

    #[cold]
    fn send_without<T>(
        &self,
        (failed, error): (Extras, io::Error),
        counters: &AtomicCounters,
        is_local: impl FnOnce(IpAddr) -> bool,
        mut call: impl FnMut(Extras) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut attempts = Vec::new();
        if failed.mark {
            attempts.push(Extras {
                mark: false,
                ..failed
            });
        }
        if failed.source.is_some_and(is_local) {
            attempts.push(Extras {
                source: None,
                ..failed
            });
            if failed.mark {
                attempts.push(NO_EXTRAS);
            }
        }
        for extras in attempts {
            match call(extras) {
                Ok(sent) => {
                    let is_clear = is_clear_refusal(&error);
                    if extras.mark != failed.mark && self.marks.on_refused(is_clear) {
                        counters.on_mark_fallback();
                    }
                    if extras.source != failed.source && self.sources.on_refused(is_clear) {
                        counters.on_source_fallback();
                    }
                    return Ok(sent);
                }
                // Nothing was refused: the batch waits.
                Err(other) if other.kind() == ErrorKind::WouldBlock => return Err(other),
                Err(_) => {}
            }
        }
        Err(error)
    }
}

/// Returns true if an address belongs to this machine.
pub(crate) fn is_local(address: IpAddr) -> bool {
    UdpSocket::bind(SocketAddr::from((address, 0))).is_ok()
}

/// The refusals of one kind of control message in a row.
#[derive(Debug, Default)]
struct Refused(AtomicU8);

impl Refused {
    fn is_final(&self) -> bool {
        self.0.load(Relaxed) >= MAX_REFUSALS
    }

    /// Counts a refusal. Returns true if it is the one after which no further attempt is made.
    fn on_refused(&self, is_clear: bool) -> bool {
        if is_clear {
            return self.refuse();
        }
        let before = self.0.fetch_add(1, Relaxed);
        before + 1 == MAX_REFUSALS
    }

    /// Ends all further attempts. Returns true the first time.
    fn refuse(&self) -> bool {
        self.0.swap(MAX_REFUSALS, Relaxed) < MAX_REFUSALS
    }

    #[inline]
    fn on_accepted(&self) {
        let count = self.0.load(Relaxed);
        // A call of another thread may have counted the last refusal since this one began. The
        // refusal stays final, whether it was counted before or after the load.
        if count != 0 && count < MAX_REFUSALS {
            let _ = self.0.compare_exchange(count, 0, Relaxed, Relaxed);
        }
    }
}

const NO_EXTRAS: Extras = Extras {
    mark: false,
    source: None,
};

/// Refusals in a row after which a control message is left out, if the error is also that of a
/// firewall (limit K292): one that refuses some datagrams at random must not cost the marks of all others.
const MAX_REFUSALS: u8 = 3;

/// Returns true for the errors with which systems refuse a control message.
fn may_be_refusal(error: &io::Error) -> bool {
    is_clear_refusal(error) || error.kind() == ErrorKind::PermissionDenied
}

/// Returns true for the errors of a system that does not know a control message: EINVAL of Linux before
/// 3.13 and of Android, EIO of some devices of Android, EOPNOTSUPP and ENOPROTOOPT of sandboxes.
fn is_clear_refusal(error: &io::Error) -> bool {
    #[cfg(unix)]
    let is_clear_code = matches!(
        error.raw_os_error(),
        Some(libc::EIO | libc::ENOPROTOOPT | libc::EOPNOTSUPP)
    );
    #[cfg(not(unix))]
    let is_clear_code = false;
    is_clear_code
        || matches!(
            error.kind(),
            ErrorKind::InvalidInput | ErrorKind::Unsupported
        )
}

#[cfg(test)]
mod tests;
