//! Warnings of certificates that expire while the server runs.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use courser::server::CertificateFacts;
use courser_units::rfc3339;

/// Warns of each certificate that has expired or expires soon, once a day.
pub(super) async fn watch(certificates: impl Fn() -> Vec<CertificateFacts>, warn: impl Fn(&str)) {
    let mut expiry = Expiry::new(&certificates(), SystemTime::now());
    let mut interval = tokio::time::interval(CHECK_INTERVAL);
    loop {
        interval.tick().await;
        let due = expiry.due(&certificates(), SystemTime::now());
        due.iter().for_each(|text| warn(text));
    }
}

/// The times of the last warnings.
#[derive(Debug)]
struct Expiry {
    /// By the SHA-256 of the certificate.
    warned: HashMap<[u8; 32], SystemTime>,
}

impl Expiry {
    /// Starts at a time at which another message has described the expired certificates.
    fn new(certificates: &[CertificateFacts], now: SystemTime) -> Self {
        let expired = certificates.iter().filter(|it| it.not_after <= now);
        Self {
            warned: expired.map(|it| (it.sha256, now)).collect(),
        }
    }

    /// Returns the warnings that are due.
    fn due(&mut self, certificates: &[CertificateFacts], now: SystemTime) -> Vec<String> {
        self.warned
            .retain(|hash, _| certificates.iter().any(|it| it.sha256 == *hash));
        let mut due = Vec::new();
        for facts in certificates.iter().filter(|it| it.expires_soon(now)) {
            let last = self.warned.get(&facts.sha256);
            // After a clock was set back, the last warning seems to be in the future.
            let is_recent = last.is_some_and(|last| {
                now.duration_since(*last)
                    .is_ok_and(|since| since < WARN_AGAIN)
            });
            if !is_recent {
                self.warned.insert(facts.sha256, now);
                due.push(warning(facts, now));
            }
        }
        due
    }
}

fn warning(facts: &CertificateFacts, now: SystemTime) -> String {
    let (names, at) = (facts.names.join(", "), rfc3339(facts.not_after));
    match facts.not_after.duration_since(now) {
        Ok(left) if !left.is_zero() => format!(
            "the certificate for {names} expires in {}, at {at}, and was not renewed",
            days(left)
        ),
        _ => format!("the certificate for {names} expired at {at}, and clients refuse it"),
    }
}

fn days(left: Duration) -> String {
    let hours = left.as_secs() / 3600;
    match hours {
        0 => "less than an hour".to_owned(),
        1..48 => format!("{hours} h"),
        _ => format!("{} days", hours / 24),
    }
}

/// Interval between checks, after which an expiry or a clock that was set is noticed.
const CHECK_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Least time between two warnings of one certificate (limit K435), less the length of a check.
const WARN_AGAIN: Duration = Duration::from_secs(24 * 60 * 60 - 60);

#[cfg(test)]
mod tests {
    use courser::Identity;
    use courser::server::Certificates;

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// Returns a certificate that is valid for 90 days from `begin`.
    fn facts(begin: SystemTime) -> CertificateFacts {
        let identity = Identity::self_signed(["a.test"]).expect("random numbers");
        let certificates = Certificates::try_from(identity).expect("valid");
        let mut facts = certificates.facts().expect("one");
        facts.not_before = begin;
        facts.not_after = begin + 90 * DAY;
        facts
    }

    /// Limit K435.
    #[test]
    fn certificates_that_expire_are_described_once_a_day() {
        let begin = SystemTime::UNIX_EPOCH + 20_000 * DAY;
        let certificates = [facts(begin), facts(begin + 60 * DAY)];
        let mut expiry = Expiry::new(&certificates, begin);
        let mut warnings = Vec::new();
        for hour in 0..100 * 24 {
            let now = begin + hour * DAY / 24;
            let due = expiry.due(&certificates, now);
            warnings.extend(due.into_iter().map(|text| (hour / 24, text)));
        }
        let days: Vec<u32> = warnings.iter().map(|it| it.0).collect();
        assert_eq!(days, (76..100).collect::<Vec<_>>());
        assert!(
            warnings[0].1.contains("expires in 14 days"),
            "{warnings:#?}"
        );
        assert!(warnings[13].1.contains("expires in 24 h"), "{warnings:#?}");
        assert!(warnings[14].1.contains("expired at"), "{warnings:#?}");
        let renewed = [facts(begin + 95 * DAY)];
        assert!(expiry.due(&renewed, begin + 100 * DAY).is_empty());
    }

    #[test]
    fn expired_certificate_is_described_again_after_a_day() {
        let begin = SystemTime::UNIX_EPOCH + 20_000 * DAY;
        let certificates = [facts(begin)];
        let now = begin + 91 * DAY;
        let mut expiry = Expiry::new(&certificates, now);
        assert!(
            expiry.due(&certificates, now).is_empty(),
            "said at the start"
        );
        assert!(expiry.due(&certificates, now + DAY / 2).is_empty());
        assert_eq!(expiry.due(&certificates, now + DAY).len(), 1);
        let before = now - 2 * DAY;
        assert_eq!(
            expiry.due(&certificates, before).len(),
            1,
            "the clock was set back"
        );
    }
}
