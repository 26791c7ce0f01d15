//! Expands `{a,b}` and `[1-9]` in URLs.

use thiserror::Error;

/// A URL of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpandedUrl {
    /// The URL without braces and brackets.
    pub(crate) url: String,
    /// The values of the braces and brackets in their order, for `#1` and so on in file names.
    pub(crate) parts: Vec<String>,
}

/// The reason why a pattern cannot be expanded.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(crate) enum UrlPatternError {
    /// A brace or a bracket is not closed, or contains no valid range.
    #[error(
        "bad pattern in '{}': {reason} (use --globoff to take it literally)",
        pattern.escape_debug()
    )]
    Malformed {
        /// The pattern as the user wrote it.
        pattern: String,
        /// The brace or bracket, and the valid forms.
        reason: String,
    },
    /// The pattern has more than 100 000 URLs.
    #[error("'{}' expands to more than {MAX_URLS} URLs", pattern.escape_debug())]
    TooMany {
        /// The pattern as the user wrote it.
        pattern: String,
    },
}

impl ExpandedUrl {
    /// Returns a URL that is not a pattern.
    pub(crate) fn plain(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            parts: Vec::new(),
        }
    }

    /// Replaces `#1` and so on in a file name by the values of the pattern.
    pub(crate) fn name(&self, template: &str) -> String {
        let mut name = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('#') {
            name.push_str(before);
            let digits = after
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(after.len());
            let number = after[..digits].parse::<usize>().ok();
            let part = number.and_then(|number| self.parts.get(number.checked_sub(1)?));
            match part {
                Some(part) => name.push_str(part),
                None => {
                    name.push('#');
                    name.push_str(&after[..digits]);
                }
            }
            rest = &after[digits..];
        }
        name + rest
    }
}

/// Returns all URLs of a pattern, as curl does. The last brace or bracket changes first. A backslash before a brace
/// or bracket makes it literal.
///
/// # Errors
/// Returns an error if a brace or bracket is not closed, not opened or contains no range, or there are more than
/// 100 000 URLs.
pub(crate) fn expand_url(pattern: &str) -> Result<Vec<ExpandedUrl>, UrlPatternError> {
    let mut all = vec![ExpandedUrl::plain("")];
    let mut rest = pattern;
    loop {
        let malformed = |reason| UrlPatternError::Malformed {
            pattern: pattern.to_owned(),
            reason,
        };
        let (text, after) = literal(rest).map_err(malformed)?;
        for expanded in &mut all {
            expanded.url.push_str(&text);
        }
        if after.is_empty() {
            return Ok(all);
        }
        let found = first_element(after).map_err(malformed)?;
        let (choices, next) = match found {
            Element::Choices(choices, next) => (choices, next),
            Element::Text(next) => {
                // The brackets of an IPv6 address are literal.
                let text = &after[..after.len() - next.len()];
                all.iter_mut()
                    .for_each(|expanded| expanded.url.push_str(text));
                rest = next;
                continue;
            }
        };
        if all.len().saturating_mul(choices.len()) > MAX_URLS {
            return Err(UrlPatternError::TooMany {
                pattern: pattern.to_owned(),
            });
        }
        all = all
            .iter()
            .flat_map(|expanded| choices.iter().map(|choice| append(expanded, choice)))
            .collect();
        rest = next;
    }
}

fn append(expanded: &ExpandedUrl, choice: &str) -> ExpandedUrl {
    let mut expanded = expanded.clone();
    expanded.url.push_str(choice);
    expanded.parts.push(choice.to_owned());
    expanded
}

/// Returns the text before the first brace or bracket, without backslashes before braces and brackets, and the
/// rest.
fn literal(text: &str) -> Result<(String, &str), String> {
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(SPECIAL) {
        let (before, after) = rest.split_at(at);
        let is_escaped = before.ends_with('\\');
        literal.push_str(&before[..at - usize::from(is_escaped)]);
        match after.as_bytes().first() {
            _ if is_escaped => literal.push_str(&after[..1]),
            Some(b'{' | b'[') => return Ok((literal, after)),
            _ => {
                let close = &after[..1];
                return Err(format!("'{close}' without its opening counterpart"));
            }
        }
        rest = &after[1..];
    }
    literal.push_str(rest);
    Ok((literal, ""))
}

enum Element<'a> {
    Choices(Vec<String>, &'a str),
    Text(&'a str),
}

/// Parses the brace or bracket at the start of a text. Returns its values and the rest of the text.
fn first_element(text: &str) -> Result<Element<'_>, String> {
    if let Some(inner) = text.strip_prefix('{') {
        return choices(inner);
    }
    let (inner, next) = text
        .strip_prefix('[')
        .and_then(|inner| inner.split_once(']'))
        .ok_or("'[' without ']'")?;
    // It may have a zone: `fe80::1%25eth0` (RFC 6874).
    let address = inner.split('%').next().unwrap_or_default();
    if address.contains(':') && address.parse::<std::net::Ipv6Addr>().is_ok() {
        return Ok(Element::Text(next));
    }
    range(inner).map(|choices| Element::Choices(choices, next))
}

/// Parses the values after an opening brace.
fn choices(inner: &str) -> Result<Element<'_>, String> {
    let mut choices = vec![String::new()];
    let mut letters = inner.char_indices();
    while let Some((at, letter)) = letters.next() {
        let letter = match letter {
            '}' if at == 0 => return Err("'{}' is empty".to_owned()),
            '}' => return Ok(Element::Choices(choices, &inner[at + 1..])),
            ',' => {
                choices.push(String::new());
                continue;
            }
            '{' | '[' | ']' => return Err(format!("'{letter}' within braces")),
            '\\' => match letters.next() {
                Some((_, escaped)) => escaped,
                None => break,
            },
            letter => letter,
        };
        if let Some(choice) = choices.last_mut() {
            choice.push(letter);
        }
    }
    Err("'{' without '}'".to_owned())
}

/// Parses a range: `1-9`, `001-100:10`, `a-z`.
fn range(text: &str) -> Result<Vec<String>, String> {
    let shown = text.escape_debug();
    let wrong = || format!("'[{shown}]' is not a range such as [1-9], [01-20:2] or [a-z]");
    let (range, step) = text.split_once(':').unwrap_or((text, "1"));
    let step: usize = step
        .parse()
        .ok()
        .filter(|step| *step > 0)
        .ok_or_else(wrong)?;
    let (from, to) = range.split_once('-').ok_or_else(wrong)?;
    if let ([from], [to]) = (from.as_bytes(), to.as_bytes())
        && from.is_ascii_alphabetic()
        && to.is_ascii_alphabetic()
    {
        let letters = (*from..=*to).step_by(step);
        let letters: Vec<_> = letters
            .map(|letter| char::from(letter).to_string())
            .collect();
        return if letters.is_empty() {
            Err(wrong())
        } else {
            Ok(letters)
        };
    }
    let width = if from.starts_with('0') { from.len() } else { 0 };
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let (from, to) = (number(from)?, number(to)?);
    if to < from {
        return Err(wrong());
    }
    let count = (to - from) / step as u64;
    if count >= MAX_URLS as u64 {
        return Err(format!("'[{shown}]' has more than {MAX_URLS} numbers"));
    }
    let numbers = (from..=to).step_by(step);
    Ok(numbers.map(|number| format!("{number:0width$}")).collect())
}

/// The characters of patterns.
const SPECIAL: [char; 4] = ['{', '}', '[', ']'];
/// The largest number of URLs of a pattern. More would be a mistake, or an attack on a server.
const MAX_URLS: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(pattern: &str) -> Vec<String> {
        let all = expand_url(pattern).expect(pattern);
        all.into_iter().map(|expanded| expanded.url).collect()
    }

    #[test]
    fn sets_and_ranges_are_combined() {
        assert_eq!(
            urls("http://{a,b}/[1-2]"),
            ["http://a/1", "http://a/2", "http://b/1", "http://b/2"]
        );
        assert_eq!(urls("[08-12:2]"), ["08", "10", "12"]);
        assert_eq!(urls("[a-e:2]"), ["a", "c", "e"]);
        assert_eq!(urls("x{,y}"), ["x", "xy"]);
    }

    #[test]
    fn backslashes_make_braces_and_brackets_literal() {
        for (pattern, expected) in [
            (r"\[1-3\]", &["[1-3]"][..]),
            (r"\{a,b\}\x[1-2]", &[r"{a,b}\x1", r"{a,b}\x2"]),
            (r"{a\,b,c\}}", &["a,b", "c}"]),
        ] {
            assert_eq!(urls(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn ipv6_addresses_are_not_patterns() {
        assert_eq!(
            urls("https://[::1]:4433/[1-2]"),
            ["https://[::1]:4433/1", "https://[::1]:4433/2"]
        );
    }

    #[test]
    fn errors_contain_the_pattern() {
        for pattern in [
            "{a",
            "[1",
            "[1-]",
            "[9-1]",
            "[x]",
            "[1-3:0]",
            "[1-999999999]",
            "[b-a]",
            "{}",
            "a]",
            "}",
            "{a{b}}",
            "{a[1-2]}",
        ] {
            let error = expand_url(pattern).expect_err(pattern).to_string();
            assert!(error.contains(pattern), "{error}");
        }
        assert!(expand_url("[1-1000][1-1000]").is_err());
        let error = expand_url("[a\nb]").expect_err("no range").to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
    }

    #[test]
    fn file_names_use_values_of_the_pattern() {
        let all = expand_url("http://{a,b}/[1-2]").expect("a pattern");
        assert_eq!(all[1].name("#1_#2.txt"), "a_2.txt");
        assert_eq!(all[1].name("#3#x#"), "#3#x#");
    }
}
