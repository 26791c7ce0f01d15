//! The `Range` header field (RFC 9110 §14).

use std::ops::Range;

use http::HeaderMap;
use http::header::RANGE;

/// The part of the content that a `Range` field selects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// The field is absent, invalid or of another unit, or asks for so much that the whole content
    /// costs less. A server may ignore the field (§14.2).
    Whole,
    One(Range<u64>),
    /// At least two ranges, in the order in which the client lists them.
    Several(Vec<Range<u64>>),
    /// No range contains a byte of the content.
    Unsatisfiable,
}

/// Returns true if the request has a `Range` field that selects a part of some content.
pub(crate) fn is_usable(headers: &HeaderMap) -> bool {
    let mut specifiers = range_set(headers).into_iter().flat_map(specifiers);
    let Some(Some(_)) = specifiers.next() else {
        return false;
    };
    specifiers.all(|specifier| specifier.is_some())
}

/// Returns the part of content of `len` bytes that the `Range` field selects.
pub(crate) fn select(headers: &HeaderMap, len: u64) -> Part {
    let Some(set) = range_set(headers) else {
        return Part::Whole;
    };
    let mut ranges = Vec::new();
    let mut count = 0;
    for specifier in specifiers(set) {
        count += 1;
        let Some(specifier) = specifier.filter(|_| count <= MAX_RANGES) else {
            return Part::Whole;
        };
        ranges.extend(specifier.within(len));
    }
    let total = ranges.iter().map(|range| range.end - range.start);
    let total = total.fold(0, u64::saturating_add);
    match ranges.as_slice() {
        _ if count == 0 => Part::Whole,
        [] => Part::Unsatisfiable,
        // Content-Range cannot describe a part of empty content.
        _ if len == 0 => Part::Whole,
        [one] => Part::One(one.clone()),
        // Ranges that overlap never cost more than the whole content.
        _ if total > len => Part::Whole,
        _ => Part::Several(ranges),
    }
}

/// Returns the set of ranges of the only `Range` field, if its unit is `bytes`.
fn range_set(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(RANGE).iter();
    let value = values.next()?;
    // The field is not a list, so a second one makes both invalid (§5.3).
    if values.next().is_some() {
        return None;
    }
    let (unit, set) = value.to_str().ok()?.split_once('=')?;
    unit.eq_ignore_ascii_case("bytes").then_some(set)
}

/// Parses the ranges of a set. Empty list elements are skipped (§5.6.1.2). An invalid range is
/// `None`, and it makes the whole field invalid (§14.2).
fn specifiers(set: &str) -> impl Iterator<Item = Option<Specifier>> {
    let elements = set.split(',').map(|element| element.trim_matches(OWS));
    elements
        .filter(|element| !element.is_empty())
        .map(Specifier::parse)
}

/// A range of a client that does not know the length of the content (§14.1.2).
#[derive(Clone, Copy, Debug)]
enum Specifier {
    From(u64),
    /// The positions of the first and the last byte.
    Between(u64, u64),
    /// The number of bytes at the end.
    Suffix(u64),
}

impl Specifier {
    fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-')?;
        match (first.is_empty(), last.is_empty()) {
            (true, _) => Some(Self::Suffix(number(last)?)),
            (false, true) => Some(Self::From(number(first)?)),
            (false, false) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Self::Between(first, last))
            }
        }
    }

    /// Returns the bytes of content of `len` bytes, if there are any. Empty content satisfies suffixes, and
    /// ranges from its beginning: many clients limit each request with `bytes=0-N`, and nginx and Go
    /// send empty files whole.
    fn within(self, len: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::Suffix(0) => return None,
            Self::Suffix(suffix) => return Some(len.saturating_sub(suffix)..len),
            Self::From(first) => first..len,
            Self::Between(first, last) => first..len.min(last.saturating_add(1)),
        };
        (range.start < len || range.start == 0).then_some(range)
    }
}

/// Parses a decimal number. A number of any length is valid, and those above `u64::MAX` are beyond the
/// end of every file.
fn number(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(digits.parse().unwrap_or(u64::MAX))
}

/// Optional whitespace (RFC 9110 §5.6.3).
const OWS: [char; 2] = [' ', '\t'];

/// The largest number of ranges in a response (limit K390).
pub(crate) const MAX_RANGES: usize = 200;

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn selected(values: &[&str], len: u64) -> Part {
        let mut headers = HeaderMap::new();
        for value in values {
            let value = HeaderValue::from_str(value).expect("a value");
            headers.append(RANGE, value);
        }
        let part = select(&headers, len);
        // A field that is unusable never selects a part.
        assert!(
            part == Part::Whole || is_usable(&headers),
            "{values:?} {part:?}"
        );
        part
    }

    fn one(value: &str) -> Part {
        selected(&[value], 100)
    }

    #[test]
    fn one_range_is_cut_to_the_content() {
        for (value, expected) in [
            ("bytes=0-0", 0..1),
            ("bytes=10-19", 10..20),
            ("bytes=90-", 90..100),
            ("bytes=-10", 90..100),
            ("bytes=90-1000", 90..100),
            ("bytes=99-", 99..100),
            ("bytes=0-", 0..100),
            // Longer than the content, and longer than any number of 64 bits.
            ("bytes=-101", 0..100),
            ("bytes=-99999999999999999999999", 0..100),
            ("bytes=5-18446744073709551615", 5..100),
            ("bytes=5-99999999999999999999999", 5..100),
            ("bytes=0005-0006", 5..7),
        ] {
            assert_eq!(one(value), Part::One(expected), "{value}");
        }
    }

    #[test]
    fn names_of_units_are_compared_without_case() {
        assert_eq!(one("Bytes=1-2"), Part::One(1..3));
        assert_eq!(one("BYTES=1-2"), Part::One(1..3));
    }

    #[test]
    fn unknown_units_and_invalid_fields_are_ignored() {
        for value in [
            "items=0-5",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=a-b",
            "bytes=1",
            "bytes=-",
            "bytes=--1",
            "bytes=+1-2",
            "bytes=1-+2",
            "bytes=1 -2",
            "bytes=5-4",
            "bytes=0-1,5-4",
            "bytes=0-1;2-3",
            "bytes =0-1",
            "0-1",
            "",
        ] {
            assert_eq!(one(value), Part::Whole, "{value:?}");
        }
    }

    #[test]
    fn several_fields_are_ignored() {
        assert_eq!(selected(&["bytes=0-1", "bytes=3-4"], 100), Part::Whole);
        assert_eq!(selected(&["bytes=0-1", "bytes=0-1"], 100), Part::Whole);
    }

    #[test]
    fn ranges_beyond_the_end_are_unsatisfiable() {
        for value in [
            "bytes=100-",
            "bytes=100-200",
            "bytes=-0",
            "bytes=-000",
            "bytes=100-,200-,-0",
            "bytes=99999999999999999999999-",
        ] {
            assert_eq!(one(value), Part::Unsatisfiable, "{value}");
        }
    }

    #[test]
    fn several_ranges_keep_their_order() {
        let several = |ranges: &[Range<u64>]| Part::Several(ranges.to_vec());
        assert_eq!(one("bytes=0-0,5-9"), several(&[0..1, 5..10]));
        assert_eq!(one("bytes=-5 ,\t0-4"), several(&[95..100, 0..5]));
        assert_eq!(one("bytes=, 0-1,,4-5 ,"), several(&[0..2, 4..6]));
        // Ranges that cannot be satisfied are left out.
        assert_eq!(one("bytes=0-1,100-,4-5"), several(&[0..2, 4..6]));
        assert_eq!(one("bytes=0-1,100-"), Part::One(0..2));
    }

    #[test]
    fn costly_sets_are_ignored() {
        assert_eq!(one("bytes=0-,0-"), Part::Whole);
        assert_eq!(one("bytes=0-60,40-99"), Part::Whole);
        let ranges = |count: usize| {
            let set: Vec<_> = (0..count).map(|at| format!("{at}-{at}")).collect();
            selected(&[&format!("bytes={}", set.join(","))], 1 << 20)
        };
        assert!(matches!(ranges(MAX_RANGES), Part::Several(all) if all.len() == MAX_RANGES));
        assert_eq!(ranges(MAX_RANGES + 1), Part::Whole);
    }

    #[test]
    fn empty_content_is_sent_whole_or_is_unsatisfiable() {
        for set in ["bytes=0-", "bytes=0-9", "bytes=0-0,5-6"] {
            assert_eq!(selected(&[set], 0), Part::Whole, "{set}");
        }
        assert_eq!(selected(&["bytes=1-"], 0), Part::Unsatisfiable);
        assert_eq!(selected(&["bytes=-0"], 0), Part::Unsatisfiable);
        assert_eq!(selected(&["bytes=-1"], 0), Part::Whole);
    }

    proptest! {
        /// Selected parts are never empty, never reach beyond the content, and are together no longer
        /// than the content.
        #[test]
        fn parts_lie_within_the_content(
            value in "bytes=([0-9]{0,2}-[0-9]{0,3}, ?){0,8}[0-9]{0,22}-[0-9]{0,22}",
            len in 0_u64..200,
        ) {
            let ranges = match selected(&[&value], len) {
                Part::Whole | Part::Unsatisfiable => Vec::new(),
                Part::One(range) => vec![range],
                Part::Several(ranges) => {
                    prop_assert!(ranges.len() > 1);
                    ranges
                }
            };
            let mut total = 0;
            for range in &ranges {
                prop_assert!(range.start < range.end && range.end <= len, "{range:?} of {len}");
                total += range.end - range.start;
            }
            prop_assert!(total <= len);
        }
    }
}
