//! Telling senders of packets that were too large, for links with `mtu=N/icmp`.

use std::io;
use std::net::SocketAddr;

use courser_sim::link::{Change, DuplexSpec, LinkSpec};
use courser_sim::packet::TooBig;
use courser_udp::{Refused, TooBigSender};

/// Plays the router in front of a link.
#[derive(Debug)]
pub(crate) struct Router {
    /// `None` when no link asks for it.
    sender: Option<TooBigSender>,
    /// Messages that the system did not take.
    pub(crate) failures: u64,
}

impl Router {
    /// Opens what the links need.
    ///
    /// # Errors
    /// When a link answers and this process may not send ICMP.
    pub(crate) fn new(
        spec: &DuplexSpec,
        listener: SocketAddr,
        server: SocketAddr,
    ) -> io::Result<Self> {
        let tells_clients = answers(&spec.forward);
        let tells_server = answers(&spec.back);
        let is_needed = |is_family: fn(&SocketAddr) -> bool| {
            tells_clients && is_family(&listener) || tells_server && is_family(&server)
        };
        // A wildcard of IPv6 takes clients of IPv4 too.
        let is_dual = listener.is_ipv6() && listener.ip().is_unspecified();
        let v4 = is_needed(SocketAddr::is_ipv4) || tells_clients && is_dual;
        let v6 = is_needed(SocketAddr::is_ipv6);
        let sender = (v4 || v6).then(|| TooBigSender::open(v4, v6));
        Ok(Self {
            sender: sender.transpose()?,
            failures: 0,
        })
    }

    /// Tells the sender of a packet, who knows its ends as `source` and `destination`.
    pub(crate) fn tell(&mut self, source: SocketAddr, destination: SocketAddr, message: &TooBig) {
        let Some(sender) = &self.sender else {
            return;
        };
        let refused = Refused {
            source,
            destination,
            payload: &message.packet.payload,
        };
        self.failures += u64::from(sender.send(&refused, message.mtu).is_err());
    }
}

/// Whether a link ever tells senders anything.
fn answers(spec: &LinkSpec) -> bool {
    spec.hops().any(|hop| {
        let later = hop.steps.iter().map(|step| step.change);
        let now = hop.mtu.map(Change::Mtu);
        later
            .chain(now)
            .any(|change| matches!(change, Change::Mtu(mtu) if mtu.answers))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_that_answer_need_the_right() {
        for (spec, expected) in [
            ("20mbit,mtu=1400", false),
            ("20mbit,mtu=1400/icmp", true),
            ("20ms | mtu=1400/icmp", true),
            ("mtu=1500,mtu@5s=1400/icmp", true),
            ("mtu@5s=1400", false),
        ] {
            assert_eq!(answers(&spec.parse().expect("valid")), expected, "{spec}");
        }
    }
}
