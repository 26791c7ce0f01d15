//! Ethernet frames: the flow of a frame, and its checksum.

/// A flow, by its protocol and the port of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flow {
    pub(crate) protocol: Protocol,
    pub(crate) port: u16,
}

/// The transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

/// A TCP or UDP packet in an IPv4 packet without fragments.
struct Packet<'a> {
    protocol: Protocol,
    addresses: [u8; 8],
    segment: &'a mut [u8],
}

impl<'a> Packet<'a> {
    fn of(frame: &'a mut [u8]) -> Option<Self> {
        let (head, packet) = frame.split_at_mut_checked(ETHERNET)?;
        if head[12..] != IPV4 || packet.len() < 20 {
            return None;
        }
        let protocol = match packet[9] {
            6 => Protocol::Tcp,
            17 => Protocol::Udp,
            _ => return None,
        };
        let header = usize::from(packet[0] & 0x0f) * 4;
        let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
        let is_fragment = packet[6] & 0x3f != 0 || packet[7] != 0;
        let addresses = packet[12..20].try_into().ok()?;
        let segment = packet.get_mut(header..total)?;
        (!is_fragment && segment.len() >= protocol.header()).then_some(Self {
            protocol,
            addresses,
            segment,
        })
    }
}

impl Protocol {
    fn header(self) -> usize {
        match self {
            Self::Tcp => 20,
            Self::Udp => 8,
        }
    }

    fn checksum_at(self) -> usize {
        match self {
            Self::Tcp => 16,
            Self::Udp => 6,
        }
    }
}

/// Returns the flow of a frame from the sender, and writes its checksum.
///
/// A virtual interface leaves the checksum to hardware that does not exist, and a frame from a packet
/// socket must have it.
pub(crate) fn complete(frame: &mut [u8]) -> Option<Flow> {
    let packet = Packet::of(frame)?;
    let at = packet.protocol.checksum_at();
    packet.segment[at..at + 2].fill(0);
    let number = match packet.protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
    };
    let length = packet.segment.len() as u32;
    let sum = number + length + sum(&packet.addresses) + sum(packet.segment);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    // Zero stands for no checksum in UDP (RFC 768).
    let sum = if sum == 0 { 0xffff } else { sum };
    packet.segment[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    Some(Flow {
        protocol: packet.protocol,
        port: u16::from_be_bytes([packet.segment[2], packet.segment[3]]),
    })
}

fn sum(bytes: &[u8]) -> u32 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let last = rest.first().map_or(0, |byte| u32::from(*byte) << 8);
    let pairs = pairs
        .iter()
        .map(|pair| u32::from(u16::from_be_bytes(*pair)));
    pairs.sum::<u32>() + last
}

const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [8, 0];

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP datagram "hi" from port 1 of 10.0.0.1 to port 5001 of 10.0.0.2.
    fn datagram() -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0, 0]);
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0, 1, 0x13, 0x89, 0, 10, 0xab, 0xcd]);
        frame.extend(b"hi");
        frame
    }

    #[test]
    fn a_datagram_gets_its_checksum() {
        let mut frame = datagram();
        let flow = complete(&mut frame).expect("a datagram");
        assert_eq!((flow.protocol, flow.port), (Protocol::Udp, 5001));
        // 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 17 + 10 + 1 + 0x1389 + 10 + 0x6869, complemented.
        let expected = !(0x0a00 + 1 + 0x0a00 + 2 + 17 + 10 + 1 + 0x1389 + 10 + 0x6869_u32) as u16;
        assert_eq!(frame[40..42], expected.to_be_bytes());
        // Padding of short frames does not count.
        let mut padded = datagram();
        padded.extend([7; 16]);
        complete(&mut padded);
        assert_eq!(padded[40..42], expected.to_be_bytes());
    }

    #[test]
    fn other_frames_stay_as_they_are() {
        let mut arp = vec![0; 42];
        arp[12..14].copy_from_slice(&[8, 6]);
        let mut fragment = datagram();
        fragment[20] = 0x20;
        let mut short = datagram();
        short.truncate(30);
        for frame in [&mut arp, &mut fragment, &mut short, &mut Vec::new()] {
            let before = frame.clone();
            assert_eq!(complete(frame), None);
            assert_eq!(*frame, before);
        }
    }
}
