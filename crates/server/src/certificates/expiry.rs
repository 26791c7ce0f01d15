//! Certificates that expire while they are in use.

use std::time::{Duration, SystemTime};

use super::CertificateFacts;

/// Detects certificates that will expire soon, and those that have expired. Each is found once.
#[derive(Debug, Default)]
pub(super) struct ExpiryWatch {
    checked: Option<SystemTime>,
}

impl ExpiryWatch {
    /// Returns true if the last check is long ago, or the clock was set back.
    pub(super) fn is_due(&self, now: SystemTime) -> bool {
        let since = |checked| now.duration_since(checked).ok();
        self.checked
            .and_then(since)
            .is_none_or(|since| since >= INTERVAL)
    }

    /// Returns the certificates that have come close to their end since the last check, or reached it. Those that
    /// had expired before the first check are not among them, because the start of a server reports them.
    pub(super) fn check(
        &mut self,
        certificates: Vec<CertificateFacts>,
        now: SystemTime,
    ) -> Vec<CertificateFacts> {
        let before = self.checked.replace(now);
        let mut certificates = certificates;
        certificates.retain(|it| {
            let is_new = |time: SystemTime| before.is_none_or(|before| before < time);
            match it.not_after <= now {
                true => before.is_some() && is_new(it.not_after),
                false => warning_of(it) <= now && is_new(warning_of(it)),
            }
        });
        certificates
    }
}

/// Returns the time from which a certificate expires soon: a day before its end, or later if its whole validity is
/// short. ACME has replaced a certificate by then, unless it fails.
fn warning_of(certificate: &CertificateFacts) -> SystemTime {
    let end = certificate.not_after;
    let validity = end.duration_since(certificate.not_before);
    let margin = DAY.min(validity.unwrap_or_default() / 4);
    end.checked_sub(margin).unwrap_or(end)
}

/// Time between checks. Each parses all certificates.
const INTERVAL: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(60 * 60);

    fn certificate(not_before: SystemTime, validity: Duration) -> Vec<CertificateFacts> {
        vec![CertificateFacts {
            spki_sha256: [0; 32],
            sha256: [0; 32],
            not_before,
            not_after: not_before + validity,
            names: Vec::new(),
            chain_bytes: 0,
            compressed_chain_bytes: None,
        }]
    }

    #[test]
    fn certificate_is_found_a_day_before_its_end_and_at_its_end() {
        let begin = SystemTime::UNIX_EPOCH + 1000 * DAY;
        let mut watch = ExpiryWatch::default();
        let mut found = Vec::new();
        for hours in 0..=100 {
            let now = begin + hours * HOUR;
            assert!(watch.is_due(now));
            if !watch.check(certificate(begin, 4 * DAY), now).is_empty() {
                found.push(hours);
            }
            assert!(!watch.is_due(now + Duration::from_secs(1)));
        }
        assert_eq!(found, [72, 96]);
    }

    #[test]
    fn short_certificate_is_found_in_its_last_quarter() {
        let begin = SystemTime::UNIX_EPOCH + 1000 * DAY;
        let mut watch = ExpiryWatch::default();
        let mut check = |hours| watch.check(certificate(begin, 8 * HOUR), begin + hours * HOUR);
        assert!(check(5).is_empty());
        assert_eq!(check(6).len(), 1);
        assert!(check(7).is_empty());
    }

    #[test]
    fn first_check_finds_what_expires_soon_but_not_what_has_expired() {
        let begin = SystemTime::UNIX_EPOCH + 1000 * DAY;
        let first = |now| ExpiryWatch::default().check(certificate(begin, 4 * DAY), now);
        assert_eq!(first(begin + 90 * HOUR).len(), 1);
        assert!(first(begin + 97 * HOUR).is_empty());
    }

    #[test]
    fn jump_of_the_clock_over_the_end_is_found() {
        let begin = SystemTime::UNIX_EPOCH + 1000 * DAY;
        let mut watch = ExpiryWatch::default();
        assert!(watch.check(certificate(begin, 4 * DAY), begin).is_empty());
        let later = begin + 90 * DAY;
        assert_eq!(watch.check(certificate(begin, 4 * DAY), later).len(), 1);
        // The clock was set back, and reaches the end again.
        assert!(watch.is_due(begin));
        assert!(watch.check(certificate(begin, 4 * DAY), begin).is_empty());
    }
}
