//! ICMP and ICMPv6: errors about packets, and echoes (RFC 792, RFC 4443).

use std::net::IpAddr;

use super::checksum;
use super::limits::SMALLEST_MTU;
use super::packet::{Fragment, Header, ICMP, ICMPV6, IPV4_HEADER, IPV6_HEADER};

/// The reason of an ICMP error about a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Error {
    /// There is no route to the destination.
    NoRoute,
    /// The destination is prohibited by a policy.
    Prohibited,
    /// The source address may not be used.
    Source,
    /// The hop limit is used up.
    TimeExceeded,
    /// The packet is longer than the next link carries.
    TooBig {
        /// The longest packet, in bytes.
        mtu: usize,
    },
}

/// Returns the ICMP error about a packet, from the address of a router.
///
/// Returns `None` where no error may be sent (RFC 1122 §3.2.2, RFC 4443 §2.4): about ICMP errors, later fragments,
/// packets to groups or from something other than one host. An IPv6 link carries 1280 bytes, so that no smaller MTU is
/// reported for it.
///
/// ```
/// use courser_masque::ip::{Header, icmp};
/// let ping = icmp::echo_request("192.0.2.1".parse()?, "192.0.2.2".parse()?, b"ping").ok_or("two versions")?;
/// let error = icmp::error(icmp::Error::NoRoute, "10.0.0.1".parse()?, &ping).ok_or("no error")?;
/// let header = Header::parse(&error)?;
/// assert_eq!(header.destination, "192.0.2.1".parse::<std::net::IpAddr>()?);
/// assert_eq!(icmp::error(icmp::Error::NoRoute, "10.0.0.1".parse()?, &error), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn error(error: Error, router: IpAddr, invoking: &[u8]) -> Option<Vec<u8>> {
    let about = Header::parse(invoking).ok()?;
    let is_too_big = matches!(error, Error::TooBig { .. });
    if router.is_ipv4() != about.source.is_ipv4() || !is_host(about.source) {
        return None;
    }
    // Groups learn about the MTU of IPv6 only (RFC 4443 §2.4).
    let is_allowed = is_host(about.destination) || (is_too_big && !router.is_ipv4());
    if !is_allowed || about.fragment == Fragment::Later || is_error(&about, invoking) {
        return None;
    }
    let (kind, code, value) = match router {
        IpAddr::V4(_) => numbers_v4(error),
        IpAddr::V6(_) => numbers_v6(error)?,
    };
    let most = match router {
        IpAddr::V4(_) => LONGEST_V4 - IPV4_HEADER - MESSAGE_HEADER,
        IpAddr::V6(_) => SMALLEST_MTU - IPV6_HEADER - MESSAGE_HEADER,
    };
    let quoted = &invoking[..invoking.len().min(most)];
    message(router, about.source, [kind, code], value, quoted)
}

/// Returns a request for an echo. `None` for addresses of two versions, or too many bytes.
pub fn echo_request(source: IpAddr, destination: IpAddr, data: &[u8]) -> Option<Vec<u8>> {
    numbered_echo_request(source, destination, 0, data)
}

/// Returns a request for an echo whose identifier and sequence number are `number`.
pub(crate) fn numbered_echo_request(
    source: IpAddr,
    destination: IpAddr,
    number: u32,
    data: &[u8],
) -> Option<Vec<u8>> {
    let kind = match source {
        IpAddr::V4(_) => ECHO_REQUEST_V4,
        IpAddr::V6(_) => ECHO_REQUEST_V6,
    };
    message(source, destination, [kind, 0], number, data)
}

/// Returns the identifier and sequence number of an answer of ICMPv6 to a request for an echo. `None` for other packets.
pub(crate) fn echo_reply_number(packet: &[u8]) -> Option<u32> {
    let header = Header::parse(packet).ok()?;
    let fixed = packet
        .get(header.payload..)?
        .first_chunk::<MESSAGE_HEADER>()?;
    let is_reply = header.protocol == ICMPV6 && fixed[0] == ECHO_REPLY_V6;
    let is_whole = header.fragment == Fragment::Whole;
    (is_reply && is_whole).then(|| u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]))
}

/// Returns the answer to a request for an echo, from an address. `None` for other packets.
pub fn echo_reply(request: &[u8], from: IpAddr) -> Option<Vec<u8>> {
    let header = Header::parse(request).ok()?;
    let body = request.get(header.payload..)?;
    let (fixed, data) = body.split_first_chunk::<MESSAGE_HEADER>()?;
    let is_whole = header.fragment == Fragment::Whole && header.is_icmp();
    let kind = match (from, fixed[0]) {
        (IpAddr::V4(_), ECHO_REQUEST_V4) => 0,
        (IpAddr::V6(_), ECHO_REQUEST_V6) => ECHO_REPLY_V6,
        _ => return None,
    };
    let value = u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]);
    let reply = || message(from, header.source, [kind, 0], value, data);
    is_whole.then(reply).flatten()
}

/// Returns true for an ICMP error, or a redirect, about which no error is sent.
pub fn is_error(header: &Header, packet: &[u8]) -> bool {
    if !header.is_icmp() || header.fragment == Fragment::Later {
        return false;
    }
    match (header.source, packet.get(header.payload)) {
        (IpAddr::V4(_), Some(kind)) => matches!(*kind, 3 | 4 | REDIRECT_V4 | 11 | 12),
        (IpAddr::V6(_), Some(kind)) => *kind < 128 || *kind == REDIRECT_V6,
        // A message without a type is not known to be none.
        (_, None) => true,
    }
}

/// Returns true for a redirect of ICMP or ICMPv6, if the packet has an ICMP header.
pub(crate) fn is_redirect(header: &Header, packet: &[u8]) -> bool {
    let kind = packet.get(header.payload).copied();
    kind == Some(match header.source {
        IpAddr::V4(_) => REDIRECT_V4,
        IpAddr::V6(_) => REDIRECT_V6,
    })
}

/// Returns the source of the packet that an ICMP error quotes, if it quotes one.
pub fn quoted_source(header: &Header, packet: &[u8]) -> Option<IpAddr> {
    let quoted = packet.get(header.payload + MESSAGE_HEADER..)?;
    match (header.source, quoted.first()? >> 4) {
        (IpAddr::V4(_), 4) => {
            let octets = quoted.get(12..16)?;
            Some(<[u8; 4]>::try_from(octets).ok()?.into())
        }
        (IpAddr::V6(_), 6) => {
            let octets = quoted.get(8..24)?;
            Some(<[u8; 16]>::try_from(octets).ok()?.into())
        }
        _ => None,
    }
}

/// Returns true for an address of one host.
pub(crate) fn is_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !(v4.octets()[0] == 0 || v4.is_loopback() || v4.octets()[0] >= 224),
        IpAddr::V6(v6) => {
            let is_mapped = v6.to_ipv4_mapped().is_some();
            !(v6.is_unspecified() || v6.is_loopback() || v6.is_multicast() || is_mapped)
        }
    }
}

fn numbers_v4(error: Error) -> (u8, u8, u32) {
    match error {
        Error::NoRoute => (3, 0, 0),
        // Communication administratively prohibited (RFC 1812 §5.2.7.1).
        Error::Prohibited | Error::Source => (3, 13, 0),
        Error::TimeExceeded => (11, 0, 0),
        // RFC 1191 §4.
        Error::TooBig { mtu } => (3, 4, u32::from(u16::try_from(mtu).unwrap_or(u16::MAX))),
    }
}

fn numbers_v6(error: Error) -> Option<(u8, u8, u32)> {
    Some(match error {
        Error::NoRoute => (1, 0, 0),
        Error::Prohibited => (1, 1, 0),
        Error::Source => (1, 5, 0),
        Error::TimeExceeded => (3, 0, 0),
        Error::TooBig { mtu } if mtu < SMALLEST_MTU => return None,
        Error::TooBig { mtu } => (2, 0, u32::try_from(mtu).unwrap_or(u32::MAX)),
    })
}

/// Returns a packet with a message: its type and code, the four bytes behind the checksum, and what follows.
fn message(
    source: IpAddr,
    destination: IpAddr,
    kind: [u8; 2],
    value: u32,
    body: &[u8],
) -> Option<Vec<u8>> {
    let len = MESSAGE_HEADER + body.len();
    let mut packet = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let total = u16::try_from(IPV4_HEADER + len).ok()?.to_be_bytes();
            // No fragment, and therefore no identification (RFC 6864 §4.1).
            let mut header = vec![
                0x45, 0, total[0], total[1], 0, 0, 0x40, 0, HOP_LIMIT, ICMP, 0, 0,
            ];
            header.extend(source.octets());
            header.extend(destination.octets());
            let sum = !checksum::sum(0, &header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            header
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let len = u16::try_from(len).ok()?.to_be_bytes();
            let mut header = vec![0x60, 0, 0, 0, len[0], len[1], ICMPV6, HOP_LIMIT];
            header.extend(source.octets());
            header.extend(destination.octets());
            header
        }
        _ => return None,
    };
    let begin = packet.len();
    packet.extend([kind[0], kind[1], 0, 0]);
    packet.extend(value.to_be_bytes());
    packet.extend_from_slice(body);
    let pseudo = match source {
        IpAddr::V4(_) => 0,
        // The pseudo-header (RFC 8200 §8.1): addresses, length, protocol.
        IpAddr::V6(_) => {
            let addresses = checksum::sum(u16::from(ICMPV6), &packet[8..IPV6_HEADER]);
            checksum::sum(addresses, &packet[4..6])
        }
    };
    let sum = !checksum::sum(pseudo, &packet[begin..]);
    packet[begin + 2..begin + 4].copy_from_slice(&sum.to_be_bytes());
    Some(packet)
}

/// Bytes before the body of a message.
const MESSAGE_HEADER: usize = 8;

/// The longest ICMP error of IPv4 (RFC 1812 §4.3.2.3).
const LONGEST_V4: usize = 576;

/// The hop limit of packets that are made here.
const HOP_LIMIT: u8 = 64;

const REDIRECT_V4: u8 = 5;
const REDIRECT_V6: u8 = 137;
const ECHO_REQUEST_V4: u8 = 8;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;

#[cfg(test)]
mod tests;
