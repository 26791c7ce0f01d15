//! The state of a file on disk.

use std::fs::Metadata;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderValue;

/// Identifies a file and the state of its content.
///
/// Two equal versions stand for the same content, unless the content changed within
/// [`SETTLED_AFTER`] of its modification time: systems before Linux 6.13 count time in ticks of up
/// to 10 ms, and a change within the same tick leaves the time unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Version {
    /// Device and inode. Zero on systems without such numbers.
    identity: (u64, u64),
    len: u64,
    modified: Option<SystemTime>,
    /// Seconds and nanoseconds of the last change of the inode. It reveals a write after which the
    /// modification time was set back.
    changed: (i64, i64),
}

impl Version {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let (identity, changed) = numbers(metadata);
        Self {
            identity,
            len: metadata.len(),
            modified: metadata.modified().ok(),
            changed,
        }
    }

    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    pub(crate) const fn modified(&self) -> Option<SystemTime> {
        self.modified
    }

    pub(crate) const fn device(&self) -> u64 {
        self.identity.0
    }

    /// Returns true if both identify the same folder or file, with any content.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Returns true if the content is that of `other`. Renaming or removing an open file changes
    /// its inode but not its content.
    pub(crate) fn has_content_of(&self, other: &Self) -> bool {
        (self.identity, self.len, self.modified) == (other.identity, other.len, other.modified)
    }

    /// Returns the time to wait until the content can be distinguished from that of a later change.
    /// Zero if it can be distinguished now.
    pub(crate) fn unsettled_for(&self, now: SystemTime) -> Duration {
        let Some(modified) = self.modified else {
            return Duration::ZERO;
        };
        match now.duration_since(modified) {
            Ok(age) => SETTLED_AFTER.saturating_sub(age),
            // A time in the future was set on purpose, unless two clocks differ by a tick.
            Err(ahead) if ahead.duration() < SETTLED_AFTER => SETTLED_AFTER,
            Err(_) => Duration::ZERO,
        }
    }

    /// Returns a strong entity tag, made from modification time, length and the suffix of the coding, or
    /// `None` for times before 1970.
    pub(crate) fn entity_tag(&self, suffix: &str) -> Option<HeaderValue> {
        let since = self.modified?.duration_since(UNIX_EPOCH).ok()?;
        let (seconds, nanos, len) = (since.as_secs(), since.subsec_nanos(), self.len);
        HeaderValue::try_from(format!("\"{seconds:x}.{nanos:08x}-{len:x}{suffix}\"")).ok()
    }

    /// Returns the modification time in whole seconds, the precision of HTTP dates. For a time in the
    /// future, this is `now`, because `Last-Modified` must not be later than `Date` (RFC 9110
    /// §8.8.2.1).
    pub(crate) fn last_modified(&self, now: SystemTime) -> Option<SystemTime> {
        let modified = self.modified?.min(now);
        let since = modified.duration_since(UNIX_EPOCH).ok()?;
        Some(UNIX_EPOCH + Duration::from_secs(since.as_secs()))
    }

    /// Returns true if the modification time is later than `now`.
    pub(crate) fn is_ahead_of(&self, now: SystemTime) -> bool {
        self.modified.is_some_and(|modified| modified > now)
    }
}

#[cfg(unix)]
fn numbers(metadata: &Metadata) -> ((u64, u64), (i64, i64)) {
    use std::os::unix::fs::MetadataExt as _;
    (
        (metadata.dev(), metadata.ino()),
        (metadata.ctime(), metadata.ctime_nsec()),
    )
}

#[cfg(not(unix))]
fn numbers(_: &Metadata) -> ((u64, u64), (i64, i64)) {
    ((0, 0), (0, 0))
}

/// The time after which a change has settled: two ticks of the coarsest clock of file systems in
/// use, 100 Hz.
pub(crate) const SETTLED_AFTER: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn version(modified: SystemTime) -> Version {
        Version {
            identity: (1, 2),
            len: 3,
            modified: Some(modified),
            changed: (4, 5),
        }
    }

    #[test]
    fn content_settles_after_twenty_milliseconds() {
        let now = UNIX_EPOCH + Duration::from_secs(1000);
        let wait = |age_ms: i64| {
            let age = Duration::from_millis(age_ms.unsigned_abs());
            let modified = if age_ms < 0 { now + age } else { now - age };
            version(modified).unsettled_for(now).as_millis()
        };
        assert_eq!(wait(0), 20);
        assert_eq!(wait(15), 5);
        assert_eq!(wait(20), 0);
        assert_eq!(wait(-5), 20, "clocks may differ by a tick");
        assert_eq!(wait(-5000), 0, "a time in the future is ignored");
    }

    #[test]
    fn entity_tags_differ_by_a_nanosecond_and_by_a_byte() {
        let time = UNIX_EPOCH + Duration::from_secs(1000);
        let tag = version(time).entity_tag("");
        assert_eq!(tag, Some(HeaderValue::from_static("\"3e8.00000000-3\"")));
        assert_ne!(
            tag,
            version(time + Duration::from_nanos(1)).entity_tag(""),
            "another time"
        );
        let longer = Version {
            len: 4,
            ..version(time)
        };
        assert_ne!(tag, longer.entity_tag(""), "another length");
        assert_ne!(tag, version(time).entity_tag(".gz"), "another coding");
    }

    #[test]
    fn last_modified_is_never_in_the_future() {
        let now = UNIX_EPOCH + Duration::from_millis(1_000_700);
        let second = UNIX_EPOCH + Duration::from_secs(1000);
        for (modified, expected) in [
            (now, second),
            (now + Duration::from_secs(60), second),
            (
                second - Duration::from_millis(1),
                second - Duration::from_secs(1),
            ),
        ] {
            assert_eq!(version(modified).last_modified(now), Some(expected));
        }
    }
}
