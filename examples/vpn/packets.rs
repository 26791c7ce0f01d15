//! IPv6 packets, as far as the example needs them.

use bytes::{BufMut, Bytes, BytesMut};

const HEADER: usize = 40;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

/// Returns a UDP packet of `len` bytes from fd00::1 to fd00::2 that contains a number.
pub fn numbered(number: u32, len: usize) -> Bytes {
    let mut packet = header(UDP, len - HEADER, address(1), address(2));
    packet.put_slice(&[0x13, 0x88, 0x13, 0x88]);
    packet.put_u16(u16::try_from(len - HEADER).unwrap_or(u16::MAX));
    packet.put_u16(0);
    packet.put_u32(number);
    packet.resize(len, 0xaa);
    packet.freeze()
}

/// Returns the number in a packet of [`numbered`].
pub fn number_of(packet: &[u8]) -> Option<u32> {
    let number = packet.get(HEADER + 8..HEADER + 12)?;
    (packet[6] == UDP).then(|| u32::from_be_bytes(number.try_into().unwrap_or_default()))
}

/// Returns the ICMPv6 message about a packet that is too big for a link (RFC 4443 §3.2).
pub fn packet_too_big(packet: &[u8], mtu: usize) -> Bytes {
    let quote = &packet[..packet.len().min(mtu - HEADER - 8)];
    let (to, from) = (slice_of(packet, 8), slice_of(packet, 24));
    let mut message = header(ICMPV6, 8 + quote.len(), from, to);
    message.put_slice(&[2, 0, 0, 0]);
    message.put_u32(u32::try_from(mtu).unwrap_or(u32::MAX));
    message.put_slice(quote);
    let sum = checksum(&message);
    message[HEADER + 2..HEADER + 4].copy_from_slice(&sum.to_be_bytes());
    message.freeze()
}

/// Returns the MTU in a valid message of [`packet_too_big`].
pub fn reported_mtu(packet: &[u8]) -> Option<u32> {
    let is_report = *packet.get(6)? == ICMPV6 && *packet.get(HEADER)? == 2 && checksum(packet) == 0;
    let mtu = packet.get(HEADER + 4..HEADER + 8)?;
    is_report.then(|| u32::from_be_bytes(mtu.try_into().unwrap_or_default()))
}

fn header(next: u8, len: usize, from: [u8; 16], to: [u8; 16]) -> BytesMut {
    let mut packet = BytesMut::with_capacity(HEADER + len);
    packet.put_u32(6 << 28);
    packet.put_u16(u16::try_from(len).unwrap_or(u16::MAX));
    packet.put_slice(&[next, 64]);
    packet.put_slice(&from);
    packet.put_slice(&to);
    packet
}

fn address(last: u8) -> [u8; 16] {
    let mut address = [0; 16];
    (address[0], address[15]) = (0xfd, last);
    address
}

fn slice_of(packet: &[u8], start: usize) -> [u8; 16] {
    let bytes = packet.get(start..start + 16);
    bytes.and_then(|it| it.try_into().ok()).unwrap_or_default()
}

/// Returns the checksum of an ICMPv6 packet: 0 if the one inside is right (RFC 8200 §8.1).
fn checksum(packet: &[u8]) -> u16 {
    let len = u32::try_from(packet.len() - HEADER).unwrap_or(u32::MAX);
    let pseudo = packet[8..HEADER]
        .chunks(2)
        .chain(packet[HEADER..].chunks(2));
    let words = pseudo.map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum = words.sum::<u32>() + len + u32::from(ICMPV6);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}
