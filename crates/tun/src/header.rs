//! The header that precedes each packet of a device (`virtio_net_hdr`, virtio 1.3 §5.1.6).

/// The segmentation that a super-packet needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Segmentation {
    /// The packet is not a super-packet.
    #[default]
    None,
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// Datagrams of UDP, each with a header of its own.
    Udp,
}

/// What the system says about a packet, or what it has to know about one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The checksum of the transport has to be computed over the bytes from [`checksum_start`](Self::checksum_start). Its
    /// field has the sum of the pseudo-header.
    pub needs_checksum: bool,
    /// The kind of the super-packet.
    pub segmentation: Segmentation,
    /// Length of all headers in bytes. A hint: the headers themselves decide.
    pub header_length: u16,
    /// Payload of each segment in bytes.
    pub segment_size: u16,
    /// Offset of the header of the transport.
    pub checksum_start: u16,
    /// Offset of the checksum within that header.
    pub checksum_offset: u16,
}

impl Header {
    /// Length of the encoded header in bytes.
    pub const LEN: usize = 10;

    /// Reads a header. Returns `None` for a kind of segmentation that no device of this crate asks for.
    pub fn decode(bytes: &[u8; Self::LEN]) -> Option<Self> {
        let number = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        // The flag of ECN says that the first segment has CWR, which only that one keeps in any case.
        let segmentation = match bytes[1] & !ECN {
            0 => Segmentation::None,
            TCP_V4 => Segmentation::TcpV4,
            TCP_V6 => Segmentation::TcpV6,
            UDP => Segmentation::Udp,
            _ => return None,
        };
        Some(Self {
            needs_checksum: bytes[0] & NEEDS_CHECKSUM != 0,
            segmentation,
            header_length: number(2),
            segment_size: number(4),
            checksum_start: number(6),
            checksum_offset: number(8),
        })
    }

    /// Returns the header in the byte order of the machine, as devices have it unless told otherwise.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[0] = if self.needs_checksum {
            NEEDS_CHECKSUM
        } else {
            0
        };
        bytes[1] = match self.segmentation {
            Segmentation::None => 0,
            Segmentation::TcpV4 => TCP_V4,
            Segmentation::TcpV6 => TCP_V6,
            Segmentation::Udp => UDP,
        };
        let numbers = [
            self.header_length,
            self.segment_size,
            self.checksum_start,
            self.checksum_offset,
        ];
        for (field, number) in bytes[2..].chunks_exact_mut(2).zip(numbers) {
            field.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }
}

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
const NEEDS_CHECKSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_TCPV4`.
const TCP_V4: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_TCPV6`.
const TCP_V6: u8 = 4;
/// `VIRTIO_NET_HDR_GSO_UDP_L4`.
const UDP: u8 = 5;
/// `VIRTIO_NET_HDR_GSO_ECN`.
const ECN: u8 = 0x80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_encoding() {
        for segmentation in [
            Segmentation::None,
            Segmentation::TcpV4,
            Segmentation::TcpV6,
            Segmentation::Udp,
        ] {
            let header = Header {
                needs_checksum: segmentation != Segmentation::None,
                segmentation,
                header_length: 52,
                segment_size: 1300,
                checksum_start: 20,
                checksum_offset: 16,
            };
            assert_eq!(Header::decode(&header.encode()), Some(header));
        }
    }

    #[test]
    fn ecn_is_accepted_and_unknown_segmentation_is_not() {
        let mut bytes = [0; Header::LEN];
        bytes[1] = 0x81;
        let header = Header::decode(&bytes);
        assert_eq!(header.map(|it| it.segmentation), Some(Segmentation::TcpV4));
        // The fragmentation of UDP (UFO), which no device of this crate has on.
        bytes[1] = 3;
        assert_eq!(Header::decode(&bytes), None);
    }
}
