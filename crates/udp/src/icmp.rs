//! ICMP Packet Too Big messages, for programs that act as a router.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use courser_base::ScopedIp;
use socket2::{Domain, Protocol, Socket, Type};

/// Reports to senders that a datagram was too large for the next link.
///
/// Holds raw sockets, for which Linux requires the capability CAP_NET_RAW.
#[derive(Debug)]
pub struct TooBigSender {
    v4: Option<Socket>,
    v6: Option<Socket>,
}

/// A datagram that did not fit, with the addresses that its sender used.
#[derive(Clone, Copy, Debug)]
pub struct Refused<'a> {
    /// The sender of the datagram, which receives the ICMP message.
    pub source: SocketAddr,
    /// The destination of the datagram, of the same family.
    pub destination: SocketAddr,
    /// The UDP payload of the datagram.
    pub payload: &'a [u8],
}

impl TooBigSender {
    /// Opens the raw sockets for senders with addresses of these families.
    ///
    /// # Errors
    /// Returns `PermissionDenied` without the capability, and `Unsupported` on systems other than
    /// Linux.
    pub fn open(v4: bool, v6: bool) -> io::Result<Self> {
        if !cfg!(target_os = "linux") {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let open = |domain, protocol| {
            let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
            socket.set_nonblocking(true)?;
            // The socket receives a copy of all ICMP messages of the machine, and no code reads
            // them.
            socket.set_recv_buffer_size(1)?;
            io::Result::Ok(socket)
        };
        Ok(Self {
            v4: v4
                .then(|| open(Domain::IPV4, Protocol::ICMPV4))
                .transpose()?,
            v6: v6
                .then(|| open(Domain::IPV6, Protocol::ICMPV6))
                .transpose()?,
        })
    }

    /// Reports to the sender of a datagram that IP packets may have at most `mtu` bytes.
    ///
    /// # Errors
    /// Returns the error of the system, and `AddrNotAvailable` for a family that was not opened.
    pub fn send(&self, refused: &Refused<'_>, mtu: u32) -> io::Result<()> {
        let ends = (
            refused.source.ip().to_canonical(),
            refused.destination.ip().to_canonical(),
        );
        let ports = (refused.source.port(), refused.destination.port());
        let (socket, message) = match ends {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let quote = quote_v4((source, destination), ports, refused.payload);
                (&self.v4, message_v4(mtu, &quote))
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let quote = quote_v6((source, destination), ports, refused.payload);
                (&self.v6, message_v6(mtu, &quote))
            }
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let Some(socket) = socket else {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        };
        let receiver = ScopedIp::of(refused.source);
        // A raw socket has no ports, and IPv6 rejects an address that names one.
        socket
            .send_to(&message, &receiver.with_port(0).into())
            .map(drop)
    }
}

/// Builds the message "destination unreachable, fragmentation needed" (RFC 792, RFC 1191 §4).
fn message_v4(mtu: u32, quote: &[u8]) -> Vec<u8> {
    let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
    let mut message = vec![3, 4, 0, 0, 0, 0];
    message.extend(mtu.to_be_bytes());
    message.extend(quote);
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// Builds the message "packet too big" (RFC 4443 §3.2). The kernel computes the checksum (RFC 3542
/// §3.1).
fn message_v6(mtu: u32, quote: &[u8]) -> Vec<u8> {
    let mut message = vec![2, 0, 0, 0];
    message.extend(mtu.to_be_bytes());
    message.extend(quote);
    message
}

/// Returns the datagram with its headers as it was sent, as much as fits into an ICMP packet of 576
/// bytes (RFC 1812 §4.3.2.3).
fn quote_v4(
    (source, destination): (Ipv4Addr, Ipv4Addr),
    ports: (u16, u16),
    payload: &[u8],
) -> Vec<u8> {
    let mut quote = Vec::with_capacity(QUOTE_V4);
    quote.extend([0x45, 0]);
    quote.extend(length(IPV4_HEADER + UDP_HEADER + payload.len()));
    // No identification, "don't fragment", 64 hops, UDP, and a checksum that follows below.
    quote.extend([0, 0, 0x40, 0, 64, UDP, 0, 0]);
    quote.extend(source.octets());
    quote.extend(destination.octets());
    let sum = checksum(&quote);
    quote[10..12].copy_from_slice(&sum.to_be_bytes());
    extend_with_datagram(&mut quote, ports, payload);
    quote.truncate(QUOTE_V4);
    quote
}

/// Returns the datagram with its headers, as much as fits into an ICMPv6 packet of the minimum MTU
/// (RFC 4443 §3.2).
fn quote_v6(
    (source, destination): (Ipv6Addr, Ipv6Addr),
    ports: (u16, u16),
    payload: &[u8],
) -> Vec<u8> {
    let mut quote = Vec::with_capacity(QUOTE_V6);
    quote.extend([0x60, 0, 0, 0]);
    quote.extend(length(UDP_HEADER + payload.len()));
    quote.extend([UDP, 64]);
    quote.extend(source.octets());
    quote.extend(destination.octets());
    extend_with_datagram(&mut quote, ports, payload);
    quote.truncate(QUOTE_V6);
    quote
}

/// Appends the UDP header without its checksum, and as much of the payload as a quote can hold.
fn extend_with_datagram(quote: &mut Vec<u8>, ports: (u16, u16), payload: &[u8]) {
    quote.extend(ports.0.to_be_bytes());
    quote.extend(ports.1.to_be_bytes());
    quote.extend(length(UDP_HEADER + payload.len()));
    quote.extend([0, 0]);
    quote.extend(&payload[..payload.len().min(QUOTE_V6)]);
}

fn length(len: usize) -> [u8; 2] {
    u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes()
}

/// Computes the internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| match *pair {
        [high, low] => u32::from(u16::from_be_bytes([high, low])),
        [high] => u32::from(high) << 8,
        _ => 0,
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}

const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
const IPV4_HEADER: usize = 20;
/// Length of an IPv4 quote: 576 bytes less the outer IPv4 header and that of ICMP.
const QUOTE_V4: usize = 576 - 20 - 8;
/// Length of an IPv6 quote: 1280 bytes less the outer IPv6 header and that of ICMPv6.
const QUOTE_V6: usize = 1280 - 40 - 8;

#[cfg(test)]
mod tests;
