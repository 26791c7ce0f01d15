//! Counters of a socket.

use std::io;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::error::{ErrorCause, ErrorClass, classify};

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
    /// Datagrams received, each counted also if the kernel merged several (GRO).
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
    /// Number of times that the system refused ECN marks, so that no more are set: 0 or 1.
    pub mark_fallbacks: u64,
    /// Number of times that the system refused source addresses, so that it chooses them: 0 or 1.
    pub source_fallbacks: u64,
    /// Send calls that failed, by cause. Their datagrams are lost.
    pub send_errors: ErrorCounts,
    /// Receive calls that failed, by cause. Most report datagrams that were sent.
    pub receive_errors: ErrorCounts,
}

impl AddAssign for Counters {
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
        self.mark_fallbacks += other.mark_fallbacks;
        self.source_fallbacks += other.source_fallbacks;
        self.send_errors += other.send_errors;
        self.receive_errors += other.receive_errors;
    }
}

/// Numbers of failed calls, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ErrorCounts([u64; ErrorCause::ALL.len()]);

impl ErrorCounts {
    /// Returns the number of calls that failed for this cause.
    pub fn of(&self, cause: ErrorCause) -> u64 {
        self.0[cause as usize]
    }

    /// Returns the number of calls that failed for any cause.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns all causes with their numbers, including those that are zero.
    pub fn iter(&self) -> impl Iterator<Item = (ErrorCause, u64)> {
        ErrorCause::ALL.into_iter().zip(self.0)
    }
}

impl AddAssign for ErrorCounts {
    fn add_assign(&mut self, other: Self) {
        let pairs = self.0.iter_mut().zip(other.0);
        pairs.for_each(|(sum, more)| *sum += more);
    }
}

/// Counters that several threads may update, for sockets and for transports that replace them.
#[derive(Debug, Default)]
pub struct AtomicCounters {
    send_calls: AtomicU64,
    sent_datagrams: AtomicU64,
    sent_bytes: AtomicU64,
    receive_calls: AtomicU64,
    received_datagrams: AtomicU64,
    received_bytes: AtomicU64,
    gso_fallbacks: AtomicU64,
    path_errors: AtomicU64,
    packets_too_big: AtomicU64,
    mark_fallbacks: AtomicU64,
    source_fallbacks: AtomicU64,
    send_errors: AtomicErrorCounts,
    receive_errors: AtomicErrorCounts,
}

/// Counters of failed calls, by cause.
#[derive(Debug, Default)]
struct AtomicErrorCounts([AtomicU64; ErrorCause::ALL.len()]);

impl AtomicErrorCounts {
    /// Counts a failed call. One that only has to wait has not failed.
    fn on_error(&self, error: &io::Error) {
        let is_interrupted = error.kind() == io::ErrorKind::Interrupted;
        if classify(error) != ErrorClass::WouldBlock && !is_interrupted {
            self.0[ErrorCause::of(error) as usize].fetch_add(1, Relaxed);
        }
    }

    fn snapshot(&self) -> ErrorCounts {
        ErrorCounts(std::array::from_fn(|index| self.0[index].load(Relaxed)))
    }
}

impl AtomicCounters {
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

    /// Counts a failed send call, unless it only has to wait.
    pub fn on_send_error(&self, error: &io::Error) {
        self.send_errors.on_error(error);
    }

    /// Counts a failed receive call, unless it only has to wait.
    pub fn on_receive_error(&self, error: &io::Error) {
        self.receive_errors.on_error(error);
    }

    pub(crate) fn on_gso_fallback(&self) {
        self.gso_fallbacks.fetch_add(1, Relaxed);
    }

    pub(crate) fn on_mark_fallback(&self) {
        self.mark_fallbacks.fetch_add(1, Relaxed);
    }

    pub(crate) fn on_source_fallback(&self) {
        self.source_fallbacks.fetch_add(1, Relaxed);
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
            mark_fallbacks: self.mark_fallbacks.load(Relaxed),
            source_fallbacks: self.source_fallbacks.load(Relaxed),
            send_errors: self.send_errors.snapshot(),
            receive_errors: self.receive_errors.snapshot(),
        }
    }
}
