//! Cuts super-packets into packets, which is what a network card does with them.

use bytes::{BufMut as _, Bytes, BytesMut};

use crate::checksum;
use crate::header::{Header, Segmentation};
use crate::packet::{
    CWR, FIN, IPV4, IPV6, Layout, PSH, Transport, payload_offset, pseudo_header, set_ip_length,
    u16_at, u32_at,
};

/// A packet that contradicts its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The version of IP is neither 4 nor 6, or not that of the segmentation.
    #[error("the IP version is {0}, which does not fit the segmentation")]
    Version(u8),
    /// The headers do not fit into the packet.
    #[error("the headers end beyond the packet of {length} bytes")]
    Headers {
        /// Length of the packet in bytes.
        length: usize,
    },
    /// The segments are empty, or too many for their headers.
    #[error("{payload} bytes in segments of {size} are not 1 to {MAX_SEGMENTS} segments")]
    Segments {
        /// Length of the payload in bytes.
        payload: usize,
        /// Size of a segment in bytes.
        size: usize,
    },
}

/// Appends the packets of a super-packet, or a single packet with its checksum, to `packets`. Returns their number.
///
/// The packets are parts of `buffer`, so that all share its allocation. Each has lengths, an IPv4 identification, sequence
/// numbers, flags and checksums of its own: FIN and PSH are those of the last segment only, CWR is that of the first.
///
/// # Errors
/// Returns an error if the packet contradicts its header, and appends nothing.
pub fn split(
    header: &Header,
    packet: &[u8],
    buffer: &mut BytesMut,
    packets: &mut Vec<Bytes>,
) -> Result<usize, Malformed> {
    let transport = match header.segmentation {
        Segmentation::None => {
            packets.push(single(header, packet, buffer)?);
            return Ok(1);
        }
        Segmentation::TcpV4 | Segmentation::TcpV6 => Transport::Tcp,
        Segmentation::Udp => Transport::Udp,
    };
    let layout = layout(header, packet, transport)?;
    let (headers, payload) = packet.split_at(layout.payload);
    let size = usize::from(header.segment_size);
    let count = payload.len().checked_div(size).map_or(0, |full| {
        full + usize::from(!payload.len().is_multiple_of(size))
    });
    if count == 0 || count > MAX_SEGMENTS || count * headers.len() > MAX_HEADERS {
        let payload = payload.len();
        return Err(Malformed::Segments { payload, size });
    }
    buffer.reserve(payload.len() + count * headers.len());
    for (index, part) in payload.chunks(size).enumerate() {
        buffer.put_slice(headers);
        buffer.put_slice(part);
        let mut segment = buffer.split();
        let place = Place {
            offset: index * size,
            index,
            is_last: index + 1 == count,
        };
        rewrite(&mut segment, &layout, &place);
        packets.push(segment.freeze());
    }
    Ok(count)
}

/// Returns a copy of a packet that needs no segmentation.
fn single(header: &Header, packet: &[u8], buffer: &mut BytesMut) -> Result<Bytes, Malformed> {
    buffer.put_slice(packet);
    let mut copy = buffer.split();
    if header.needs_checksum {
        let start = usize::from(header.checksum_start);
        let field = start + usize::from(header.checksum_offset);
        let length = packet.len();
        if start > length || field + 2 > length {
            return Err(Malformed::Headers { length });
        }
        let sum = checksum::sum(&copy[start..]);
        // A checksum of all zeros would mean none to UDP, and both forms of zero are equal to the others.
        copy[field..field + 2].copy_from_slice(&checksum::finish_udp(sum));
    }
    Ok(copy.freeze())
}

/// Finds the headers of a super-packet. Extension headers are passed over: the system says where the transport begins.
fn layout(header: &Header, packet: &[u8], transport: Transport) -> Result<Layout, Malformed> {
    let length = packet.len();
    let too_short = Malformed::Headers { length };
    let version = packet.first().ok_or(too_short)? >> 4;
    let is_ipv6 = version == 6;
    let fits = match header.segmentation {
        Segmentation::TcpV4 => version == 4,
        Segmentation::TcpV6 => is_ipv6,
        _ => version == 4 || is_ipv6,
    };
    if !fits {
        return Err(Malformed::Version(version));
    }
    let start = usize::from(header.checksum_start);
    let least = match is_ipv6 {
        true => IPV6,
        false => IPV4.max(usize::from(packet[0] & 0xf) * 4),
    };
    let payload = payload_offset(packet, transport, start).ok_or(too_short)?;
    if start < least {
        return Err(too_short);
    }
    Ok(Layout {
        is_ipv6,
        transport,
        start,
        payload,
    })
}

/// The place of a segment in its super-packet.
struct Place {
    /// Offset of its payload in bytes.
    offset: usize,
    index: usize,
    is_last: bool,
}

fn rewrite(segment: &mut [u8], layout: &Layout, place: &Place) {
    let length = segment.len();
    let start = layout.start;
    if !layout.is_ipv6 {
        let id = u16_at(segment, 4).wrapping_add(place.index as u16);
        segment[4..6].copy_from_slice(&id.to_be_bytes());
    }
    set_ip_length(segment, layout.is_ipv6, length);
    match layout.transport {
        Transport::Tcp => {
            let sequence = u32_at(segment, start + 4).wrapping_add(place.offset as u32);
            segment[start + 4..start + 8].copy_from_slice(&sequence.to_be_bytes());
            let flags = &mut segment[start + 13];
            if !place.is_last {
                *flags &= !(FIN | PSH);
            }
            if place.index > 0 {
                *flags &= !CWR;
            }
        }
        Transport::Udp => {
            let length = u16::try_from(length - start).unwrap_or(u16::MAX);
            segment[start + 4..start + 6].copy_from_slice(&length.to_be_bytes());
        }
    }
    let field = start + layout.transport.checksum_offset();
    segment[field..field + 2].fill(0);
    let pseudo = pseudo_header(segment, layout.is_ipv6, layout.transport, length - start);
    let sum = pseudo + checksum::sum(&segment[start..]);
    let checksum = match layout.transport {
        Transport::Tcp => checksum::finish(sum),
        Transport::Udp => checksum::finish_udp(sum),
    };
    segment[field..field + 2].copy_from_slice(&checksum);
}

/// The largest number of packets that one super-packet is cut into (K637). The smallest segments of TCP on Linux have 48
/// bytes, which is 1366 of them.
pub const MAX_SEGMENTS: usize = 2048;

/// Bytes of the headers of all segments of a super-packet. The longest without extension headers are 100 bytes.
const MAX_HEADERS: usize = 512 * MAX_SEGMENTS;

#[cfg(test)]
mod tests;
