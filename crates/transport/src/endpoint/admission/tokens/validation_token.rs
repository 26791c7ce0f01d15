//! The content of NEW_TOKEN tokens, and the clock for their time of issue.

use std::ops::Add;
use std::time::Duration;

use courser_base::ScopedIp;
use courser_wire::Version;

/// Maximum by which a token may appear to be issued in the future, because another server with the
/// same key issued it. A token from further ahead indicates that a clock was set back, and could
/// stay valid for years.
pub const CLOCK_SKEW: Duration = Duration::from_secs(10);

/// Seconds since the start of 1970. Unlike [`courser_base::Time`] they are comparable after a restart
/// and across machines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SystemSeconds(pub u64);

impl SystemSeconds {
    /// Returns the time from `earlier` to `self`; zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_secs(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for SystemSeconds {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.as_secs()))
    }
}

/// The content of the token in a NEW_TOKEN frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValidationToken {
    /// The IP address of the client, with its zone. The port is not included, because it will differ.
    pub ip: ScopedIp,
    /// The version of QUIC of the connection on which the token is sent (RFC 9369 §5).
    pub version: Version,
    /// The time of issue.
    pub issued: SystemSeconds,
    /// A random number that makes the token unique (RFC 9000 §8.1.3).
    pub nonce: Nonce,
}

/// A random number that distinguishes tokens.
pub type Nonce = [u8; 16];
