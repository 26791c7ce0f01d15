use bytes::Bytes;
use courser_base::Ecn;

use super::*;

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn gateway(kind: NatKind) -> Gateway {
    Gateway {
        kind,
        public: IpAddr::from([203, 0, 113, 1]),
        state: 7,
        mappings: Vec::new(),
        dropped: 0,
    }
}

fn packet(from: SocketAddr, to: SocketAddr) -> Packet {
    Packet {
        source: from,
        destination: to,
        ecn: Ecn::NotEct,
        payload: Bytes::from_static(b"x"),
    }
}

/// Sends to a host and returns the public address that it sees.
fn send(gateway: &mut Gateway, to: &str) -> SocketAddr {
    let mut out = packet(address("10.0.0.1:4433"), address(to));
    gateway.outbound(&mut out);
    out.source
}

/// The table of RFC 4787 §4 and §5: whether two destinations see one mapping, and who is let in after a packet to
/// 198.51.100.1:1000.
#[test]
fn kinds_differ_in_mappings_and_filters() {
    for (kind, is_shared, from_other_port, from_other_host) in [
        (NatKind::None, true, true, true),
        (NatKind::FullCone, true, true, true),
        (NatKind::AddressRestricted, true, true, false),
        (NatKind::PortRestricted, true, false, false),
        (NatKind::Symmetric, false, false, false),
    ] {
        let mut gateway = gateway(kind);
        let seen = send(&mut gateway, "198.51.100.1:1000");
        let mut lets_in = |from: &str| gateway.inbound(&mut packet(address(from), seen));
        assert!(lets_in("198.51.100.1:1000"), "{kind:?}");
        assert_eq!(lets_in("198.51.100.1:1001"), from_other_port, "{kind:?}");
        assert_eq!(lets_in("198.51.100.2:1000"), from_other_host, "{kind:?}");
        assert_eq!(
            seen == send(&mut gateway, "198.51.100.2:1000"),
            is_shared,
            "{kind:?}"
        );
        assert_eq!(seen, send(&mut gateway, "198.51.100.1:1000"), "{kind:?}");
    }
}

#[test]
fn packet_to_a_port_without_mapping_is_dropped() {
    let mut gateway = gateway(NatKind::FullCone);
    let to = address("203.0.113.1:4433");
    assert!(!gateway.inbound(&mut packet(address("198.51.100.1:1"), to)));
    assert_eq!(gateway.dropped, 1);
}
