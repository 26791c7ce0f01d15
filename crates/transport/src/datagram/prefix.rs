//! A short beginning of a datagram.

use courser_wire::Writer;

/// A variable-length integer before the data of a datagram, such as the Quarter Stream ID of HTTP Datagrams
/// (RFC 9297 §2.1). It is written into the packet in front of the data, which therefore need not be copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramPrefix {
    bytes: [u8; 8],
    len: u8,
}

impl DatagramPrefix {
    /// No prefix.
    pub const NONE: Self = Self {
        bytes: [0; 8],
        len: 0,
    };

    /// Encodes an integer below 2^62.
    pub fn varint(value: u64) -> Self {
        let mut bytes = [0; 8];
        let mut writer = Writer::new(&mut bytes);
        writer.varint(value);
        let len = writer.written().len();
        Self {
            bytes,
            // At most 8.
            len: u8::try_from(len).unwrap_or(8),
        }
    }

    /// Returns the encoded integer.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}
