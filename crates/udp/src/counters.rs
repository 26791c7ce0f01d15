//! Counters of a socket.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counters of a socket since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Send calls in which the kernel accepted data.
    pub send_calls: u64,
    /// Datagrams that the kernel accepted.
    pub sent_datagrams: u64,
    /// Bytes of payload that the kernel accepted.
    pub sent_bytes: u64,
    /// Receive calls that returned data.
    pub receive_calls: u64,
    /// Datagrams received.
    pub received_datagrams: u64,
    /// Bytes of payload received.
    pub received_bytes: u64,
    /// Number of times that segmentation offload proved broken and was switched off: 0 or 1.
    pub gso_fallbacks: u64,
    /// ICMP messages about datagrams that were sent, such as "port unreachable". They end no
    /// connection.
    pub path_errors: u64,
    /// ICMP messages among them which report that a datagram was too large.
    pub packets_too_big: u64,
}

impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.send_calls += other.send_calls;
        self.sent_datagrams += other.sent_datagrams;
        self.sent_bytes += other.sent_bytes;
        self.receive_calls += other.receive_calls;
        self.received_datagrams += other.received_datagrams;
        self.received_bytes += other.received_bytes;
        self.gso_fallbacks += other.gso_fallbacks;
        self.path_errors += other.path_errors;
        self.packets_too_big += other.packets_too_big;
    }
}

/// Counters that several threads may update, for sockets and for transports that replace them.
#[derive(Debug, Default)]
pub struct Tally {
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
    /// Counts a send call in which `datagrams` with `bytes` in all were accepted.
    pub fn on_sent(&self, datagrams: usize, bytes: usize) {
        self.send_calls.fetch_add(1, Relaxed);
        self.sent_datagrams.fetch_add(datagrams as u64, Relaxed);
        self.sent_bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// Counts a receive call that returned `datagrams` with `bytes` in all.
    pub fn on_received(&self, datagrams: usize, bytes: usize) {
        self.receive_calls.fetch_add(1, Relaxed);
        self.received_datagrams.fetch_add(datagrams as u64, Relaxed);
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn on_gso_fallback(&self) {
        self.gso_fallbacks.fetch_add(1, Relaxed);
    }

    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "reads no ICMP"))]
    pub(crate) fn on_path_error(&self, is_too_big: bool) {
        self.path_errors.fetch_add(1, Relaxed);
        self.packets_too_big
            .fetch_add(u64::from(is_too_big), Relaxed);
    }

    /// Returns the present counts.
    pub fn snapshot(&self) -> Counters {
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
