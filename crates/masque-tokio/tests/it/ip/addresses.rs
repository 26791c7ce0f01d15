//! Addresses and routes of tunnels.

use courser_masque_tokio::{AddressRange, Client, Denied, Ended, Limits, OpenError};

use super::*;

/// MQ-ip-004, MQ-ip-006, MQ-ip-031, attack A363.
#[tokio::test(flavor = "multi_thread")]
async fn tunnels_have_addresses_of_their_own_and_give_them_back() {
    let proxy = ip_proxy(&Echo::default());
    let started = start_ip(proxy.clone()).await;
    let client = started.ip_client(Carrier::Http3).await;
    let mut all = Vec::new();
    for _ in 0..10 {
        let tunnel = within(client.open(IpRequest::default()))
            .await
            .expect("accepted");
        within(tunnel.configured()).await.expect("open");
        all.push((own(&tunnel, true), own(&tunnel, false), tunnel));
    }
    let mut addresses: Vec<_> = all.iter().flat_map(|(one, two, _)| [*one, *two]).collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), 20);
    assert_eq!(proxy.stats().assigned, 20);
    all.truncate(3);
    until(|| proxy.stats().assigned == 6).await;
    // The addresses rest, except for the client that had them.
    let tunnel = within(client.open(IpRequest::default()))
        .await
        .expect("accepted");
    within(tunnel.configured()).await.expect("open");
    assert!(addresses.contains(&own(&tunnel, true)));
    drop((tunnel, all));
    until(|| proxy.stats().assigned == 0 && proxy.stats().open == 0).await;
}

/// MQ-ip-010.
#[tokio::test(flavor = "multi_thread")]
async fn clients_get_the_addresses_that_they_had() {
    let proxy =
        IpProxy::new(pool(), policy(), Echo::default()).authenticate(|request| {
            match request.headers.get("proxy-authorization") {
                Some(name) => Ok(Client::new(name.to_str().unwrap_or_default())),
                None => Err(Denied::challenge("Bearer")),
            }
        });
    let started = start_ip(proxy.clone()).await;
    let open = async |name: &str, wanted: &[&str]| {
        let builder = started
            .ip_builder(Carrier::Http3)
            .header("proxy-authorization", name);
        let client = within(builder.expect("valid").connect())
            .await
            .expect("connected");
        let request = IpRequest::default().addresses(wanted.iter().map(|text| prefix(text)));
        let tunnel = within(client.open(request)).await.expect("accepted");
        within(tunnel.configured()).await.expect("open");
        tunnel
    };
    let has = |tunnel: &IpTunnel, wanted: &str| tunnel.assigned().get().contains(&prefix(wanted));
    let alice = open("alice", &["10.89.0.77", "fd00:89::77"]).await;
    until(|| has(&alice, "10.89.0.77") && has(&alice, "fd00:89::77")).await;
    // Packets reach the address that was exchanged.
    alice
        .send(ping(address("10.89.0.77"), address("192.0.2.1"), 3))
        .expect("open");
    assert_eq!(
        header(&receive(&alice).await).destination,
        address("10.89.0.77")
    );
    // The second address of a version is refused.
    let bob = open("bob", &["10.89.0.77", "10.89.0.78"]).await;
    until(|| proxy.stats().assigned == 3).await;
    drop(alice);
    until(|| proxy.stats().assigned == 1).await;
    let again = open("alice", &["10.89.0.77"]).await;
    until(|| has(&again, "10.89.0.77")).await;
    assert!(!has(&bob, "10.89.0.77"));
}

/// MQ-ip-010: a client that asks for one version has no address of the other.
#[tokio::test(flavor = "multi_thread")]
async fn versions_that_are_not_wanted_are_given_back() {
    let proxy = ip_proxy(&Echo::default());
    let started = start_ip(proxy.clone()).await;
    let client = started.ip_client(Carrier::Http3).await;
    for (wanted, count) in [
        (vec![Prefix::NEW_IPV4], 1),
        (vec![Prefix::NEW_IPV6; 3], 1),
        (vec![], 2),
    ] {
        let request = IpRequest::default().addresses(wanted.clone());
        let tunnel = within(client.open(request)).await.expect("accepted");
        until(|| tunnel.assigned().get().len() == count && proxy.stats().assigned == count as u64)
            .await;
        if let Some(wanted) = wanted.first() {
            assert_eq!(tunnel.assigned().get()[0].is_ipv4(), wanted.is_ipv4());
        }
        let own = tunnel.assigned().get()[0].first();
        let host = if own.is_ipv4() {
            "192.0.2.1"
        } else {
            "2001:db8::1"
        };
        tunnel.send(ping(own, address(host), 3)).expect("open");
        assert_eq!(header(&receive(&tunnel).await).destination, own);
        drop(tunnel);
        until(|| proxy.stats().assigned == 0).await;
    }
}

/// MQ-ip-003, MQ-ip-012.
#[tokio::test(flavor = "multi_thread")]
async fn routes_are_those_of_the_scope() {
    let proxy = ip_proxy(&Echo::default()).resolver(|name, _| {
        assert_eq!(name, "host.example");
        let answers = ["192.0.2.9:1", "10.0.0.1:1", "[2001:db8::9]:1"];
        let answers = answers.map(|text| text.parse().expect("valid")).to_vec();
        Box::pin(async move { Ok(answers) })
    });
    let started = start_ip(proxy).await;
    let range = |text: &str| AddressRange::from(prefix(text));
    for (target, protocol, expected) in [
        ("*", None, vec![range("0.0.0.0/0"), range("::/0")]),
        ("192.0.2.0/25", None, vec![range("192.0.2.0/25")]),
        (
            "2001:db8::1",
            Some(6),
            vec![range("2001:db8::1").for_protocol(Some(6))],
        ),
        (
            "host.example",
            Some(17),
            vec![
                range("192.0.2.9").for_protocol(Some(17)),
                range("2001:db8::9").for_protocol(Some(17)),
            ],
        ),
    ] {
        let mut request = IpRequest::to(target).expect("valid");
        if let Some(protocol) = protocol {
            request = request.protocol(protocol).expect("valid");
        }
        let tunnel = started.ip(Carrier::Http3, request).await;
        assert_eq!(tunnel.routes().get(), expected, "{target}");
        // Addresses are of the versions of the routes.
        let versions = |is_ipv4: bool| expected.iter().any(|range| range.is_ipv4() == is_ipv4);
        let count = usize::from(versions(true)) + usize::from(versions(false));
        assert_eq!(tunnel.assigned().get().len(), count, "{target}");
        if target == "192.0.2.0/25" {
            let outside = tunnel.send(ping(own(&tunnel, true), address("192.0.2.200"), 3));
            assert!(outside.is_err());
            assert_eq!(icmp_kind(&receive(&tunnel).await), [3, 0]);
        }
    }
}

/// MQ-ip-002, MQ-ip-003, MQ-ip-028, attacks A361, A370.
#[tokio::test(flavor = "multi_thread")]
async fn requests_are_refused_with_their_reasons() {
    let proxy = ip_proxy(&Echo::default()).resolver(|name, _| {
        Box::pin(async move {
            match name.as_str() {
                "private.example" => Ok(vec!["10.0.0.1:1".parse().expect("valid")]),
                _ => Err(std::io::Error::other("no such name")),
            }
        })
    });
    let started = start_ip(proxy.clone()).await;
    let client = started.ip_client(Carrier::Http3).await;
    for (target, status, error) in [
        ("127.0.0.1", 403, "destination_ip_prohibited"),
        ("10.0.0.1", 403, "destination_ip_prohibited"),
        ("10.89.0.3", 403, "destination_ip_prohibited"),
        ("private.example", 403, "destination_ip_prohibited"),
        ("missing.example", 502, "dns_error"),
    ] {
        let refused = within(client.open(IpRequest::to(target).expect("valid"))).await;
        let refused = refused.expect_err("refused");
        assert_eq!(
            refused.status().map(|status| status.as_u16()),
            Some(status),
            "{target}"
        );
        assert_eq!(
            refused.reported().map(|reported| reported.error.as_str()),
            Some(error)
        );
    }
    for path in [
        "10.0.0.1%2F8/*",
        "10.0.0.0%252F8/*",
        "*/256",
        "*/tcp",
        "%00/*",
        "a..b/*",
    ] {
        let (target, protocol) = path.split_once('/').expect("two");
        let error = hostile::try_bare(&started, target, protocol)
            .await
            .expect_err("malformed");
        let h3::Error::Refused(response) = error else {
            panic!("{error}")
        };
        assert_eq!(response.status(), 400, "{path}");
    }
    assert_eq!(proxy.stats().refused, 11);
    let closed = IpProxy::new(pool(), policy(), Echo::default());
    let started = start_ip(closed).await;
    let client = started.ip_client(Carrier::Http3).await;
    let refused = within(client.open(IpRequest::default()))
        .await
        .expect_err("nobody");
    assert_eq!(refused.status().map(|status| status.as_u16()), Some(407));
}

/// Limit K634.
#[tokio::test(flavor = "multi_thread")]
async fn tunnels_and_addresses_run_out() {
    let small = [prefix("10.89.0.0/29")];
    let proxy = IpProxy::new(small, policy(), Echo::default())
        .authenticate(|_| Ok(Client::new("alice")))
        .limits(Limits {
            tunnels_per_client: 9,
            ..Limits::default()
        });
    let started = start_ip(proxy.clone()).await;
    let client = started.ip_client(Carrier::Http3).await;
    let mut tunnels = Vec::new();
    let refused = loop {
        match within(client.open(IpRequest::default())).await {
            Ok(tunnel) => tunnels.push(tunnel),
            Err(error) => break error,
        }
    };
    assert_eq!(tunnels.len(), 5);
    assert_eq!(refused.status().map(|status| status.as_u16()), Some(503));
    let usual =
        IpProxy::new(pool(), policy(), Echo::default()).authenticate(|_| Ok(Client::new("alice")));
    let started = start_ip(usual).await;
    let client = started.ip_client(Carrier::Http3).await;
    let mut tunnels = Vec::new();
    let refused = loop {
        match within(client.open(IpRequest::default())).await {
            Ok(tunnel) => tunnels.push(tunnel),
            Err(error) => break error,
        }
    };
    assert_eq!(tunnels.len(), 16);
    assert_eq!(refused.status().map(|status| status.as_u16()), Some(429));
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_tunnels_end() {
    let limits = Limits {
        idle: Duration::from_millis(300),
        ..Limits::default()
    };
    let proxy = ip_proxy(&Echo::default()).limits(limits);
    let started = start_ip(proxy.clone()).await;
    let tunnel = started.ip(Carrier::Http3, IpRequest::default()).await;
    for _ in 0..10 {
        tunnel
            .send(ping(own(&tunnel, true), address("192.0.2.1"), 1))
            .expect("open");
        receive(&tunnel).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(within(tunnel.closed()).await, Ended::ByPeer);
    until(|| proxy.stats().assigned == 0).await;
}

/// MQ-ip-033, attack A364.
#[tokio::test(flavor = "multi_thread")]
async fn clients_reach_each_other_only_if_they_may() {
    for may in [false, true] {
        let device = Echo::default();
        let mut proxy = ip_proxy(&device);
        if may {
            proxy = proxy.connect_clients();
        }
        let started = start_ip(proxy.clone()).await;
        let alice = started.ip(Carrier::Http3, IpRequest::default()).await;
        let bob = started.ip(Carrier::Http3, IpRequest::default()).await;
        alice
            .send(ping(own(&alice, true), own(&bob, true), 3))
            .expect("open");
        let answer = receive(&alice).await;
        // The device answers for everybody.
        assert_eq!(icmp_kind(&answer), if may { [0, 0] } else { [3, 13] });
        assert_eq!(proxy.stats().to_network, u64::from(may));
    }
}

/// Attack A384.
#[tokio::test(flavor = "multi_thread")]
async fn packets_of_the_network_have_no_source_of_a_client() {
    for may in [false, true] {
        let device = Echo::default();
        let mut proxy = ip_proxy(&device);
        if may {
            proxy = proxy.connect_clients();
        }
        let started = start_ip(proxy.clone()).await;
        let alice = started.ip(Carrier::Http3, IpRequest::default()).await;
        for (is_ipv4, other, router) in [
            (true, "10.89.0.77", "10.89.0.1"),
            (false, "fd00:89::77", "fd00:89::1"),
        ] {
            device.push(ping(address(other), own(&alice, is_ipv4), 3));
            // The machine of the proxy may have the address of the router.
            device.push(ping(address(router), own(&alice, is_ipv4), 3));
            if may {
                assert_eq!(header(&receive(&alice).await).source, address(other));
            }
            assert_eq!(header(&receive(&alice).await).source, address(router));
        }
        assert_eq!(proxy.stats().dropped, if may { 0 } else { 2 });
    }
}

/// Packets of the network for addresses that no client has.
#[tokio::test(flavor = "multi_thread")]
async fn packets_to_free_addresses_reach_nobody() {
    let device = Echo::default();
    let proxy = ip_proxy(&device);
    let started = start_ip(proxy.clone()).await;
    let tunnel = started.ip(Carrier::Http3, IpRequest::default()).await;
    for destination in ["10.89.0.99", "10.90.0.1", "8.8.8.8"] {
        device.push(ping(address("192.0.2.1"), address(destination), 3));
    }
    device.push(Bytes::new());
    device.push(ping(address("192.0.2.1"), own(&tunnel, true), 3));
    assert_eq!(
        header(&receive(&tunnel).await).destination,
        own(&tunnel, true)
    );
    until(|| proxy.stats().unroutable >= 3).await;
    assert_eq!(proxy.stats().from_network, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_cannot_be_made_say_why() {
    let started = start_ip(ip_proxy(&Echo::default())).await;
    let template = format!("https://localhost:{}/vpn", started.address.port());
    let builder = IpClient::builder(&template).expect("valid");
    let builder = builder
        .roots([started.identity.certificate()])
        .address(started.address);
    let client = within(builder.connect()).await.expect("connected");
    let error = within(client.open(IpRequest::to("192.0.2.1").expect("valid"))).await;
    let OpenError::Config(text) = error.expect_err("no variable") else {
        panic!()
    };
    assert!(
        text.contains("no variable for the target 192.0.2.1"),
        "{text}"
    );
    let many = IpRequest::default().addresses(vec![Prefix::NEW_IPV4; 17]);
    let error = within(client.open(many)).await.expect_err("17");
    assert_eq!(
        error.to_string(),
        "17 addresses are requested, allowed are 16"
    );
}

/// MQ-ip-004: a device that fails ends the tunnels.
#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_fails_ends_the_tunnels() {
    struct Broken(Arc<std::sync::atomic::AtomicBool>);
    impl courser_masque_tokio::Device for Broken {
        fn send_many(&self, packets: &mut Vec<Bytes>) -> std::io::Result<usize> {
            packets.clear();
            self.0.store(true, std::sync::atomic::Ordering::Relaxed);
            Err(std::io::Error::other("gone"))
        }
        fn poll_receive_many(
            &self,
            _: &mut std::task::Context<'_>,
            _: &mut Vec<Bytes>,
            _: usize,
        ) -> std::task::Poll<std::io::Result<usize>> {
            std::task::Poll::Pending
        }
        fn mtu(&self) -> usize {
            1500
        }
    }
    let was_asked = Arc::<std::sync::atomic::AtomicBool>::default();
    let proxy = IpProxy::new(pool(), policy(), Broken(was_asked.clone())).open_to_all();
    let started = start_ip(proxy.clone()).await;
    let client = started.ip_client(Carrier::Http3).await;
    let tunnel = within(client.open(IpRequest::default()))
        .await
        .expect("accepted");
    within(tunnel.configured()).await.expect("open");
    tunnel
        .send(ping(own(&tunnel, true), address("192.0.2.1"), 1))
        .expect("open");
    assert!(matches!(
        within(tunnel.closed()).await,
        Ended::Lost(_) | Ended::ByPeer
    ));
    let refused = within(client.open(IpRequest::default()))
        .await
        .expect_err("failed");
    assert_eq!(refused.status().map(|status| status.as_u16()), Some(500));
}
