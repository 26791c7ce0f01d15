//! Headers of IP packets (RFC 791, RFC 8200).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::checksum;
use super::limits::EXTENSION_HEADERS;

/// The protocol number of ICMP.
pub const ICMP: u8 = 1;
/// The protocol number of TCP.
pub const TCP: u8 = 6;
/// The protocol number of UDP.
pub const UDP: u8 = 17;
/// The protocol number of ICMPv6.
pub const ICMPV6: u8 = 58;

/// The parts of a packet's headers that routers judge.
///
/// ```
/// use courser_masque::ip::{Header, icmp, packet};
/// let ping = icmp::echo_request("192.0.2.1".parse()?, "192.0.2.2".parse()?, b"ping").ok_or("two versions")?;
/// let header = Header::parse(&ping)?;
/// assert_eq!(header.destination, "192.0.2.2".parse::<std::net::IpAddr>()?);
/// assert_eq!((header.protocol, header.payload), (packet::ICMP, 20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The source. An IPv4-mapped address stays one of IPv6.
    pub source: IpAddr,
    /// The destination.
    pub destination: IpAddr,
    /// The protocol behind all extension headers, or the first one of a later fragment.
    pub protocol: u8,
    /// The hop limit or TTL.
    pub hop_limit: u8,
    /// The place of the packet among fragments.
    pub fragment: Fragment,
    /// The offset of the bytes of the protocol, behind all headers of IP.
    pub payload: usize,
}

/// The place of a packet among fragments of a larger one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fragment {
    /// The packet is whole.
    Whole,
    /// The first fragment, with the header of the protocol.
    First,
    /// A later fragment.
    Later,
}

/// The reason why bytes are no packet that a router forwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The version is neither 4 nor 6.
    #[error("IP version {0}")]
    Version(u8),
    /// The packet is shorter than its header, or has another length than the header says.
    #[error("{found} bytes, and the header says {said}")]
    Length {
        /// Length by the header, or the smallest possible one.
        said: usize,
        /// Length of the packet.
        found: usize,
    },
    /// The header of IPv4 has a wrong checksum.
    #[error("a wrong checksum of the header")]
    Checksum,
    /// An option of IPv4 is cut.
    #[error("an invalid option")]
    Option,
    /// The source chooses the route: source route options (RFC 7126 §4.3), or a routing header with segments left (RFC
    /// 5095).
    #[error("a route of the source")]
    SourceRoute,
    /// A chain of extension headers is cut, or not in order.
    #[error("an invalid chain of extension headers")]
    Chain,
    /// A chain has more than 8 extension headers.
    #[error("more than {EXTENSION_HEADERS} extension headers")]
    LongChain,
    /// A fragment ends behind the longest packet, or is too short for the header of its protocol.
    #[error("an invalid fragment")]
    Fragment,
}

impl Header {
    /// Reads the headers of a packet, which has to be whole and alone.
    ///
    /// # Errors
    /// Returns an error if no router may forward the packet.
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        match packet.first().map(|byte| byte >> 4) {
            Some(4) => ipv4(packet),
            Some(6) => ipv6(packet),
            version => Err(Malformed::Version(version.unwrap_or(0))),
        }
    }

    /// Returns the destination port. `None` for protocols without ports, and later fragments.
    ///
    /// # Errors
    /// Returns an error if the packet is too short for its ports (RFC 1858).
    pub fn destination_port(&self, packet: &[u8]) -> Result<Option<u16>, Malformed> {
        if self.fragment == Fragment::Later || !HAVE_PORTS.contains(&self.protocol) {
            return Ok(None);
        }
        let ports = packet.get(self.payload + 2..self.payload + 4);
        let ports = ports.and_then(|bytes| <[u8; 2]>::try_from(bytes).ok());
        ports
            .map(|bytes| Some(u16::from_be_bytes(bytes)))
            .ok_or(Malformed::Fragment)
    }

    /// Returns true for a packet of ICMP or ICMPv6, of the version of its addresses.
    pub const fn is_icmp(&self) -> bool {
        is_icmp(self.source, self.protocol)
    }
}

/// Lowers the hop limit of a packet with a valid header, and updates the checksum of IPv4 (RFC 1624).
pub fn lower_hop_limit(packet: &mut [u8]) {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) if packet.len() >= IPV4_HEADER => {
            let before = [packet[8], packet[9]];
            packet[8] = packet[8].saturating_sub(1);
            let sum = [packet[10], packet[11]];
            let sum = checksum::updated(sum, before, [packet[8], packet[9]]);
            packet[10..12].copy_from_slice(&sum);
        }
        Some(6) if packet.len() >= IPV6_HEADER => packet[7] = packet[7].saturating_sub(1),
        _ => {}
    }
}

fn ipv4(packet: &[u8]) -> Result<Header, Malformed> {
    let length = |said| Malformed::Length {
        said,
        found: packet.len(),
    };
    let Some((fixed, _)) = packet.split_first_chunk::<IPV4_HEADER>() else {
        return Err(length(IPV4_HEADER));
    };
    let header_len = usize::from(fixed[0] & 0xf) * 4;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if total != packet.len() || header_len < IPV4_HEADER || header_len > total {
        return Err(length(total.max(header_len)));
    }
    if checksum::sum(0, &packet[..header_len]) != 0xffff {
        return Err(Malformed::Checksum);
    }
    check_options(&packet[IPV4_HEADER..header_len])?;
    let place = u16::from_be_bytes([fixed[6], fixed[7]]);
    let begin = usize::from(place & 0x1fff) * 8;
    let fragment = fragment(begin, place & 0x2000 != 0, total - header_len)?;
    let [
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        hop_limit,
        protocol,
        _,
        _,
        s0,
        s1,
        s2,
        s3,
        d0,
        d1,
        d2,
        d3,
    ] = *fixed;
    Ok(Header {
        source: Ipv4Addr::new(s0, s1, s2, s3).into(),
        destination: Ipv4Addr::new(d0, d1, d2, d3).into(),
        protocol,
        hop_limit,
        fragment,
        payload: header_len,
    })
}

/// Checks that no option is cut or chooses a route (RFC 791 §3.1).
fn check_options(mut options: &[u8]) -> Result<(), Malformed> {
    while let Some((&kind, rest)) = options.split_first() {
        match kind {
            0 => return Ok(()),
            1 => options = rest,
            131 | 137 => return Err(Malformed::SourceRoute),
            _ => {
                let len = rest.first().copied().map_or(0, usize::from);
                options = match len {
                    2.. => options.get(len..).ok_or(Malformed::Option)?,
                    _ => return Err(Malformed::Option),
                };
            }
        }
    }
    Ok(())
}

fn ipv6(packet: &[u8]) -> Result<Header, Malformed> {
    let length = |said| Malformed::Length {
        said,
        found: packet.len(),
    };
    let Some((fixed, _)) = packet.split_first_chunk::<IPV6_HEADER>() else {
        return Err(length(IPV6_HEADER));
    };
    // A jumbogram has a length of 0, and fits into no tunnel.
    let total = IPV6_HEADER + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    if total != packet.len() {
        return Err(length(total));
    }
    let address = |at: usize| {
        let octets = <[u8; 16]>::try_from(&fixed[at..at + 16]);
        Ipv6Addr::from(octets.unwrap_or_default())
    };
    let chain = Chain::walk(packet, fixed[6])?;
    Ok(Header {
        source: address(8).into(),
        destination: address(24).into(),
        protocol: chain.protocol,
        hop_limit: fixed[7],
        fragment: chain.fragment,
        payload: chain.end,
    })
}

/// A chain of extension headers (RFC 8200 §4).
struct Chain {
    protocol: u8,
    fragment: Fragment,
    /// The offset behind the chain.
    end: usize,
}

impl Chain {
    fn walk(packet: &[u8], first: u8) -> Result<Self, Malformed> {
        let mut chain = Self {
            protocol: first,
            fragment: Fragment::Whole,
            end: IPV6_HEADER,
        };
        let mut count = 0;
        while is_extension(chain.protocol) {
            if count == EXTENSION_HEADERS {
                return Err(Malformed::LongChain);
            }
            if chain.protocol == HOP_BY_HOP && count > 0 {
                return Err(Malformed::Chain);
            }
            count += 1;
            chain.step(packet)?;
            if chain.fragment == Fragment::Later {
                break; // What follows is no header.
            }
        }
        Ok(chain)
    }

    /// Steps over one header.
    fn step(&mut self, packet: &[u8]) -> Result<(), Malformed> {
        let rest = packet.get(self.end..).unwrap_or_default();
        let Some((header, _)) = rest.split_first_chunk::<8>() else {
            return Err(Malformed::Chain);
        };
        let units = usize::from(header[1]);
        let len = match self.protocol {
            FRAGMENT => 8,
            AUTHENTICATION => (units + 2) * 4,
            _ => (units + 1) * 8,
        };
        if len < 8 || len > rest.len() {
            return Err(Malformed::Chain);
        }
        match self.protocol {
            // The segments that are left.
            ROUTING if header[3] != 0 => return Err(Malformed::SourceRoute),
            FRAGMENT => {
                let place = u16::from_be_bytes([header[2], header[3]]);
                let begin = usize::from(place & 0xfff8);
                self.fragment = fragment(begin, place & 1 != 0, rest.len() - len)?;
            }
            _ => {}
        }
        self.protocol = header[0];
        self.end += len;
        Ok(())
    }
}

/// Returns the place of a fragment that begins at an offset.
const fn fragment(begin: usize, has_more: bool, len: usize) -> Result<Fragment, Malformed> {
    match (begin, has_more) {
        (0, false) => Ok(Fragment::Whole),
        (0, true) => Ok(Fragment::First),
        _ if begin + len > 65_535 => Err(Malformed::Fragment),
        _ => Ok(Fragment::Later),
    }
}

/// Returns true for the protocol of ICMP of the version of an address.
pub(crate) const fn is_icmp(address: IpAddr, protocol: u8) -> bool {
    match address {
        IpAddr::V4(_) => protocol == ICMP,
        IpAddr::V6(_) => protocol == ICMPV6,
    }
}

/// Returns true for the protocol number of an extension header of IPv6 that has a length (RFC 8200 §4, and the registry
/// of IPv6 extension headers). What follows an Encapsulating Security Payload cannot be read, so that it counts as a protocol.
pub(crate) const fn is_extension(protocol: u8) -> bool {
    matches!(
        protocol,
        HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | 60 | 135 | 139 | 140
    )
}

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;

/// Protocols that begin with a source and a destination port: TCP, UDP, DCCP, SCTP, UDP-Lite.
const HAVE_PORTS: [u8; 5] = [TCP, UDP, 33, 132, 136];

/// Bytes of a header of IPv4 without options.
pub(crate) const IPV4_HEADER: usize = 20;
/// Bytes of a header of IPv6.
pub(crate) const IPV6_HEADER: usize = 40;

#[cfg(test)]
mod tests;
