//! Error codes and their names: RFC 9000 §20.1, RFC 9114 §8.1, RFC 9204 §6, RFC 9297 §5.2.

use crate::qlog::Closed;

/// Returns the name of an error and its code, as far as they are known.
pub(super) fn resolve(closed: &Closed, is_http3: bool) -> (Option<String>, Option<u64>) {
    let table: &[(u64, &str)] = match (closed.is_application, is_http3) {
        (false, _) => TRANSPORT,
        (true, true) => HTTP3,
        (true, false) => &[],
    };
    let name = closed
        .error
        .as_deref()
        .filter(|error| error.parse::<u64>().is_err());
    match (name, closed.code) {
        (Some(name), code) => {
            let name = rfc_name(name, closed.is_application);
            let known = table.iter().find(|(_, known)| *known == name);
            let code = code
                .or(known.map(|(code, _)| *code))
                .or_else(|| crypto_code(&name));
            (Some(crate::text::clean(&name)), code)
        }
        (None, Some(code)) => {
            let known = table.iter().find(|(known, _)| *known == code);
            let name = known.map(|(_, name)| (*name).to_owned());
            (
                name.or_else(|| name_of_range(code, closed.is_application, is_http3)),
                Some(code),
            )
        }
        (None, None) => (None, None),
    }
}

/// Returns the name of an RFC for a name of qlog: `http_frame_error` is `H3_FRAME_ERROR`.
fn rfc_name(name: &str, is_application: bool) -> String {
    let upper = name.to_ascii_uppercase();
    match upper.strip_prefix("HTTP_") {
        Some(rest) if is_application => format!("H3_{rest}"),
        _ => upper,
    }
}

fn crypto_code(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("CRYPTO_ERROR_0X")?;
    u64::from_str_radix(digits, 16).ok()
}

/// Returns the name of a code that belongs to a range.
fn name_of_range(code: u64, is_application: bool, is_http3: bool) -> Option<String> {
    match (is_application, code) {
        (false, 0x100..=0x1ff) => Some("CRYPTO_ERROR".to_owned()),
        // Reserved codes are treated as H3_NO_ERROR (RFC 9114 §8.1).
        (true, 0x21..) if is_http3 && (code - 0x21).is_multiple_of(0x1f) => {
            Some("a reserved code for H3_NO_ERROR".to_owned())
        }
        _ => None,
    }
}

const TRANSPORT: &[(u64, &str)] = &[
    (0x00, "NO_ERROR"),
    (0x01, "INTERNAL_ERROR"),
    (0x02, "CONNECTION_REFUSED"),
    (0x03, "FLOW_CONTROL_ERROR"),
    (0x04, "STREAM_LIMIT_ERROR"),
    (0x05, "STREAM_STATE_ERROR"),
    (0x06, "FINAL_SIZE_ERROR"),
    (0x07, "FRAME_ENCODING_ERROR"),
    (0x08, "TRANSPORT_PARAMETER_ERROR"),
    (0x09, "CONNECTION_ID_LIMIT_ERROR"),
    (0x0a, "PROTOCOL_VIOLATION"),
    (0x0b, "INVALID_TOKEN"),
    (0x0c, "APPLICATION_ERROR"),
    (0x0d, "CRYPTO_BUFFER_EXCEEDED"),
    (0x0e, "KEY_UPDATE_ERROR"),
    (0x0f, "AEAD_LIMIT_REACHED"),
    (0x10, "NO_VIABLE_PATH"),
    (0x11, "VERSION_NEGOTIATION_ERROR"),
];

const HTTP3: &[(u64, &str)] = &[
    (0x33, "H3_DATAGRAM_ERROR"),
    (0x100, "H3_NO_ERROR"),
    (0x101, "H3_GENERAL_PROTOCOL_ERROR"),
    (0x102, "H3_INTERNAL_ERROR"),
    (0x103, "H3_STREAM_CREATION_ERROR"),
    (0x104, "H3_CLOSED_CRITICAL_STREAM"),
    (0x105, "H3_FRAME_UNEXPECTED"),
    (0x106, "H3_FRAME_ERROR"),
    (0x107, "H3_EXCESSIVE_LOAD"),
    (0x108, "H3_ID_ERROR"),
    (0x109, "H3_SETTINGS_ERROR"),
    (0x10a, "H3_MISSING_SETTINGS"),
    (0x10b, "H3_REQUEST_REJECTED"),
    (0x10c, "H3_REQUEST_CANCELLED"),
    (0x10d, "H3_REQUEST_INCOMPLETE"),
    (0x10e, "H3_MESSAGE_ERROR"),
    (0x10f, "H3_CONNECT_ERROR"),
    (0x110, "H3_VERSION_FALLBACK"),
    (0x200, "QPACK_DECOMPRESSION_FAILED"),
    (0x201, "QPACK_ENCODER_STREAM_ERROR"),
    (0x202, "QPACK_DECODER_STREAM_ERROR"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(error: &str, code: Option<u64>, is_application: bool) -> Closed {
        Closed {
            error: Some(error.to_owned()),
            code,
            is_application,
            ..Closed::default()
        }
    }

    #[test]
    fn codes_and_names_of_all_spellings_are_resolved() {
        for (closed, is_http3, name, code) in [
            (
                closed("256", Some(256), true),
                true,
                Some("H3_NO_ERROR"),
                Some(0x100),
            ),
            (closed("256", Some(256), true), false, None, Some(0x100)),
            (
                closed("http_frame_error", None, true),
                true,
                Some("H3_FRAME_ERROR"),
                Some(0x106),
            ),
            (
                closed("protocol_violation", None, false),
                true,
                Some("PROTOCOL_VIOLATION"),
                Some(10),
            ),
            (
                closed("10", Some(10), false),
                false,
                Some("PROTOCOL_VIOLATION"),
                Some(10),
            ),
            (
                closed("crypto_error_0x178", None, false),
                false,
                Some("CRYPTO_ERROR_0X178"),
                Some(0x178),
            ),
            (
                closed("296", Some(0x128), false),
                false,
                Some("CRYPTO_ERROR"),
                Some(0x128),
            ),
            (
                closed("64", Some(0x40), true),
                true,
                Some("a reserved code for H3_NO_ERROR"),
                Some(0x40),
            ),
            (closed("7", Some(7), true), true, None, Some(7)),
        ] {
            let expected = (name.map(str::to_owned), code);
            assert_eq!(resolve(&closed, is_http3), expected, "{closed:?}");
        }
    }
}
