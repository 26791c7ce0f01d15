//! The requests of a connection whose rest is [discarded](super::abandoned).

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Waker};

use courser_base::Mutex;

/// The streams of a connection whose rest is discarded.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    /// Number of streams. It is zero on most connections, whose requests need not take the lock.
    count: AtomicUsize,
    streams: Mutex<Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    stream: u64,
    /// True if the response was reset, so that the rest of the request is useless to the client.
    has_ended: bool,
    waker: Option<Waker>,
}

impl Lingering {
    pub(super) fn add(&self, stream: u64) {
        self.count.fetch_add(1, Relaxed);
        self.streams.lock().push(Entry {
            stream,
            has_ended: false,
            waker: None,
        });
    }

    pub(super) fn remove(&self, stream: u64) {
        let mut streams = self.streams.lock();
        let index = streams.iter().position(|entry| entry.stream == stream);
        // Dropped after the lock is released, because dropping the waker runs foreign code.
        let removed = index.map(|index| streams.swap_remove(index));
        if removed.is_some() {
            self.count.fetch_sub(1, Relaxed);
        }
        if streams.is_empty() {
            // Streams are rare, so the memory of the list is released.
            *streams = Vec::new();
        }
        drop(streams);
    }

    /// Stops a stream whose response was reset.
    pub(super) fn on_reset(&self, stream: u64) {
        if self.count.load(Relaxed) == 0 {
            return;
        }
        let mut streams = self.streams.lock();
        let entry = streams.iter_mut().find(|entry| entry.stream == stream);
        let waker = entry.and_then(|entry| {
            entry.has_ended = true;
            entry.waker.take()
        });
        drop(streams);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Returns true if the response of a stream was reset. Otherwise registers the task to be woken.
    pub(super) fn has_ended(&self, cx: &Context<'_>, stream: u64) -> bool {
        // Wakers are cloned and dropped without the lock, because they run foreign code.
        let mut waker = Some(cx.waker().clone());
        let mut streams = self.streams.lock();
        let entry = streams.iter_mut().find(|entry| entry.stream == stream);
        let has_ended = entry.is_none_or(|entry| {
            std::mem::swap(&mut entry.waker, &mut waker);
            entry.has_ended
        });
        drop(streams);
        has_ended
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn reset_of_a_response_ends_only_the_wait_for_its_request() {
        let lingering = Lingering::default();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let cx = Context::from_waker(&waker);
        lingering.on_reset(0);
        lingering.add(0);
        lingering.add(4);
        assert!(!lingering.has_ended(&cx, 0) && !lingering.has_ended(&cx, 4));
        lingering.on_reset(4);
        assert_eq!(woken.0.load(Relaxed), 1);
        assert!(!lingering.has_ended(&cx, 0) && lingering.has_ended(&cx, 4));
        lingering.remove(4);
        lingering.remove(4);
        lingering.on_reset(0);
        assert!(lingering.has_ended(&cx, 0));
        lingering.remove(0);
        assert_eq!(lingering.count.load(Relaxed), 0);
        assert_eq!(lingering.streams.lock().capacity(), 0);
    }
}
