//! Splitting a batch by what the kernel takes in one call, and living without offload.
//!
//! The system call itself is an argument, so that tests can play a broken kernel.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::batch::Transmit;
use crate::counters::Tally;
use crate::{ErrorClass, MAX_BATCH_LEN, classify};

/// How many datagrams one call takes on this socket. Falls to 1 once and never rises: a device
/// that cannot split batches does not learn it.
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

    /// Sends a batch with as few calls as possible and returns how many bytes were taken.
    ///
    /// `call` sends its bytes as datagrams of the given size, or as one datagram for `None`, and
    /// returns how many bytes it took. An error is returned only if nothing was taken: the
    /// datagrams that left must not be sent again. What is left over is sent with the next
    /// batch, and a reason that lasts is met again then.
    pub(crate) fn send(
        &self,
        transmit: &Transmit<'_>,
        tally: &Tally,
        mut call: impl FnMut(&[u8], Option<usize>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let segment = transmit.segment_len();
        let len = transmit.contents.len();
        let mut taken = 0;
        loop {
            let rest = &transmit.contents[taken..];
            let piece = &rest[..rest.len().min(self.piece_len(segment))];
            let accepted = match self.send_piece(piece, segment, tally, &mut call) {
                Ok(bytes) => whole_segments(bytes, segment, piece.len()),
                Err(_) if taken > 0 => return Ok(taken),
                Err(error) => return Err(error),
            };
            tally.on_sent(accepted.div_ceil(segment).max(1), accepted);
            taken += accepted;
            if taken == len {
                return Ok(taken);
            }
        }
    }

    /// Most bytes for one call.
    fn piece_len(&self, segment: usize) -> usize {
        self.segments()
            .min(MAX_BATCH_LEN / segment)
            .max(1)
            .saturating_mul(segment)
    }

    /// Sends what fits one call; without offload from now on, if offload is to blame.
    fn send_piece(
        &self,
        piece: &[u8],
        segment: usize,
        tally: &Tally,
        call: &mut impl FnMut(&[u8], Option<usize>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        if piece.len() <= segment {
            return uninterrupted(|| call(piece, None));
        }
        match uninterrupted(|| call(piece, Some(segment))) {
            Err(error) if may_be_offload(&error) => {}
            result => return result,
        }
        // On a connected socket the error may be about an earlier datagram (an ICMP "too big"
        // that answers an MTU probe) and is gone once told. Judge by a second try.
        match uninterrupted(|| call(piece, Some(segment))) {
            Err(error) if may_be_offload(&error) => {}
            result => return result,
        }
        // If a single datagram fails too, its size or its destination is to blame.
        let taken = uninterrupted(|| call(&piece[..segment], None))?;
        self.switch_off(tally);
        Ok(taken)
    }

    fn switch_off(&self, tally: &Tally) {
        if self.segments.swap(1, Relaxed) > 1 {
            tally.on_gso_fallback();
        }
    }
}

/// Repeats a call until no signal cuts it short.
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// The bytes of all datagrams of which some part was taken: there is no part of a datagram.
fn whole_segments(bytes: usize, segment: usize, piece_len: usize) -> usize {
    bytes
        .max(1)
        .div_ceil(segment)
        .saturating_mul(segment)
        .min(piece_len)
}

/// True for the errors by which kernels and drivers refuse to split a batch: EIO from devices
/// without checksum offload, EINVAL and EMSGSIZE from the kernel's own checks.
fn may_be_offload(error: &io::Error) -> bool {
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
