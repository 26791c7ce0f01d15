//! Capsules in the content of an extended CONNECT (RFC 9297 §3).

use bytes::{Buf as _, Bytes, BytesMut};

use crate::error::{Code, Error};
use crate::frame::{self, put_varint};

/// A capsule of a type that the caller accepts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capsule {
    /// The Capsule Type (RFC 9297 §3.2), such as [`DATAGRAM`](Self::DATAGRAM).
    pub kind: u64,
    /// The Capsule Value, without the type and length before it.
    pub value: Bytes,
}

impl Capsule {
    /// The type of a capsule that contains an HTTP Datagram (§3.5).
    pub const DATAGRAM: u64 = 0x00;

    /// Appends a capsule to `out`.
    pub fn encode(out: &mut Vec<u8>, kind: u64, value: &[u8]) {
        put_varint(out, kind);
        put_varint(out, value.len() as u64);
        out.extend_from_slice(value);
    }
}

/// Splits content into capsules. Skips capsules of types that the caller does not accept without storing their
/// bytes.
#[derive(Debug, Default)]
pub struct CapsuleReader {
    input: Bytes,
    partial: BytesMut,
    state: CapsuleState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum CapsuleState {
    #[default]
    Header,
    Value {
        kind: u64,
        len: usize,
    },
    Skip(u64),
}

impl CapsuleReader {
    /// Adds a chunk of content. Allowed only after [`poll`](Self::poll) has returned `None`.
    pub fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.input.is_empty(), "a chunk was not read");
        self.input = chunk;
    }

    /// Returns the next capsule, or `None` if more content is needed. `longest` returns the largest allowed
    /// length of a value of a type, or `None` for types to skip.
    ///
    /// # Errors
    ///
    /// Returns a stream error for a capsule that exceeds its length limit.
    pub fn poll(
        &mut self,
        longest: impl Fn(u64) -> Option<usize>,
    ) -> Result<Option<Capsule>, Error> {
        loop {
            match self.state {
                CapsuleState::Header => {
                    let header = frame::take_header(&mut self.input, &mut self.partial);
                    let Some((kind, len)) = header else {
                        return Ok(None);
                    };
                    self.state = match (longest(kind), usize::try_from(len)) {
                        (None, _) => CapsuleState::Skip(len),
                        (Some(longest), Ok(len)) if len <= longest => {
                            CapsuleState::Value { kind, len }
                        }
                        _ => {
                            let reason = "capsule longer than allowed";
                            return Err(Error::stream(Code::EXCESSIVE_LOAD, reason));
                        }
                    };
                }
                CapsuleState::Value { kind, len } => {
                    let more = self.input.len().min(len - self.partial.len());
                    let more = self.input.split_to(more);
                    if more.len() == len {
                        self.state = CapsuleState::Header;
                        return Ok(Some(Capsule { kind, value: more }));
                    }
                    self.partial.extend_from_slice(&more);
                    if self.partial.len() < len {
                        return Ok(None);
                    }
                    self.state = CapsuleState::Header;
                    let value = self.partial.split().freeze();
                    return Ok(Some(Capsule { kind, value }));
                }
                CapsuleState::Skip(left) => {
                    let len = self
                        .input
                        .len()
                        .min(usize::try_from(left).unwrap_or(usize::MAX));
                    self.input.advance(len);
                    let left = left - len as u64;
                    if left > 0 {
                        self.state = CapsuleState::Skip(left);
                        return Ok(None);
                    }
                    self.state = CapsuleState::Header;
                }
            }
        }
    }

    /// Checks that the content may end here.
    ///
    /// # Errors
    ///
    /// Returns a stream error inside a capsule (§3.3).
    pub fn finish(&self) -> Result<(), Error> {
        if self.state == CapsuleState::Header && self.partial.is_empty() {
            Ok(())
        } else {
            Err(Error::malformed("stream ended inside a capsule"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(kind: u64) -> Option<usize> {
        (kind == Capsule::DATAGRAM).then_some(100)
    }

    fn read(bytes: &[u8], chunk: usize) -> Result<(Vec<Capsule>, CapsuleReader), Error> {
        let mut reader = CapsuleReader::default();
        let mut capsules = Vec::new();
        for chunk in bytes.chunks(chunk) {
            reader.push(Bytes::copy_from_slice(chunk));
            while let Some(capsule) = reader.poll(longest)? {
                capsules.push(capsule);
            }
        }
        Ok((capsules, reader))
    }

    /// RFC 9297 §3.2.
    #[test]
    fn unknown_capsules_are_skipped_without_being_stored() {
        let mut bytes = Vec::new();
        Capsule::encode(&mut bytes, Capsule::DATAGRAM, b"first");
        Capsule::encode(&mut bytes, 0x1234, &[0; 5000]);
        Capsule::encode(&mut bytes, 0x1235, b"");
        Capsule::encode(&mut bytes, Capsule::DATAGRAM, b"");
        for chunk in [1, 2, 7, 10_000] {
            let (capsules, reader) = read(&bytes, chunk).expect("capsules");
            let values: Vec<_> = capsules.iter().map(|capsule| &capsule.value[..]).collect();
            assert_eq!(values, [&b"first"[..], b""], "{chunk}");
            assert_eq!(reader.finish(), Ok(()));
            assert!(reader.partial.capacity() < 200);
        }
    }

    /// RFC 9297 §3.3.
    #[test]
    fn content_may_not_end_inside_a_capsule() {
        let mut bytes = Vec::new();
        Capsule::encode(&mut bytes, Capsule::DATAGRAM, b"first");
        Capsule::encode(&mut bytes, 0x1234, b"skipped");
        let whole = [0, 7, bytes.len()];
        for len in 0..=bytes.len() {
            let (_, reader) = read(&bytes[..len], 1000).expect("capsules");
            let result = reader.finish().map_err(|error| error.code);
            let expected = if whole.contains(&len) {
                Ok(())
            } else {
                Err(Code::MESSAGE_ERROR)
            };
            assert_eq!(result, expected, "{len}");
        }
    }

    #[test]
    fn long_capsules_are_refused_before_they_arrive() {
        let mut bytes = Vec::new();
        Capsule::encode(&mut bytes, Capsule::DATAGRAM, &[0; 101]);
        let error = read(&bytes[..3], 3).expect_err("too long");
        assert_eq!(error.code, Code::EXCESSIVE_LOAD);
    }
}
