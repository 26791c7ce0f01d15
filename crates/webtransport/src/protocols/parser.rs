//! The part of structured fields that lists of strings need (RFC 9651 §4.2).

/// Parses a List of Strings or one String. Parameters of any type are checked and skipped.
///
/// A library for structured fields would do more than necessary: members of any other type make the field count as
/// absent, so their values are never needed.
pub(super) struct Parser<'a> {
    text: &'a [u8],
}

impl<'a> Parser<'a> {
    pub(super) const fn new(text: &'a [u8]) -> Self {
        Self { text }
    }

    /// Parses a List (RFC 9651 §4.2.1) whose members are all Strings.
    pub(super) fn list_of_strings(mut self) -> Option<Vec<String>> {
        let mut strings = Vec::new();
        self.skip(b" ");
        while !self.text.is_empty() {
            strings.push(self.string()?);
            self.parameters()?;
            self.skip(b" \t");
            if self.text.is_empty() {
                break;
            }
            if !self.take(b',') {
                return None;
            }
            self.skip(b" \t");
            if self.text.is_empty() {
                return None;
            }
        }
        Some(strings)
    }

    /// Parses an Item (RFC 9651 §4.2.3) that is a String.
    pub(super) fn item_string(mut self) -> Option<String> {
        self.skip(b" ");
        let string = self.string()?;
        self.parameters()?;
        self.skip(b" ");
        self.text.is_empty().then_some(string)
    }

    /// Parses a String (RFC 9651 §4.2.5).
    fn string(&mut self) -> Option<String> {
        if !self.take(b'"') {
            return None;
        }
        let mut string = String::new();
        loop {
            match self.next()? {
                b'"' => return Some(string),
                b'\\' => match self.next()? {
                    escaped @ (b'"' | b'\\') => string.push(char::from(escaped)),
                    _ => return None,
                },
                byte @ 0x20..0x7f => string.push(char::from(byte)),
                _ => return None,
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

    /// Skips a key (RFC 9651 §4.2.3.3).
    fn key(&mut self) -> Option<()> {
        let first = self.next()?;
        if !first.is_ascii_lowercase() && first != b'*' {
            return None;
        }
        self.take_while(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
        });
        Some(())
    }

    /// Skips a bare item of any type (RFC 9651 §4.2.3.1).
    fn bare_item(&mut self) -> Option<()> {
        match *self.text.first()? {
            b'-' | b'0'..=b'9' => self.number(),
            b'@' => {
                self.next()?;
                let is_decimal = self.number_is_decimal()?;
                (!is_decimal).then_some(())
            }
            b'"' => self.string().map(drop),
            b'*' | b'A'..=b'Z' | b'a'..=b'z' => {
                self.take_while(|byte| {
                    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
                });
                Some(())
            }
            b':' => self.byte_sequence(),
            b'?' => {
                self.next()?;
                matches!(self.next()?, b'0' | b'1').then_some(())
            }
            b'%' => self.display_string(),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<()> {
        self.number_is_decimal().map(drop)
    }

    /// Skips an Integer or a Decimal (RFC 9651 §4.2.4). Returns true for a Decimal.
    fn number_is_decimal(&mut self) -> Option<bool> {
        self.take(b'-');
        let digits = self.digits();
        if !self.take(b'.') {
            return (1..=15).contains(&digits).then_some(false);
        }
        let fraction = self.digits();
        ((1..=12).contains(&digits) && (1..=3).contains(&fraction)).then_some(true)
    }

    fn digits(&mut self) -> usize {
        self.take_while(|byte| byte.is_ascii_digit())
    }

    /// Skips a Byte Sequence (RFC 9651 §4.2.7), whose content must be base64. Padding may be missing.
    fn byte_sequence(&mut self) -> Option<()> {
        self.next()?;
        let digits = self.take_while(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte));
        let padding = self.take_while(|byte| byte == b'=');
        let most = match digits % 4 {
            0 => Some(0),
            1 => None, // Six bits are no byte.
            remainder => Some(4 - remainder),
        };
        let is_base64 = most.is_some_and(|most| padding <= most);
        (is_base64 && self.take(b':')).then_some(())
    }

    /// Skips a Display String (RFC 9651 §4.2.10), whose bytes must be UTF-8.
    fn display_string(&mut self) -> Option<()> {
        self.next()?;
        if !self.take(b'"') {
            return None;
        }
        let mut bytes = Vec::new();
        loop {
            match self.next()? {
                b'"' => return std::str::from_utf8(&bytes).ok().map(drop),
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

    /// Skips bytes, and returns their number.
    fn take_while(&mut self, is_part: impl Fn(u8) -> bool) -> usize {
        let len = self.text.iter().take_while(|&&byte| is_part(byte)).count();
        self.text = &self.text[len..];
        len
    }

    fn skip(&mut self, bytes: &[u8]) {
        self.take_while(|byte| bytes.contains(&byte));
    }
}
