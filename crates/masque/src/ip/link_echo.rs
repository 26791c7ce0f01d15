//! Echoes between the two ends of a tunnel, which show that the link carries the packets that IPv6 needs (RFC 9484 §10.1).

use std::net::{IpAddr, Ipv6Addr};

use super::end::End;
use super::icmp;
use super::limits::SMALLEST_MTU;
use super::packet::Header;

impl End {
    /// Returns a packet of 1280 bytes that asks the other end of the link for an echo. `None` without an address of IPv6 at
    /// this end.
    pub fn request_echo_of_link(&self, number: u32) -> Option<Vec<u8>> {
        let own = self.router(false)?;
        icmp::numbered_echo_request(own, ALL_NODES, number, &[0; DATA])
    }

    /// Returns true for the whole answer to the request with this number.
    pub fn answers_echo_of_link(&self, packet: &[u8], number: u32) -> bool {
        packet.len() == SMALLEST_MTU
            && icmp::echo_reply_number(packet) == Some(number)
            && Header::parse(packet).is_ok_and(|it| Some(it.destination) == self.router(false))
    }

    /// Returns the answer of this end to a request for an echo to all nodes of the link, by which the other end measures
    /// the path (RFC 9484 §10.1).
    pub fn echo_of_link(&self, packet: &[u8]) -> Option<Vec<u8>> {
        let header = Header::parse(packet).ok()?;
        let is_asked = header.destination == ALL_NODES && icmp::is_host(header.source);
        let own = self.router(false).filter(|_| is_asked)?;
        icmp::echo_reply(packet, own)
    }
}

/// All nodes of the link.
const ALL_NODES: IpAddr = IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1));

/// Data of an echo that makes a packet of 1280 bytes.
const DATA: usize = SMALLEST_MTU - 40 - 8;

#[cfg(test)]
mod tests {
    use courser_base::Side;

    use super::*;

    fn end(side: Side, own: &str) -> End {
        End::new(side).routers(None, Some(own.parse().expect(own)))
    }

    /// MQ-ip-020.
    #[test]
    fn echo_of_1280_bytes_is_recognised_by_its_number() {
        let (client, proxy) = (
            end(Side::Client, "2001:db8::2"),
            end(Side::Server, "2001:db8::1"),
        );
        let request = client.request_echo_of_link(7).expect("an address");
        assert_eq!(request.len(), 1280);
        let reply = proxy.echo_of_link(&request).expect("an answer");
        assert!(client.answers_echo_of_link(&reply, 7));
        assert!(!client.answers_echo_of_link(&reply, 8));
        assert!(
            !proxy.answers_echo_of_link(&reply, 7),
            "it is for the other end"
        );
        assert!(!client.answers_echo_of_link(&request, 7));
        let small = icmp::numbered_echo_request(
            "2001:db8::2".parse().expect("an address"),
            ALL_NODES,
            7,
            b"small",
        );
        let reply = proxy.echo_of_link(&small.expect("one version"));
        assert!(!client.answers_echo_of_link(&reply.expect("an answer"), 7));
        assert_eq!(End::new(Side::Client).request_echo_of_link(7), None);
    }
}
