//! Lines of the tables as the types of messages, made once and cloned from then on.

use std::sync::LazyLock;

use courser_qpack::{Origin, static_table};
use http::uri::Authority;
use http::{HeaderName, HeaderValue};

/// A line ready for a map of headers.
type Line = (HeaderName, HeaderValue);

/// The static table; `None` for pseudo-header fields.
static STATIC: LazyLock<Vec<Option<Line>>> = LazyLock::new(|| {
    (0..)
        .map_while(static_table::get)
        .map(|(name, value)| {
            let name = HeaderName::from_lowercase(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_static(value)))
        })
        .collect()
});

/// Remembers lines of the dynamic table by their absolute index, which means the same line for
/// ever.
#[derive(Debug, Default)]
pub(crate) struct LineCache {
    /// By the low bits of the index; a power of two of them, as many as were needed.
    places: Vec<Option<(u64, Line)>>,
    /// Of the request before: most requests of a connection are for the same host.
    authority: Option<Authority>,
}

impl LineCache {
    pub(crate) fn get(&self, origin: Origin) -> Option<Line> {
        match origin {
            Origin::Static(index) => STATIC.get(index)?.clone(),
            Origin::Dynamic(index) => {
                let place = index as usize & self.places.len().checked_sub(1)?; // The low bits.
                let (cached, line) = self.places[place].as_ref()?;
                (*cached == index).then(|| line.clone())
            }
            Origin::Literal => None,
        }
    }

    /// An authority that is known to be one.
    pub(crate) fn authority(&self, text: &[u8]) -> Option<Authority> {
        let known = self.authority.as_ref();
        known
            .filter(|known| known.as_str().as_bytes() == text)
            .cloned()
    }

    /// Remembers one that was checked, unless it is longer than a host and its port can be.
    pub(crate) fn set_authority(&mut self, authority: &Authority) {
        if authority.as_str().len() <= LONGEST_AUTHORITY {
            self.authority = Some(authority.clone());
        }
    }

    pub(crate) fn insert(&mut self, origin: Origin, line: &Line) {
        let Origin::Dynamic(index) = origin else {
            return;
        };
        let needed = (index + 1).min(MOST_PLACES) as usize;
        if self.places.len() < needed {
            // What stood elsewhere is made anew when it is used.
            self.places.clear();
            self.places.resize(needed.next_power_of_two(), None);
        }
        let place = index as usize & (self.places.len() - 1); // The low bits.
        self.places[place] = Some((index, line.clone()));
    }
}

/// What a connection keeps of a request that is over: a name in DNS (RFC 1035 §2.3.4) and `:65535`.
const LONGEST_AUTHORITY: usize = 255 + 6;

/// A table of 4 KiB has at most so many entries.
const MOST_PLACES: u64 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_static_table() {
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
    fn remembers_the_authority_to_the_letter() {
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
    fn remembers_no_authority_that_is_too_long() {
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
    fn remembers_the_newest_lines() {
        let mut cache = LineCache::default();
        assert_eq!(cache.get(Origin::Dynamic(0)), None);
        let line = |n: u64| (HeaderName::from_static("x-n"), HeaderValue::from(n));
        for index in 0..1000 {
            cache.insert(Origin::Dynamic(index), &line(index));
            assert_eq!(cache.get(Origin::Dynamic(index)), Some(line(index)));
        }
        assert!((900..1000).all(|index| cache.get(Origin::Dynamic(index)) == Some(line(index))));
        assert_eq!(cache.get(Origin::Dynamic(3)), None);
        assert!(cache.places.len() <= 128);
    }
}
