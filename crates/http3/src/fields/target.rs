//! Targets of requests with bytes that the `http` crate does not accept.
//!
//! Clients send characters such as `"`, `<` and `>` that no URI contains (RFC 3986 §2). Such a byte is percent-encoded,
//! alike in all versions of HTTP, so that the service receives a URI with the same meaning.

/// The form of a request target: a path with its query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// It can be used as it is.
    Valid,
    /// It can be used in this form, in which the bytes that a URI must not contain are percent-encoded.
    Escaped(Vec<u8>),
    /// It violates the syntax of HTTP, for this reason.
    Invalid(&'static str),
}

impl Target {
    /// Examines the path and query of a request, which begin with a slash, or are an asterisk.
    #[inline]
    pub fn of(text: &[u8]) -> Self {
        if text.first() != Some(&b'/') && text != b"*" {
            return Self::Invalid(":path that does not begin with a slash");
        }
        // Without an early end, so that the compiler uses vector instructions.
        let is_plain = !text
            .iter()
            .fold(false, |found, &byte| found | is_unusual(byte));
        match is_plain {
            true => Self::Valid,
            false => Self::of_unusual(text),
        }
    }

    #[cold]
    fn of_unusual(text: &[u8]) -> Self {
        if text.contains(&b'#') {
            Self::Invalid(":path with a fragment")
        } else if text.iter().any(|&byte| matches!(byte, 0..=b' ' | 0x7f)) {
            Self::Invalid(":path with whitespace or a control character")
        } else {
            escape(text)
        }
    }
}

/// Returns true for bytes of which no target, or not each part of it, consists.
#[inline]
const fn is_unusual(byte: u8) -> bool {
    (byte <= b' ')
        | (byte >= 0x7f)
        | (byte == b'#')
        | (byte == b'"')
        | (byte == b'<')
        | (byte == b'>')
        | (byte == b'`')
}

fn escape(text: &[u8]) -> Target {
    let mut escaped = Vec::new();
    let (mut is_query, mut copied) = (false, 0);
    for (index, &byte) in text.iter().enumerate() {
        is_query |= byte == b'?';
        if must_be_escaped(byte, is_query) {
            escaped.extend_from_slice(&text[copied..index]);
            put_escaped(byte, &mut escaped);
            copied = index + 1;
        }
    }
    if copied == 0 {
        return Target::Valid;
    }
    escaped.extend_from_slice(&text[copied..]);
    Target::Escaped(escaped)
}

/// Returns true for a byte of a path or query that is percent-encoded before the service receives it: one that the `http`
/// crate refuses there, and each above 0x7f, because that crate accepts them in UTF-8 only.
pub const fn must_be_escaped(byte: u8, is_in_query: bool) -> bool {
    match byte {
        b'<' | b'>' | 0x80.. => true,
        b'"' => is_in_query,
        b'`' => !is_in_query,
        _ => false,
    }
}

/// Appends a byte in percent-encoded form (RFC 3986 §2.1).
pub fn put_escaped(byte: u8, out: &mut Vec<u8>) {
    let digit = |value: u8| HEX[usize::from(value)];
    out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
}

const HEX: [u8; 16] = *b"0123456789ABCDEF";

#[cfg(test)]
mod tests {
    use http::uri::PathAndQuery;

    use super::*;

    #[test]
    fn targets_are_escaped_where_no_uri_has_the_byte() {
        for (text, escaped) in [
            (&b"/a?b=\"<c>\""[..], "/a?b=%22%3Cc%3E%22"),
            (b"/<a>`\"", "/%3Ca%3E%60\""),
            (b"/a?`", "/a?`"),
            (b"/\xe9", "/%E9"),
            ("/é?é".as_bytes(), "/%C3%A9?%C3%A9"),
            (b"/?\xc3", "/?%C3"),
            (b"/%22?%3c", "/%22?%3c"),
            (b"*", "*"),
        ] {
            let found = match Target::of(text) {
                Target::Valid => text.to_vec(),
                Target::Escaped(escaped) => escaped,
                Target::Invalid(reason) => panic!("{text:?}: {reason}"),
            };
            assert_eq!(String::from_utf8_lossy(&found), escaped);
        }
        for text in [
            &b""[..],
            b"a",
            b"?a",
            b"/a b",
            b"/\x7f",
            b"/a#b",
            b"/a?#",
            b"**",
        ] {
            assert!(matches!(Target::of(text), Target::Invalid(_)), "{text:?}");
        }
    }

    /// Each target is invalid, or accepted by the `http` crate in the form that is returned.
    #[test]
    fn each_byte_becomes_a_uri_or_is_refused() {
        for byte in 0..=255 {
            for text in [
                vec![b'/', byte],
                vec![b'/', b'?', byte],
                vec![b'/', byte, b'?'],
            ] {
                let accepted = |text: &[u8]| PathAndQuery::try_from(text).is_ok();
                match Target::of(&text) {
                    Target::Valid => assert!(accepted(&text), "{text:?}"),
                    Target::Escaped(escaped) => {
                        assert!(!accepted(&text) && accepted(&escaped), "{text:?}");
                    }
                    Target::Invalid(_) => assert!(byte <= b' ' || b"#\x7f".contains(&byte)),
                }
            }
        }
    }
}
