//! SETTINGS frames (RFC 9114 §7.2.4).

use courser_wire::Reader;

use crate::error::{Code, Error};
use crate::frame::{self, put_varint, reserved};

/// The features and limits that one end announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// `SETTINGS_QPACK_MAX_TABLE_CAPACITY` in bytes. Default 0.
    pub qpack_max_table_capacity: u64,
    /// `SETTINGS_QPACK_BLOCKED_STREAMS`, a number of streams. Default 0.
    pub qpack_blocked_streams: u64,
    /// `SETTINGS_MAX_FIELD_SECTION_SIZE`: the size of all names and values plus 32 bytes per field line. No
    /// limit by default.
    pub max_field_section_size: Option<u64>,
    /// `SETTINGS_ENABLE_CONNECT_PROTOCOL` (RFC 9220): whether the sender accepts extended CONNECT. Default
    /// false.
    pub enable_connect_protocol: bool,
    /// `SETTINGS_H3_DATAGRAM` (RFC 9297 §2.1.1): whether the sender supports HTTP Datagrams. Default false.
    pub h3_datagram: bool,
}

impl Settings {
    /// Parses the payload of a SETTINGS frame. Appends the settings that this crate does not implement to
    /// `unknown`.
    ///
    /// # Errors
    ///
    /// Returns `H3_SETTINGS_ERROR` for settings of HTTP/2, duplicates and invalid values, `H3_EXCESSIVE_LOAD`
    /// for more than 64 settings, and `H3_FRAME_ERROR` for a truncated payload.
    pub(crate) fn decode(payload: &[u8], unknown: &mut Vec<(u64, u64)>) -> Result<Self, Error> {
        let mut settings = Self::default();
        let mut reader = Reader::new(payload);
        let mut seen = Vec::new();
        while !reader.is_empty() {
            let (Ok(id), Ok(value)) = (reader.varint(), reader.varint()) else {
                return Err(Error::frame("SETTINGS truncated inside a setting"));
            };
            if seen.len() == MAX_SETTINGS {
                return Err(Error::connection(
                    Code::EXCESSIVE_LOAD,
                    "more than 64 settings",
                ));
            }
            if seen.contains(&id) {
                return Err(settings_error("duplicate setting"));
            }
            seen.push(id);
            settings.set(id, value)?;
            if !is_known(id) {
                unknown.push((id, value));
            }
        }
        Ok(settings)
    }

    fn set(&mut self, id: u64, value: u64) -> Result<(), Error> {
        match id {
            QPACK_MAX_TABLE_CAPACITY => self.qpack_max_table_capacity = value,
            QPACK_BLOCKED_STREAMS => self.qpack_blocked_streams = value,
            MAX_FIELD_SECTION_SIZE => self.max_field_section_size = Some(value),
            ENABLE_CONNECT_PROTOCOL => self.enable_connect_protocol = flag(value)?,
            H3_DATAGRAM => self.h3_datagram = flag(value)?,
            _ if is_forbidden(id) => return Err(settings_error("a setting reserved for HTTP/2")),
            _ => {}
        }
        Ok(())
    }

    /// Appends a SETTINGS frame that includes `others`, and a reserved setting if `grease` has a seed.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, others: &[(u64, u64)], grease: Option<u64>) {
        let mut payload = Vec::with_capacity(64);
        for (id, value) in self.pairs(others, grease) {
            put_varint(&mut payload, id);
            put_varint(&mut payload, value);
        }
        frame::encode_header(out, frame::SETTINGS, payload.len());
        out.extend_from_slice(&payload);
    }

    /// Returns the identifiers and values in the order of the frame; the arguments are those of
    /// [`encode`](Self::encode).
    pub(crate) fn pairs(&self, others: &[(u64, u64)], grease: Option<u64>) -> Vec<(u64, u64)> {
        let mut pairs = Vec::with_capacity(6 + others.len());
        let mut put = |id, value| pairs.push((id, value));
        put(QPACK_MAX_TABLE_CAPACITY, self.qpack_max_table_capacity);
        put(QPACK_BLOCKED_STREAMS, self.qpack_blocked_streams);
        if let Some(size) = self.max_field_section_size {
            put(MAX_FIELD_SECTION_SIZE, size);
        }
        if self.enable_connect_protocol {
            put(ENABLE_CONNECT_PROTOCOL, 1);
        }
        if self.h3_datagram {
            put(H3_DATAGRAM, 1);
        }
        for &(id, value) in others {
            put(id, value);
        }
        if let Some(seed) = grease {
            put(reserved(seed), seed % 1000);
        }
        pairs
    }
}

/// Returns the settings of a payload in order, at most 64.
pub(crate) fn pairs_of(payload: &[u8]) -> Vec<(u64, u64)> {
    let mut reader = Reader::new(payload);
    let pairs = std::iter::from_fn(|| Some((reader.varint().ok()?, reader.varint().ok()?)));
    pairs.take(MAX_SETTINGS).collect()
}

/// Returns true for settings that [`Settings`] contains.
pub(crate) const fn is_known(id: u64) -> bool {
    matches!(
        id,
        QPACK_MAX_TABLE_CAPACITY
            | QPACK_BLOCKED_STREAMS
            | MAX_FIELD_SECTION_SIZE
            | ENABLE_CONNECT_PROTOCOL
            | H3_DATAGRAM
    )
}

/// Returns true for settings of HTTP/2 that HTTP/3 forbids (§11.2.2).
pub(crate) const fn is_forbidden(id: u64) -> bool {
    matches!(id, 0x02..=0x05)
}

fn flag(value: u64) -> Result<bool, Error> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(settings_error("a boolean setting that is neither 0 nor 1")),
    }
}

const fn settings_error(reason: &'static str) -> Error {
    Error::connection(Code::SETTINGS_ERROR, reason)
}

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x01;
const MAX_FIELD_SECTION_SIZE: u64 = 0x06;
const QPACK_BLOCKED_STREAMS: u64 = 0x07;
const ENABLE_CONNECT_PROTOCOL: u64 = 0x08;
const H3_DATAGRAM: u64 = 0x33;

/// Largest number of settings in a frame.
const MAX_SETTINGS: usize = 64;
/// Longest payload of a SETTINGS frame in bytes.
pub(crate) const LONGEST: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(settings: &[(u64, u64)]) -> Vec<u8> {
        let mut out = Vec::new();
        for &(id, value) in settings {
            put_varint(&mut out, id);
            put_varint(&mut out, value);
        }
        out
    }

    fn code(settings: &[(u64, u64)]) -> Option<Code> {
        Settings::decode(&payload(settings), &mut Vec::new())
            .err()
            .map(|error| error.code)
    }

    #[test]
    fn round_trips_with_grease() {
        let settings = Settings {
            qpack_max_table_capacity: 4096,
            qpack_blocked_streams: 16,
            max_field_section_size: Some(1 << 40),
            enable_connect_protocol: true,
            h3_datagram: true,
        };
        for (settings, grease) in [(settings, Some(123_456)), (Settings::default(), None)] {
            let mut out = Vec::new();
            settings.encode(&mut out, &[], grease);
            let (value, len, header) = frame::decode_header(&out).expect("a header");
            assert_eq!((value, len as usize), (frame::SETTINGS, out.len() - header));
            assert_eq!(
                Settings::decode(&out[header..], &mut Vec::new()),
                Ok(settings)
            );
        }
    }

    /// RFC 9114 §7.2.4, RFC 9204 §8.1.
    #[test]
    fn absent_settings_have_their_defaults() {
        assert_eq!(
            Settings::decode(&[], &mut Vec::new()),
            Ok(Settings::default())
        );
        assert_eq!(
            Settings::decode(&payload(&[(0xabcd, 9), (reserved(4), 1)]), &mut Vec::new()),
            Ok(Settings::default())
        );
        assert_eq!(Settings::default().qpack_max_table_capacity, 0);
        assert_eq!(Settings::default().qpack_blocked_streams, 0);
    }

    /// RFC 9114 §7.2.4.1: settings reserved for HTTP/2.
    #[test]
    fn refuses_settings_of_http2() {
        for id in 2..=5 {
            assert_eq!(code(&[(id, 0)]), Some(Code::SETTINGS_ERROR));
        }
    }

    /// RFC 9114 §7.2.4: a setting must not occur more than once.
    #[test]
    fn refuses_duplicates() {
        assert_eq!(code(&[(6, 1), (7, 1), (6, 1)]), Some(Code::SETTINGS_ERROR));
        assert_eq!(
            code(&[(0xabcd, 1), (0xabcd, 1)]),
            Some(Code::SETTINGS_ERROR)
        );
    }

    /// RFC 9220 §3, RFC 9297 §2.1.1: the values are 0 or 1.
    #[test]
    fn invalid_boolean_settings_are_refused() {
        for id in [ENABLE_CONNECT_PROTOCOL, H3_DATAGRAM] {
            assert_eq!(code(&[(id, 0)]), None);
            assert_eq!(code(&[(id, 1)]), None);
            assert_eq!(code(&[(id, 2)]), Some(Code::SETTINGS_ERROR));
        }
    }

    #[test]
    fn too_many_or_truncated_settings_are_refused() {
        let many: Vec<_> = (0..65).map(|n| (reserved(n), 0)).collect();
        assert_eq!(code(&many[..64]), None);
        assert_eq!(code(&many), Some(Code::EXCESSIVE_LOAD));
        let error = Settings::decode(&[0x06], &mut Vec::new()).expect_err("no value");
        assert_eq!(error.code, Code::FRAME_ERROR);
    }
}
