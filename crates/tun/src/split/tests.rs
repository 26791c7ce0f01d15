use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use proptest::prelude::*;

use super::*;
use crate::join::Joiner;
use crate::join::MAX_HEADERS;

/// A super-packet as the system passes it.
#[derive(Clone, Debug)]
struct Super {
    is_ipv6: bool,
    is_udp: bool,
    sequence: u32,
    id: u16,
    payload: Vec<u8>,
    size: u16,
    has_options: bool,
    flags: u8,
}

impl Super {
    fn bytes(&self) -> (Header, Vec<u8>) {
        let (v4, v6) = ([192, 0, 2, 1], [1; 16]);
        let builder = match self.is_ipv6 {
            false => PacketBuilder::ipv4(v4, [198, 51, 100, 7], 64),
            true => PacketBuilder::ipv6(v6, [2; 16], 64),
        };
        let mut bytes = Vec::new();
        if self.is_udp {
            let builder = builder.udp(5000, 443);
            builder.write(&mut bytes, &self.payload).unwrap();
        } else {
            let mut builder = builder.tcp(5000, 443, self.sequence, 900).ack(77);
            if self.has_options {
                builder = builder
                    .options(&[etherparse::TcpOptionElement::Timestamp(5, 6)])
                    .unwrap();
            }
            builder.write(&mut bytes, &self.payload).unwrap();
        }
        let start = if self.is_ipv6 { 40 } else { 20 };
        if !self.is_ipv6 {
            bytes[4..6].copy_from_slice(&self.id.to_be_bytes());
        }
        if !self.is_udp {
            bytes[start + 13] |= self.flags;
        }
        let header = Header {
            needs_checksum: true,
            segmentation: match (self.is_udp, self.is_ipv6) {
                (true, _) => Segmentation::Udp,
                (false, false) => Segmentation::TcpV4,
                (false, true) => Segmentation::TcpV6,
            },
            header_length: (bytes.len() - self.payload.len()) as u16,
            segment_size: self.size,
            checksum_start: start as u16,
            checksum_offset: if self.is_udp { 6 } else { 16 },
        };
        (header, bytes)
    }
}

fn cut(header: &Header, packet: &[u8]) -> Result<Vec<Bytes>, Malformed> {
    let mut packets = Vec::new();
    let count = split(header, packet, &mut BytesMut::new(), &mut packets)?;
    assert_eq!(count, packets.len());
    Ok(packets)
}

/// Asserts what a receiver checks, with the parser of etherparse. Returns the payload.
fn check(packet: &[u8], whole: &Super, index: usize, is_last: bool) -> Vec<u8> {
    let sliced = SlicedPacket::from_ip(packet).unwrap();
    let net = sliced.net.unwrap();
    if let NetSlice::Ipv4(ip) = &net {
        let header = ip.header().to_header();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        assert_eq!(header.identification, whole.id.wrapping_add(index as u16));
        assert_eq!(usize::from(header.total_len), packet.len());
    }
    let (source, destination) = match &net {
        NetSlice::Ipv4(ip) => (
            ip.header().source().to_vec(),
            ip.header().destination().to_vec(),
        ),
        NetSlice::Ipv6(ip) => (
            ip.header().source().to_vec(),
            ip.header().destination().to_vec(),
        ),
        other => panic!("{other:?}"),
    };
    match sliced.transport.unwrap() {
        TransportSlice::Tcp(tcp) => {
            let header = tcp.to_header();
            let payload = tcp.payload();
            let checksum = match source.len() {
                4 => header.calc_checksum_ipv4_raw(
                    source.try_into().unwrap(),
                    destination.try_into().unwrap(),
                    payload,
                ),
                _ => header.calc_checksum_ipv6_raw(
                    source.try_into().unwrap(),
                    destination.try_into().unwrap(),
                    payload,
                ),
            };
            assert_eq!(header.checksum, checksum.unwrap());
            let offset = index as u32 * u32::from(whole.size);
            assert_eq!(header.sequence_number, whole.sequence.wrapping_add(offset));
            assert_eq!(header.fin, is_last && whole.flags & FIN != 0);
            assert_eq!(header.psh, is_last && whole.flags & PSH != 0);
            assert_eq!(header.cwr, index == 0 && whole.flags & CWR != 0);
            assert!(header.ack && header.acknowledgment_number == 77);
            payload.to_vec()
        }
        TransportSlice::Udp(udp) => {
            let header = udp.to_header();
            let payload = udp.payload();
            let checksum = match source.len() {
                4 => header.calc_checksum_ipv4_raw(
                    source.try_into().unwrap(),
                    destination.try_into().unwrap(),
                    payload,
                ),
                _ => header.calc_checksum_ipv6_raw(
                    source.try_into().unwrap(),
                    destination.try_into().unwrap(),
                    payload,
                ),
            };
            assert_eq!(header.checksum, checksum.unwrap());
            assert_eq!(usize::from(header.length), payload.len() + 8);
            payload.to_vec()
        }
        other => panic!("{other:?}"),
    }
}

fn supers() -> impl Strategy<Value = Super> {
    let numbers = (any::<bool>(), any::<bool>(), any::<u32>(), any::<u16>());
    let payload = proptest::collection::vec(any::<u8>(), 1..9000);
    let flags = prop::sample::select(vec![0, PSH, FIN | PSH, CWR, CWR | FIN]);
    (numbers, payload, 40_u16..1460, any::<bool>(), flags).prop_map(
        |((is_ipv6, is_udp, sequence, id), payload, size, has_options, flags)| Super {
            is_ipv6,
            is_udp,
            sequence,
            id,
            payload,
            size,
            has_options,
            flags,
        },
    )
}

proptest! {
    #[test]
    fn segments_are_packets_of_a_second_implementation(whole in supers()) {
        let (header, bytes) = whole.bytes();
        let packets = cut(&header, &bytes).unwrap();
        prop_assert_eq!(packets.len(), whole.payload.len().div_ceil(whole.size.into()));
        let mut payload = Vec::new();
        for (index, packet) in packets.iter().enumerate() {
            let part = check(packet, &whole, index, index + 1 == packets.len());
            prop_assert!(part.len() == usize::from(whole.size) || index + 1 == packets.len());
            payload.extend(part);
        }
        prop_assert_eq!(&payload, &whole.payload);
    }

    /// What the device cuts, a writer joins again, except for the flags that a run cannot have.
    #[test]
    fn joined_segments_are_cut_into_the_same_packets(mut whole in supers()) {
        whole.flags &= PSH;
        if whole.is_udp {
            whole.payload.truncate(64 * usize::from(whole.size));
        }
        let (header, bytes) = whole.bytes();
        let packets = cut(&header, &bytes).unwrap();
        let mut joiner = Joiner::default();
        joiner.join(&packets, true);
        prop_assert_eq!(joiner.runs().len(), 1);
        let run = joiner.runs()[0];
        prop_assert_eq!(run.count, packets.len());
        if run.count > 1 {
            let mut headers = [0; MAX_HEADERS];
            let (header, length) = run.headers(&packets[0], &mut headers);
            let mut joined = headers[..length].to_vec();
            for member in joiner.members(&run) {
                joined.extend_from_slice(&packets[member][length..]);
            }
            prop_assert_eq!(cut(&header, &joined).unwrap(), packets);
        }
    }

    #[test]
    fn any_bytes_are_cut_or_refused(raw in proptest::collection::vec(any::<u8>(), 10..200), first in 0_u8..8) {
        let mut raw = raw;
        raw[1] = first;
        let (header, packet) = raw.split_first_chunk::<10>().unwrap();
        if let Some(header) = Header::decode(header) {
            let _ = cut(&header, packet);
        }
    }
}

/// Attack A374: each segment would repeat 60 KiB of headers.
#[test]
fn super_packets_whose_headers_multiply_are_refused() {
    let mut bytes = vec![0; 62_000];
    bytes[0] = 0x60;
    let header = Header {
        needs_checksum: true,
        segmentation: Segmentation::Udp,
        segment_size: 1,
        checksum_start: 60_000,
        checksum_offset: 6,
        ..Header::default()
    };
    let error = cut(&header, &bytes).unwrap_err();
    assert!(matches!(error, Malformed::Segments { .. }), "{error}");
    let few = Header {
        segment_size: 400,
        ..header
    };
    assert_eq!(cut(&few, &bytes).map(|it| it.len()), Ok(5));
}

#[test]
fn super_packets_that_contradict_their_header_are_refused() {
    let whole = Super {
        is_ipv6: false,
        is_udp: false,
        sequence: u32::MAX,
        id: 9,
        payload: vec![5; 4000],
        size: 1000,
        has_options: false,
        flags: 0,
    };
    let (header, bytes) = whole.bytes();
    assert_eq!(cut(&header, &bytes).map(|it| it.len()), Ok(4));
    let refused = |header: Header, bytes: &[u8]| cut(&header, bytes).unwrap_err();
    for size in [0, 1] {
        let error = refused(
            Header {
                segment_size: size,
                ..header
            },
            &bytes,
        );
        assert!(matches!(error, Malformed::Segments { .. }), "{error}");
    }
    let v6 = Header {
        segmentation: Segmentation::TcpV6,
        ..header
    };
    assert_eq!(refused(v6, &bytes), Malformed::Version(4));
    for start in [0, 19, 4030, u16::MAX] {
        let error = refused(
            Header {
                checksum_start: start,
                ..header
            },
            &bytes,
        );
        assert!(
            matches!(error, Malformed::Headers { .. }),
            "{start}: {error}"
        );
    }
    assert!(matches!(
        refused(header, &[]),
        Malformed::Headers { length: 0 }
    ));
    // No payload at all.
    let error = refused(header, &bytes[..40]);
    assert!(
        matches!(error, Malformed::Segments { payload: 0, .. }),
        "{error}"
    );
}

#[test]
fn single_packets_get_their_checksum() {
    let whole = Super {
        is_ipv6: true,
        is_udp: true,
        sequence: 0,
        id: 0,
        payload: b"abc".to_vec(),
        size: 100,
        has_options: false,
        flags: 0,
    };
    let (mut header, mut bytes) = whole.bytes();
    header.segmentation = Segmentation::None;
    let right = bytes.clone();
    // The field has the sum of the pseudo-header, as the system leaves it.
    let sum = pseudo_header(&bytes, true, Transport::Udp, bytes.len() - 40);
    bytes[46..48].copy_from_slice(&checksum::fold(sum).to_ne_bytes());
    assert_eq!(cut(&header, &bytes).unwrap(), [Bytes::from(right)]);
    header.checksum_offset = u16::MAX;
    assert!(cut(&header, &bytes).is_err());
    header.needs_checksum = false;
    assert_eq!(cut(&header, &bytes).unwrap(), [Bytes::from(bytes)]);
}
