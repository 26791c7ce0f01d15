//! Patterns of host names in rules.

use std::fmt;
use std::str::FromStr;

use crate::target::Host;

/// A host name, such as `example.org`, or all names below one, such as `*.example.org`.
///
/// Names are compared without regard to case, and without the dot at their end.
///
/// ```
/// use courser_masque::Names;
/// let below: Names = "*.example.org".parse()?;
/// assert!(below.contains("WWW.example.org."));
/// assert!(!below.contains("example.org"));
/// # Ok::<(), courser_masque::InvalidNames>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Names {
    /// In lower case, without a dot at the end.
    name: String,
    is_below: bool,
}

/// The error of a text that is no pattern of [`Names`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{0}' is no host name such as example.org or *.example.org")]
pub struct InvalidNames(String);

impl Names {
    /// Returns true if the pattern matches a name.
    pub fn contains(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name).as_bytes();
        let pattern = self.name.as_bytes();
        let Some(at) = name.len().checked_sub(pattern.len()) else {
            return false;
        };
        let (front, end) = name.split_at(at);
        let has_place = match self.is_below {
            true => front.len() > 1 && front.ends_with(b"."),
            false => front.is_empty(),
        };
        has_place && end.eq_ignore_ascii_case(pattern)
    }
}

impl FromStr for Names {
    type Err = InvalidNames;

    fn from_str(text: &str) -> Result<Self, InvalidNames> {
        let (name, is_below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        match name.parse() {
            Ok(Host::Name(name)) => Ok(Self {
                name: name
                    .strip_suffix('.')
                    .unwrap_or(&name)
                    .to_ascii_lowercase(),
                is_below,
            }),
            _ => Err(InvalidNames(text.chars().take(64).collect())),
        }
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = if self.is_below { "*." } else { "" };
        write!(f, "{prefix}{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_their_names() {
        for (pattern, name, expected) in [
            ("example.org", "example.org", true),
            ("Example.ORG.", "eXample.org", true),
            ("example.org", "example.org.", true),
            ("example.org", "www.example.org", false),
            ("example.org", "notexample.org", false),
            ("*.example.org", "www.example.org", true),
            ("*.example.org", "a.b.example.org.", true),
            ("*.example.org", "example.org", false),
            ("*.example.org", ".example.org", false),
            ("*.example.org", "notexample.org", false),
            ("*.org", "example.org", true),
            ("example.org", "", false),
        ] {
            let names: Names = pattern.parse().unwrap();
            assert_eq!(names.contains(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn texts_that_are_no_patterns_are_refused() {
        for text in ["", "*", "*.", "a*.b", "*.*.b", "10.0.0.1", "0x7f.1", "a b"] {
            assert!(text.parse::<Names>().is_err(), "{text}");
        }
        assert_eq!("*.A.b.".parse::<Names>().unwrap().to_string(), "*.a.b");
    }
}
