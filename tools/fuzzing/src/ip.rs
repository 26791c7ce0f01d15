//! IP proxies: capsules, and packets.

use std::net::IpAddr;

use courser_base::{Side, Time};
use courser_masque::Policy;
use courser_masque::ip::packet::lower_hop_limit;
use courser_masque::ip::{
    AssignedAddress, Capsule, End, Event, Filter, Header, Pool, Rejected, Routes, Scope, Template,
    icmp,
};

use crate::input::Input;

/// Reads an input as capsules that an end receives, each with a type, a length and a value. What is accepted must survive
/// another encoding, and all tables are bounded.
pub fn masque_capsules(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let side = match input.below(2) {
        0 => Side::Client,
        _ => Side::Server,
    };
    let mut end = End::new(side);
    let mut pool = Pool::new([
        "10.0.0.0/28".parse().expect("valid"),
        "2001:db8::/120".parse().expect("valid"),
    ]);
    let mut now = Time::ZERO;
    while !input.is_empty() {
        let kind = 1 + input.below(3) as u64;
        let len = usize::from(input.short()) % 1024;
        let value = input.take(len);
        now += std::time::Duration::from_secs(1);
        let Ok(capsule) = Capsule::decode(kind, value) else {
            continue;
        };
        let mut again = Vec::new();
        capsule.encode(&mut again);
        assert_eq!(Capsule::decode(kind, &again).as_ref(), Ok(&capsule));
        if let Ok(Event::Requested(wanted)) = end.on_capsule(capsule) {
            let found: Vec<_> = wanted
                .iter()
                .filter_map(|wanted| {
                    let prefix = pool
                        .allocate_wanted(wanted.prefix, "a", now)
                        .or_else(|| pool.allocate(wanted.prefix.is_ipv4(), "a", now))?;
                    let request = wanted.request;
                    Some(AssignedAddress { request, prefix })
                })
                .collect();
            for (index, one) in found.iter().enumerate() {
                assert!(
                    found[..index]
                        .iter()
                        .all(|other| other.prefix != one.prefix)
                );
                pool.release(one.prefix, now);
            }
            let _ = end.assign(found, &[]);
        }
        assert!(end.assigned().len() <= 32 && end.routes().ranges().len() <= 256);
        assert_eq!(
            Routes::of_ordered(end.routes().ranges().to_vec()).as_ref(),
            Ok(end.routes())
        );
        for range in end.routes().ranges() {
            let protocol = range.protocol().unwrap_or(6);
            assert!(end.routes().contains(range.start(), protocol));
            assert!(end.routes().contains(range.end(), protocol));
        }
    }
    assert_eq!(pool.assigned(), 0);
}

/// Reads an input as a packet, or as a path of a proxy if it begins with `/`. A packet that may pass has addresses of
/// hosts, and its hop limit can be lowered; an error about it is a packet about which there is no error.
pub fn ip_packet(bytes: &[u8]) {
    if bytes.first() == Some(&b'/') {
        return path(&String::from_utf8_lossy(bytes));
    }
    let parsed = Header::parse(bytes);
    if let Ok(header) = parsed {
        assert!(header.payload <= bytes.len());
        lowered(&header, bytes);
        let port = header.destination_port(bytes);
        let mut filter = Filter::default();
        let judged = filter.judge(&Policy::public_only(), &header, bytes, |_| false);
        if judged.is_ok() {
            assert!(port.is_ok() && !header.destination.is_loopback());
            let again = filter.judge(&Policy::public_only(), &header, bytes, |_| true);
            assert!(again.is_ok(), "verdicts are remembered");
        }
    }
    for router in ["192.0.2.1", "2001:db8::1"] {
        let router: IpAddr = router.parse().expect("an address");
        for kind in [icmp::Error::NoRoute, icmp::Error::TooBig { mtu: 1400 }] {
            let Some(error) = icmp::error(kind, router, bytes) else {
                continue;
            };
            let about = parsed.expect("a packet");
            let header = Header::parse(&error).expect("a packet");
            assert_eq!((header.source, header.destination), (router, about.source));
            assert_eq!(icmp::quoted_source(&header, &error), Some(about.source));
            assert_eq!(icmp::error(kind, router, &error), None);
            assert!(error.len() <= 1280);
        }
        if let Some(reply) = icmp::echo_reply(bytes, router) {
            assert_eq!(
                reply.len(),
                bytes.len() - parsed.expect("a packet").payload + header_len(router)
            );
        }
    }
    judge(bytes);
}

fn lowered(header: &Header, bytes: &[u8]) {
    let mut copy = bytes.to_vec();
    lower_hop_limit(&mut copy);
    let again = Header::parse(&copy).expect("the checksum is right");
    let hop_limit = header.hop_limit.saturating_sub(1);
    assert_eq!(
        again,
        Header {
            hop_limit,
            ..*header
        }
    );
}

/// Both ends of a tunnel agree about packets of the client, and those of the proxy.
fn judge(bytes: &[u8]) {
    let (mut client, mut proxy) = (End::new(Side::Client), End::new(Side::Server));
    let given = ["10.0.0.2/32", "2001:db8::/64"]
        .map(|text| AssignedAddress::unasked(text.parse().expect("valid")));
    for capsule in [
        proxy.assign(given.to_vec(), &[]),
        proxy.advertise(Routes::all(true, true)),
    ] {
        assert!(client.on_capsule(capsule).is_ok());
    }
    assert_eq!(client.judge_outgoing(bytes), proxy.judge_incoming(bytes));
    let (outgoing, incoming) = (proxy.judge_outgoing(bytes), client.judge_incoming(bytes));
    if let Ok(header) = outgoing {
        assert!(header.hop_limit > 1 && incoming.is_ok());
    }
    for judged in [client.judge_outgoing(bytes), outgoing, incoming] {
        match judged {
            Ok(header) => assert!(
                ![header.source, header.destination]
                    .iter()
                    .any(|address| address.is_multicast() || address.is_loopback())
            ),
            Err(Rejected { icmp: None, .. }) => {}
            Err(_) => assert!(Header::parse(bytes).is_ok(), "an error about no packet"),
        }
    }
}

const fn header_len(router: IpAddr) -> usize {
    if router.is_ipv4() { 20 } else { 40 }
}

fn path(text: &str) {
    for paths in [
        Template::WELL_KNOWN,
        "/i{?target,ipproto}",
        "/{target,ipproto}",
        "/vpn",
    ] {
        let paths = Template::path(paths).expect("a template");
        if let Ok(scope) = paths.find(text) {
            let again = Scope::new(&scope.target(), &scope.ipproto());
            assert_eq!(again.as_ref(), Ok(&scope));
            assert!(paths.can_express(&scope));
            assert_eq!(paths.find(&paths.expand(&scope)), Ok(scope));
        }
    }
}
