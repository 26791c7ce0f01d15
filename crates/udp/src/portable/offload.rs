//! Splitting of batches by the limits of the kernel, and the fallback without offload.
//!
//! The system call is an argument, so that tests can simulate a broken kernel.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::batch::Transmit;
use crate::counters::AtomicCounters;
use crate::{ErrorClass, MAX_BATCH_LEN, classify};

/// The number of datagrams per call on this socket. Falls to 1 at most once and never rises again:
/// a device that cannot split batches never can.
#[derive(Debug)]
pub(crate) struct Offload {
    segments: AtomicUsize,
}

impl Offload {
    pub(crate) fn new(segments: usize) -> Self {
        Self {
            segments: AtomicUsize::new(segments.max(1)),
        }
    }

    pub(crate) fn segments(&self) -> usize {
        self.segments.load(Relaxed)
    }

    /// Sends a batch with as few calls as possible and returns the number of bytes accepted.
    ///
    /// `call` sends its bytes as datagrams of the given size, or as one datagram for `None`, and
    /// returns the number of bytes accepted. `send` returns an error only if no datagram was
    /// accepted: datagrams that were sent must not be sent again. The rest goes out with the next
    /// batch, which meets a persistent error again.
    pub(crate) fn send(
        &self,
        transmit: &Transmit<'_>,
        counters: &AtomicCounters,
        mut call: impl FnMut(&[u8], Option<usize>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let segment = transmit.segment_len();
        let len = transmit.contents.len();
        let mut taken = 0;
        loop {
            let rest = &transmit.contents[taken..];
            let piece = &rest[..rest.len().min(self.piece_len(segment))];
            let accepted = match self.send_piece(piece, segment, counters, &mut call) {
                Ok(bytes) => whole_segments(bytes, segment, piece.len()),
                Err(_) if taken > 0 => return Ok(taken),
                Err(error) => return Err(error),
            };
            counters.on_sent(accepted.div_ceil(segment).max(1), accepted);
            taken += accepted;
            if taken == len {
                return Ok(taken);
            }
        }
    }

    /// Returns the largest number of bytes for one call.
    fn piece_len(&self, segment: usize) -> usize {
        self.segments()
            .min(MAX_BATCH_LEN / segment)
            .max(1)
            .saturating_mul(segment)
    }

    /// Sends the datagrams of one call. Switches offload off if it proves to be the cause of an
    /// error.
    fn send_piece(
        &self,
        piece: &[u8],
        segment: usize,
        counters: &AtomicCounters,
        call: &mut impl FnMut(&[u8], Option<usize>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        if piece.len() <= segment {
            return uninterrupted(|| call(piece, None));
        }
        match uninterrupted(|| call(piece, Some(segment))) {
            Err(error) if may_be_caused_by_offload(&error) => {}
            result => return result,
        }
        // On a connected socket the error may concern an earlier datagram (an ICMP "too big" in
        // response to an MTU probe) and is cleared once reported. A second attempt decides.
        match uninterrupted(|| call(piece, Some(segment))) {
            Err(error) if may_be_caused_by_offload(&error) => {}
            result => return result,
        }
        // If a single datagram fails too, the cause is its size or its destination.
        let taken = uninterrupted(|| call(&piece[..segment], None))?;
        self.switch_off(counters);
        Ok(taken)
    }

    fn switch_off(&self, counters: &AtomicCounters) {
        if self.segments.swap(1, Relaxed) > 1 {
            counters.on_gso_fallback();
        }
    }
}

/// Repeats a call until no signal interrupts it.
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Returns the bytes of all datagrams of which some part was accepted. The kernel never sends part
/// of a datagram.
fn whole_segments(bytes: usize, segment: usize, piece_len: usize) -> usize {
    bytes
        .max(1)
        .div_ceil(segment)
        .saturating_mul(segment)
        .min(piece_len)
}

/// Returns true for the errors with which kernels and drivers refuse to split a batch: EIO from
/// devices without checksum offload, EINVAL and EMSGSIZE from the kernel's own checks.
fn may_be_caused_by_offload(error: &io::Error) -> bool {
    #[cfg(unix)]
    let is_device_error = error.raw_os_error() == Some(libc::EIO);
    #[cfg(not(unix))]
    let is_device_error = false;
    is_device_error
        || error.kind() == io::ErrorKind::InvalidInput
        || classify(error) == ErrorClass::TooLarge
}

#[cfg(test)]
mod tests;
