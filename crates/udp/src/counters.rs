//! What a socket has done so far.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a socket has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Send calls to the kernel that took something.
    pub send_calls: u64,
    /// Datagrams the kernel took.
    pub sent_datagrams: u64,
    /// Bytes of payload the kernel took.
    pub sent_bytes: u64,
    /// Receive calls to the kernel that yielded something.
    pub receive_calls: u64,
    /// Datagrams received.
    pub received_datagrams: u64,
    /// Bytes of payload received.
    pub received_bytes: u64,
    /// Times segmentation offload was found broken and switched off: 0 or 1.
    pub gso_fallbacks: u64,
    /// ICMP messages about datagrams that were sent, such as "port unreachable". They end nothing.
    pub path_errors: u64,
    /// Those of them that say that a datagram was too large.
    pub packets_too_big: u64,
}

/// The same numbers, counted from several threads.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    send_calls: AtomicU64,
    sent_datagrams: AtomicU64,
    sent_bytes: AtomicU64,
    receive_calls: AtomicU64,
    received_datagrams: AtomicU64,
    received_bytes: AtomicU64,
    gso_fallbacks: AtomicU64,
    path_errors: AtomicU64,
    packets_too_big: AtomicU64,
}

impl Tally {
    pub(crate) fn on_sent(&self, datagrams: usize, bytes: usize) {
        self.send_calls.fetch_add(1, Relaxed);
        self.sent_datagrams.fetch_add(datagrams as u64, Relaxed);
        self.sent_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn on_received(&self, datagrams: usize, bytes: usize) {
        self.receive_calls.fetch_add(1, Relaxed);
        self.received_datagrams.fetch_add(datagrams as u64, Relaxed);
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn on_gso_fallback(&self) {
        self.gso_fallbacks.fetch_add(1, Relaxed);
    }

    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nobody tells"))]
    pub(crate) fn on_path_error(&self, is_too_big: bool) {
        self.path_errors.fetch_add(1, Relaxed);
        self.packets_too_big
            .fetch_add(u64::from(is_too_big), Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Counters {
        Counters {
            send_calls: self.send_calls.load(Relaxed),
            sent_datagrams: self.sent_datagrams.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            receive_calls: self.receive_calls.load(Relaxed),
            received_datagrams: self.received_datagrams.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
            gso_fallbacks: self.gso_fallbacks.load(Relaxed),
            path_errors: self.path_errors.load(Relaxed),
            packets_too_big: self.packets_too_big.load(Relaxed),
        }
    }
}
