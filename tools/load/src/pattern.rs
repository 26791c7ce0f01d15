//! Generates URLs from a regular expression.

#[cfg_attr(not(feature = "rand-regex"), path = "pattern/absent.rs")]
mod expression;

use std::hash::{BuildHasher, RandomState};

use courser_measure::Failure;
use courser_measure::target::split_zone;
use http::Uri;
use http::uri::PathAndQuery;
use url::Url;

use self::expression::Expression;

/// A URL whose path and query are a regular expression, from which the URLs of requests are generated.
///
/// Scheme, host and port are literal, because a run loads one server. As in oha, a dot is a literal dot,
/// because URLs contain many dots; `[ -~]` stands for any character.
#[derive(Debug)]
pub struct Pattern {
    origin: String,
    /// The origin without the zone of a link-local address.
    requested: String,
    rest: Expression,
    seed: u64,
}

impl Pattern {
    /// Parses a pattern. Unbounded repetitions yield up to `max_repeat` repetitions above their minimum.
    ///
    /// # Errors
    /// Returns an error if the part after the host is not a valid regular expression, or if this build lacks the
    /// feature `rand-regex`.
    pub fn read(text: &str, max_repeat: u32) -> Result<Self, Failure> {
        let (origin, rest) = text.split_at(end_of_origin(text));
        let rest = Expression::read(&literal_dots(rest), rest, max_repeat)?;
        Ok(Self {
            requested: split_zone(origin).map_or_else(|| origin.to_owned(), |(plain, _)| plain),
            origin: origin.to_owned(),
            rest,
            seed: RandomState::new().hash_one(text),
        })
    }

    /// Returns the URL of scheme, host and port, with the zone of the host if it has one.
    pub fn origin(&self) -> String {
        format!("{}/", self.origin)
    }

    /// Returns the URL of the request with this number, which is the same at each call. A requested URL contains
    /// no zone (RFC 6874 §1).
    pub fn url(&self, number: u64) -> String {
        let rest = self.rest.generate(self.seed.wrapping_add(number));
        format!("{}{rest}", self.requested)
    }

    /// Returns the path and query of the request with this number. Characters that are not allowed in
    /// a URL are percent-encoded.
    pub(crate) fn path_and_query(&self, number: u64) -> PathAndQuery {
        let url = Url::parse(&self.url(number)).ok();
        let sent = url
            .as_ref()
            .map(|url| &url[url::Position::BeforePath..url::Position::AfterQuery]);
        let parsed = sent.and_then(|sent| Uri::try_from(sent).ok());
        let parsed = parsed.and_then(|uri| uri.into_parts().path_and_query);
        // An encoded path always parses.
        parsed.unwrap_or(PathAndQuery::from_static("/"))
    }
}

/// Returns the index at which the path begins.
fn end_of_origin(text: &str) -> usize {
    let authority = text.find("://").map_or(0, |colon| colon + 3);
    text[authority..]
        .find('/')
        .map_or(text.len(), |slash| authority + slash)
}

/// Escapes every dot of a pattern that is not escaped yet.
fn literal_dots(pattern: &str) -> String {
    let mut literal = String::with_capacity(pattern.len());
    let mut is_escaped = false;
    for character in pattern.chars() {
        if character == '.' && !is_escaped {
            literal.push('\\');
        }
        is_escaped = character == '\\' && !is_escaped;
        literal.push(character);
    }
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_match_the_pattern_and_differ() {
        let pattern = Pattern::read(r"https://a.b:1/[a-c]{2}/[0-9]+.js\?q=[ é]x", 4).expect("fine");
        assert_eq!(pattern.origin(), "https://a.b:1/");
        let mut seen = std::collections::HashSet::new();
        for number in 0..200 {
            let path = pattern.path_and_query(number).to_string();
            let (letters, rest) = path[1..].split_at(2);
            assert!(
                letters.bytes().all(|letter| b"abc".contains(&letter)),
                "{path}"
            );
            let (digits, rest) = rest[1..].split_once('.').expect("a literal dot");
            assert!((1..=5).contains(&digits.len()), "{path}");
            assert!(["js?q=%20x", "js?q=%C3%A9x"].contains(&rest), "{path}");
            assert_eq!(
                pattern.path_and_query(number),
                path.as_str(),
                "same number, same URL"
            );
            seen.insert(path);
        }
        assert!(seen.len() > 100, "{} of 200 differ", seen.len());
    }

    #[test]
    fn escaped_dots_are_unchanged() {
        assert_eq!(literal_dots(r"/a.b\.c\\.d"), r"/a\.b\.c\\\.d");
    }

    #[test]
    fn host_without_a_path_requests_the_root() {
        let pattern = Pattern::read("http://127.0.0.1:80", 4).expect("fine");
        assert_eq!(pattern.path_and_query(1), "/");
        assert_eq!(pattern.origin(), "http://127.0.0.1:80/");
    }

    #[test]
    fn zones_are_used_to_connect_but_not_requested() {
        let pattern = Pattern::read("https://[fe80::1%252]:1/a", 4).expect("fine");
        assert_eq!(pattern.origin(), "https://[fe80::1%252]:1/");
        assert_eq!(pattern.url(1), "https://[fe80::1]:1/a");
        assert_eq!(pattern.path_and_query(1), "/a");
    }

    #[test]
    fn invalid_pattern_is_refused() {
        let error = Pattern::read("http://x/[a", 4)
            .expect_err("refused")
            .to_string();
        assert!(error.contains("'/[a' is not a valid pattern"), "{error}");
    }
}
