//! Checks of responses that apply to each version of HTTP.

use http::header::{self, HeaderMap};
use http::{StatusCode, Version};

use super::error::{Error, ErrorKind};

/// Returns an error if the content of a response cannot be delivered, or if it answers another request.
/// `asked_upgrade` is true if the request had an Upgrade field.
pub(super) fn check(
    version: Version,
    status: StatusCode,
    headers: &HeaderMap,
    asked_upgrade: bool,
) -> Result<(), Error> {
    if status == StatusCode::SWITCHING_PROTOCOLS && !asked_upgrade {
        // RFC 9110 §7.8.
        let text = "the server switched to another protocol without a request for it";
        return Err(Error::new(ErrorKind::Protocol, text));
    }
    if version <= Version::HTTP_11 {
        check_transfer_coding(headers)?;
    }
    Ok(())
}

/// Returns an error for a transfer coding other than `chunked` (RFC 9112 §6.1). The client requests no other,
/// and its bytes must not be delivered as content.
fn check_transfer_coding(headers: &HeaderMap) -> Result<(), Error> {
    let values = headers.get_all(header::TRANSFER_ENCODING).into_iter();
    let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
    for value in values {
        let mut codings = value.split(',').map(str::trim);
        let other = codings.find(|coding| {
            !coding.is_empty()
                && !coding.eq_ignore_ascii_case("chunked")
                && !coding.eq_ignore_ascii_case("identity")
        });
        if let Some(other) = other {
            let text = format!(
                "the response has the transfer coding '{other}', which was not requested: only chunked is \
                 supported"
            );
            return Err(Error::new(ErrorKind::Protocol, text));
        }
    }
    Ok(())
}

/// Returns the age of a response in seconds according to its Age field.
pub(super) fn age(headers: &HeaderMap) -> u64 {
    let age = headers.get(header::AGE).and_then(|age| age.to_str().ok());
    age.and_then(|age| age.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: header::HeaderName, value: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, header::HeaderValue::from_static(value));
        headers
    }

    #[test]
    fn transfer_codings_other_than_chunked_are_errors() {
        let checked = |value| {
            let headers = with(header::TRANSFER_ENCODING, value);
            check(Version::HTTP_11, StatusCode::OK, &headers, false)
        };
        for value in ["chunked", "Chunked", "identity", "", ", chunked"] {
            assert!(checked(value).is_ok(), "{value}");
        }
        for value in ["gzip, chunked", "gzip", "x-chunked", "chunked;a=b"] {
            assert_eq!(checked(value).expect_err(value).kind(), ErrorKind::Protocol);
        }
    }

    #[test]
    fn switch_of_protocols_needs_a_request() {
        let status = StatusCode::SWITCHING_PROTOCOLS;
        for asked in [true, false] {
            let checked = check(Version::HTTP_11, status, &HeaderMap::new(), asked);
            assert_eq!(checked.is_ok(), asked);
        }
    }

    #[test]
    fn age_is_a_number_of_seconds() {
        for (value, seconds) in [("10", 10), ("x", 0), ("-1", 0), ("99999999999999999999", 0)] {
            assert_eq!(age(&with(header::AGE, value)), seconds, "{value}");
        }
    }
}
