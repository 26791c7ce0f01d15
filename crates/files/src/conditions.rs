//! Conditional requests and ranges (RFC 9110 §13 and §14).

use std::ops::RangeInclusive;
use std::time::SystemTime;

use http::header::{
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The validators of the current representation (RFC 9110 §8.8), which conditions are compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validators<'a> {
    pub(crate) tag: Option<&'a HeaderValue>,
    pub(crate) modified: Option<SystemTime>,
    /// The value of `Last-Modified`.
    pub(crate) modified_text: Option<&'a HeaderValue>,
}

/// The result of the conditions of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Selected {
    /// Send the whole content.
    Whole,
    /// Send the bytes in this range, with 206 (§15.3.7).
    Part(RangeInclusive<u64>),
    /// 304: the client has the current content (§15.4.5).
    NotModified,
    /// 412: `If-Match` or `If-Unmodified-Since` is false (§15.5.13).
    PreconditionFailed,
    /// 416: the range begins after the end of the content (§15.5.17).
    Unsatisfiable,
}

/// Returns true if a request has conditions or asks for a range.
pub(crate) fn has_any(headers: &HeaderMap) -> bool {
    const ALL: [HeaderName; 5] = [
        RANGE,
        IF_NONE_MATCH,
        IF_MODIFIED_SINCE,
        IF_MATCH,
        IF_UNMODIFIED_SINCE,
    ];
    ALL.iter().any(|name| headers.contains_key(name))
}

/// Evaluates conditions in the order of RFC 9110 §13.2.2 for content of `len` bytes.
pub(crate) fn evaluate(headers: &HeaderMap, validators: Validators<'_>, len: u64) -> Selected {
    let date = |name: HeaderName| {
        let text = headers.get(name)?.to_str().ok()?;
        httpdate::parse_http_date(text).ok()
    };
    if headers.contains_key(IF_MATCH) {
        if !matches_any(headers, IF_MATCH, validators.tag, is_strongly_equal) {
            return Selected::PreconditionFailed;
        }
    } else if let (Some(since), Some(modified)) = (date(IF_UNMODIFIED_SINCE), validators.modified)
        && modified > since
    {
        return Selected::PreconditionFailed;
    }
    if headers.contains_key(IF_NONE_MATCH) {
        if matches_any(headers, IF_NONE_MATCH, validators.tag, is_weakly_equal) {
            return Selected::NotModified;
        }
    } else if let (Some(since), Some(modified)) = (date(IF_MODIFIED_SINCE), validators.modified)
        && modified <= since
    {
        return Selected::NotModified;
    }
    let Some(range) = headers.get(RANGE) else {
        return Selected::Whole;
    };
    // A client that has part of an older version receives all of the current one (§13.1.5).
    if let Some(condition) = headers.get(IF_RANGE) {
        let is_strong = |tag: &&HeaderValue| !tag.as_bytes().starts_with(b"W/");
        let is_tag = validators.tag.filter(is_strong) == Some(condition);
        if !is_tag && validators.modified_text != Some(condition) {
            return Selected::Whole;
        }
    }
    let range = range.to_str().ok();
    let range = range.and_then(|range| http_range_header::parse_range_header(range).ok());
    let ranges = range.and_then(|range| range.validate(len).ok());
    match ranges.as_deref() {
        Some([one]) => Selected::Part(one.clone()),
        // Responses with several parts are not supported.
        _ => Selected::Unsatisfiable,
    }
}

fn matches_any(
    headers: &HeaderMap,
    name: HeaderName,
    tag: Option<&HeaderValue>,
    is_equal: fn(&str, &str) -> bool,
) -> bool {
    let Some(tag) = tag.and_then(|tag| tag.to_str().ok()) else {
        return false;
    };
    let values = headers.get_all(name).iter();
    let mut values = values.filter_map(|value| value.to_str().ok());
    // Our tags contain no comma, so a tag that contains one does not match.
    values.any(|value| {
        let mut tags = value.split(',').map(str::trim);
        value.trim() == "*" || tags.any(|other| is_equal(tag, other))
    })
}

/// Compares two entity tags weakly. RFC 9110 §8.8.3.2.
fn is_weakly_equal(one: &str, other: &str) -> bool {
    let opaque = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    opaque(one) == opaque(other)
}

fn is_strongly_equal(one: &str, other: &str) -> bool {
    !one.starts_with("W/") && one == other
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    const TAG: &str = "\"tag\"";
    const BEFORE: &str = "Sun, 09 Sep 2001 01:46:39 GMT";
    const MODIFIED: &str = "Sun, 09 Sep 2001 01:46:40 GMT";
    const AFTER: &str = "Sun, 09 Sep 2001 01:46:41 GMT";

    fn verdict(fields: &[(HeaderName, &'static str)]) -> Selected {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, HeaderValue::from_static(value));
        }
        let (tag, text) = (
            HeaderValue::from_static(TAG),
            HeaderValue::from_static(MODIFIED),
        );
        let validators = Validators {
            tag: Some(&tag),
            modified: Some(UNIX_EPOCH + Duration::from_secs(1_000_000_000)),
            modified_text: Some(&text),
        };
        evaluate(&headers, validators, 100)
    }

    #[test]
    fn conditions_are_evaluated_in_the_order_of_rfc_9110() {
        use Selected::{NotModified, PreconditionFailed, Whole};
        let cases: &[(&[(HeaderName, &'static str)], Selected)] = &[
            (&[], Whole),
            (&[(IF_NONE_MATCH, TAG)], NotModified),
            (&[(IF_NONE_MATCH, "W/\"tag\"")], NotModified),
            (&[(IF_NONE_MATCH, "\"a\", \"tag\"")], NotModified),
            (
                &[(IF_NONE_MATCH, "\"a\""), (IF_NONE_MATCH, TAG)],
                NotModified,
            ),
            (&[(IF_NONE_MATCH, "*")], NotModified),
            (&[(IF_NONE_MATCH, "\"a\"")], Whole),
            (&[(IF_MODIFIED_SINCE, BEFORE)], Whole),
            (&[(IF_MODIFIED_SINCE, MODIFIED)], NotModified),
            (&[(IF_MODIFIED_SINCE, AFTER)], NotModified),
            (&[(IF_MODIFIED_SINCE, "nonsense")], Whole),
            // The tag takes precedence over the date.
            (
                &[(IF_NONE_MATCH, "\"a\""), (IF_MODIFIED_SINCE, AFTER)],
                Whole,
            ),
            (&[(IF_MATCH, TAG)], Whole),
            (&[(IF_MATCH, "*")], Whole),
            (&[(IF_MATCH, "W/\"tag\"")], PreconditionFailed),
            (&[(IF_MATCH, "\"a\"")], PreconditionFailed),
            (&[(IF_UNMODIFIED_SINCE, BEFORE)], PreconditionFailed),
            (&[(IF_UNMODIFIED_SINCE, MODIFIED)], Whole),
            (&[(IF_MATCH, TAG), (IF_UNMODIFIED_SINCE, BEFORE)], Whole),
            (
                &[(IF_MATCH, "\"a\""), (IF_NONE_MATCH, TAG)],
                PreconditionFailed,
            ),
        ];
        for (fields, expected) in cases {
            assert_eq!(verdict(fields), *expected, "{fields:?}");
        }
    }

    #[test]
    fn ranges_are_cut_to_the_content() {
        use Selected::{Part, Unsatisfiable, Whole};
        for (range, expected) in [
            ("bytes=0-0", Part(0..=0)),
            ("bytes=10-19", Part(10..=19)),
            ("bytes=90-", Part(90..=99)),
            ("bytes=-10", Part(90..=99)),
            ("bytes=90-1000", Part(90..=99)),
            ("bytes=99-", Part(99..=99)),
            ("bytes=100-", Unsatisfiable),
            ("bytes=5-4", Unsatisfiable),
            ("bytes=0-1,3-4", Unsatisfiable),
            ("bytes=", Unsatisfiable),
        ] {
            assert_eq!(verdict(&[(RANGE, range)]), expected, "{range}");
        }
        for (condition, expected) in [
            (TAG, Part(10..=19)),
            (MODIFIED, Part(10..=19)),
            ("\"other\"", Whole),
            ("W/\"tag\"", Whole),
            (AFTER, Whole),
        ] {
            let fields = [(RANGE, "bytes=10-19"), (IF_RANGE, condition)];
            assert_eq!(verdict(&fields), expected, "{condition}");
        }
        let cached = [(RANGE, "bytes=10-19"), (IF_NONE_MATCH, TAG)];
        assert_eq!(verdict(&cached), Selected::NotModified);
    }
}
