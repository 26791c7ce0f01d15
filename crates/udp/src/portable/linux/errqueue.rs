//! The error queue of a socket: what ICMP says of datagrams that were sent.
//!
//! With IP_RECVERR set the kernel queues each message with the beginning of the datagram it is
//! about, and makes the next system call on the socket fail, whichever that is. So the queue is
//! looked at only when a call has failed: the path of datagrams costs nothing more.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::super::address::canonical;
use super::cmsg::{Control, ControlBuffer};
use super::recvmsg;
use crate::counters::Tally;
use crate::too_big::{MAX_QUOTE, PacketTooBig};

/// News of one socket that nobody has taken yet.
#[derive(Debug, Default)]
pub(super) struct News {
    has_some: AtomicBool,
    kept: Mutex<VecDeque<PacketTooBig>>,
}

/// One message of the error queue, `sock_extended_err` in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ExtendedError {
    pub(super) errno: u32,
    pub(super) origin: u8,
    pub(super) info: u32,
}

impl ExtendedError {
    /// True if a router or a host said so, and not our own kernel.
    fn is_icmp(self) -> bool {
        matches!(
            self.origin,
            libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6
        )
    }

    fn is_too_big(self) -> bool {
        self.is_icmp() && self.errno == libc::EMSGSIZE.cast_unsigned()
    }
}

impl News {
    /// Empties the error queue, up to a bound, and tells how many ICMP messages were in it: only
    /// those make calls fail that have nothing to do with them.
    pub(super) fn collect(&self, fd: BorrowedFd<'_>, tally: &Tally) -> usize {
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
            tally.on_path_error(error.is_too_big());
            if let Some(destination) = filled.peer.filter(|_| error.is_too_big()) {
                let quote = &quote[..filled.len.min(MAX_QUOTE)];
                self.keep(PacketTooBig::new(canonical(destination), error.info, quote));
            }
        }
        found
    }

    /// Keeps the newest; a flood pushes out older ones.
    fn keep(&self, news: PacketTooBig) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_KEPT {
            kept.pop_front();
        }
        kept.push_back(news);
        self.has_some.store(true, Ordering::Release);
    }

    pub(super) fn has_some(&self) -> bool {
        self.has_some.load(Ordering::Acquire)
    }

    pub(super) fn take(&self) -> Option<PacketTooBig> {
        if !self.has_some() {
            return None;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let news = kept.pop_front();
        self.has_some.store(!kept.is_empty(), Ordering::Release);
        news
    }
}

/// Messages taken from the queue for one failed call. Others come with the next one.
const MESSAGES_AT_ONCE: usize = 64;

/// Messages kept for whoever asks. Each is good for one step of one connection's search.
const MAX_KEPT: usize = 64;
