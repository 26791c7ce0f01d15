//! The parts of structured fields (RFC 9651) that HTTP/3 and what lies above it use.
//!
//! A library would do more than necessary: fields are read for each request, a few types have a meaning, and others are only
//! checked and skipped. Nothing is allocated but the strings that a caller asks for.

/// A value of a field, as far as its type is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item<'a> {
    /// An Integer.
    Integer(i64),
    /// A Boolean.
    Boolean(bool),
    /// A String.
    String(Quoted<'a>),
    /// A value of another type.
    Other,
}

/// The content of a String between its quotation marks, where `"` and `\` have a `\` in front.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quoted<'a>(&'a [u8]);

impl Quoted<'_> {
    /// Returns the content without escapes.
    pub fn to_text(self) -> String {
        let mut text = String::with_capacity(self.0.len());
        let mut bytes = self.0.iter();
        while let Some(mut byte) = bytes.next() {
            if *byte == b'\\' {
                byte = bytes.next().unwrap_or(byte);
            }
            text.push(char::from(*byte));
        }
        text
    }
}

/// Reads a field from its beginning to its end. Every method returns `None` for a field that is not valid, which counts as
/// absent.
///
/// ```
/// use courser_http3::structured_fields::{Item, Parser};
/// let mut members = Parser::new(b"u=1;x, i");
/// assert_eq!(members.member(), Some(Some((&b"u"[..], Item::Integer(1)))));
/// assert_eq!(members.member(), Some(Some((&b"i"[..], Item::Boolean(true)))));
/// assert_eq!(members.member(), Some(None));
/// ```
#[derive(Clone, Debug)]
pub struct Parser<'a> {
    text: &'a [u8],
    /// A comma was read, after which a member must follow.
    is_first: bool,
}

impl<'a> Parser<'a> {
    /// Starts with the value of a field.
    pub const fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            is_first: true,
        }
    }

    /// Reads the next member of a Dictionary (RFC 9651 §4.2.2), without its parameters. Returns `Some(None)` at the end.
    pub fn member(&mut self) -> Option<Option<(&'a [u8], Item<'a>)>> {
        if !self.begin_member()? {
            return Some(None);
        }
        let key = self.key()?;
        let item = match self.take(b'=') {
            true => self.value()?,
            false => Item::Boolean(true),
        };
        self.parameters()?;
        Some(Some((key, item)))
    }

    /// Reads a List (RFC 9651 §4.2.1) whose members are all Strings.
    pub fn list_of_strings(mut self) -> Option<Vec<String>> {
        let mut strings = Vec::new();
        while self.begin_member()? {
            strings.push(self.string()?.to_text());
            self.parameters()?;
        }
        Some(strings)
    }

    /// Reads an Item (RFC 9651 §4.2.3) that is a String.
    pub fn item_string(mut self) -> Option<String> {
        self.skip(b" ");
        let string = self.string()?.to_text();
        self.parameters()?;
        self.skip(b" ");
        self.text.is_empty().then_some(string)
    }

    /// Moves to the next member. Returns false at the end.
    fn begin_member(&mut self) -> Option<bool> {
        if std::mem::take(&mut self.is_first) {
            self.skip(b" ");
            return Some(!self.text.is_empty());
        }
        self.skip(b" \t");
        if self.text.is_empty() {
            return Some(false);
        }
        if !self.take(b',') {
            return None;
        }
        self.skip(b" \t");
        (!self.text.is_empty()).then_some(true)
    }

    /// Reads a key (RFC 9651 §4.2.3.3).
    fn key(&mut self) -> Option<&'a [u8]> {
        let first = *self.text.first()?;
        if !first.is_ascii_lowercase() && first != b'*' {
            return None;
        }
        Some(self.take_while(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
        }))
    }

    /// Reads a bare item or skips an inner list.
    fn value(&mut self) -> Option<Item<'a>> {
        if !self.take(b'(') {
            return self.bare_item();
        }
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

    /// Skips parameters (RFC 9651 §4.2.3.2).
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

    /// Reads a bare item of any type (RFC 9651 §4.2.3.1).
    fn bare_item(&mut self) -> Option<Item<'a>> {
        match *self.text.first()? {
            b'-' | b'0'..=b'9' => self.number(),
            b'@' => {
                self.next()?;
                matches!(self.number()?, Item::Integer(_)).then_some(Item::Other)
            }
            b'"' => self.string().map(Item::String),
            b'*' | b'A'..=b'Z' | b'a'..=b'z' => {
                self.take_while(|byte| {
                    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
                });
                Some(Item::Other)
            }
            b':' => self.byte_sequence(),
            b'?' => {
                self.next()?;
                match self.next()? {
                    b'0' => Some(Item::Boolean(false)),
                    b'1' => Some(Item::Boolean(true)),
                    _ => None,
                }
            }
            b'%' => self.display_string(),
            _ => None,
        }
    }

    /// Reads an Integer, or skips a Decimal (RFC 9651 §4.2.4).
    fn number(&mut self) -> Option<Item<'a>> {
        let is_negative = self.take(b'-');
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        if self.take(b'.') {
            let fraction = self.take_while(|byte| byte.is_ascii_digit()).len();
            let is_decimal = (1..=12).contains(&digits.len()) && (1..=3).contains(&fraction);
            return is_decimal.then_some(Item::Other);
        }
        if !(1..=15).contains(&digits.len()) {
            return None;
        }
        let value = digits
            .iter()
            .fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        Some(Item::Integer(if is_negative { -value } else { value }))
    }

    /// Reads a String (RFC 9651 §4.2.5).
    fn string(&mut self) -> Option<Quoted<'a>> {
        if !self.take(b'"') {
            return None;
        }
        let begin = self.text;
        loop {
            match self.next()? {
                b'"' => return Some(Quoted(&begin[..begin.len() - self.text.len() - 1])),
                b'\\' => {
                    self.next().filter(|byte| b"\"\\".contains(byte))?;
                }
                0x20..0x7f => {}
                _ => return None,
            }
        }
    }

    /// Skips a Byte Sequence (RFC 9651 §4.2.7), whose content must be base64. Padding may be missing.
    fn byte_sequence(&mut self) -> Option<Item<'a>> {
        self.next()?;
        let digits = self.take_while(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte));
        let padding = self.take_while(|byte| byte == b'=').len();
        let most = match digits.len() % 4 {
            0 => Some(0),
            1 => None, // Six bits are no byte.
            remainder => Some(4 - remainder),
        };
        let is_base64 = most.is_some_and(|most| padding <= most);
        (is_base64 && self.take(b':')).then_some(Item::Other)
    }

    /// Skips a Display String (RFC 9651 §4.2.10), whose bytes must be UTF-8.
    fn display_string(&mut self) -> Option<Item<'a>> {
        self.next()?;
        if !self.take(b'"') {
            return None;
        }
        let mut bytes = Vec::new();
        loop {
            match self.next()? {
                b'"' => return std::str::from_utf8(&bytes).ok().map(|_| Item::Other),
                b'%' => {
                    let [high, low] = [self.hexadecimal()?, self.hexadecimal()?];
                    bytes.push(high << 4 | low);
                }
                byte @ 0x20..0x7f => bytes.push(byte),
                _ => return None,
            }
        }
    }

    fn hexadecimal(&mut self) -> Option<u8> {
        match self.next()? {
            digit @ b'0'..=b'9' => Some(digit - b'0'),
            digit @ b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        }
    }

    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.text.split_first()?;
        self.text = rest;
        Some(first)
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.text.first() == Some(&byte);
        if is_next {
            self.text = &self.text[1..];
        }
        is_next
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_read_or_skipped() {
        let text = b"a=-7, b=?0, c=\"x\\\"y\\\\\", d=1.5, e=@7, f=tok/en, g=:aGk=:, h=%\"caf%c3%a9\", i=(1 \"b\";c), j";
        let mut parser = Parser::new(text);
        let mut items = Vec::new();
        while let Some((_, item)) = parser.member().expect("valid") {
            items.push(item);
        }
        assert_eq!(items[..2], [Item::Integer(-7), Item::Boolean(false)]);
        let Item::String(string) = items[2] else {
            panic!("{:?}", items[2]);
        };
        assert_eq!(string.to_text(), "x\"y\\");
        assert_eq!(items[3..9], [Item::Other; 6]);
        assert_eq!(items[9..], [Item::Boolean(true)]);
    }

    #[test]
    fn invalid_values_are_refused_wherever_they_are() {
        for text in [
            "1.",
            "1.2345",
            "1234567890123456",
            "@1.5",
            "@",
            "?2",
            ":a:",
            ":aa",
            "%\"%ff\"",
            "%a",
            "\"a",
            "\"\u{7f}\"",
            "(1",
            "-",
        ] {
            for field in [
                format!("a={text}"),
                format!("a;b={text}"),
                format!("a=({text})"),
            ] {
                assert_eq!(Parser::new(field.as_bytes()).member(), None, "{field}");
            }
        }
    }
}
