//! Wrong credentials of clients, which cost the proxy the time of a comparison.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use courser::masque::Client;
use courser_base::Mutex;

/// Counts the requests with wrong credentials of each address, or of each IPv6 network of 64 bits.
#[derive(Debug, Default)]
pub(super) struct Attempts(Mutex<HashMap<Client, Failed>>);

#[derive(Clone, Copy, Debug)]
struct Failed {
    count: u32,
    since: Instant,
}

impl Attempts {
    /// Returns the time until the next attempt of an address is checked, if there were too many.
    pub(super) fn wait(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let failed = *self.0.lock().get(&Client::at(address))?;
        let until = failed.since + PERIOD;
        (failed.count >= MOST && until > now).then(|| until - now)
    }

    /// Counts wrong credentials.
    pub(super) fn on_wrong(&self, address: IpAddr, now: Instant) {
        let mut all = self.0.lock();
        let is_recent = |failed: &Failed| failed.since + PERIOD > now;
        if all.len() >= ADDRESSES {
            all.retain(|_, failed| is_recent(failed));
        }
        // Without room, an attacker with that many addresses is not slowed down, and others are not harmed.
        if all.len() >= ADDRESSES && !all.contains_key(&Client::at(address)) {
            return;
        }
        let fresh = Failed {
            count: 0,
            since: now,
        };
        let failed = all.entry(Client::at(address)).or_insert(fresh);
        if !is_recent(failed) {
            *failed = fresh;
        }
        failed.count += 1;
    }
}

/// Wrong credentials of an address in a period that are checked (limit K651).
const MOST: u32 = 20;
/// Length of the period (limit K651).
const PERIOD: Duration = Duration::from_secs(60);
/// Addresses whose attempts are counted (limit K651).
const ADDRESSES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    /// Limit K651, attack A378.
    #[test]
    fn wrong_credentials_of_an_address_are_bounded() {
        let (attempts, begin) = (Attempts::default(), Instant::now());
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        for _ in 0..MOST {
            assert_eq!(attempts.wait(address("192.0.2.1"), begin), None);
            attempts.on_wrong(address("192.0.2.1"), begin);
            attempts.on_wrong(address("2001:db8::1"), begin);
        }
        let wait = |text, now| attempts.wait(address(text), now);
        assert_eq!(wait("192.0.2.1", begin), Some(PERIOD));
        assert_eq!(wait("192.0.2.2", begin), None);
        assert_eq!(wait("2001:db8::2", begin), Some(PERIOD));
        assert_eq!(wait("192.0.2.1", begin + PERIOD), None);
        attempts.on_wrong(address("192.0.2.1"), begin + PERIOD);
        assert_eq!(wait("192.0.2.1", begin + PERIOD), None);
    }

    #[test]
    fn addresses_that_are_counted_are_bounded() {
        let (attempts, begin) = (Attempts::default(), Instant::now());
        for number in 0..10_000_u32 {
            attempts.on_wrong(IpAddr::V4(number.into()), begin);
        }
        assert_eq!(attempts.0.lock().len(), ADDRESSES);
        attempts.on_wrong(IpAddr::V4(20_000.into()), begin + PERIOD);
        assert_eq!(attempts.0.lock().len(), 1);
    }
}
