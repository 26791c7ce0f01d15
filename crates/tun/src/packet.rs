//! The headers of packets that can be cut and joined.

use crate::checksum;

/// A protocol whose packets can be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
}

impl Transport {
    /// The number in IP headers.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }

    /// Offset of the checksum in the header.
    pub(crate) const fn checksum_offset(self) -> usize {
        match self {
            Self::Tcp => 16,
            Self::Udp => 6,
        }
    }
}

/// Where the headers of a packet are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) is_ipv6: bool,
    pub(crate) transport: Transport,
    /// Offset of the transport's header.
    pub(crate) start: usize,
    /// Offset of the payload.
    pub(crate) payload: usize,
}

/// What a packet is to those who join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// TCP or UDP directly behind an IP header without options, whose lengths are those of the packet.
    Plain(Layout),
    /// A fragment, or a packet with options or extension headers, of any flow.
    Unclear,
    /// Another protocol.
    Other,
}

pub(crate) fn kind(packet: &[u8]) -> Kind {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= IPV4 => kind_v4(packet),
        Some(6) if packet.len() >= IPV6 => kind_v6(packet),
        _ => Kind::Other,
    }
}

fn kind_v4(packet: &[u8]) -> Kind {
    let Some(transport) = transport_of(packet[9]) else {
        return Kind::Other;
    };
    // MF and the offset of a fragment.
    let is_fragment = u16_at(packet, 6) & 0x3fff != 0;
    if packet[0] & 0xf != 5 || is_fragment || usize::from(u16_at(packet, 2)) != packet.len() {
        return Kind::Unclear;
    }
    layout(packet, false, transport, IPV4)
}

fn kind_v6(packet: &[u8]) -> Kind {
    if usize::from(u16_at(packet, 4)) + IPV6 != packet.len() {
        return Kind::Unclear;
    }
    match (transport_of(packet[6]), packet[6]) {
        (Some(transport), _) => layout(packet, true, transport, IPV6),
        // Hop-by-hop options, routing, fragments, authentication, destination options.
        (None, 0 | 43 | 44 | 51 | 60) => Kind::Unclear,
        (None, _) => Kind::Other,
    }
}

fn layout(packet: &[u8], is_ipv6: bool, transport: Transport, start: usize) -> Kind {
    match payload_offset(packet, transport, start) {
        Some(payload) => Kind::Plain(Layout {
            is_ipv6,
            transport,
            start,
            payload,
        }),
        None => Kind::Unclear,
    }
}

/// Returns the offset of the payload behind a header of TCP or UDP at `start`, if the whole header is there.
pub(crate) fn payload_offset(packet: &[u8], transport: Transport, start: usize) -> Option<usize> {
    let length = match transport {
        Transport::Udp => UDP,
        Transport::Tcp => usize::from(packet.get(start + 12)? >> 4) * 4,
    };
    let least = match transport {
        Transport::Udp => UDP,
        Transport::Tcp => TCP,
    };
    let payload = start.checked_add(length)?;
    (length >= least && payload <= packet.len()).then_some(payload)
}

const fn transport_of(number: u8) -> Option<Transport> {
    match number {
        6 => Some(Transport::Tcp),
        17 => Some(Transport::Udp),
        _ => None,
    }
}

/// Returns the sum of the pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1), with the length of the transport's header and
/// payload.
pub(crate) fn pseudo_header(
    packet: &[u8],
    is_ipv6: bool,
    transport: Transport,
    length: usize,
) -> u64 {
    let addresses = match is_ipv6 {
        true => &packet[8..40],
        false => &packet[12..20],
    };
    let length = u16::try_from(length).unwrap_or(u16::MAX);
    checksum::sum(addresses)
        + checksum::word(length)
        + checksum::word(u16::from(transport.number()))
}

/// Returns true if the checksum of the transport is present and right. A checksum of UDP may be absent over IPv4.
pub(crate) fn has_valid_checksum(packet: &[u8], layout: &Layout) -> bool {
    let field = layout.start + layout.transport.checksum_offset();
    if layout.transport == Transport::Udp && packet[field..field + 2] == [0, 0] {
        return false;
    }
    let body = &packet[layout.start..];
    let pseudo = pseudo_header(packet, layout.is_ipv6, layout.transport, body.len());
    checksum::fold(pseudo + checksum::sum(body)) == 0xffff
}

/// Sets the length of an IP packet, and the checksum of IPv4.
pub(crate) fn set_ip_length(header: &mut [u8], is_ipv6: bool, length: usize) {
    if is_ipv6 {
        let payload = u16::try_from(length - IPV6).unwrap_or(u16::MAX);
        header[4..6].copy_from_slice(&payload.to_be_bytes());
    } else {
        let total = u16::try_from(length).unwrap_or(u16::MAX);
        header[2..4].copy_from_slice(&total.to_be_bytes());
        set_ipv4_checksum(header);
    }
}

fn set_ipv4_checksum(header: &mut [u8]) {
    let length = usize::from(header[0] & 0xf) * 4;
    header[10..12].fill(0);
    let sum = checksum::sum(&header[..length]);
    header[10..12].copy_from_slice(&checksum::finish(sum));
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Length of an IPv4 header without options.
pub(crate) const IPV4: usize = 20;
/// Length of an IPv6 header.
pub(crate) const IPV6: usize = 40;
/// Length of a TCP header without options.
const TCP: usize = 20;
/// Length of a UDP header.
const UDP: usize = 8;

/// The flag FIN of TCP.
pub(crate) const FIN: u8 = 0x01;
/// The flag PSH of TCP.
pub(crate) const PSH: u8 = 0x08;
/// The flag ACK of TCP.
pub(crate) const ACK: u8 = 0x10;
/// The flag ECE of TCP.
pub(crate) const ECE: u8 = 0x40;
/// The flag CWR of TCP.
pub(crate) const CWR: u8 = 0x80;
