//! PADDING frames: zero bytes without content. RFC 9000 §19.1.

use crate::reader::Reader;

/// Skips a run of PADDING and returns its length. Takes time linear in the length and skips 16
/// bytes at a time, because handshake datagrams and path probes are mostly padding.
pub(super) fn skip(reader: &mut Reader<'_>) -> usize {
    let (blocks, _) = reader.unread().as_chunks::<16>();
    let zero_blocks = blocks.iter().take_while(|&&block| block == [0; 16]).count();
    let tail = reader.unread().iter().skip(16 * zero_blocks);
    let len = 16 * zero_blocks + tail.take_while(|&&byte| byte == 0).count();
    // This cannot fail, because the bytes were just inspected.
    let _ = reader.bytes(len);
    len
}

#[cfg(test)]
mod tests;
