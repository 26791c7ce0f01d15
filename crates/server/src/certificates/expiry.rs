//! Certificates that expire while they are in use.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use super::CertificateFacts;

/// Finds certificates that expire soon or have expired, each once a day.
#[derive(Debug, Default)]
pub(super) struct ExpiryWatch {
    checked: Option<SystemTime>,
    /// The certificates that were found, by their SHA-256.
    found: HashMap<[u8; 32], Found>,
}

#[derive(Clone, Copy, Debug)]
struct Found {
    at: SystemTime,
    had_expired: bool,
}

impl ExpiryWatch {
    /// Returns true if the last check is long ago, or the clock was set back.
    pub(super) fn is_due(&self, now: SystemTime) -> bool {
        let since = |checked| now.duration_since(checked).ok();
        self.checked
            .and_then(since)
            .is_none_or(|since| since >= INTERVAL)
    }

    /// Returns the certificates that expire soon or have expired, and were not found within a day. Those that had
    /// expired before the first check are found a day later, because the start of a server reports them.
    pub(super) fn check(
        &mut self,
        mut certificates: Vec<CertificateFacts>,
        now: SystemTime,
    ) -> Vec<CertificateFacts> {
        let is_first = self.checked.replace(now).is_none();
        self.found
            .retain(|hash, _| certificates.iter().any(|it| it.sha256 == *hash));
        certificates.retain(|it| {
            let has_expired = it.not_after <= now;
            if !has_expired && !it.expires_soon(now) {
                return false;
            }
            let is_known = self.found.get(&it.sha256).is_some_and(|found| {
                // After a clock was set back, the last time seems to be in the future.
                let since = now.duration_since(found.at);
                since.is_ok_and(|since| since < DAY) && found.had_expired == has_expired
            });
            if is_known {
                return false;
            }
            let found = Found {
                at: now,
                had_expired: has_expired,
            };
            self.found.insert(it.sha256, found);
            !(is_first && has_expired)
        });
        certificates
    }
}

/// Time between checks. Each parses all certificates.
const INTERVAL: Duration = Duration::from_secs(60);
/// Least time between two reports of a certificate (limit K435).
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

    /// Limit K435.
    #[test]
    fn certificate_is_found_once_a_day_and_at_its_end() {
        let begin = SystemTime::UNIX_EPOCH + 1000 * DAY;
        let mut watch = ExpiryWatch::default();
        let mut found = Vec::new();
        // It expires at an hour at which it was not found before.
        let end = 90 * 24 + 5;
        for hours in 0..94 * 24 {
            let now = begin + hours * HOUR;
            assert!(watch.is_due(now));
            let certificates = certificate(begin, end * HOUR);
            if !watch.check(certificates, now).is_empty() {
                found.push(hours);
            }
            assert!(!watch.is_due(now + Duration::from_secs(1)));
        }
        let before = (0..14).map(|day| end - 14 * 24 + day * 24);
        let after = (0..4).map(|day| end + day * 24);
        assert_eq!(found, before.chain(after).collect::<Vec<_>>());
    }

    #[test]
    fn short_certificate_is_found_in_its_last_fifth() {
        let begin = SystemTime::UNIX_EPOCH + 1000 * DAY;
        let mut watch = ExpiryWatch::default();
        let mut check = |hours| watch.check(certificate(begin, 10 * HOUR), begin + hours * HOUR);
        assert!(check(7).is_empty());
        assert_eq!(check(8).len(), 1);
        assert!(check(9).is_empty());
        assert_eq!(check(10).len(), 1, "it has expired");
    }

    #[test]
    fn first_check_finds_what_expires_soon_but_not_what_has_expired() {
        let begin = SystemTime::UNIX_EPOCH + 1000 * DAY;
        let first = |now| ExpiryWatch::default().check(certificate(begin, 4 * DAY), now);
        assert_eq!(first(begin + 90 * HOUR).len(), 1);
        assert!(first(begin + 97 * HOUR).is_empty());
    }

    #[test]
    fn jumps_of_the_clock_are_noticed() {
        let begin = SystemTime::UNIX_EPOCH + 1000 * DAY;
        let mut watch = ExpiryWatch::default();
        assert!(watch.check(certificate(begin, 4 * DAY), begin).is_empty());
        let later = begin + 90 * DAY;
        assert_eq!(watch.check(certificate(begin, 4 * DAY), later).len(), 1);
        // The clock was set back, and reaches the end again.
        assert!(watch.is_due(begin));
        assert!(watch.check(certificate(begin, 4 * DAY), begin).is_empty());
        let again = begin + 4 * DAY;
        assert_eq!(watch.check(certificate(begin, 4 * DAY), again).len(), 1);
    }

    #[test]
    fn replaced_certificates_are_forgotten() {
        let begin = SystemTime::UNIX_EPOCH + 1000 * DAY;
        let mut watch = ExpiryWatch::default();
        let now = begin + 90 * HOUR;
        assert_eq!(watch.check(certificate(begin, 4 * DAY), now).len(), 1);
        assert!(watch.check(Vec::new(), now + HOUR).is_empty());
        assert!(watch.found.is_empty());
    }
}
