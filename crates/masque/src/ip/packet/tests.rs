use etherparse::{Ipv6Header, Ipv6RawExtHeader, PacketBuilder, SlicedPacket};
use proptest::prelude::*;

use super::*;
use crate::ip::icmp;

/// A packet of IPv6 with a chain before a UDP header.
pub(crate) fn with_chain(chain: &[u8], first: u8) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, first, 64];
    packet.extend("2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
    packet.extend("2001:db8::2".parse::<Ipv6Addr>().unwrap().octets());
    packet.extend_from_slice(chain);
    packet.extend([0, 9, 1, 187, 0, 8, 0, 0]);
    fix_length(&mut packet);
    packet
}

fn fix_length(packet: &mut [u8]) {
    let len = u16::try_from(packet.len() - IPV6_HEADER).unwrap();
    packet[4..6].copy_from_slice(&len.to_be_bytes());
}

fn v4(edit: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let (source, destination) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
    let mut packet = icmp::echo_request(source, destination, &[7; 32]).unwrap();
    edit(&mut packet);
    let header = (usize::from(packet[0] & 0xf) * 4).min(packet.len());
    packet[10..12].fill(0);
    let sum = !checksum::sum(0, &packet[..header]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// MQ-ip-018, attack A368.
#[test]
fn packets_with_wrong_headers_are_refused() {
    let length = |said, found| Malformed::Length { said, found };
    for (packet, expected) in [
        (vec![], Malformed::Version(0)),
        (vec![0x50; 60], Malformed::Version(5)),
        (vec![0x45; 19], length(20, 19)),
        (v4(|packet| packet.truncate(59)), length(60, 59)),
        (v4(|packet| packet.push(0)), length(60, 61)),
        (v4(|packet| packet[0] = 0x44), length(60, 60)),
        (v4(|packet| packet[0] = 0x4f), Malformed::Option),
        (v4(|packet| packet[6] = 0x3f), Malformed::Fragment),
        (vec![0x60; 39], length(40, 39)),
        (with_chain(&[0; 3], 17)[..45].to_vec(), length(51, 45)),
    ] {
        let found = Header::parse(&packet);
        match expected {
            // The last fragment of the longest packet may not end behind it.
            Malformed::Fragment => {
                assert_eq!(found.map(|header| header.fragment), Ok(Fragment::Later))
            }
            _ => assert_eq!(found, Err(expected), "{packet:02x?}"),
        }
    }
    let mut wrong = v4(|_| ());
    wrong[8] ^= 1;
    assert_eq!(Header::parse(&wrong), Err(Malformed::Checksum));
    let end = v4(|packet| packet[6..8].copy_from_slice(&[0x1f, 0xff]));
    assert_eq!(Header::parse(&end), Err(Malformed::Fragment));
}

/// Attack A368: options by which a source chooses the route (RFC 7126 §4.3), and cut ones.
#[test]
fn source_routes_are_refused() {
    let with_options = |options: [u8; 4]| {
        v4(|packet| {
            packet[0] = 0x46;
            packet.splice(20..20, options);
            packet[3] += 4;
        })
    };
    for (options, expected) in [
        ([1, 1, 1, 0], None),
        ([0, 9, 9, 9], None),
        ([148, 4, 0, 0], None),
        ([131, 3, 4, 0], Some(Malformed::SourceRoute)),
        ([1, 137, 3, 4], Some(Malformed::SourceRoute)),
        ([7, 0, 0, 0], Some(Malformed::Option)),
        ([7, 1, 0, 0], Some(Malformed::Option)),
        ([7, 5, 0, 0], Some(Malformed::Option)),
        ([1, 1, 1, 7], Some(Malformed::Option)),
    ] {
        let found = Header::parse(&with_options(options)).err();
        assert_eq!(found, expected, "{options:?}");
    }
    let routing = |left| with_chain(&[17, 0, 0, left, 0, 0, 0, 0], 43);
    assert_eq!(Header::parse(&routing(1)), Err(Malformed::SourceRoute));
    assert_eq!(
        Header::parse(&routing(0)).map(|header| header.protocol),
        Ok(UDP)
    );
}

/// MQ-ip-016, limit K629, attack A368.
#[test]
fn chains_of_extension_headers_are_walked_within_a_bound() {
    let options = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
    let chain = |count: usize| -> Vec<u8> {
        let next = |index| if index + 1 == count { UDP } else { 60 };
        (0..count).flat_map(|index| options(next(index))).collect()
    };
    for count in 0..=8 {
        let packet = with_chain(&chain(count), if count == 0 { UDP } else { 60 });
        let header = Header::parse(&packet).expect("within the bound");
        assert_eq!((header.protocol, header.payload), (UDP, 40 + 8 * count));
        assert_eq!(header.destination_port(&packet), Ok(Some(443)));
    }
    assert_eq!(
        Header::parse(&with_chain(&chain(9), 60)),
        Err(Malformed::LongChain)
    );
    // A header that ends behind the packet, one of hop-by-hop options that is not the first, an authentication header.
    assert_eq!(
        Header::parse(&with_chain(&[17, 9, 0, 0, 0, 0, 0, 0], 60)),
        Err(Malformed::Chain)
    );
    assert_eq!(Header::parse(&with_chain(&[], 60)), Err(Malformed::Chain));
    let late = [options(0), options(UDP)].concat();
    assert_eq!(Header::parse(&with_chain(&late, 60)), Err(Malformed::Chain));
    let authentication = with_chain(&[17, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0], 51);
    assert_eq!(
        Header::parse(&authentication).map(|header| header.protocol),
        Ok(UDP)
    );
    assert_eq!(
        Header::parse(&with_chain(&[17, 0, 0, 0, 0, 0, 0, 1], 51)).map(|header| header.payload),
        Ok(48)
    );
    let later = with_chain(&[60, 0, 0, 8, 0, 0, 0, 1], 44);
    let header = Header::parse(&later).expect("a fragment");
    assert_eq!((header.protocol, header.fragment), (60, Fragment::Later));
    assert_eq!(header.destination_port(&later), Ok(None));
}

#[test]
fn every_cut_of_a_packet_is_refused() {
    let whole = with_chain(
        &[[60, 0, 0, 0, 0, 0, 0, 0], [17, 0, 0, 0, 0, 0, 0, 0]].concat(),
        0,
    );
    for len in 0..whole.len() {
        let mut cut = whole[..len].to_vec();
        assert!(Header::parse(&cut).is_err(), "{len}");
        if len >= IPV6_HEADER {
            // With a length that fits: the chain is cut, or the ports are.
            fix_length(&mut cut);
            let found = Header::parse(&cut).and_then(|header| header.destination_port(&cut));
            assert_eq!(found.is_ok(), len >= whole.len() - 4, "{len}");
        }
    }
}

proptest! {
    /// Against another implementation.
    #[test]
    fn headers_of_ipv4_agree_with_etherparse(
        source: [u8; 4], destination: [u8; 4], hops: u8, port: u16, payload in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let builder = PacketBuilder::ipv4(source, destination, hops).udp(9, port);
        let mut packet = Vec::new();
        builder.write(&mut packet, &payload).unwrap();
        let header = Header::parse(&packet).unwrap();
        prop_assert_eq!(header.source, IpAddr::from(source));
        prop_assert_eq!(header.destination, IpAddr::from(destination));
        prop_assert_eq!((header.protocol, header.hop_limit, header.payload), (UDP, hops, 20));
        prop_assert_eq!(header.destination_port(&packet), Ok(Some(port)));

        lower_hop_limit(&mut packet);
        prop_assert_eq!(Header::parse(&packet).map(|header| header.hop_limit), Ok(hops.saturating_sub(1)));
        let sliced = SlicedPacket::from_ip(&packet).unwrap();
        let Some(etherparse::NetSlice::Ipv4(ip)) = sliced.net else { panic!("no IPv4") };
        let other = ip.header().to_header();
        prop_assert_eq!(other.time_to_live, hops.saturating_sub(1));
        // Both zeros are the same number in one's complement.
        let sums = [other.header_checksum, other.calc_header_checksum()];
        prop_assert!(sums[0] == sums[1] || (sums.contains(&0) && sums.contains(&0xffff)), "{:?}", sums);
    }

    #[test]
    fn headers_of_ipv6_agree_with_etherparse(
        source: [u8; 16], destination: [u8; 16], hops: u8,
        chain in prop::collection::vec((prop::sample::select(vec![60_u8, 135, 139, 140]), 0_usize..3), 0..8),
        port: u16,
    ) {
        let mut bytes = Vec::new();
        let kinds: Vec<u8> = chain.iter().map(|(kind, _)| *kind).chain([UDP]).collect();
        for (index, (_, units)) in chain.iter().enumerate() {
            let data = vec![0; 6 + 8 * units];
            let next = etherparse::IpNumber(kinds[index + 1]);
            bytes.extend(Ipv6RawExtHeader::new_raw(next, &data).unwrap().to_bytes());
        }
        let end = IPV6_HEADER + bytes.len();
        bytes.extend([0, 9]);
        bytes.extend(port.to_be_bytes());
        bytes.extend([0, 8, 0, 0]);
        let header = Ipv6Header {
            traffic_class: 0,
            flow_label: Default::default(),
            payload_length: u16::try_from(bytes.len()).unwrap(),
            next_header: etherparse::IpNumber(kinds[0]),
            hop_limit: hops,
            source,
            destination,
        };
        let mut packet = header.to_bytes().to_vec();
        packet.extend(bytes);
        let found = Header::parse(&packet).unwrap();
        prop_assert_eq!((found.source, found.destination), (source.into(), destination.into()));
        prop_assert_eq!((found.protocol, found.payload, found.hop_limit), (UDP, end, hops));
        prop_assert_eq!(found.destination_port(&packet), Ok(Some(port)));
        lower_hop_limit(&mut packet);
        let again = Ipv6Header::from_slice(&packet).unwrap().0;
        prop_assert_eq!(again.hop_limit, hops.saturating_sub(1));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(packet: Vec<u8>, version in prop::sample::select(vec![0x45_u8, 0x46, 0x4f, 0x60])) {
        let mut packet = packet;
        if let Some(first) = packet.first_mut() {
            *first = version;
        }
        if let Ok(header) = Header::parse(&packet) {
            prop_assert!(header.payload <= packet.len());
            let _ = header.destination_port(&packet);
        }
        lower_hop_limit(&mut packet);
    }
}
