//! Field lines in records: bounded, and without the values of credentials.

/// A field line of a message, as it may be recorded.
///
/// Records are written to files that users may share. The values of credentials and of fields that
/// are marked as sensitive (RFC 9204 §7.1.3) are left out, and long names and values are cut.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Field {
    /// The name, of which at most 256 bytes are kept.
    pub name: Vec<u8>,
    /// The value, of which at most 256 bytes are kept. `None` if it is hidden.
    pub value: Option<Vec<u8>>,
    /// The length of the whole name in bytes.
    pub name_len: usize,
    /// The length of the whole value in bytes.
    pub value_len: usize,
}

impl Field {
    /// Creates the record of a field line. `is_sensitive` hides the value; those of
    /// `authorization`, `proxy-authorization`, `cookie` and `set-cookie` are always hidden.
    pub fn new(name: &[u8], value: &[u8], is_sensitive: bool) -> Self {
        let is_hidden = is_sensitive || is_credential(name);
        Self {
            name: cut(name).to_vec(),
            value: (!is_hidden).then(|| cut(value).to_vec()),
            name_len: name.len(),
            value_len: value.len(),
        }
    }
}

/// The first field lines of one section that fit into a record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct FieldSection {
    /// The first field lines, which fit into 4096 bytes.
    pub fields: Vec<Field>,
    /// The number of field lines after them that were left out.
    pub omitted: u64,
    /// The size of `fields` in bytes, with 32 bytes of overhead for each line.
    size: usize,
}

impl FieldSection {
    /// Adds a field line, or counts it if the section has become too large for a record.
    pub fn push(&mut self, name: &[u8], value: &[u8], is_sensitive: bool) {
        let size = OVERHEAD + cut(name).len() + cut(value).len();
        if self.omitted > 0 || self.size + size > MAX_SECTION {
            self.omitted += 1;
            return;
        }
        self.size += size;
        self.fields.push(Field::new(name, value, is_sensitive));
    }
}

/// Returns true for fields whose values are credentials.
fn is_credential(name: &[u8]) -> bool {
    let names: [&[u8]; 4] = [
        b"authorization",
        b"proxy-authorization",
        b"cookie",
        b"set-cookie",
    ];
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns the part of a name or value that is kept.
fn cut(text: &[u8]) -> &[u8] {
    &text[..text.len().min(MAX_TEXT)]
}

/// Maximum number of bytes of a name or of a value that are kept (limit K250).
pub(crate) const MAX_TEXT: usize = 256;
/// Maximum size of the kept lines of a field section in bytes, with [`OVERHEAD`] for each line
/// (limit K250).
const MAX_SECTION: usize = 4096;
/// The bytes that each field line counts in addition, as in RFC 9114 §4.2.2.
const OVERHEAD: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_hidden() {
        for name in [
            "authorization",
            "Cookie",
            "set-cookie",
            "PROXY-Authorization",
        ] {
            let field = Field::new(name.as_bytes(), b"secret", false);
            assert_eq!((field.value, field.value_len), (None, 6), "{name}");
        }
        assert_eq!(Field::new(b"x-token", b"secret", true).value, None);
        let open = Field::new(b"accept", b"*/*", false);
        assert_eq!(open.value.as_deref(), Some(&b"*/*"[..]));
    }

    #[test]
    fn names_and_values_are_cut() {
        let field = Field::new(&[b'n'; 1000], &[b'v'; 300], false);
        assert_eq!(field.name.len(), MAX_TEXT);
        assert_eq!(field.value.as_ref().map(Vec::len), Some(MAX_TEXT));
        assert_eq!((field.name_len, field.value_len), (1000, 300));
    }

    #[test]
    fn sections_are_bounded() {
        let mut section = FieldSection::default();
        for _ in 0..10_000 {
            section.push(b"a", b"", false);
        }
        assert_eq!(section.fields.len(), MAX_SECTION / (OVERHEAD + 1));
        assert_eq!(section.fields.len() as u64 + section.omitted, 10_000);

        let mut section = FieldSection::default();
        for _ in 0..100 {
            section.push(b"a", &[b'v'; 5000], false);
        }
        let kept: usize = section.fields.iter().map(|it| it.name.len()).sum();
        assert!(kept < MAX_SECTION && section.omitted > 80, "{section:?}");
        // Smaller lines do not follow an omitted one, so that the order is kept.
        let kept = section.fields.len();
        section.push(b"a", b"", false);
        assert_eq!(section.fields.len(), kept);
    }
}
