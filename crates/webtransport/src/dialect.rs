//! The drafts of WebTransport that ends in use speak.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A group of drafts of WebTransport over HTTP/3 that share settings and rules.
///
/// Dialects are ordered from the oldest to the newest. Streams, datagrams and capsules have the same form in all of
/// them; the negotiation and the flow control of sessions differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Dialect {
    /// Drafts 02 to 06: Chromium and Firefox.
    Draft02,
    /// Drafts 07 to 12: older releases of Safari, and libraries.
    Draft07,
    /// Drafts 13 and 14: Safari.
    Draft14,
    /// Drafts 15 and 16, with the token `webtransport-h3`.
    Draft16,
}

impl Dialect {
    /// All dialects, the oldest first.
    pub const ALL: [Self; 4] = [Self::Draft02, Self::Draft07, Self::Draft14, Self::Draft16];

    /// The newest dialect, which is always on.
    pub const NEWEST: Self = Self::Draft16;

    /// Returns the name in configurations, traces and metrics, such as `draft-02`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Draft02 => "draft-02",
            Self::Draft07 => "draft-07",
            Self::Draft14 => "draft-14",
            Self::Draft16 => "draft-16",
        }
    }

    /// Returns the setting by which an end announces the dialect (draft-ietf-webtrans-http3-16 §7.1).
    pub const fn setting(self) -> u64 {
        match self {
            Self::Draft02 => 0x2b60_3742,
            Self::Draft07 => 0xc671_706a,
            Self::Draft14 => 0x14e9_cd29,
            Self::Draft16 => 0x2c7c_f000,
        }
    }

    /// Returns the upgrade token in `:protocol` (draft-ietf-webtrans-http3-16 §3.2).
    pub const fn token(self) -> &'static str {
        match self {
            Self::Draft16 => TOKEN_H3,
            _ => TOKEN,
        }
    }

    /// Returns true if both ends must support RESET_STREAM_AT (draft-ietf-webtrans-http3-16 §3.1).
    pub(crate) const fn requires_reliable_reset(self) -> bool {
        matches!(self, Self::Draft16)
    }

    /// Returns true if both ends must send the registered setting of HTTP Datagrams (RFC 9297 §2.1.1).
    pub(crate) const fn requires_registered_datagrams(self) -> bool {
        !matches!(self, Self::Draft02)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is none of a dialect.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("`{0}` is not a dialect: allowed are draft-02, draft-07, draft-14 and draft-16")]
pub struct UnknownDialect(String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        let found = Self::ALL.into_iter().find(|dialect| dialect.name() == name);
        found.ok_or_else(|| UnknownDialect(name.to_owned()))
    }
}

/// A set of dialects. It always contains the newest one.
///
/// ```
/// use courser_webtransport::{Dialect, Dialects};
/// let dialects = Dialects::ALL.without("draft-07".parse::<Dialect>()?);
/// assert!(!dialects.contains(Dialect::Draft07));
/// assert!(dialects.without(Dialect::NEWEST).contains(Dialect::NEWEST));
/// # Ok::<(), courser_webtransport::UnknownDialect>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dialects(u8);

impl Dialects {
    /// All dialects, which is the default.
    pub const ALL: Self = Self(0b1111);

    /// The newest dialect alone.
    pub const NEWEST: Self = Self(bit(Dialect::NEWEST));

    /// Adds a dialect.
    #[must_use]
    pub const fn with(self, dialect: Dialect) -> Self {
        Self(self.0 | bit(dialect))
    }

    /// Removes a dialect, unless it is the newest one.
    #[must_use]
    pub const fn without(self, dialect: Dialect) -> Self {
        Self(self.0 & !bit(dialect) | Self::NEWEST.0)
    }

    /// Returns true if the set contains the dialect.
    pub const fn contains(self, dialect: Dialect) -> bool {
        self.0 & bit(dialect) != 0
    }

    /// Returns the dialects of the set, the oldest first.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Dialect> {
        Dialect::ALL
            .into_iter()
            .filter(move |&dialect| self.contains(dialect))
    }
}

impl Default for Dialects {
    fn default() -> Self {
        Self::ALL
    }
}

const fn bit(dialect: Dialect) -> u8 {
    1 << dialect as u8
}

/// The upgrade token of drafts before 15. Newer clients request the capsule protocol on one stream with it.
pub(crate) const TOKEN: &str = "webtransport";
/// The upgrade token since draft 15.
pub(crate) const TOKEN_H3: &str = "webtransport-h3";

#[cfg(test)]
mod tests {
    use super::*;

    /// WT-v-017.
    #[test]
    fn dialects_are_removed_by_name_but_for_the_newest() {
        let mut dialects = Dialects::default();
        for dialect in Dialect::ALL {
            assert!(dialects.contains(dialect));
            dialects = dialects.without(dialect.name().parse().expect("a name"));
        }
        assert_eq!(dialects, Dialects::NEWEST);
        assert_eq!(dialects.iter().collect::<Vec<_>>(), [Dialect::NEWEST]);
        assert!(dialects.with(Dialect::Draft02).contains(Dialect::Draft02));
        let error = "draft-03".parse::<Dialect>().expect_err("unknown");
        assert!(error.to_string().starts_with("`draft-03` is not a dialect"));
    }
}
