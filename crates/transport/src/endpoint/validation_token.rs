//! Tokens from NEW_TOKEN: their content, and the clock that dates them.

use std::net::IpAddr;
use std::ops::Add;
use std::time::Duration;

/// How long a token from NEW_TOKEN is good (limit K23).
pub const VALIDATION_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// A token may seem to come from the future by this much, because another server with the same
/// key issued it. One from further ahead shows that a clock was set back, and could live for
/// years.
pub const CLOCK_SKEW: Duration = Duration::from_secs(10);

/// Seconds since the start of 1970, which unlike [`courser_base::Time`] mean the same after a
/// restart and on other machines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SystemSeconds(pub u64);

impl SystemSeconds {
    /// The time from `earlier` to `self`; zero when `earlier` is later.
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

/// The content of a token that goes into a NEW_TOKEN frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValidationToken {
    /// Where the client is. Its port is another one next time.
    pub ip: IpAddr,
    /// When it was made.
    pub issued: SystemSeconds,
    /// Makes it the only one of its kind (RFC 9000 §8.1.3).
    pub nonce: Nonce,
}

/// The number that no other token has.
pub type Nonce = [u8; 16];
