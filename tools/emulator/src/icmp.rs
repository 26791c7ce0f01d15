//! Sends ICMP Packet Too Big messages, for links with `mtu=N/icmp`.

use std::io;
use std::net::SocketAddr;

use courser_link::{Change, DuplexSpec, LinkSpec, TooBig};
use courser_udp::{Refused, TooBigSender};

/// The router in front of a link, which reports packets that are too large for it.
#[derive(Debug)]
pub(crate) struct Router {
    /// The socket for ICMP; `None` when no link needs it.
    sender: Option<TooBigSender>,
    /// Number of messages that could not be sent.
    pub(crate) failures: u64,
}

impl Router {
    /// Opens a socket for ICMP if a link needs it.
    ///
    /// # Errors
    /// Returns an error if a link reports packets that are too large, but this process may not send ICMP.
    pub(crate) fn new(
        spec: &DuplexSpec,
        listener: SocketAddr,
        server: SocketAddr,
    ) -> io::Result<Self> {
        let reports_to_clients = reports_mtu(&spec.forward);
        let reports_to_server = reports_mtu(&spec.back);
        let is_needed = |is_family: fn(&SocketAddr) -> bool| {
            reports_to_clients && is_family(&listener) || reports_to_server && is_family(&server)
        };
        // A socket on the IPv6 wildcard address also serves IPv4 clients.
        let is_dual = listener.is_ipv6() && listener.ip().is_unspecified();
        let v4 = is_needed(SocketAddr::is_ipv4) || reports_to_clients && is_dual;
        let v6 = is_needed(SocketAddr::is_ipv6);
        let sender = (v4 || v6).then(|| TooBigSender::open(v4, v6));
        Ok(Self {
            sender: sender.transpose()?,
            failures: 0,
        })
    }

    /// Reports to the sender of a packet that it was too large. `source` and `destination` are the
    /// addresses that the sender uses.
    pub(crate) fn report_too_big(
        &mut self,
        source: SocketAddr,
        destination: SocketAddr,
        message: &TooBig,
    ) {
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

/// Returns true if a link ever reports packets that are too large.
fn reports_mtu(spec: &LinkSpec) -> bool {
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
    fn only_links_that_report_their_mtu_need_the_right() {
        for (spec, expected) in [
            ("20mbit,mtu=1400", false),
            ("20mbit,mtu=1400/icmp", true),
            ("20ms | mtu=1400/icmp", true),
            ("mtu=1500,mtu@5s=1400/icmp", true),
            ("mtu@5s=1400", false),
        ] {
            assert_eq!(
                reports_mtu(&spec.parse().expect("valid")),
                expected,
                "{spec}"
            );
        }
    }
}
