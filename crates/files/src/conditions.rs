//! Conditional requests and ranges (RFC 9110 §13 and §14).

use std::time::{Duration, SystemTime};

use http::header::{
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::range::{self, Part};

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
    /// Send this part of the content, with 206 (§15.3.7) or 416 (§15.5.17) if it is not the whole.
    Content(Part),
    /// 304: the client has the current content (§15.4.5).
    NotModified,
    /// 412: `If-Match` or `If-Unmodified-Since` is false (§15.5.13).
    PreconditionFailed,
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

/// Evaluates conditions in the order of RFC 9110 §13.2.2 for content of `len` bytes at the time `now`.
pub(crate) fn evaluate(
    headers: &HeaderMap,
    validators: Validators<'_>,
    len: u64,
    now: SystemTime,
) -> Selected {
    if headers.contains_key(IF_MATCH) {
        if !matches_any(headers, IF_MATCH, validators.tag, is_strongly_equal) {
            return Selected::PreconditionFailed;
        }
    } else if let (Some(since), Some(modified)) =
        (date(headers, IF_UNMODIFIED_SINCE), validators.modified)
        && modified > since
    {
        return Selected::PreconditionFailed;
    }
    if headers.contains_key(IF_NONE_MATCH) {
        if matches_any(headers, IF_NONE_MATCH, validators.tag, is_weakly_equal) {
            return Selected::NotModified;
        }
    } else if let (Some(since), Some(modified)) =
        (date(headers, IF_MODIFIED_SINCE), validators.modified)
        && modified <= since
    {
        return Selected::NotModified;
    }
    if !is_same_version(headers, validators, now) {
        return Selected::Content(Part::Whole);
    }
    Selected::Content(range::select(headers, len))
}

/// Returns the date of a condition. A condition that is not a single date is ignored (§13.1.3, §13.1.4).
fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    let text = only(headers, name)?.to_str().ok()?;
    httpdate::parse_http_date(text).ok()
}

/// Returns the value of a field that occurs once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

/// Evaluates `If-Range` (§13.1.5). It is false for a client that has part of another version, which then
/// receives all of the current one.
fn is_same_version(headers: &HeaderMap, validators: Validators<'_>, now: SystemTime) -> bool {
    if !headers.contains_key(IF_RANGE) {
        return true;
    }
    let Some(condition) = only(headers, IF_RANGE) else {
        return false;
    };
    let is_weak = condition.as_bytes().starts_with(b"W/");
    if !is_weak && validators.tag == Some(condition) {
        return true;
    }
    // A date identifies a version only once its second has passed: until then the file may change
    // again without another date (§8.8.2.2).
    let has_passed = |modified: SystemTime| modified + Duration::from_secs(1) <= now;
    validators.modified_text == Some(condition) && validators.modified.is_some_and(has_passed)
}

fn matches_any(
    headers: &HeaderMap,
    name: HeaderName,
    tag: Option<&HeaderValue>,
    is_equal: fn(&str, &str) -> bool,
) -> bool {
    let tag = tag.and_then(|tag| tag.to_str().ok());
    let values = headers.get_all(name).iter();
    let mut values = values.filter_map(|value| value.to_str().ok());
    // Our tags contain no comma, so a tag that contains one does not match.
    values.any(|value| {
        let mut tags = value.split(',').map(str::trim);
        let is_tag = |tag| tags.any(|other| is_equal(tag, other));
        value.trim() == "*" || tag.is_some_and(is_tag)
    })
}

/// Compares two entity tags weakly. RFC 9110 §8.8.3.2.
fn is_weakly_equal(one: &str, other: &str) -> bool {
    let opaque = |tag| str::strip_prefix(tag, "W/").unwrap_or(tag);
    opaque(one) == opaque(other)
}

fn is_strongly_equal(one: &str, other: &str) -> bool {
    !one.starts_with("W/") && one == other
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::time::UNIX_EPOCH;

    use super::*;

    const TAG: &str = "\"tag\"";
    const BEFORE: &str = "Sun, 09 Sep 2001 01:46:39 GMT";
    const MODIFIED: &str = "Sun, 09 Sep 2001 01:46:40 GMT";
    const AFTER: &str = "Sun, 09 Sep 2001 01:46:41 GMT";

    fn selected(fields: &[(HeaderName, &'static str)]) -> Selected {
        let now = UNIX_EPOCH + Duration::from_secs(2_000_000_000);
        selected_at(now, Some(TAG), fields)
    }

    fn selected_at(
        now: SystemTime,
        tag: Option<&'static str>,
        fields: &[(HeaderName, &'static str)],
    ) -> Selected {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, HeaderValue::from_static(value));
        }
        let (tag, text) = (
            tag.map(HeaderValue::from_static),
            HeaderValue::from_static(MODIFIED),
        );
        let validators = Validators {
            tag: tag.as_ref(),
            modified: Some(UNIX_EPOCH + Duration::from_secs(1_000_000_000)),
            modified_text: Some(&text),
        };
        evaluate(&headers, validators, 100, now)
    }

    const WHOLE: Selected = Selected::Content(Part::Whole);

    fn part(range: Range<u64>) -> Selected {
        Selected::Content(Part::One(range))
    }

    #[test]
    fn conditions_are_evaluated_in_the_order_of_rfc_9110() {
        use Selected::{NotModified, PreconditionFailed};
        let cases: &[(&[(HeaderName, &'static str)], Selected)] = &[
            (&[], WHOLE),
            (&[(IF_NONE_MATCH, TAG)], NotModified),
            (&[(IF_NONE_MATCH, "W/\"tag\"")], NotModified),
            (&[(IF_NONE_MATCH, "\"a\", \"tag\"")], NotModified),
            (
                &[(IF_NONE_MATCH, "\"a\""), (IF_NONE_MATCH, TAG)],
                NotModified,
            ),
            (&[(IF_NONE_MATCH, "*")], NotModified),
            (&[(IF_NONE_MATCH, "\"a\"")], WHOLE),
            (&[(IF_NONE_MATCH, "w/\"tag\"")], WHOLE),
            (&[(IF_MODIFIED_SINCE, BEFORE)], WHOLE),
            (&[(IF_MODIFIED_SINCE, MODIFIED)], NotModified),
            (&[(IF_MODIFIED_SINCE, AFTER)], NotModified),
            (&[(IF_MODIFIED_SINCE, "nonsense")], WHOLE),
            // The tag takes precedence over the date.
            (
                &[(IF_NONE_MATCH, "\"a\""), (IF_MODIFIED_SINCE, AFTER)],
                WHOLE,
            ),
            (&[(IF_MATCH, TAG)], WHOLE),
            (&[(IF_MATCH, "*")], WHOLE),
            (&[(IF_MATCH, "W/\"tag\"")], PreconditionFailed),
            (&[(IF_MATCH, "\"a\"")], PreconditionFailed),
            (&[(IF_UNMODIFIED_SINCE, BEFORE)], PreconditionFailed),
            (&[(IF_UNMODIFIED_SINCE, MODIFIED)], WHOLE),
            (&[(IF_UNMODIFIED_SINCE, "nonsense")], WHOLE),
            (&[(IF_MATCH, TAG), (IF_UNMODIFIED_SINCE, BEFORE)], WHOLE),
            (
                &[(IF_MATCH, "\"a\""), (IF_NONE_MATCH, TAG)],
                PreconditionFailed,
            ),
        ];
        for (fields, expected) in cases {
            assert_eq!(selected(fields), *expected, "{fields:?}");
        }
    }

    #[test]
    fn dates_that_occur_twice_are_ignored() {
        for name in [IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE] {
            let value = if name == IF_MODIFIED_SINCE {
                AFTER
            } else {
                BEFORE
            };
            assert_ne!(selected(&[(name.clone(), value)]), WHOLE);
            let twice = [(name.clone(), value), (name, value)];
            assert_eq!(selected(&twice), WHOLE);
        }
    }

    #[test]
    fn asterisk_matches_content_without_a_tag() {
        let now = UNIX_EPOCH + Duration::from_secs(2_000_000_000);
        let without_tag = |name| selected_at(now, None, &[(name, "*")]);
        assert_eq!(without_tag(IF_MATCH), WHOLE);
        assert_eq!(without_tag(IF_NONE_MATCH), Selected::NotModified);
    }

    #[test]
    fn conditions_precede_the_range() {
        let range = (RANGE, "bytes=10-19");
        assert_eq!(selected(std::slice::from_ref(&range)), part(10..20));
        let cached = [range.clone(), (IF_NONE_MATCH, TAG)];
        assert_eq!(selected(&cached), Selected::NotModified);
        let changed = [range, (IF_MATCH, "\"a\"")];
        assert_eq!(selected(&changed), Selected::PreconditionFailed);
        let beyond = [(RANGE, "bytes=100-"), (IF_NONE_MATCH, TAG)];
        assert_eq!(selected(&beyond), Selected::NotModified);
    }

    #[test]
    fn if_range_selects_the_part_of_the_same_version() {
        for (condition, expected) in [
            (TAG, part(10..20)),
            (MODIFIED, part(10..20)),
            ("\"other\"", WHOLE),
            ("W/\"tag\"", WHOLE),
            (AFTER, WHOLE),
            (BEFORE, WHOLE),
            ("*", WHOLE),
            ("nonsense", WHOLE),
        ] {
            let fields = [(RANGE, "bytes=10-19"), (IF_RANGE, condition)];
            assert_eq!(selected(&fields), expected, "{condition}");
        }
        let twice = [(RANGE, "bytes=10-19"), (IF_RANGE, TAG), (IF_RANGE, TAG)];
        assert_eq!(selected(&twice), WHOLE);
        assert_eq!(selected(&[(IF_RANGE, "\"other\"")]), WHOLE);
    }

    #[test]
    fn weak_tags_never_satisfy_if_range() {
        let now = UNIX_EPOCH + Duration::from_secs(2_000_000_000);
        let fields = [(RANGE, "bytes=10-19"), (IF_RANGE, "W/\"tag\"")];
        let weak = selected_at(now, Some("W/\"tag\""), &fields);
        assert_eq!(weak, WHOLE);
    }

    #[test]
    fn dates_satisfy_if_range_once_their_second_has_passed() {
        let fields = [(RANGE, "bytes=10-19"), (IF_RANGE, MODIFIED)];
        for (millis, expected) in [(999, WHOLE), (1000, part(10..20))] {
            let now =
                UNIX_EPOCH + Duration::from_secs(1_000_000_000) + Duration::from_millis(millis);
            assert_eq!(selected_at(now, Some(TAG), &fields), expected);
        }
    }
}
