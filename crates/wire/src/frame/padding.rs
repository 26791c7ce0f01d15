//! PADDING frames: zero bytes without meaning. RFC 9000 §19.1.

use crate::reader::Reader;

/// Skips a run of PADDING and returns its length, in time linear in it: sixteen bytes at a time,
/// since handshake datagrams and path probes are mostly padding.
pub(super) fn skip(reader: &mut Reader<'_>) -> usize {
    let (blocks, _) = reader.unread().as_chunks::<16>();
    let zero_blocks = blocks.iter().take_while(|&&block| block == [0; 16]).count();
    let tail = reader.unread().iter().skip(16 * zero_blocks);
    let len = 16 * zero_blocks + tail.take_while(|&&byte| byte == 0).count();
    // Cannot fail: the bytes were just seen.
    let _ = reader.bytes(len);
    len
}

#[cfg(test)]
mod tests;
