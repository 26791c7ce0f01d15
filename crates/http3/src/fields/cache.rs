//! Caches of the field lines of the QPACK tables, converted to header map types.

use std::sync::LazyLock;

use courser_qpack::{Origin, static_table};
use http::uri::Authority;
use http::{HeaderName, HeaderValue};

/// A field line in the types of a header map.
type Line = (HeaderName, HeaderValue);

/// The field lines of the static table; `None` for pseudo-header fields.
static STATIC: LazyLock<Vec<Option<Line>>> = LazyLock::new(|| {
    (0..)
        .map_while(static_table::get)
        .map(|(name, value)| {
            let name = HeaderName::from_lowercase(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_static(value)))
        })
        .collect()
});

/// Caches field lines of the dynamic table by their absolute index, which always refers to the same field line.
#[derive(Debug, Default)]
pub(crate) struct LineCache {
    /// The cached field lines, indexed by the low bits of the absolute index. Their number is a power of two and
    /// grows with the table.
    lines: Vec<Option<(u64, Line)>>,
    /// The authority of the previous request, which most requests of a connection share.
    authority: Option<Authority>,
}

impl LineCache {
    pub(crate) fn get(&self, origin: Origin) -> Option<Line> {
        match origin {
            Origin::Static(index) => STATIC.get(index)?.clone(),
            Origin::Dynamic(index) => {
                let index_in_cache = index as usize & self.lines.len().checked_sub(1)?; // The low bits.
                let (cached, line) = self.lines[index_in_cache].as_ref()?;
                (*cached == index).then(|| line.clone())
            }
            Origin::Literal => None,
        }
    }

    /// Returns the cached authority if it is equal to `text`, which was validated then.
    pub(crate) fn authority(&self, text: &[u8]) -> Option<Authority> {
        let known = self.authority.as_ref();
        known
            .filter(|known| known.as_str().as_bytes() == text)
            .cloned()
    }

    /// Caches a valid authority, unless it is longer than any host with a port.
    pub(crate) fn set_authority(&mut self, authority: &Authority) {
        if authority.as_str().len() <= LONGEST_AUTHORITY {
            self.authority = Some(authority.clone());
        }
    }

    pub(crate) fn insert(&mut self, origin: Origin, line: &Line) {
        let Origin::Dynamic(index) = origin else {
            return;
        };
        let needed = (index + 1).min(MAX_LINES) as usize;
        if self.lines.len() < needed {
            // Field lines that are dropped here are converted again when they are used.
            self.lines.clear();
            self.lines.resize(needed.next_power_of_two(), None);
        }
        let index_in_cache = index as usize & (self.lines.len() - 1); // The low bits.
        self.lines[index_in_cache] = Some((index, line.clone()));
    }
}

/// Longest authority that is cached: a DNS name (RFC 1035 §2.3.4) and `:65535`.
const LONGEST_AUTHORITY: usize = 255 + 6;

/// Largest number of entries in a dynamic table of 4 KiB.
const MAX_LINES: u64 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_static_table_are_found() {
        let cache = LineCache::default();
        assert_eq!(cache.get(Origin::Static(1)), None, "a pseudo-header field");
        let (name, value) = cache.get(Origin::Static(46)).expect("a line");
        assert_eq!(
            (name.as_str(), value.as_bytes()),
            ("content-type", &b"application/json"[..])
        );
        assert_eq!(cache.get(Origin::Static(99)), None);
    }

    #[test]
    fn authority_is_compared_byte_by_byte() {
        let mut cache = LineCache::default();
        assert_eq!(cache.authority(b"example.org"), None);
        for text in ["example.org", "example.org:8443"] {
            let authority: Authority = text.parse().expect("an authority");
            cache.set_authority(&authority);
            assert_eq!(cache.authority(text.as_bytes()), Some(authority));
        }
        for other in ["example.org", "Example.org:8443", "me@example.org:8443", ""] {
            assert_eq!(cache.authority(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn overlong_authority_is_not_cached() {
        let mut cache = LineCache::default();
        let of_len = |len: usize| "h".repeat(len).parse::<Authority>().expect("an authority");
        let longest = of_len(LONGEST_AUTHORITY);
        cache.set_authority(&longest);
        let too_long = of_len(LONGEST_AUTHORITY + 1);
        cache.set_authority(&too_long);
        assert_eq!(cache.authority(too_long.as_str().as_bytes()), None);
        let text = longest.as_str().as_bytes();
        assert_eq!(cache.authority(text), Some(longest.clone()));
    }

    #[test]
    fn newest_lines_are_cached() {
        let mut cache = LineCache::default();
        assert_eq!(cache.get(Origin::Dynamic(0)), None);
        let line = |n: u64| (HeaderName::from_static("x-n"), HeaderValue::from(n));
        for index in 0..1000 {
            cache.insert(Origin::Dynamic(index), &line(index));
            assert_eq!(cache.get(Origin::Dynamic(index)), Some(line(index)));
        }
        assert!((900..1000).all(|index| cache.get(Origin::Dynamic(index)) == Some(line(index))));
        assert_eq!(cache.get(Origin::Dynamic(3)), None);
        assert!(cache.lines.len() <= 128);
    }
}
