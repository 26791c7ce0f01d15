use etherparse::{Icmpv4Header, Icmpv6Header, NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;

use super::*;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn ping(source: &str, destination: &str, len: usize) -> Vec<u8> {
    echo_request(address(source), address(destination), &vec![7; len]).unwrap()
}

const ALL: [Error; 5] = [
    Error::NoRoute,
    Error::Prohibited,
    Error::Source,
    Error::TimeExceeded,
    Error::TooBig { mtu: 1400 },
];

/// Reads type, code and value with another implementation, which checks the checksums too.
fn read(packet: &[u8]) -> (u8, u8, u32) {
    let sliced = SlicedPacket::from_ip(packet).unwrap();
    let bytes = match (sliced.net, sliced.transport) {
        (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Icmpv4(icmp))) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            let (read, _) = Icmpv4Header::from_slice(icmp.slice()).unwrap();
            let sum = read.icmp_type.calc_checksum(icmp.payload());
            assert_eq!(read.checksum, sum);
            icmp.slice().to_vec()
        }
        (Some(NetSlice::Ipv6(ip)), Some(TransportSlice::Icmpv6(icmp))) => {
            let (source, destination) = (ip.header().source(), ip.header().destination());
            assert!(icmp.is_checksum_valid(source, destination));
            Icmpv6Header::from_slice(icmp.slice()).unwrap();
            icmp.slice().to_vec()
        }
        other => panic!("no ICMP: {other:?}"),
    };
    (
        bytes[0],
        bytes[1],
        u32::from_be_bytes(bytes[4..8].try_into().unwrap()),
    )
}

/// MQ-ip-023.
#[test]
fn errors_have_the_numbers_of_their_texts() {
    let (v4, v6) = (
        ping("10.0.0.2", "192.0.2.1", 99),
        ping("2001:db8::2", "2001:db8::9", 99),
    );
    let numbers: Vec<_> = ALL
        .iter()
        .map(|error| {
            let four = super::error(*error, address("10.0.0.1"), &v4).unwrap();
            let six = super::error(*error, address("2001:db8::1"), &v6).unwrap();
            (read(&four), read(&six))
        })
        .collect();
    assert_eq!(
        numbers,
        [
            ((3, 0, 0), (1, 0, 0)),
            ((3, 13, 0), (1, 1, 0)),
            ((3, 13, 0), (1, 5, 0)),
            ((11, 0, 0), (3, 0, 0)),
            ((3, 4, 1400), (2, 0, 1400)),
        ]
    );
}

#[test]
fn errors_quote_as_much_as_they_may() {
    for (packet, router, most) in [
        (ping("10.0.0.2", "192.0.2.1", 1400), "10.0.0.1", 576),
        (
            ping("2001:db8::2", "2001:db8::9", 1400),
            "2001:db8::1",
            1280,
        ),
    ] {
        let error = super::error(Error::NoRoute, address(router), &packet).unwrap();
        assert_eq!(error.len(), most);
        let header = Header::parse(&error).unwrap();
        let quoted = &error[header.payload + 8..];
        assert_eq!(quoted, &packet[..quoted.len()]);
        assert_eq!(quoted_source(&header, &error), Some(header.destination));
        assert!(is_error(&header, &error));
    }
}

/// Attack A367: errors that cause errors, and errors to groups.
#[test]
fn no_error_is_sent_about_errors_groups_and_fragments() {
    let error = super::error(
        Error::NoRoute,
        address("10.0.0.1"),
        &ping("10.0.0.2", "192.0.2.1", 9),
    );
    let error_v6 = super::error(
        Error::NoRoute,
        address("2001:db8::1"),
        &ping("2001:db8::2", "2001:db8::9", 9),
    );
    let mut redirect = ping("2001:db8::2", "2001:db8::9", 9);
    redirect[40] = 137;
    let mut later = ping("10.0.0.2", "192.0.2.1", 9);
    later[7] = 1;
    later[10..12].fill(0);
    let sum = !checksum::sum(0, &later[..20]);
    later[10..12].copy_from_slice(&sum.to_be_bytes());
    for (packet, router) in [
        (error.unwrap(), "192.0.2.7"),
        (error_v6.unwrap(), "2001:db8::7"),
        (redirect, "2001:db8::7"),
        (later, "192.0.2.7"),
        (ping("10.0.0.2", "224.0.0.1", 9), "10.0.0.1"),
        (ping("10.0.0.2", "255.255.255.255", 9), "10.0.0.1"),
        (ping("0.0.0.0", "192.0.2.1", 9), "10.0.0.1"),
        (ping("224.0.0.1", "192.0.2.1", 9), "10.0.0.1"),
        (ping("127.0.0.1", "192.0.2.1", 9), "10.0.0.1"),
        (ping("::", "2001:db8::9", 9), "2001:db8::1"),
        (ping("ff02::1", "2001:db8::9", 9), "2001:db8::1"),
        (ping("2001:db8::2", "ff0e::1", 9), "2001:db8::1"),
        (ping("10.0.0.2", "192.0.2.1", 9), "2001:db8::1"),
        (vec![0x45; 3], "10.0.0.1"),
        (vec![], "10.0.0.1"),
    ] {
        for error in [
            Error::NoRoute,
            Error::TimeExceeded,
            Error::Prohibited,
            Error::Source,
        ] {
            assert_eq!(
                super::error(error, address(router), &packet),
                None,
                "{router}"
            );
        }
    }
    // Groups learn about the MTU (RFC 4443 §2.4), and a link of IPv6 carries 1280 bytes.
    let group = ping("2001:db8::2", "ff0e::1", 1400);
    let too_big = |mtu, packet| super::error(Error::TooBig { mtu }, address("2001:db8::1"), packet);
    assert!(too_big(1300, &group).is_some());
    assert_eq!(too_big(1279, &group), None);
}

#[test]
fn echoes_are_answered() {
    for (source, destination) in [("10.0.0.2", "10.0.0.1"), ("2001:db8::2", "2001:db8::1")] {
        let request = ping(source, destination, 33);
        read(&request);
        let reply = echo_reply(&request, address(destination)).unwrap();
        let (kind, code, _) = read(&reply);
        assert!([(0, 0), (129, 0)].contains(&(kind, code)));
        let header = Header::parse(&reply).unwrap();
        assert_eq!(
            (header.source, header.destination),
            (address(destination), address(source))
        );
        assert!(reply.ends_with(&[7; 33]));
        assert_eq!(echo_reply(&reply, address(source)), None);
    }
    assert_eq!(echo_request(address("10.0.0.1"), address("::1"), b""), None);
    assert_eq!(
        echo_request(address("::1"), address("::1"), &vec![0; 65_528]),
        None
    );
}

proptest! {
    /// Attack A367: an error is about its packet, and there is no error about it.
    #[test]
    fn errors_about_any_bytes_are_packets(packet: Vec<u8>, first in prop::sample::select(vec![0x45_u8, 0x60]), kind in 0_usize..5) {
        let mut packet = packet;
        if let Some(byte) = packet.first_mut() {
            *byte = first;
        }
        for router in ["10.0.0.1", "2001:db8::1"] {
            let router = address(router);
            if let Some(error) = super::error(ALL[kind], router, &packet) {
                let header = Header::parse(&error).unwrap();
                prop_assert_eq!(header.source, router);
                prop_assert_eq!(Some(header.destination), quoted_source(&header, &error));
                prop_assert_eq!(super::error(ALL[kind], router, &error), None);
                prop_assert!(error.len() <= 1280);
            }
            let _ = echo_reply(&packet, router);
        }
    }

    #[test]
    fn errors_about_packets_are_read_by_etherparse(len in 0_usize..2000, kind in 0_usize..5, bits: u128) {
        let (v4, v6) = (ping("10.0.0.2", "192.0.2.1", len), ping("2001:db8::2", "2001:db8::9", len));
        let four = super::error(ALL[kind], IpAddr::V4((bits as u32).into()), &v4).unwrap();
        let six = super::error(ALL[kind], IpAddr::V6(bits.into()), &v6).unwrap();
        read(&four);
        read(&six);
    }
}
