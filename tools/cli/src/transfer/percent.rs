//! Percent-encoding.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str};

/// Encodes all bytes but unreserved characters (RFC 3986 §2.3).
pub(crate) fn percent_encode(bytes: &[u8]) -> String {
    percent_encoding::percent_encode(bytes, &RESERVED).to_string()
}

/// Decodes text. A percent sign without two hexadecimal digits stays.
pub(crate) fn percent_decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_is_reversible() {
        assert_eq!(percent_encode("a b&ä~".as_bytes()), "a%20b%26%C3%A4~");
        assert_eq!(percent_decode("a%20b%26%C3%A4~"), "a b&ä~");
    }

    #[test]
    fn percent_signs_without_two_digits_stay() {
        for text in ["100%", "%zz%4", "%+4"] {
            assert_eq!(percent_decode(text), text);
        }
    }
}
