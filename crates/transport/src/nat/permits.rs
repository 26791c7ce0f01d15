//! Permits for probes: whatever peers ask for, few packets go to addresses that nobody has validated. Limit K285.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use courser_base::Time;

/// The permits of a connection.
#[derive(Debug, Default)]
pub(super) struct ConnectionPermits {
    /// The times of the last probes, the oldest first.
    sent: VecDeque<Time>,
}

impl ConnectionPermits {
    /// Returns the time until which no probe is permitted, or `None` if one is permitted now.
    pub(super) fn wait(&self, now: Time) -> Option<Time> {
        let oldest = self
            .sent
            .front()
            .filter(|_| self.sent.len() >= PER_MINUTE)?;
        let until = *oldest + MINUTE;
        (until > now).then_some(until)
    }

    /// Counts a probe.
    pub(super) fn take(&mut self, now: Time) {
        if self.sent.len() >= PER_MINUTE {
            self.sent.pop_front();
        }
        self.sent.push_back(now);
    }
}

/// The permits of an endpoint, for all its connections together and for each network.
#[derive(Debug, Default)]
pub(crate) struct EndpointPermits {
    /// The probes of the last second, the oldest first.
    sent: VecDeque<(Time, IpAddr)>,
}

impl EndpointPermits {
    /// Takes a permit for a probe. Returns false if there is none now.
    pub(crate) fn take(&mut self, now: Time, target: SocketAddr) -> bool {
        while let Some((at, _)) = self.sent.front()
            && *at + SECOND <= now
        {
            self.sent.pop_front();
        }
        let network = network_of(target.ip());
        let to_network = self.sent.iter().filter(|(_, it)| *it == network);
        if self.sent.len() >= PER_SECOND || to_network.count() >= PER_NETWORK {
            return false;
        }
        self.sent.push_back((now, network));
        true
    }
}

/// Returns the network of an address: /24 or /48.
fn network_of(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => std::net::Ipv4Addr::from_bits(ip.to_bits() & !0xff).into(),
        IpAddr::V6(ip) => std::net::Ipv6Addr::from_bits(ip.to_bits() >> 80 << 80).into(),
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

/// Probes of a connection in any minute: one full round.
const PER_MINUTE: usize = 72;

/// Probes of an endpoint in any second.
const PER_SECOND: usize = 100;

/// Probes of an endpoint to one network in any second.
const PER_NETWORK: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn connection_sends_72_probes_in_any_minute() {
        let mut permits = ConnectionPermits::default();
        let mut sent: Vec<u64> = Vec::new();
        for millis in (0..200_000).step_by(100) {
            if permits.wait(at(millis)).is_none() {
                permits.take(at(millis));
                sent.push(millis);
            }
        }
        for begin in &sent {
            let within = sent
                .iter()
                .filter(|it| (*begin..begin + 60_000).contains(it));
            assert!(within.count() <= 72, "from {begin} ms");
        }
        assert!(sent.len() > 200);
    }

    #[test]
    fn endpoint_sends_100_probes_in_a_second_and_20_to_a_network() {
        let mut permits = EndpointPermits::default();
        let address = |network, host| SocketAddr::from(([198, 51, network, host], 5000));
        let to_one = (0..100).filter(|host| permits.take(at(0), address(1, *host)));
        assert_eq!(to_one.count(), 20);
        let to_many = (2..200).filter(|network| permits.take(at(10), address(*network, 1)));
        assert_eq!(to_many.count(), 80);
        assert!(!permits.take(at(999), address(250, 1)));
        assert!(permits.take(at(1000), address(250, 1)));
        assert!(permits.sent.len() <= 100);
    }
}
