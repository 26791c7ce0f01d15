//! Windows of HTTP/2 connections, a part of the memory budget (limit K112).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The memory for request content over HTTP/2 that the service has not read.
///
/// A connection can hold unread content up to its window. Each new connection gets an eighth of the memory that
/// is left, so that all windows together stay within the limit. Only the smallest window, which HTTP/2 requires,
/// may exceed it. Content in such a window counts as a buffer of the connection (limit K370).
#[derive(Debug)]
pub(crate) struct UploadMemory {
    limit: u64,
    used: AtomicU64,
}

impl UploadMemory {
    /// Creates the counter for the part of a memory budget that uploads may use.
    pub(crate) const fn of_budget(budget: u64) -> Self {
        Self {
            limit: budget / UPLOADS_PART,
            used: AtomicU64::new(0),
        }
    }

    /// Reserves the window of a new connection.
    pub(crate) fn reserve(self: &Arc<Self>) -> UploadWindow {
        let left = self.limit.saturating_sub(self.used.load(Relaxed));
        let share = u32::try_from(left / SHARE_OF_THE_REST).unwrap_or(u32::MAX);
        let bytes = share.clamp(HTTP2_MIN_WINDOW, HTTP2_CONNECTION_WINDOW);
        self.used.fetch_add(bytes.into(), Relaxed);
        UploadWindow {
            memory: self.clone(),
            bytes,
            is_within_limit: share >= HTTP2_MIN_WINDOW,
        }
    }
}

/// A reserved window. Dropping it returns its bytes.
#[derive(Debug)]
pub(crate) struct UploadWindow {
    memory: Arc<UploadMemory>,
    bytes: u32,
    is_within_limit: bool,
}

impl UploadWindow {
    /// Returns the window of the connection in bytes.
    pub(crate) const fn connection(&self) -> u32 {
        self.bytes
    }

    /// Returns the bytes of the window that are not part of the memory for uploads.
    pub(crate) const fn uncounted(&self) -> u32 {
        match self.is_within_limit {
            true => 0,
            false => self.bytes,
        }
    }

    /// Returns the window of each stream in bytes.
    pub(crate) fn stream(&self) -> u32 {
        self.bytes.min(HTTP2_STREAM_WINDOW)
    }
}

impl Drop for UploadWindow {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes.into(), Relaxed);
    }
}

const HTTP2_STREAM_WINDOW: u32 = 1 << 20;
const HTTP2_CONNECTION_WINDOW: u32 = 4 << 20;
/// Window of clients that connect while the memory for uploads is exhausted (limit K112). It is the initial
/// window of RFC 9113 §6.9.2, below which the window of a connection cannot start.
const HTTP2_MIN_WINDOW: u32 = 65_535;
/// Divisor of the memory budget that yields the memory for uploads over HTTP/2.
const UPLOADS_PART: u64 = 4;
/// Divisor of the memory that is left that yields the window of a new connection.
const SHARE_OF_THE_REST: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(budget: u64, count: usize) -> Vec<UploadWindow> {
        let memory = Arc::new(UploadMemory::of_budget(budget));
        (0..count).map(|_| memory.reserve()).collect()
    }

    #[test]
    fn windows_shrink_with_the_memory_that_is_left() {
        let all = windows(6 << 30, 300);
        assert!(
            all.iter()
                .all(|it| it.connection() == HTTP2_CONNECTION_WINDOW)
        );
        assert_eq!(all[0].stream(), HTTP2_STREAM_WINDOW);
        let all = windows(32 << 20, 2);
        assert_eq!(all[0].connection(), 1 << 20);
        assert_eq!(all[1].connection(), 7 << 17);
        let least = &windows(1, 1)[0];
        assert_eq!(
            (least.connection(), least.uncounted()),
            (HTTP2_MIN_WINDOW, HTTP2_MIN_WINDOW)
        );
        assert_eq!(all[0].uncounted(), 0);
    }

    #[test]
    fn windows_together_stay_within_the_limit() {
        let all = windows(32 << 20, 1000);
        let sum: u64 = all.iter().map(|it| u64::from(it.connection())).sum();
        let least: u64 = 1000 * u64::from(HTTP2_MIN_WINDOW);
        assert!(sum <= (8 << 20) + least, "{sum}");
    }

    #[test]
    fn closed_connections_return_their_windows() {
        let memory = Arc::new(UploadMemory::of_budget(32 << 20));
        for _ in 0..100 {
            assert_eq!(memory.reserve().connection(), 1 << 20);
        }
    }
}
