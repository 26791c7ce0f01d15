//! Data of streams in both directions.

use bytes::{Buf, Bytes};
use peers_common::settings::{CHUNK_SIZE, HEADER_LEN};
use tquic::{Connection, Error};

/// Bytes that a stream has yet to send: a few in front, zero bytes in chunks that share their memory, and FIN.
pub struct Outgoing {
    front: Bytes,
    left: u64,
    is_finished: bool,
}

impl Outgoing {
    /// `length` zero bytes.
    pub const fn zeros(length: u64) -> Self {
        Self {
            front: Bytes::new(),
            left: length,
            is_finished: false,
        }
    }

    /// These bytes.
    pub fn content(bytes: Bytes) -> Self {
        Self {
            front: bytes,
            ..Self::zeros(0)
        }
    }

    /// The length of the requested answer and `more` zero bytes, 0 or 1, in one write, followed by `length` zero bytes.
    pub fn request(wanted: u64, more: usize, length: u64) -> Self {
        let mut front = [0; HEADER_LEN + 1];
        front[..HEADER_LEN].copy_from_slice(&wanted.to_be_bytes());
        Self {
            front: Bytes::copy_from_slice(&front[..HEADER_LEN + more]),
            ..Self::zeros(length)
        }
    }

    /// Writes as much as flow control allows. Returns true if nothing is left; otherwise tquic calls back when it allows
    /// more.
    ///
    /// # Errors
    /// When the other end wants no more of it, or the connection has ended.
    pub fn write(&mut self, connection: &mut Connection, stream: u64) -> tquic::Result<bool> {
        while !self.is_finished {
            let (chunk, is_last) = self.next();
            let length = chunk.len();
            let taken = match connection.stream_write(stream, chunk, is_last) {
                Ok(taken) => taken,
                Err(Error::Done) => return Ok(false),
                Err(error) => return Err(error),
            };
            self.advance(taken);
            if taken < length {
                return Ok(false);
            }
            self.is_finished = is_last;
        }
        // Otherwise tquic would call back whenever the stream is writable.
        let _ = connection.stream_want_write(stream, false);
        Ok(true)
    }

    /// Returns the next bytes, and true when they are the last.
    fn next(&self) -> (Bytes, bool) {
        if !self.front.is_empty() {
            return (self.front.clone(), self.left == 0);
        }
        let length = usize::try_from(self.left)
            .unwrap_or(CHUNK_SIZE)
            .min(CHUNK_SIZE);
        let chunk = Bytes::from_static(&ZEROS[..length]);
        (chunk, length as u64 == self.left)
    }

    fn advance(&mut self, count: usize) {
        if self.front.is_empty() {
            self.left -= count as u64;
        } else {
            self.front.advance(count);
        }
    }
}

/// Reads the received data of a stream. Returns true at its end.
pub fn read(
    connection: &mut Connection,
    stream: u64,
    scratch: &mut [u8],
    mut each: impl FnMut(&[u8]),
) -> tquic::Result<bool> {
    loop {
        match connection.stream_read(stream, scratch) {
            Ok((length, is_end)) => {
                each(&scratch[..length]);
                if is_end {
                    return Ok(true);
                }
            }
            Err(Error::Done) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

static ZEROS: [u8; CHUNK_SIZE] = [0; CHUNK_SIZE];

/// The size of one read.
pub const SCRATCH: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_its_front_and_its_zeros() {
        let chunk = CHUNK_SIZE as u64;
        for (more, length) in [(0, 0), (1, 0), (0, 1), (0, chunk), (0, 2 * chunk + 5)] {
            let mut outgoing = Outgoing::request(7, more, length);
            let mut all = Vec::new();
            loop {
                let (chunk, is_last) = outgoing.next();
                // In parts, as when flow control ends a write.
                let taken = chunk.len().min(20_000);
                all.extend_from_slice(&chunk[..taken]);
                outgoing.advance(taken);
                if taken == chunk.len() && is_last {
                    break;
                }
            }
            let zeros = usize::try_from(length).unwrap() + more;
            assert_eq!(all[..HEADER_LEN], 7_u64.to_be_bytes());
            assert_eq!(all[HEADER_LEN..], vec![0; zeros]);
        }
    }
}
