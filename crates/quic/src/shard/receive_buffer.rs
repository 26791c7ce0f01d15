//! The buffer of received batches, which the endpoints on a thread share.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use courser_udp::RECEIVE_BUFFER_LEN;

thread_local! {
    /// The buffer while no driver of this thread receives. A driver needs it for part of a turn, and turns on
    /// one thread do not overlap, so that thousands of idle endpoints have one buffer between them, and busy
    /// ones find it in the cache.
    static SPARE: Cell<Option<Box<[u8]>>> = const { Cell::new(None) };
}

/// The buffer of this thread, for as long as a driver receives.
#[derive(Debug)]
pub(crate) struct ReceiveBuffer(Box<[u8]>);

impl ReceiveBuffer {
    /// Takes the buffer of this thread. The first driver on a thread allocates it.
    pub(crate) fn take() -> Self {
        let spare = SPARE.try_with(Cell::take).ok().flatten();
        Self(spare.unwrap_or_else(|| vec![0; RECEIVE_BUFFER_LEN].into_boxed_slice()))
    }
}

impl Drop for ReceiveBuffer {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.0);
        // A thread that ends has no spare one any more.
        let _ = SPARE.try_with(|spare| spare.set(Some(buffer)));
    }
}

impl Deref for ReceiveBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for ReceiveBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_buffer_serves_a_thread() {
        let first = ReceiveBuffer::take();
        assert_eq!(first.len(), RECEIVE_BUFFER_LEN);
        let place = first.as_ptr();
        drop(first);
        let again = ReceiveBuffer::take();
        assert_eq!(again.as_ptr(), place);
        // A runtime within a runtime gets its own.
        let inner = ReceiveBuffer::take();
        assert_ne!(inner.as_ptr(), place);
        assert_eq!(inner.len(), RECEIVE_BUFFER_LEN);
    }
}
