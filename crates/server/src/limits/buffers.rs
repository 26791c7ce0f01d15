//! The memory of bytes that a TCP client has sent and that are not a request yet (limits K370, K371).

use std::io;
use std::sync::Arc;

use super::holders::Holder;

/// The buffers for bytes that a connection has received since its last request.
///
/// A new connection counts with [`CONNECTION`] bytes, which include a first buffer. Beyond it the buffers count
/// with twice the next power of two, because they grow that way. HTTP/1.1 keeps its buffer until the connection
/// ends.
#[derive(Debug)]
pub(crate) struct ReadBuffers {
    holder: Arc<Holder>,
    /// Bytes that may wait before more memory is taken.
    allowed: u64,
    counted: u64,
    max: u64,
}

impl ReadBuffers {
    /// Creates the buffers of a new connection, which hold at most `max` bytes.
    pub(crate) const fn new(holder: Arc<Holder>, max: u64) -> Self {
        Self {
            holder,
            allowed: FIRST_BUFFER,
            counted: FIRST_BUFFER,
            max,
        }
    }

    /// Returns the memory of the connection.
    pub(crate) const fn holder(&self) -> &Arc<Holder> {
        &self.holder
    }

    /// Sets the largest number of bytes that the buffers hold.
    pub(crate) fn set_max(&mut self, max: u64) {
        self.max = max;
        self.allowed = match self.counted > max {
            true => u64::MAX,
            false => FIRST_BUFFER.max(self.counted / 2),
        };
    }

    /// Records that this number of bytes is buffered.
    ///
    /// # Errors
    /// Returns an error if the connection must be closed because memory is short.
    #[inline]
    pub(crate) fn on_waiting(&mut self, bytes: u64) -> io::Result<()> {
        match bytes <= self.allowed {
            true => Ok(()),
            false => self.grow(bytes),
        }
    }

    #[cold]
    fn grow(&mut self, bytes: u64) -> io::Result<()> {
        // A vector grows to twice its length.
        let wanted = bytes.min(self.max).next_power_of_two() * 2;
        take(&self.holder, wanted.saturating_sub(self.counted))?;
        self.counted = self.counted.max(wanted);
        self.set_max(self.max);
        Ok(())
    }
}

/// The memory of a header block of HTTP/2 that spans several frames.
///
/// A byte of HPACK can decode to a field with its entry in a map, so each byte counts with [`DECODED`] bytes, up
/// to the largest header section. Blocks in one frame are decoded at once and count as requests.
#[derive(Debug)]
pub(crate) struct HeaderBlock {
    holder: Arc<Holder>,
    counted: u64,
    max: u64,
}

impl HeaderBlock {
    /// Creates the memory of a connection whose header sections have at most `max_header_bytes`.
    pub(crate) fn new(holder: Arc<Holder>, max_header_bytes: u32) -> Self {
        Self {
            holder,
            counted: 0,
            max: u64::from(max_header_bytes) * DECODED_SECTION,
        }
    }

    /// Sets the length of the incomplete header block, which is 0 if there is none.
    ///
    /// # Errors
    /// Returns an error if the connection must be closed because memory is short.
    #[inline]
    pub(crate) fn set_len(&mut self, len: u64) -> io::Result<()> {
        match len == 0 && self.counted == 0 {
            true => Ok(()),
            false => self.count(len),
        }
    }

    #[cold]
    fn count(&mut self, len: u64) -> io::Result<()> {
        let wanted = len.saturating_mul(DECODED).min(self.max);
        if wanted < self.counted {
            self.holder.shrink(self.counted - wanted);
        } else {
            take(&self.holder, wanted - self.counted)?;
        }
        self.counted = wanted;
        Ok(())
    }
}

/// Takes memory for buffers of a connection.
fn take(holder: &Holder, bytes: u64) -> io::Result<()> {
    match bytes == 0 || holder.grow(bytes) {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::OutOfMemory,
            "memory is short, and the client of this connection holds the most",
        )),
    }
}

/// Memory of a TCP connection with TLS, first buffers and the state of HTTP/1.1 (limit K370).
pub(crate) const CONNECTION: u64 = 28 * 1024;

/// Additional memory of a connection with HTTP/2: its buffers and tables (limit K370).
pub(crate) const HTTP2_CONNECTION: u64 = 16 * 1024;

/// Additional memory of a connection that has become a tunnel: the buffers of both directions (limit K370).
pub(crate) const TUNNEL: u64 = 24 * 1024;

/// Additional memory of a connection while its client does not read what it sends: the buffers of TLS and HTTP for
/// outgoing bytes (limit K370).
pub(crate) const BLOCKED: u64 = 64 * 1024;

/// Buffered bytes that [`CONNECTION`] includes.
const FIRST_BUFFER: u64 = 8 * 1024;

/// Bytes that HTTP/2 buffers before it has a whole frame.
pub(crate) const HTTP2_BUFFER: u64 = 16 * 1024;

/// Memory into which a byte of a header block may decode (limit K371): a field of the dynamic table.
const DECODED: u64 = 128;

/// Memory of the largest decoded header section, as a multiple of its size (limit K371).
const DECODED_SECTION: u64 = 4;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::limits::holders::Holders;

    /// Returns the memory of a server and of one of its connections.
    fn holder(budget: u64) -> (Arc<Holders>, Arc<Holder>) {
        let all = Holders::of_budget(budget);
        let holder = all.open(Ipv4Addr::LOCALHOST, CONNECTION).expect("room");
        (all, holder)
    }

    fn used(all: &Holders) -> u64 {
        all.memory().used().load(Relaxed)
    }

    #[test]
    fn buffers_count_with_the_next_power_of_two() {
        let (all, holder) = holder(1 << 30);
        let mut buffers = ReadBuffers::new(holder, 64 * 1024);
        for (waiting, counted) in [
            (8192, 0),
            (8193, 24),
            (100, 24),
            (40_000, 120),
            (u64::MAX, 120),
        ] {
            buffers.on_waiting(waiting).expect("room");
            assert_eq!(used(&all), CONNECTION + counted * 1024, "{waiting}");
        }
        drop(buffers);
        assert_eq!(used(&all), 0);
    }

    #[test]
    fn buffers_do_not_grow_without_memory() {
        let (_all, holder) = holder(100 * 1024);
        let mut buffers = ReadBuffers::new(holder, 64 * 1024);
        buffers.on_waiting(8192).expect("included");
        let error = buffers.on_waiting(8193).expect_err("no room");
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }

    #[test]
    fn incomplete_header_blocks_count_with_what_they_may_decode_to() {
        let (all, holder) = holder(1 << 30);
        let mut block = HeaderBlock::new(holder, 65_536);
        for (len, counted) in [(10, 1280), (5, 640), (60_000, 4 << 16), (0, 0)] {
            block.set_len(len).expect("room");
            assert_eq!(used(&all), CONNECTION + counted, "{len}");
        }
    }
}
