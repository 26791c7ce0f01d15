//! Checks responses that should continue an interrupted download.

use http::header::CONTENT_RANGE;
use http::{HeaderMap, StatusCode};

/// The reason why a response does not continue a download.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub(crate) enum RestError {
    /// The server sent a range that was not requested.
    #[error("requested the rest from byte {offset}, but the server sent '{range}'")]
    OtherRange {
        /// The first requested byte.
        offset: u64,
        /// The Content-Range field of the response, without its unit.
        range: String,
    },
    /// The sizes of the local file and the server's file differ.
    #[error("the local file has {offset} bytes, the server's has {size}: they differ")]
    OtherSize {
        /// The size of the local file.
        offset: u64,
        /// The size of the server's file.
        size: u64,
    },
    /// The server sent the whole file.
    #[error("the server does not support ranges")]
    Unsupported,
}

/// Returns true if a response to a request for the bytes from `offset` on has content to write, and false
/// if the file is complete. Responses that report an error have content.
///
/// # Errors
/// Returns an error if the content of the response is not the rest of the file.
pub(crate) fn has_rest(
    status: StatusCode,
    headers: &HeaderMap,
    offset: u64,
) -> Result<bool, RestError> {
    let range = headers.get(CONTENT_RANGE);
    let range = range
        .and_then(|range| range.to_str().ok())
        .unwrap_or_default();
    let range = range.trim_start_matches("bytes").trim();
    match status {
        StatusCode::PARTIAL_CONTENT => {
            let start = range.split('-').next().and_then(|start| start.parse().ok());
            match start == Some(offset) {
                true => Ok(true),
                false => Err(RestError::OtherRange {
                    offset,
                    range: range.to_owned(),
                }),
            }
        }
        StatusCode::RANGE_NOT_SATISFIABLE => {
            let size = range.rsplit('/').next();
            match size.and_then(|size| size.parse::<u64>().ok()) {
                Some(size) if size != offset => Err(RestError::OtherSize { offset, size }),
                _ => Ok(false),
            }
        }
        status if status.is_success() => Err(RestError::Unsupported),
        _ => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(status: u16, range: &'static str) -> Result<bool, RestError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_RANGE, range.parse().expect("a value"));
        has_rest(
            StatusCode::from_u16(status).expect("a status"),
            &headers,
            100,
        )
    }

    #[test]
    fn rest_of_a_file_is_checked() {
        assert_eq!(rest(206, "bytes 100-199/200"), Ok(true));
        for range in ["bytes 0-199/200", "garbage"] {
            let other = rest(206, range);
            assert!(
                matches!(other, Err(RestError::OtherRange { .. })),
                "{range}"
            );
        }
        assert_eq!(rest(416, "bytes */100"), Ok(false));
        let (offset, size) = (100, 50);
        let other = Err(RestError::OtherSize { offset, size });
        assert_eq!(rest(416, "bytes */50"), other);
        // RFC 9110 §14.4: the field has a meaning with 206 and 416 only.
        for range in ["", "bytes 100-199/200", "bytes */100"] {
            assert_eq!(rest(200, range), Err(RestError::Unsupported), "{range}");
        }
        assert_eq!(rest(404, ""), Ok(true), "the content describes the error");
    }
}
