//! The error queue of a socket: ICMP messages about datagrams that were sent.
//!
//! With IP_RECVERR the kernel queues each message with the beginning of the datagram that caused
//! it, and makes the next system call on the socket fail, whichever that is. The queue is therefore
//! read only when a call has failed, and costs nothing on the data path.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use courser_base::Mutex;

use super::super::address::canonical;
use super::cmsg::{Control, ControlBuffer};
use super::recvmsg;
use crate::counters::AtomicCounters;
use crate::quote::MAX_QUOTE;
use crate::too_big::PacketTooBig;
use crate::unreachable::UnreachableReport;

/// The ICMP messages of one socket that the endpoint has not taken yet.
#[derive(Debug, Default)]
pub(super) struct ErrorQueue {
    pub(super) too_big: NewestMessages<PacketTooBig>,
    pub(super) unreachable: NewestMessages<UnreachableReport>,
}

/// The newest messages of a kind.
#[derive(Debug)]
pub(super) struct NewestMessages<T> {
    has_messages: AtomicBool,
    messages: Mutex<VecDeque<T>>,
}

impl ErrorQueue {
    /// Reads the kernel's error queue, up to a limit, and returns the number of ICMP messages in
    /// it. Only those cause unrelated calls to fail.
    pub(super) fn drain(&self, fd: BorrowedFd<'_>, counters: &AtomicCounters) -> usize {
        let mut quote = [0; MAX_QUOTE];
        let mut found = 0;
        for _ in 0..MESSAGES_AT_ONCE {
            let mut control = ControlBuffer::new();
            let Ok(filled) = recvmsg::recvmsg(fd, &mut quote, &mut control, libc::MSG_ERRQUEUE)
            else {
                break;
            };
            let Some(error) = Control::decode(control.filled()).error else {
                continue;
            };
            found += usize::from(error.is_icmp());
            counters.on_path_error(error.is_too_big());
            let Some(destination) = filled.peer.map(canonical) else {
                continue;
            };
            let quote = &quote[..filled.len.min(MAX_QUOTE)];
            if error.is_too_big() {
                let message = PacketTooBig::new(destination, error.info, quote);
                self.too_big.keep(message);
            } else if let Some(cause) = error.unreachable() {
                let message = UnreachableReport::new(destination, cause, quote);
                self.unreachable.keep(message);
            }
        }
        found
    }

    pub(super) fn has_messages(&self) -> bool {
        self.too_big.has_messages() || self.unreachable.has_messages()
    }
}

impl<T> Default for NewestMessages<T> {
    fn default() -> Self {
        Self {
            has_messages: AtomicBool::new(false),
            messages: Mutex::default(),
        }
    }
}

impl<T> NewestMessages<T> {
    /// Keeps the newest messages; a flood displaces older ones.
    fn keep(&self, message: T) {
        let mut kept = self.messages.lock();
        if kept.len() >= MAX_KEPT {
            kept.pop_front();
        }
        kept.push_back(message);
        self.has_messages.store(true, Ordering::Release);
    }

    fn has_messages(&self) -> bool {
        self.has_messages.load(Ordering::Acquire)
    }

    pub(super) fn take(&self) -> Option<T> {
        if !self.has_messages() {
            return None;
        }
        let mut kept = self.messages.lock();
        let message = kept.pop_front();
        self.has_messages.store(!kept.is_empty(), Ordering::Release);
        message
    }
}

/// The maximum number of messages read from the queue for one failed call. The next failed call
/// reads further ones.
const MESSAGES_AT_ONCE: usize = 64;

/// The maximum number of messages of each kind kept for the endpoint. A message that a datagram was
/// too large advances the MTU search of one connection by one step.
const MAX_KEPT: usize = 64;
