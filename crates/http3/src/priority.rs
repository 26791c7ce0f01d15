//! Priorities of responses (RFC 9218).

use std::fmt;

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
    ///
    /// A library for structured fields would do more than necessary: two members are read for each request, and
    /// the others are only skipped.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut priority = Self::default();
        let mut parser = Parser { text };
        parser.skip(b" ");
        while !parser.text.is_empty() {
            let key = parser.key()?;
            let item = if parser.take(b'=') {
                parser.value()?
            } else {
                Item::Boolean(true)
            };
            parser.parameters()?;
            match (key, item) {
                (b"u", Item::Integer(urgency @ 0..=7)) => priority.urgency = urgency as u8,
                (b"i", Item::Boolean(incremental)) => priority.incremental = incremental,
                // The last value of a key applies, and an invalid one resets it.
                (b"u", _) => priority.urgency = Self::default().urgency,
                (b"i", _) => priority.incremental = false,
                _ => {}
            }
            parser.skip(b" \t");
            if parser.text.is_empty() {
                break;
            }
            if !parser.take(b',') {
                return None;
            }
            parser.skip(b" \t");
            if parser.text.is_empty() {
                return None;
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

/// The value of a member, as far as its type is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Item {
    Integer(i64),
    Boolean(bool),
    Other,
}

struct Parser<'a> {
    text: &'a [u8],
}

impl<'a> Parser<'a> {
    fn take(&mut self, byte: u8) -> bool {
        match self.text.split_first() {
            Some((&first, rest)) if first == byte => {
                self.text = rest;
                true
            }
            _ => false,
        }
    }

    fn take_while(&mut self, is_part: impl Fn(u8) -> bool) -> &'a [u8] {
        let len = self.text.iter().take_while(|&&byte| is_part(byte)).count();
        let (taken, rest) = self.text.split_at(len);
        self.text = rest;
        taken
    }

    fn skip(&mut self, bytes: &[u8]) {
        self.take_while(|byte| bytes.contains(&byte));
    }

    /// Parses a key (RFC 9651 §3.1.2).
    fn key(&mut self) -> Option<&'a [u8]> {
        let first = *self.text.first()?;
        if !first.is_ascii_lowercase() && first != b'*' {
            return None;
        }
        Some(self.take_while(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
        }))
    }

    fn value(&mut self) -> Option<Item> {
        if !self.take(b'(') {
            return self.bare_item();
        }
        // An inner list.
        loop {
            self.skip(b" ");
            if self.take(b')') {
                return Some(Item::Other);
            }
            self.bare_item()?;
            self.parameters()?;
            if !matches!(self.text.first(), Some(b' ' | b')')) {
                return None;
            }
        }
    }

    /// Parses a bare item (RFC 9651 §3.3).
    fn bare_item(&mut self) -> Option<Item> {
        match *self.text.first()? {
            b'-' | b'0'..=b'9' | b'@' => self.number(),
            b'?' => {
                self.take(b'?');
                let is_true = self.take(b'1');
                (is_true || self.take(b'0')).then_some(Item::Boolean(is_true))
            }
            b'"' => {
                self.take(b'"');
                self.string()
            }
            b'%' => {
                self.take(b'%');
                if !self.take(b'"') {
                    return None;
                }
                self.string()
            }
            b':' => {
                self.take(b':');
                self.take_while(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
                self.take(b':').then_some(Item::Other)
            }
            first if first.is_ascii_alphabetic() || first == b'*' => {
                self.take_while(|byte| {
                    byte.is_ascii_graphic() && !b"\"(),;<=>?@[\\]{}".contains(&byte)
                });
                Some(Item::Other)
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<Item> {
        let is_date = self.take(b'@');
        let is_negative = self.take(b'-');
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        if digits.is_empty() || digits.len() > 15 {
            return None;
        }
        if self.take(b'.') {
            let fraction = self.take_while(|byte| byte.is_ascii_digit());
            let is_decimal = (1..=3).contains(&fraction.len()) && digits.len() <= 12 && !is_date;
            return is_decimal.then_some(Item::Other);
        }
        let value = digits
            .iter()
            .fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        match (is_date, is_negative) {
            (true, _) => Some(Item::Other),
            (false, true) => Some(Item::Integer(-value)),
            (false, false) => Some(Item::Integer(value)),
        }
    }

    fn string(&mut self) -> Option<Item> {
        loop {
            self.take_while(|byte| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\');
            let (&byte, rest) = self.text.split_first()?;
            self.text = rest;
            match byte {
                b'"' => return Some(Item::Other),
                b'\\' => {
                    let (_, rest) = rest
                        .split_first()
                        .filter(|(byte, _)| b"\"\\".contains(byte))?;
                    self.text = rest;
                }
                _ => return None,
            }
        }
    }

    /// Skips parameters (RFC 9651 §3.1.2), which have no meaning here.
    fn parameters(&mut self) -> Option<()> {
        while self.take(b';') {
            self.skip(b" ");
            self.key()?;
            if self.take(b'=') {
                self.bare_item()?;
            }
        }
        Some(())
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
