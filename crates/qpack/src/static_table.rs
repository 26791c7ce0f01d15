//! The static table (RFC 9204 appendix A).

/// Returns the name and value of the entry with this index.
pub fn get(index: u64) -> Option<(&'static str, &'static str)> {
    let index = usize::try_from(index).ok()?;
    ENTRIES.get(index).copied()
}

/// The result of looking up a field line in the static table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Match {
    /// The index of an entry with this name and value.
    Whole(u64),
    /// The index of the first entry with this name. None has the value.
    Name(u64),
    None,
}

/// Looks up a field line. Compares one name and the values of its entries.
pub(crate) fn find(name: &[u8], value: &[u8]) -> Match {
    let Some(bucket) = bucket_of(name) else {
        return Match::None;
    };
    let [first, end] = NAMES.ranges[bucket];
    let indices = &NAMES.order[usize::from(first)..usize::from(end)];
    if indices.is_empty() || ENTRIES[usize::from(indices[0])].0.as_bytes() != name {
        return Match::None;
    }
    let has_value = |&&index: &&u8| ENTRIES[usize::from(index)].1.as_bytes() == value;
    match indices.iter().find(has_value) {
        Some(&index) => Match::Whole(u64::from(index)),
        None => Match::Name(u64::from(indices[0])),
    }
}

/// A perfect hash table from names to entries.
struct Names {
    /// Indices of all entries, grouped by name.
    order: [u8; ENTRIES.len()],
    /// The start and end in `order` of each name's group, by the hash of the name.
    ranges: [[u8; 2]; BUCKETS],
}

static NAMES: Names = names();

/// Number of buckets: twice the number of names, rounded up to a power of two.
const BUCKETS: usize = 128;

/// Returns the bucket of a name, or `None` if it has fewer than two bytes. The length and the last
/// two bytes distinguish all names of the table.
const fn bucket_of(name: &[u8]) -> Option<usize> {
    let [.., before, last] = name else {
        return None;
    };
    let key = name.len() as u32 | (*last as u32) << 8 | (*before as u32) << 16;
    // The multiplier was found by trial. A multiplier with collisions fails to compile.
    Some((key.wrapping_mul(0xed17_cf35) >> (32 - BUCKETS.ilog2())) as usize)
}

const fn names() -> Names {
    let mut names = Names {
        order: [0; ENTRIES.len()],
        ranges: [[0; 2]; BUCKETS],
    };
    let (mut used, mut index) = (0, 0);
    while index < ENTRIES.len() {
        if first_with_name_of(index) == index {
            let begin = used as u8;
            let mut other = index;
            while other < ENTRIES.len() {
                if first_with_name_of(other) == index {
                    names.order[used] = other as u8;
                    used += 1;
                }
                other += 1;
            }
            let Some(bucket) = bucket_of(ENTRIES[index].0.as_bytes()) else {
                panic!("a name has at least two letters");
            };
            assert!(names.ranges[bucket][1] == 0, "two names in one bucket");
            names.ranges[bucket] = [begin, used as u8];
        }
        index += 1;
    }
    names
}

const fn first_with_name_of(index: usize) -> usize {
    let name = ENTRIES[index].0.as_bytes();
    let mut first = 0;
    loop {
        let other = ENTRIES[first].0.as_bytes();
        let mut same = 0;
        while same < name.len() && same < other.len() && name[same] == other[same] {
            same += 1;
        }
        if same == name.len() && same == other.len() {
            return first;
        }
        first += 1;
    }
}

pub(crate) const ENTRIES: [(&str, &str); 99] = [
    (":authority", ""),
    (":path", "/"),
    ("age", "0"),
    ("content-disposition", ""),
    ("content-length", "0"),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("referer", ""),
    ("set-cookie", ""),
    (":method", "CONNECT"),
    (":method", "DELETE"),
    (":method", "GET"),
    (":method", "HEAD"),
    (":method", "OPTIONS"),
    (":method", "POST"),
    (":method", "PUT"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "103"),
    (":status", "200"),
    (":status", "304"),
    (":status", "404"),
    (":status", "503"),
    ("accept", "*/*"),
    ("accept", "application/dns-message"),
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-ranges", "bytes"),
    ("access-control-allow-headers", "cache-control"),
    ("access-control-allow-headers", "content-type"),
    ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=0"),
    ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"),
    ("cache-control", "no-cache"),
    ("cache-control", "no-store"),
    ("cache-control", "public, max-age=31536000"),
    ("content-encoding", "br"),
    ("content-encoding", "gzip"),
    ("content-type", "application/dns-message"),
    ("content-type", "application/javascript"),
    ("content-type", "application/json"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "image/gif"),
    ("content-type", "image/jpeg"),
    ("content-type", "image/png"),
    ("content-type", "text/css"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-type", "text/plain"),
    ("content-type", "text/plain;charset=utf-8"),
    ("range", "bytes=0-"),
    ("strict-transport-security", "max-age=31536000"),
    (
        "strict-transport-security",
        "max-age=31536000; includesubdomains",
    ),
    (
        "strict-transport-security",
        "max-age=31536000; includesubdomains; preload",
    ),
    ("vary", "accept-encoding"),
    ("vary", "origin"),
    ("x-content-type-options", "nosniff"),
    ("x-xss-protection", "1; mode=block"),
    (":status", "100"),
    (":status", "204"),
    (":status", "206"),
    (":status", "302"),
    (":status", "400"),
    (":status", "403"),
    (":status", "421"),
    (":status", "425"),
    (":status", "500"),
    ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"),
    ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"),
    ("access-control-allow-methods", "options"),
    ("access-control-expose-headers", "content-length"),
    ("access-control-request-headers", "content-type"),
    ("access-control-request-method", "get"),
    ("access-control-request-method", "post"),
    ("alt-svc", "clear"),
    ("authorization", ""),
    (
        "content-security-policy",
        "script-src 'none'; object-src 'none'; base-uri 'none'",
    ),
    ("early-data", "1"),
    ("expect-ct", ""),
    ("forwarded", ""),
    ("if-range", ""),
    ("origin", ""),
    ("purpose", "prefetch"),
    ("server", ""),
    ("timing-allow-origin", "*"),
    ("upgrade-insecure-requests", "1"),
    ("user-agent", ""),
    ("x-forwarded-for", ""),
    ("x-frame-options", "deny"),
    ("x-frame-options", "sameorigin"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_each_entry() {
        for (index, (name, value)) in ENTRIES.iter().enumerate() {
            let found = find(name.as_bytes(), value.as_bytes());
            assert_eq!(found, Match::Whole(index as u64), "{name}: {value}");
            assert_eq!(get(index as u64), Some((*name, *value)));
        }
        assert_eq!(get(99), None);
        assert_eq!(get(u64::MAX), None);
    }

    #[test]
    fn finds_the_first_entry_of_a_name() {
        assert_eq!(find(b":method", b"PATCH"), Match::Name(15));
        assert_eq!(find(b"x-frame-options", b"no"), Match::Name(97));
        assert_eq!(find(b"x-frame-option", b"deny"), Match::None);
        assert_eq!(find(b"", b""), Match::None);
        assert_eq!(find(b"e", b""), Match::None);
        assert_eq!(find(b"te", b"trailers"), Match::None);
        assert_eq!(find(&[b'x'; 33], b""), Match::None);
        assert_eq!(find(&[b'x'; 3000], b""), Match::None);
    }
}
