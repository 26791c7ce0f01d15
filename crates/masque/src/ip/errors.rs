//! The rate of ICMP errors (RFC 4443 §2.4 f, RFC 1812 §4.3.2.8).

use courser_base::Time;

use super::limits::{ICMP_BURST, ICMP_RATE};

/// Bounds the ICMP errors that a tunnel causes (limit K630).
///
/// ```
/// use courser_base::Time;
/// use courser_masque::ip::IcmpLimit;
/// let mut limit = IcmpLimit::default();
/// let sent = (0..1000).filter(|_| limit.take(Time::ZERO)).count();
/// assert_eq!(sent, 50);
/// ```
#[derive(Clone, Debug)]
pub struct IcmpLimit {
    /// Errors that may be sent, in billionths.
    left: u64,
    at: Time,
}

impl Default for IcmpLimit {
    fn default() -> Self {
        Self {
            left: u64::from(ICMP_BURST) * BILLION,
            at: Time::ZERO,
        }
    }
}

impl IcmpLimit {
    /// Returns true if an error may be sent now.
    pub fn take(&mut self, now: Time) -> bool {
        let elapsed = now.saturating_since(self.at).as_nanos();
        self.at = now.max(self.at);
        let more = u64::try_from(elapsed.saturating_mul(ICMP_RATE.into())).unwrap_or(u64::MAX);
        let most = u64::from(ICMP_BURST) * BILLION;
        self.left = self.left.saturating_add(more).min(most);
        let is_allowed = self.left >= BILLION;
        if is_allowed {
            self.left -= BILLION;
        }
        is_allowed
    }
}

const BILLION: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Limit K630, attack A367.
    #[test]
    fn errors_are_bounded_over_time() {
        let mut limit = IcmpLimit::default();
        let mut sent = 0;
        for milli in 0..10_000_u64 {
            let now = Time::ZERO + Duration::from_millis(milli);
            sent += (0..100).filter(|_| limit.take(now)).count();
        }
        assert!((1000..=1050).contains(&sent), "{sent}");
        assert!(
            !limit.take(Time::ZERO),
            "a clock that steps back gives nothing"
        );
    }
}
