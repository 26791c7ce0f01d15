//! Writes JSON straight into a buffer, without a tree and without allocating.

use std::fmt;
use std::io::Write;
use std::time::Duration;

/// A JSON object that is being written.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

/// Writes an object whose fields `fill` adds.
pub(crate) fn object(out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
    out.push(b'{');
    fill(&mut Object {
        out,
        is_empty: true,
    });
    out.push(b'}');
}

/// Writes an array; `each` writes one item.
pub(crate) fn array<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut each: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        each(out, item);
    }
    out.push(b']');
}

/// Writes a number, or another value whose text is valid JSON.
pub(crate) fn plain(out: &mut Vec<u8>, value: impl fmt::Display) {
    // Writing into memory cannot fail.
    let _ = write!(out, "{value}");
}

impl Object<'_> {
    fn key(&mut self, key: &'static str) -> &mut Vec<u8> {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Adds a constant string, which needs no escapes.
    pub(crate) fn constant(&mut self, key: &'static str, text: &'static str) -> &mut Self {
        debug_assert!(
            text.bytes()
                .all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
        );
        let out = self.key(key);
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        self
    }

    /// Adds a string from an untrusted source, escaped.
    pub(crate) fn text(&mut self, key: &'static str, text: &str) -> &mut Self {
        // Only maps whose keys are not strings and failing writers return errors.
        let _ = serde_json::to_writer(&mut *self.key(key), text);
        self
    }

    /// Adds an unsigned integer, as a number even above 2^53.
    pub(crate) fn uint(&mut self, key: &'static str, value: u64) -> &mut Self {
        plain(self.key(key), value);
        self
    }

    /// Adds a number of bytes or entries.
    pub(crate) fn size(&mut self, key: &'static str, value: usize) -> &mut Self {
        plain(self.key(key), value);
        self
    }

    /// Adds `true` or `false`.
    pub(crate) fn boolean(&mut self, key: &'static str, value: bool) -> &mut Self {
        plain(self.key(key), value);
        self
    }

    /// Adds a floating-point number, which must be finite.
    pub(crate) fn float(&mut self, key: &'static str, value: f64) -> &mut Self {
        debug_assert!(value.is_finite());
        plain(self.key(key), value);
        self
    }

    /// Adds a duration in milliseconds, exact to the nanosecond.
    pub(crate) fn millis(&mut self, key: &'static str, value: Duration) -> &mut Self {
        let nanos = value.as_nanos();
        let (whole, mut rest) = (nanos / NANOS, nanos % NANOS);
        let out = self.key(key);
        plain(out, whole);
        if rest > 0 {
            let mut digits = 6;
            while rest.is_multiple_of(10) {
                rest /= 10;
                digits -= 1;
            }
            plain(out, format_args!(".{rest:0digits$}"));
        }
        self
    }

    /// Adds bytes as a hexadecimal string.
    pub(crate) fn hex(&mut self, key: &'static str, bytes: &[u8]) -> &mut Self {
        let out = self.key(key);
        out.push(b'"');
        for byte in bytes {
            plain(out, format_args!("{byte:02x}"));
        }
        out.push(b'"');
        self
    }

    /// Adds an object whose fields `fill` adds.
    pub(crate) fn object(
        &mut self,
        key: &'static str,
        fill: impl FnOnce(&mut Object<'_>),
    ) -> &mut Self {
        object(self.key(key), fill);
        self
    }

    /// Adds an array; `each` writes one item.
    pub(crate) fn array<T>(
        &mut self,
        key: &'static str,
        items: impl IntoIterator<Item = T>,
        each: impl FnMut(&mut Vec<u8>, T),
    ) -> &mut Self {
        array(self.key(key), items, each);
        self
    }
}

/// Nanoseconds in a millisecond.
const NANOS: u128 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn written(fill: impl FnOnce(&mut Object<'_>)) -> String {
        let mut out = Vec::new();
        object(&mut out, fill);
        String::from_utf8(out).expect("the output is UTF-8")
    }

    #[test]
    fn fields_nest_and_untrusted_text_is_escaped() {
        let text = written(|o| {
            o.text("a", "x\"\n\u{1e}").hex("b", &[0, 255]);
            o.object("c", |_| {}).array("d", [1, 2], plain);
        });
        assert_eq!(text, r#"{"a":"x\"\n\u001e","b":"00ff","c":{},"d":[1,2]}"#);
    }

    #[test]
    fn milliseconds_are_exact_and_short() {
        let of = |nanos| {
            written(|o| {
                o.millis("t", Duration::from_nanos(nanos)).size("n", 0);
            })
        };
        assert_eq!(of(0), r#"{"t":0,"n":0}"#);
        assert_eq!(of(25_000_000), r#"{"t":25,"n":0}"#);
        assert_eq!(of(1_500_000), r#"{"t":1.5,"n":0}"#);
        assert_eq!(of(12_000_001), r#"{"t":12.000001,"n":0}"#);
        assert_eq!(of(100), r#"{"t":0.0001,"n":0}"#);
    }
}
