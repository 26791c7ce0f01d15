use courser_http3::Code;

use super::*;
use crate::ip::range::AddressRange;

fn prefix(text: &str) -> Prefix {
    text.parse().unwrap()
}

/// MQ-ip-006, MQ-ip-012.
#[test]
fn capsules_replace_those_before_them() {
    let mut end = End::new(Side::Client);
    let assign = |entries: &[&str]| {
        let entries = entries
            .iter()
            .map(|text| AssignedAddress::unasked(prefix(text)));
        Capsule::AddressAssign(entries.collect())
    };
    let before = end.generation();
    assert_eq!(
        end.on_capsule(assign(&["10.0.0.2", "2001:db8::/64"])),
        Ok(Event::Assigned)
    );
    assert_eq!(
        end.assigned(),
        [prefix("10.0.0.2"), prefix("2001:db8::/64")]
    );
    assert!(end.has_ipv6() && end.generation() > before);
    assert_eq!(end.on_capsule(assign(&["10.0.0.3"])), Ok(Event::Assigned));
    assert_eq!(end.assigned(), [prefix("10.0.0.3")]);
    assert_eq!(end.on_capsule(assign(&[])), Ok(Event::Assigned));
    assert_eq!(end.assigned(), []);

    let routes = Routes::all(true, true);
    assert_eq!(
        end.on_capsule(Capsule::RouteAdvertisement(routes.clone())),
        Ok(Event::Routes)
    );
    assert_eq!(end.routes(), &routes);
    let some = Routes::new([AddressRange::from(prefix("192.0.2.0/24"))]).unwrap();
    assert_eq!(
        end.on_capsule(Capsule::RouteAdvertisement(some.clone())),
        Ok(Event::Routes)
    );
    assert_eq!(end.routes(), &some);
    let mut deaf = End::new(Side::Server).ignoring_peer();
    assert_eq!(
        deaf.on_capsule(Capsule::RouteAdvertisement(some)),
        Ok(Event::Routes)
    );
    assert_eq!(deaf.routes(), &Routes::default());
    assert_eq!(deaf.on_capsule(assign(&["10.0.0.2"])), Ok(Event::Assigned));
    assert_eq!(deaf.assigned(), []);
}

/// MQ-ip-010, MQ-ip-011.
#[test]
fn each_request_is_answered_with_its_id() {
    let (mut client, mut proxy) = (End::new(Side::Client), End::new(Side::Server));
    assert!(client.is_answered());
    let Ok(Event::Requested(wanted)) =
        proxy.on_capsule(client.request(&[Prefix::NEW_IPV4, Prefix::NEW_IPV6]))
    else {
        panic!("no request")
    };
    assert_eq!(
        wanted.iter().map(|entry| entry.request).collect::<Vec<_>>(),
        [1, 2]
    );
    let unasked = vec![AssignedAddress::unasked(prefix("10.0.0.9"))];
    assert!(client.on_capsule(proxy.assign(unasked, &[])).is_ok() && !client.is_answered());
    let given = vec![AssignedAddress {
        request: 1,
        prefix: prefix("10.0.0.2"),
    }];
    let answer = proxy.assign(given.clone(), &wanted[1..]);
    let refusal = AssignedAddress {
        request: 2,
        prefix: Prefix::NEW_IPV6,
    };
    assert_eq!(answer, Capsule::AddressAssign(vec![given[0], refusal]));
    assert_eq!(client.on_capsule(answer), Ok(Event::Assigned));
    assert!(client.is_answered());
    assert_eq!(client.assigned(), [prefix("10.0.0.2")]);
    let later = proxy.assign(given.clone(), &[]);
    assert_eq!(
        later,
        Capsule::AddressAssign(given),
        "refusals are not repeated"
    );
    let Capsule::AddressRequest(more) = client.request(&[Prefix::NEW_IPV6]) else {
        panic!("no request")
    };
    assert_eq!(more[0].request, 3);
}

/// MQ-ip-009, limit K628, attack A366.
#[test]
fn request_ids_are_used_once_and_bounded() {
    let mut end = End::new(Side::Server);
    let request = |request| {
        Capsule::AddressRequest(vec![RequestedAddress {
            request,
            prefix: Prefix::NEW_IPV4,
        }])
    };
    assert!(end.on_capsule(request(7)).is_ok());
    let error = end.on_capsule(request(7)).expect_err("used");
    assert_eq!(
        (error, error.code()),
        (CapsuleError::UsedRequest(7), Code::MESSAGE_ERROR)
    );
    for id in 8..8 + 255 {
        assert!(end.on_capsule(request(id)).is_ok());
    }
    let error = end.on_capsule(request(1)).expect_err("too many");
    assert_eq!(error.code(), Code::EXCESSIVE_LOAD);
    assert_eq!(end.used.len(), 256);
}

#[test]
fn routers_have_an_address_where_there_is_one() {
    let mut end = End::new(Side::Client);
    assert_eq!((end.router(true), end.router(false)), (Some(DUMMY), None));
    let given = ["10.0.0.2", "2001:db8::2"].map(|text| AssignedAddress::unasked(prefix(text)));
    assert!(
        end.on_capsule(Capsule::AddressAssign(given.to_vec()))
            .is_ok()
    );
    assert_eq!(end.router(true), Some("10.0.0.2".parse().unwrap()));
    assert_eq!(end.router(false), Some("2001:db8::2".parse().unwrap()));
    let end = end.routers(Some("10.0.0.1".parse().unwrap()), None);
    assert_eq!(end.router(true), Some("10.0.0.1".parse().unwrap()));
}

fn assigned(texts: &[&str]) -> End {
    let mut end = End::new(Side::Client);
    let entries = texts
        .iter()
        .map(|text| AssignedAddress::unasked(prefix(text)));
    let capsule = Capsule::AddressAssign(entries.collect());
    end.on_capsule(capsule).expect("valid");
    end
}

/// Attack A399.
#[test]
fn addresses_that_no_host_can_have_are_not_taken() {
    for text in [
        "0.0.0.0/0",
        "0.0.0.0/32",
        "0.0.0.7/32",
        "64.0.0.0/2",
        "127.0.0.1/32",
        "169.254.169.254/32",
        "128.0.0.0/1",
        "224.0.0.1/32",
        "255.255.255.255/32",
        "::/0",
        "::/128",
        "::1/128",
        "::ffff:10.0.0.1/128",
        "fe80::1/128",
        "ff02::1/128",
    ] {
        let (first, bits) = text.split_once('/').expect(text);
        let found = Prefix::new(first.parse().expect(text), bits.parse().expect(text));
        let entry = AssignedAddress::unasked(found.expect(text));
        let mut end = End::new(Side::Client);
        let event = end.on_capsule(Capsule::AddressAssign(vec![entry]));
        assert_eq!(event, Ok(Event::Assigned), "{text}");
        assert!(end.assigned().is_empty(), "{text}");
    }
    for text in [
        "10.0.0.0/8",
        "203.0.113.7/32",
        "2001:db8::/48",
        "fd00::2/128",
    ] {
        assert_eq!(assigned(&[text]).assigned(), [prefix(text)], "{text}");
    }
}

/// Attack A399.
#[test]
fn hosts_choose_single_addresses_of_what_is_assigned() {
    let mut end = assigned(&["10.0.0.0/8", "2001:db8::/64"]);
    let ping = |source: &str, destination: &str| {
        let [source, destination] = [source, destination].map(|it| it.parse().expect("address"));
        crate::ip::icmp::echo_request(source, destination, b"").expect("one version")
    };
    end.on_capsule(Capsule::RouteAdvertisement(Routes::all(true, true)))
        .expect("valid");
    assert!(end.judge_incoming(&ping("192.0.2.1", "10.9.9.9")).is_ok());
    let chosen = ["10.0.0.1", "2001:db8::1", "192.168.0.1"].map(prefix);
    end.choose(&chosen);
    assert!(end.judge_incoming(&ping("192.0.2.1", "10.0.0.1")).is_ok());
    // Of the network behind the host, and of none at all.
    for destination in ["10.9.9.9", "192.168.0.1"] {
        let packet = ping("192.0.2.1", destination);
        assert!(end.judge_incoming(&packet).is_err(), "{destination}");
        let packet = ping(destination, "192.0.2.1");
        assert!(end.judge_outgoing(&packet).is_err(), "{destination}");
    }
    // The choice holds for later assignments.
    let given = vec![AssignedAddress::unasked(prefix("192.168.0.0/16"))];
    end.on_capsule(Capsule::AddressAssign(given))
        .expect("valid");
    assert!(
        end.judge_incoming(&ping("192.0.2.1", "192.168.0.1"))
            .is_ok()
    );
    assert!(
        end.judge_incoming(&ping("192.0.2.1", "192.168.0.2"))
            .is_err()
    );
    assert!(end.judge_incoming(&ping("192.0.2.1", "10.0.0.1")).is_err());
}

/// Linux drops packets of IPv4 from its own addresses, and with them the ICMP errors of a tunnel.
#[test]
fn errors_for_the_own_host_come_from_the_destination() {
    let end = assigned(&["10.0.0.2", "2001:db8::2"]);
    let router = |end: &End, source: &str, destination: &str| {
        let [source, destination] = [source, destination].map(|it| it.parse().expect("address"));
        let packet = crate::ip::icmp::echo_request(source, destination, b"");
        end.router_here(&packet.expect("one version"))
    };
    let found = router(&end, "10.0.0.2", "192.0.2.1");
    assert_eq!(found, Some("192.0.2.1".parse().expect("an address")));
    let found = router(&end, "2001:db8::2", "2001:db8:1::1");
    assert_eq!(found, Some("2001:db8::2".parse().expect("an address")));
    let end = end.routers(Some("10.0.0.1".parse().expect("an address")), None);
    let found = router(&end, "10.0.0.2", "192.0.2.1");
    assert_eq!(found, Some("10.0.0.1".parse().expect("an address")));
}
