//! Priorities of responses (RFC 9218).

use std::fmt;

use crate::structured_fields::{Item, Parser};

/// The parameters of the `priority` field and of PRIORITY_UPDATE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Priority {
    /// The urgency from 0, the most urgent, to 7. Default 3.
    pub urgency: u8,
    /// True if the response is useful in parts, so that it shares the connection with others of the same
    /// urgency. Default false.
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self {
            urgency: 3,
            incremental: false,
        }
    }
}

impl Priority {
    /// Parses a dictionary of structured fields (RFC 9651 §3.2). Unknown members and values out of range keep
    /// their default (§4). Returns `None` if the input is not a dictionary.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut priority = Self::default();
        let mut parser = Parser::new(text);
        while let Some((key, item)) = parser.member()? {
            match (key, item) {
                (b"u", Item::Integer(urgency @ 0..=7)) => priority.urgency = urgency as u8,
                (b"i", Item::Boolean(incremental)) => priority.incremental = incremental,
                // The last value of a key applies, and an invalid one resets it.
                (b"u", _) => priority.urgency = Self::default().urgency,
                (b"i", _) => priority.incremental = false,
                _ => {}
            }
        }
        Some(priority)
    }
}

/// Formats the value of a `priority` field, which is empty for the defaults.
impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.urgency, self.incremental) {
            (3, false) => Ok(()),
            (3, true) => f.write_str("i"),
            (urgency, false) => write!(f, "u={urgency}"),
            (urgency, true) => write!(f, "u={urgency}, i"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Option<(u8, bool)> {
        let priority = Priority::parse(text.as_bytes())?;
        Some((priority.urgency, priority.incremental))
    }

    #[test]
    fn reads_the_parameters() {
        assert_eq!(parsed(""), Some((3, false)));
        assert_eq!(parsed("u=0"), Some((0, false)));
        assert_eq!(parsed("u=5, i"), Some((5, true)));
        assert_eq!(parsed("i=?0,u=7"), Some((7, false)));
        assert_eq!(parsed("  i ,\tu=1"), Some((1, true)));
        assert_eq!(parsed("u=1;x=2;y, i;z=\"a\\\"b\""), Some((1, true)));
        assert_eq!(parsed("u=1, u=2"), Some((2, false)));
    }

    /// RFC 9218 §4: invalid values are ignored.
    #[test]
    fn unknown_and_out_of_range_values_are_defaults() {
        assert_eq!(parsed("u=8"), Some((3, false)));
        assert_eq!(parsed("u=-1, i"), Some((3, true)));
        assert_eq!(parsed("u=1.5"), Some((3, false)));
        assert_eq!(parsed("u"), Some((3, false)));
        assert_eq!(parsed("i=1"), Some((3, false)));
        assert_eq!(parsed("u=2, u=9"), Some((3, false)));
        assert_eq!(
            parsed("a=(1 \"b\" c;d);e, b=:aGk=:, c=?1, d=tok/en, e=@12, u=4"),
            Some((4, false))
        );
        assert_eq!(parsed("f=%\"caf%c3%a9\", u=4"), Some((4, false)));
    }

    #[test]
    fn values_that_are_not_a_dictionary_are_refused() {
        for text in [
            "u=",
            "U=1",
            "u=1,",
            "u=1 i",
            "=1",
            "u=\"",
            "u=?2",
            "u=(1",
            "u=:a",
            "u=1234567890123456",
            "i;",
            "\u{e9}",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn written_priorities_are_read_back() {
        for urgency in 0..8 {
            for incremental in [false, true] {
                let priority = Priority {
                    urgency,
                    incremental,
                };
                assert_eq!(
                    Priority::parse(priority.to_string().as_bytes()),
                    Some(priority)
                );
            }
        }
    }

    proptest! {
        #[test]
        fn any_input_is_parsed_without_panic(text: Vec<u8>) {
            if let Some(priority) = Priority::parse(&text) {
                prop_assert!(priority.urgency < 8);
                let again = Priority::parse(priority.to_string().as_bytes());
                prop_assert_eq!(again, Some(priority));
            }
        }
    }
}
