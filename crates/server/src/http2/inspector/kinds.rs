//! The rules for single field lines of requests, and for their order (RFC 9113 §8.2, §8.3).

use courser_http3_tokio::hooks::{Target, is_connection_specific};
use http::Method;
use http::uri::{Authority, Scheme};

use crate::cause::Cause;

/// The kind of a field with a valid name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Authority,
    /// `:method` with a value other than CONNECT.
    Method,
    /// `:method` with the value CONNECT.
    Connect,
    Scheme,
    Path,
    Protocol,
    Status,
    ContentLength,
    Te,
    Other,
}

/// The verdict about a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Value {
    /// A value of a field of this kind.
    Valid(Kind),
    /// A path that must be percent-encoded like this.
    Escaped(Vec<u8>),
    Invalid(Cause),
}

impl Kind {
    /// Returns the kind of a field, or `None` if no request may have a field with this name.
    #[inline]
    pub(super) fn of_name(name: &[u8]) -> Option<Self> {
        Some(match name {
            [] => return None,
            b":authority" => Self::Authority,
            b":method" => Self::Method,
            b":scheme" => Self::Scheme,
            b":path" => Self::Path,
            b":protocol" => Self::Protocol,
            b":status" => Self::Status,
            b"content-length" => Self::ContentLength,
            b"te" => Self::Te,
            _ if !name.iter().all(|&byte| IS_IN_NAME[usize::from(byte)]) => return None,
            _ => {
                let is_forbidden = std::str::from_utf8(name).is_ok_and(is_connection_specific);
                return (!is_forbidden).then_some(Self::Other);
            }
        })
    }

    /// Returns the kind of an entry of the static table, or `None` if no request may have it.
    #[inline]
    pub(super) const fn of_static(index: usize) -> Option<Self> {
        Some(match index {
            1 => Self::Authority,
            2 | 3 => Self::Method,
            4 | 5 => Self::Path,
            6 | 7 => Self::Scheme,
            8..=14 => Self::Status,
            28 => Self::ContentLength,
            // transfer-encoding
            57 => return None,
            _ => Self::Other,
        })
    }

    /// Returns true if an entry of the static table has a valid value, and not only a name.
    #[inline]
    pub(super) const fn has_static_value(index: usize) -> bool {
        // The values of the entries for `:authority` and content-length are empty.
        index != 1 && index != 28
    }

    /// Returns the name of a pseudo-header field.
    pub(super) const fn pseudo_name(self) -> Option<&'static str> {
        Some(match self {
            Self::Authority => ":authority",
            Self::Method | Self::Connect => ":method",
            Self::Scheme => ":scheme",
            Self::Path => ":path",
            Self::Protocol => ":protocol",
            Self::Status => ":status",
            Self::ContentLength | Self::Te | Self::Other => return None,
        })
    }

    /// Judges the value of a field.
    #[inline]
    pub(super) fn judge(self, value: &[u8]) -> Value {
        let (is_valid, cause) = match self {
            Self::Other => (is_value(value), Cause::InvalidField),
            Self::Path => {
                return match Target::of(value) {
                    Target::Valid => Value::Valid(self),
                    Target::Escaped(escaped) => Value::Escaped(escaped),
                    Target::Invalid(_) => Value::Invalid(Cause::InvalidTarget),
                };
            }
            Self::Authority => (is_authority(value), Cause::InvalidHost),
            Self::Method | Self::Connect => {
                if value == b"CONNECT" {
                    return Value::Valid(Self::Connect);
                }
                (Method::from_bytes(value).is_ok(), Cause::InvalidRequest)
            }
            Self::Scheme => {
                let is_usual = value == b"https" || value == b"http";
                let is_valid = is_usual || Scheme::try_from(value).is_ok();
                (is_valid, Cause::InvalidTarget)
            }
            Self::Protocol => {
                let is_token = value.iter().all(|&byte| byte == b'/' || is_token(byte));
                (!value.is_empty() && is_token, Cause::InvalidField)
            }
            Self::Status => (false, Cause::InvalidField),
            Self::ContentLength => {
                let is_number = value.iter().all(u8::is_ascii_digit);
                // As many digits as h2 accepts.
                let is_valid = is_number && (1..=19).contains(&value.len());
                (is_valid, Cause::InvalidFraming)
            }
            Self::Te => (value == b"trailers", Cause::InvalidField),
        };
        match is_valid {
            true => Value::Valid(self),
            false => Value::Invalid(cause),
        }
    }
}

/// Returns true for a value without control characters, and without whitespace around it (RFC 9113 §8.2.1).
#[inline]
fn is_value(value: &[u8]) -> bool {
    let is_edge = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    // As the `http` crate decides. Without an early end, so that the compiler uses vector instructions.
    let is_control = |byte: u8| ((byte < b' ') & (byte != b'\t')) | (byte == 0x7f);
    let has_control = value
        .iter()
        .fold(false, |found, &byte| found | is_control(byte));
    !has_control && !is_edge(value.first()) && !is_edge(value.last())
}

/// Returns true for text that the `http` crate accepts as an authority. Which of them the server accepts is decided later,
/// alike for all versions.
fn is_authority(value: &[u8]) -> bool {
    let is_usual = |&byte: &u8| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte);
    let is_name = value.iter().filter(|&&byte| byte == b':').count() <= 1
        && value.iter().all(is_usual)
        && value.first().is_some_and(u8::is_ascii_alphanumeric);
    is_name || Authority::try_from(value).is_ok()
}

const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// The bytes of valid names: those of a token in lower case. Tables, because most requests have literals.
const IS_IN_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = is_token(byte as u8) && !(byte as u8).is_ascii_uppercase();
        byte += 1;
    }
    table
};

/// The fields of a section so far.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Section(u8);

impl Section {
    /// Adds a field. Returns false if it must not be there.
    #[inline]
    pub(super) const fn add(&mut self, kind: Kind) -> bool {
        let (bits, once) = match kind {
            Kind::Authority => (1, 1),
            Kind::Method => (METHOD, METHOD),
            Kind::Connect => (METHOD | CONNECT, METHOD),
            Kind::Scheme => (SCHEME, SCHEME),
            Kind::Path => (PATH, PATH),
            Kind::Protocol => (PROTOCOL, PROTOCOL),
            Kind::Status => return false,
            Kind::ContentLength | Kind::Te | Kind::Other => {
                self.0 |= FIELDS;
                return true;
            }
        };
        let is_permitted = self.0 & (once | FIELDS) == 0;
        self.0 |= bits;
        is_permitted
    }

    /// Returns true if the section is that of a request with all pseudo-header fields that it needs (RFC 9113 §8.3.1,
    /// §8.5, RFC 8441 §4).
    #[inline]
    pub(super) const fn is_request(self) -> bool {
        let pseudo = self.0 & (METHOD | CONNECT | SCHEME | PATH | PROTOCOL);
        pseudo == METHOD | SCHEME | PATH
            || pseudo == METHOD | CONNECT
            || pseudo == METHOD | CONNECT | SCHEME | PATH | PROTOCOL
    }

    /// Returns true if the method is CONNECT.
    #[inline]
    pub(super) const fn is_connect(self) -> bool {
        self.0 & CONNECT != 0
    }

    /// Returns true if the section has no pseudo-header field, as trailers must be.
    #[inline]
    pub(super) const fn is_trailers(self) -> bool {
        self.0 & !FIELDS == 0
    }
}

const METHOD: u8 = 2;
const CONNECT: u8 = 4;
const SCHEME: u8 = 8;
const PATH: u8 = 16;
const PROTOCOL: u8 = 32;
const FIELDS: u8 = 64;

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn is_valid(kind: Kind, value: &[u8]) -> bool {
        matches!(kind.judge(value), Value::Valid(_))
    }

    #[test]
    fn values_with_whitespace_around_them_are_malformed() {
        for value in [" a", "a ", "\ta", "a\t", " "] {
            assert!(!is_valid(Kind::Other, value.as_bytes()), "{value:?}");
        }
        for value in ["", "a", "a b", "a\tb", "\u{e9}"] {
            assert!(is_valid(Kind::Other, value.as_bytes()), "{value:?}");
        }
    }

    /// h2 must accept what passes, because it ends the connection for other bytes.
    #[test]
    fn each_byte_that_passes_is_accepted_by_the_http_crate() {
        for byte in 0..=255 {
            let name = [b'x', byte];
            let accepted = HeaderName::from_lowercase(&name).is_ok();
            assert!(accepted || Kind::of_name(&name).is_none(), "{byte}");
            let value = [b'x', byte, b'x'];
            let accepted = HeaderValue::from_bytes(&value).is_ok();
            assert_eq!(is_valid(Kind::Other, &value), accepted, "{byte}");
            let accepted = Method::from_bytes(&value).is_ok();
            assert_eq!(is_valid(Kind::Method, &value), accepted, "{byte}");
            for value in [vec![byte], vec![b'a', byte], vec![b'a', byte, b'1']] {
                let accepted = Authority::try_from(&value[..]).is_ok();
                assert!(accepted || !is_valid(Kind::Authority, &value), "{value:?}");
            }
        }
    }

    #[test]
    fn sections_have_the_pseudo_fields_of_a_request_before_others() {
        use Kind::{Authority, Connect, Method, Other, Path, Protocol, Scheme, Status};

        let is_request = |kinds: &[Kind]| {
            let mut section = Section::default();
            kinds.iter().all(|&kind| section.add(kind)) && section.is_request()
        };
        for kinds in [
            &[Method, Scheme, Path][..],
            &[Path, Authority, Method, Scheme, Other, Other],
            &[Connect, Authority],
            &[Connect, Protocol, Scheme, Path, Authority],
        ] {
            assert!(is_request(kinds), "{kinds:?}");
        }
        for kinds in [
            &[][..],
            &[Scheme, Path],
            &[Method, Path],
            &[Method, Scheme],
            &[Method, Scheme, Path, Path],
            &[Method, Scheme, Path, Connect],
            &[Method, Scheme, Path, Protocol],
            &[Method, Scheme, Path, Status],
            &[Method, Scheme, Other, Path],
            &[Connect, Authority, Path],
            &[Connect, Protocol, Path],
        ] {
            assert!(!is_request(kinds), "{kinds:?}");
        }
    }
}
