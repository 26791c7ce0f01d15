//! Content that is sent: so many bytes of the endless repetition of a block.

use bytes::Bytes;
use quiche::h3;

/// Makes quiche hold what it sends as [`Bytes`], so that the blocks of bodies are shared.
#[derive(Clone, Debug, Default)]
pub struct Buffers;

impl quiche::BufFactory for Buffers {
    type Buf = Bytes;
    type DgramBuf = Vec<u8>;

    fn buf_from_slice(slice: &[u8]) -> Bytes {
        Bytes::copy_from_slice(slice)
    }

    fn dgram_buf_from_slice(slice: &[u8]) -> Vec<u8> {
        slice.to_vec()
    }
}

/// A connection that sends from [`Bytes`].
pub type Quic = quiche::Connection<Buffers>;

/// The first bytes of the endless repetition of a block.
#[derive(Clone, Debug)]
pub struct Body {
    block: Bytes,
    at: usize,
    left: u64,
}

impl Body {
    /// `length` bytes. A body that is not empty is not made of an empty block.
    ///
    /// # Panics
    /// When it would be.
    pub fn new(block: Bytes, length: u64) -> Self {
        assert!(length == 0 || !block.is_empty(), "bytes from nothing");
        Self {
            block,
            at: 0,
            left: length,
        }
    }

    /// Nothing.
    pub const fn empty() -> Self {
        Self {
            block: Bytes::new(),
            at: 0,
            left: 0,
        }
    }

    /// The block itself, once.
    pub fn text(text: impl Into<Bytes>) -> Self {
        let block = text.into();
        let length = block.len() as u64;
        Self::new(block, length)
    }

    /// Bytes that were not taken yet.
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// The next bytes, up to the end of the block; empty at the end of the body.
    pub fn chunk(&self) -> Bytes {
        let rest = self.block.len() - self.at;
        let length = usize::try_from(self.left).unwrap_or(rest).min(rest);
        self.block.slice(self.at..self.at + length)
    }

    /// Takes bytes of the last chunk.
    pub fn advance(&mut self, count: usize) {
        self.left -= count as u64;
        self.at += count;
        if self.at == self.block.len() {
            self.at = 0;
        }
    }

    /// Hands quiche what it has room for on `stream`; true when that was the rest.
    ///
    /// # Errors
    /// When the peer wants no more of it, or the connection is broken.
    pub fn send(
        &mut self,
        quic: &mut Quic,
        http: &mut h3::Connection,
        stream: u64,
    ) -> Result<bool, h3::Error> {
        while self.left > 0 {
            let mut chunk = self.chunk();
            let is_last = chunk.len() as u64 == self.left;
            match http.send_body_zc(quic, stream, &mut chunk, is_last) {
                Ok(count) => self.advance(count),
                // quiche tells when there is room again.
                Err(h3::Error::Done) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// The same on a stream without HTTP/3, and then its end.
    ///
    /// # Errors
    /// When the peer wants no more of it, or the connection is broken.
    pub fn send_plain(&mut self, quic: &mut Quic, stream: u64) -> quiche::Result<bool> {
        loop {
            let chunk = self.chunk();
            let is_last = chunk.len() as u64 == self.left;
            let count = match quic.stream_send(stream, &chunk, is_last) {
                Ok(count) => count,
                Err(quiche::Error::Done) => return Ok(false),
                Err(error) => return Err(error),
            };
            self.advance(count);
            if count < chunk.len() {
                return Ok(false);
            }
            if is_last {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_repeats_its_block() {
        let mut body = Body::new(Bytes::from_static(b"abc"), 8);
        let mut all = Vec::new();
        while body.left() > 0 {
            let chunk = body.chunk();
            // Taken in part, as a full stream takes it.
            let count = chunk.len().min(2);
            all.extend_from_slice(&chunk[..count]);
            body.advance(count);
        }
        assert_eq!(all, b"abcabcab");
        assert!(body.chunk().is_empty());
    }

    #[test]
    fn a_text_is_sent_once() {
        let mut body = Body::text("hello");
        assert_eq!(body.chunk(), "hello");
        body.advance(5);
        assert_eq!(body.left(), 0);
        assert_eq!(Body::empty().left(), 0);
    }
}
