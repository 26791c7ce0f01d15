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
