//! The policy of a proxy, for the packets of a tunnel.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::judge::{Reason, Rejected};
use super::packet::Header;
use crate::policy::Policy;
use crate::prefix::bits;

/// Judges the destinations of packets by a [`Policy`], and remembers the latest verdicts.
///
/// Packets of protocols without ports, and later fragments, have port 0: a rule of all ports holds for them. A fragment
/// without the first one is of no use to its destination.
#[derive(Debug, Default)]
pub struct Filter {
    verdicts: Vec<Verdict>,
}

/// A remembered verdict about a destination.
#[derive(Clone, Copy, Debug)]
struct Verdict {
    address: IpAddr,
    port: u16,
    is_allowed: bool,
}

impl Filter {
    /// Judges a packet whose header is valid. `is_own` returns true for an address of the machine, which only a rule that
    /// names it allows; it is asked once for a destination of a flow.
    ///
    /// # Errors
    /// Returns the reason if the packet has to be dropped.
    pub fn judge(
        &mut self,
        policy: &Policy,
        header: &Header,
        packet: &[u8],
        is_own: impl FnOnce(IpAddr) -> bool,
    ) -> Result<(), Rejected> {
        let port = header.destination_port(packet)?.unwrap_or(0);
        let address = header.destination;
        if self.verdicts.is_empty() {
            let none = Verdict {
                address: Ipv6Addr::UNSPECIFIED.into(),
                port: 0,
                is_allowed: false,
            };
            self.verdicts = vec![none; REMEMBERED];
        }
        let verdict = &mut self.verdicts[place(address, port)];
        if (verdict.address, verdict.port) != (address, port) {
            let target = SocketAddr::from((address, port));
            let is_allowed =
                policy.judge(target).is_ok() && (policy.is_named(target) || !is_own(address));
            *verdict = Verdict {
                address,
                port,
                is_allowed,
            };
        }
        match verdict.is_allowed {
            true => Ok(()),
            false => Err(Rejected::new(Reason::Prohibited(address))),
        }
    }
}

/// Returns the place of a destination among the remembered ones.
fn place(address: IpAddr, port: u16) -> usize {
    let number = bits(address) ^ u128::from(port);
    let folded = (number ^ (number >> 64)) as u64;
    // Multiplicative hashing: the upper bits depend on all of them.
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - REMEMBERED.ilog2())) as usize
}

/// Destinations whose verdicts are remembered (limit K633). A flow needs one.
const REMEMBERED: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::icmp;

    fn judge(filter: &mut Filter, policy: &Policy, destination: &str, is_own: bool) -> bool {
        let destination: IpAddr = destination.parse().unwrap();
        let source = match destination {
            IpAddr::V4(_) => "10.0.0.2".parse().unwrap(),
            IpAddr::V6(_) => "2001:db8::2".parse().unwrap(),
        };
        let packet = icmp::echo_request(source, destination, b"").unwrap();
        let header = Header::parse(&packet).unwrap();
        filter.judge(policy, &header, &packet, |_| is_own).is_ok()
    }

    /// Attack A361.
    #[test]
    fn destinations_outside_of_the_public_internet_are_refused() {
        let (mut filter, policy) = (Filter::default(), Policy::public_only());
        for destination in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "64:ff9b::7f00:1",
            "2002:a00:1::",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
        ] {
            assert!(
                !judge(&mut filter, &policy, destination, false),
                "{destination}"
            );
        }
        for destination in ["93.184.216.34", "2606:4700::1111"] {
            assert!(
                judge(&mut filter, &policy, destination, false),
                "{destination}"
            );
            let mut other = Filter::default();
            assert!(
                !judge(&mut other, &policy, destination, true),
                "{destination} of this machine"
            );
            let named = Policy::public_only().allow(destination.parse().unwrap(), 0..=65_535);
            let mut other = Filter::default();
            assert!(
                judge(&mut other, &named, destination, true),
                "{destination} named"
            );
        }
    }

    /// Limit K633.
    #[test]
    fn verdicts_are_remembered_in_bounded_memory() {
        let (mut filter, policy) = (Filter::default(), Policy::public_only());
        let mut asked = 0;
        for number in 0..10_000_u32 {
            let destination = IpAddr::V4((0x0800_0000 + number).into());
            let packet = icmp::echo_request("10.0.0.2".parse().unwrap(), destination, b"").unwrap();
            let header = Header::parse(&packet).unwrap();
            for _ in 0..3 {
                let own = |_| {
                    asked += 1;
                    false
                };
                assert!(filter.judge(&policy, &header, &packet, own).is_ok());
            }
        }
        assert_eq!(asked, 10_000);
        assert_eq!(filter.verdicts.len(), REMEMBERED);
    }

    #[test]
    fn rules_of_ports_hold_for_protocols_with_ports() {
        let policy = Policy::public_only().deny_ports([53]);
        let mut filter = Filter::default();
        let packet = |port: u16, place: u8| {
            let mut packet = icmp::echo_request(
                "10.0.0.2".parse().unwrap(),
                "8.8.8.8".parse().unwrap(),
                &[0; 12],
            );
            let packet = packet.as_mut().unwrap();
            packet[9] = crate::ip::packet::UDP;
            packet[6] = place;
            packet[22..24].copy_from_slice(&port.to_be_bytes());
            packet[10..12].fill(0);
            let sum = !crate::ip::checksum::sum(0, &packet[..20]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            packet.clone()
        };
        for (port, place, is_allowed) in [
            (53, 0, false),
            (443, 0, true),
            (53, 0x20, false),
            (443, 0x20, true),
        ] {
            let packet = packet(port, place);
            let header = Header::parse(&packet).unwrap();
            let found = filter.judge(&policy, &header, &packet, |_| false);
            assert_eq!(found.is_ok(), is_allowed, "{port} {place}");
        }
        // Attack A368: a first fragment without its ports.
        let whole = packet(53, 0x20);
        let mut tiny = whole[..22].to_vec();
        tiny[3] = 22;
        tiny[10..12].fill(0);
        let sum = !crate::ip::checksum::sum(0, &tiny[..20]);
        tiny[10..12].copy_from_slice(&sum.to_be_bytes());
        let header = Header::parse(&tiny).unwrap();
        assert!(filter.judge(&policy, &header, &tiny, |_| false).is_err());
    }
}
