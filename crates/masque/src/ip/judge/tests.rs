use std::net::Ipv6Addr;

use super::*;
use crate::ip::capsule::AssignedAddress;
use crate::ip::range::{AddressRange, Routes};

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn prefix(text: &str) -> Prefix {
    text.parse().unwrap()
}

fn ping(source: &str, destination: &str) -> Vec<u8> {
    icmp::echo_request(address(source), address(destination), b"ping").unwrap()
}

/// A client with addresses, and a proxy that forwards to everywhere.
fn pair() -> (End, End) {
    pair_with(Routes::all(true, true))
}

fn pair_with(routes: Routes) -> (End, End) {
    let (mut client, mut proxy) = (End::new(Side::Client), End::new(Side::Server));
    let given = ["10.0.0.2", "2001:db8::2"].map(|text| AssignedAddress::unasked(prefix(text)));
    for capsule in [proxy.assign(given.to_vec(), &[]), proxy.advertise(routes)] {
        client.on_capsule(capsule).unwrap();
    }
    (client, proxy)
}

fn reason(result: Result<Header, Rejected>) -> Option<Reason> {
    result.err().map(|rejected| rejected.reason)
}

/// MQ-ip-020, MQ-ip-029, MQ-ip-030, attacks A362, A365.
#[test]
fn packets_of_clients_have_their_own_sources() {
    let (_, proxy) = pair();
    for (source, destination, expected) in [
        ("10.0.0.2", "8.8.8.8", None),
        ("2001:db8::2", "2606:4700::1", None),
        (
            "10.0.0.3",
            "8.8.8.8",
            Some(Reason::Source(address("10.0.0.3"))),
        ),
        (
            "8.8.8.8",
            "10.0.0.2",
            Some(Reason::Source(address("8.8.8.8"))),
        ),
        (
            "2001:db8::3",
            "2606:4700::1",
            Some(Reason::Source(address("2001:db8::3"))),
        ),
        (
            "127.0.0.1",
            "8.8.8.8",
            Some(Reason::Source(address("127.0.0.1"))),
        ),
        (
            "0.0.0.0",
            "255.255.255.255",
            Some(Reason::Source(address("0.0.0.0"))),
        ),
        ("::", "2606:4700::1", Some(Reason::Source(address("::")))),
        (
            "::ffff:10.0.0.2",
            "2606:4700::1",
            Some(Reason::Source(address("::ffff:10.0.0.2"))),
        ),
        ("fe80::1", "ff02::2", Some(Reason::LinkLocal)),
        ("fe80::1", "2606:4700::1", Some(Reason::LinkLocal)),
        ("10.0.0.2", "169.254.1.1", Some(Reason::LinkLocal)),
        ("2001:db8::2", "fe80::1", Some(Reason::LinkLocal)),
        ("10.0.0.2", "224.0.0.251", Some(Reason::Multicast)),
        ("2001:db8::2", "ff02::1", Some(Reason::Multicast)),
        (
            "10.0.0.2",
            "127.0.0.1",
            Some(Reason::Destination(address("127.0.0.1"))),
        ),
        (
            "2001:db8::2",
            "::ffff:8.8.8.8",
            Some(Reason::Destination(address("::ffff:8.8.8.8"))),
        ),
    ] {
        let found = reason(proxy.judge_incoming(&ping(source, destination)));
        assert_eq!(found, expected, "{source} {destination}");
    }
}

/// MQ-ip-016, MQ-ip-030.
#[test]
fn packets_stay_inside_of_their_routes() {
    let range = AddressRange::from(prefix("192.0.2.0/24")).for_protocol(Some(6));
    let v6 = AddressRange::from(prefix("2001:db8:1::/48")).for_protocol(Some(17));
    let (client, proxy) = pair_with(Routes::new([range, v6]).unwrap());
    for end in [
        client.judge_outgoing(&ping("10.0.0.2", "192.0.3.1")),
        proxy.judge_incoming(&ping("10.0.0.2", "192.0.3.1")),
    ] {
        let rejected = end.expect_err("outside");
        assert_eq!(rejected.icmp, Some(icmp::Error::NoRoute));
    }
    // ICMP is always allowed, UDP is none of the routes; behind a chain of headers too.
    assert!(proxy.judge_incoming(&ping("10.0.0.2", "192.0.2.1")).is_ok());
    let with_chain = |protocol: u8| {
        let mut packet = vec![0x60, 0, 0, 0, 0, 16, 60, 64];
        for address in ["2001:db8::2", "2001:db8:1::9"] {
            packet.extend(address.parse::<Ipv6Addr>().unwrap().octets());
        }
        packet.extend([protocol, 0, 1, 4, 0, 0, 0, 0, 0, 9, 1, 187, 0, 8, 0, 0]);
        packet
    };
    assert!(proxy.judge_incoming(&with_chain(17)).is_ok());
    let rejected = proxy.judge_incoming(&with_chain(6)).expect_err("TCP");
    assert_eq!(
        rejected.reason,
        Reason::Destination(address("2001:db8:1::9"))
    );
}

/// MQ-ip-029: the same rules hold for a client.
#[test]
fn packets_for_clients_come_from_their_routes() {
    let (client, proxy) =
        pair_with(Routes::new([AddressRange::from(prefix("192.0.2.0/24"))]).unwrap());
    for (source, destination, expected) in [
        ("192.0.2.1", "10.0.0.2", None),
        (
            "192.0.3.1",
            "10.0.0.2",
            Some(Reason::Source(address("192.0.3.1"))),
        ),
        (
            "192.0.2.1",
            "10.0.0.3",
            Some(Reason::Destination(address("10.0.0.3"))),
        ),
    ] {
        for found in [
            client.judge_incoming(&ping(source, destination)),
            proxy.judge_outgoing(&ping(source, destination)),
        ] {
            assert_eq!(reason(found), expected, "{source} {destination}");
        }
    }
    let bare = End::new(Side::Client);
    assert!(bare.judge_incoming(&ping("192.0.2.1", "10.0.0.2")).is_err());
    assert!(bare.judge_outgoing(&ping("10.0.0.2", "192.0.2.1")).is_err());
}

/// MQ-ip-032, attack A369.
#[test]
fn icmp_errors_reach_only_the_host_that_they_quote() {
    let (client, proxy) =
        pair_with(Routes::new([AddressRange::from(prefix("192.0.2.0/24"))]).unwrap());
    let about = |quoted: &[u8], to: &str| {
        // From a router that is in no route.
        let mut error =
            icmp::error(icmp::Error::TimeExceeded, address("198.51.100.7"), quoted).unwrap();
        let IpAddr::V4(to) = address(to) else {
            panic!("IPv4")
        };
        error[16..20].copy_from_slice(&to.octets());
        error[10..12].fill(0);
        let sum = !crate::ip::checksum::sum(0, &error[..20]);
        error[10..12].copy_from_slice(&sum.to_be_bytes());
        error
    };
    let own = about(&ping("10.0.0.2", "192.0.2.1"), "10.0.0.2");
    assert!(proxy.judge_outgoing(&own).is_ok());
    assert!(client.judge_incoming(&own).is_ok());
    let foreign = about(&ping("10.0.0.9", "192.0.2.1"), "10.0.0.2");
    assert_eq!(reason(proxy.judge_outgoing(&foreign)), Some(Reason::Quote));
    assert_eq!(reason(client.judge_incoming(&foreign)), Some(Reason::Quote));
    // A client makes no errors with the addresses of others.
    let spoofed = proxy.judge_incoming(&own);
    assert_eq!(
        reason(spoofed),
        Some(Reason::Source(address("198.51.100.7")))
    );
}

/// MQ-ip-019.
#[test]
fn packets_at_the_end_of_their_hops_are_answered() {
    let (client, proxy) = pair();
    let last = |hops: u8| {
        let mut packet = ping("2606:4700::1", "2001:db8::2");
        packet[7] = hops;
        packet
    };
    assert!(proxy.lowers_hop_limit() && !client.lowers_hop_limit());
    for (hops, is_ok) in [(0, false), (1, false), (2, true), (255, true)] {
        let found = proxy.judge_outgoing(&last(hops));
        assert_eq!(found.is_ok(), is_ok, "{hops}");
        if let Err(rejected) = found {
            assert_eq!(rejected.icmp, Some(icmp::Error::TimeExceeded));
        }
        // It is not lowered when it leaves the tunnel.
        assert!(client.judge_incoming(&last(hops)).is_ok());
    }
    let mut own = ping("10.0.0.2", "8.8.8.8");
    for _ in 0..63 {
        crate::ip::packet::lower_hop_limit(&mut own);
    }
    assert!(client.judge_outgoing(&own).is_ok(), "packets of this host");
    let router = client.forwarding(true);
    assert_eq!(reason(router.judge_outgoing(&own)), Some(Reason::HopLimit));
}

/// MQ-ip-020: a request for an echo to all nodes is answered on the link.
#[test]
fn echoes_to_all_nodes_of_the_link_are_answered() {
    let (client, proxy) = pair();
    for source in ["fe80::1", "2001:db8::1"] {
        let reply = client
            .echo_of_link(&ping(source, "ff02::1"))
            .expect("asked");
        let header = Header::parse(&reply).unwrap();
        assert_eq!(
            (header.source, header.destination),
            (address("2001:db8::2"), address(source))
        );
    }
    assert_eq!(client.echo_of_link(&ping("::", "ff02::1")), None);
    assert_eq!(
        client.echo_of_link(&ping("2001:db8::1", "2001:db8::2")),
        None
    );
    assert_eq!(
        proxy.echo_of_link(&ping("2001:db8::2", "ff02::1")),
        None,
        "it has no address"
    );
    let proxy = proxy.routers(None, Some(address("2001:db8::1")));
    assert!(
        proxy
            .echo_of_link(&ping("2001:db8::2", "ff02::1"))
            .is_some()
    );
}

#[test]
fn malformed_packets_cause_no_errors() {
    let (client, proxy) = pair();
    let mut packet = ping("10.0.0.2", "8.8.8.8");
    packet[2] = 9;
    for found in [
        client.judge_outgoing(&packet),
        proxy.judge_incoming(&packet),
    ] {
        let rejected = found.expect_err("malformed");
        assert!(matches!(rejected.reason, Reason::Malformed(_)) && rejected.icmp.is_none());
    }
}

/// Attack A400.
#[test]
fn no_packet_comes_from_an_address_of_its_receiver() {
    let (client, proxy) = pair();
    for own in ["10.0.0.2", "2001:db8::2"] {
        for found in [
            client.judge_incoming(&ping(own, own)),
            proxy.judge_outgoing(&ping(own, own)),
        ] {
            let rejected = found.expect_err(own);
            assert_eq!(rejected.reason, Reason::Source(address(own)));
            assert_eq!(rejected.icmp, None);
        }
    }
}

/// Attack A400.
#[test]
fn redirects_reach_no_host() {
    let (client, proxy) = pair();
    for (from, own, kind) in [
        ("192.0.2.1", "10.0.0.2", 5),
        ("2001:db8:1::1", "2001:db8::2", 137),
    ] {
        let invoking = ping(own, from);
        let mut packet = icmp::error(icmp::Error::NoRoute, address(from), &invoking).unwrap();
        let header = Header::parse(&packet).unwrap();
        assert!(client.judge_incoming(&packet).is_ok());
        packet[header.payload] = kind;
        for found in [
            client.judge_incoming(&packet),
            proxy.judge_outgoing(&packet),
        ] {
            assert_eq!(reason(found), Some(Reason::Redirect), "{own}");
        }
    }
}
