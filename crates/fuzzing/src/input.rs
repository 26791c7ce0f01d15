//! Input as decisions.

/// Reads decisions from the bytes of an input. At their end every decision is zero.
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        byte
    }

    /// A number below `limit`, which is at most 256 and not zero.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    /// One of 65 536 numbers.
    pub(crate) fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// The next bytes: as many as a first one says, or as many as there are.
    pub(crate) fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte());
        self.take(len)
    }

    pub(crate) fn take(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// A number that fits a variable-length integer: mostly a small one, or one where something
    /// ends.
    pub(crate) fn number(&mut self) -> u64 {
        let first = self.byte();
        match first {
            0..SMALL => u64::from(first),
            SMALL..WIDE => {
                let edge = EDGES[usize::from(first - SMALL) % EDGES.len()];
                edge.wrapping_add_signed(i64::from(self.byte() as i8)) & MAX_VARINT
            }
            _ => {
                let mut bytes = [0; 8];
                let given = self.take(8);
                bytes[..given.len()].copy_from_slice(given);
                u64::from_le_bytes(bytes) & MAX_VARINT
            }
        }
    }
}

/// First bytes of numbers that stand for themselves.
const SMALL: u8 = 192;

/// First bytes of numbers of eight bytes.
const WIDE: u8 = 248;

/// The largest variable-length integer (RFC 9000 §16).
const MAX_VARINT: u64 = (1 << 62) - 1;

/// Numbers at which fields, windows and formats end. A byte moves them up to 128 either way.
const EDGES: [u64; 14] = [
    0,
    1 << 6,
    1 << 8,
    1200,
    1 << 14,
    1 << 16,
    1 << 18,
    1 << 20,
    1 << 30,
    1 << 31,
    1 << 32,
    1 << 60,
    1 << 61,
    MAX_VARINT,
];
