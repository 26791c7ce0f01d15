//! Requests that open no tunnel.

use std::time::Instant;

use courser_masque_tokio::{Client, Denied, Limits, OpenError};

use super::*;

async fn refused(started: &Started, carrier: Carrier, target: &str) -> OpenError {
    let client = started.client(carrier).await;
    within(client.open(target)).await.expect_err("refused")
}

fn facts(error: &OpenError) -> (u16, Option<String>) {
    let status = error.status().map_or(0, |status| status.as_u16());
    (
        status,
        error.reported().map(|reported| reported.error.clone()),
    )
}

/// Attack A350, MQ-udp-028: neither loopback addresses nor those of the machine are reached.
#[tokio::test(flavor = "multi_thread")]
async fn private_targets_are_prohibited() {
    let started = start(UdpProxy::new(Policy::public_only()).open_to_all()).await;
    let expected = (403, Some("destination_ip_prohibited".to_owned()));
    for carrier in ALL {
        for target in [
            "127.0.0.1:443",
            "[::1]:443",
            "169.254.169.254:80",
            "[::ffff:127.0.0.1]:443",
            "10.0.0.1:53",
        ] {
            let error = refused(&started, carrier, target).await;
            assert_eq!(facts(&error), expected, "{carrier:?} {target}");
        }
    }
}

/// Attack A350: a name with a private address, which another lookup may return too.
#[tokio::test(flavor = "multi_thread")]
async fn names_are_judged_by_their_addresses() {
    let proxy = UdpProxy::new(Policy::public_only())
        .open_to_all()
        .resolver(|name, port| {
            Box::pin(async move {
                match name.as_str() {
                    "rebinding.example" => Ok(vec![
                        ([127, 0, 0, 1], port).into(),
                        ([10, 0, 0, 1], port).into(),
                    ]),
                    "slow.example" => std::future::pending().await,
                    _ => Err(std::io::ErrorKind::NotFound.into()),
                }
            })
        });
    let limits = Limits {
        resolution: Duration::from_millis(100),
        ..Limits::default()
    };
    let started = start(proxy.limits(limits)).await;
    for (name, status, token) in [
        ("rebinding.example:443", 403, "destination_ip_prohibited"),
        ("none.example:443", 502, "dns_error"),
        // Limit K624.
        ("slow.example:443", 504, "dns_timeout"),
    ] {
        let begin = Instant::now();
        let error = refused(&started, Carrier::Http3, name).await;
        assert_eq!(facts(&error), (status, Some(token.to_owned())), "{name}");
        assert!(begin.elapsed() < Duration::from_secs(4));
    }
}

/// Attack A351: the proxy does not send to an address of its own machine, unless a rule names it.
#[tokio::test(flavor = "multi_thread")]
async fn the_addresses_of_the_machine_are_prohibited() {
    // A route to a public address tells which address this machine has; nothing is sent.
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").expect("bound");
    let has_route = probe.connect("198.51.100.1:9").is_ok();
    let Ok(own) = probe.local_addr().map(|address| address.ip()) else {
        return;
    };
    if !has_route || own.is_loopback() || own.is_unspecified() {
        eprintln!(
            "SKIPPED the_addresses_of_the_machine_are_prohibited: no address besides loopback"
        );
        return;
    }
    // A policy that judges the address as a public one: everything private is denied by the usual rules first.
    let prefix = own.to_string().parse().expect("valid");
    let named =
        start(UdpProxy::new(Policy::nothing().allow(prefix, 0..=65_535)).open_to_all()).await;
    let client = named.client(Carrier::Http3).await;
    assert!(within(client.open(&format!("{own}:9"))).await.is_ok());
    let usual = start(UdpProxy::new(Policy::public_only()).open_to_all()).await;
    let error = refused(&usual, Carrier::Http3, &format!("{own}:9")).await;
    assert_eq!(facts(&error).0, 403);
}

/// MQ-udp-027.
#[tokio::test(flavor = "multi_thread")]
async fn clients_without_credentials_are_refused() {
    let target = echo().await.to_string();
    let proxy = UdpProxy::new(local()).authenticate(|request| {
        match request
            .headers
            .get("proxy-authorization")
            .map(|value| value.as_bytes())
        {
            Some(b"Bearer 6b1f") => Ok(Client::new("alice")),
            Some(b"Bearer banned") => Err(Denied::forbidden()),
            _ => Err(Denied::challenge("Bearer")),
        }
    });
    let started = start(proxy).await;
    for carrier in ALL {
        assert_eq!(
            facts(&refused(&started, carrier, &target).await),
            (407, None)
        );
        for (credentials, expected) in [("Bearer 6b1f", 0), ("Bearer banned", 403)] {
            let builder = started
                .builder(carrier)
                .header("proxy-authorization", credentials);
            let client = within(builder.expect("valid").connect())
                .await
                .expect("connected");
            let opened = within(client.open(&target)).await;
            let status = opened.err().map_or(0, |error| facts(&error).0);
            assert_eq!(status, expected, "{carrier:?} {credentials}");
        }
    }
    // Nobody has said whom to serve.
    let undecided = start(UdpProxy::new(local())).await;
    assert_eq!(
        facts(&refused(&undecided, Carrier::Http3, &target).await),
        (407, None)
    );
}

/// MQ-udp-004, attack A360: malformed paths, with a client that sends what it is told.
#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_are_answered_with_400() {
    let started = start(open_proxy()).await;
    let link = started.client(Carrier::Http3).await;
    let client = link.http3().expect("HTTP/3");
    for (host, port) in [
        ("127.1", "443"),
        ("a%2Fb", "443"),
        ("a.example", "0"),
        ("a.example", "65536"),
        ("fe80%3A%3A1%25lo", "443"),
    ] {
        let uri = format!("https://localhost/.well-known/masque/udp/{host}/{port}/");
        let request = http::Request::connect(uri)
            .extension(h3::Protocol::new("connect-udp").expect("a token"))
            .body(())
            .expect("a URI");
        match within(client.connect(request)).await {
            Err(h3::Error::Refused(response)) => {
                assert_eq!(response.status(), 400, "{host} {port}")
            }
            other => panic!("{host} {port}: {other:?}"),
        }
    }
    let uri = "https://localhost/.well-known/masque/udp/a.example/443/";
    let get = http::Request::get(uri).body(h3::Empty).expect("a URI");
    assert_eq!(
        within(client.send(get)).await.expect("answered").status(),
        405
    );
    let request = http::Request::connect(uri)
        .extension(h3::Protocol::WEBSOCKET)
        .body(())
        .expect("a URI");
    match within(client.connect(request)).await {
        Err(h3::Error::Refused(response)) => assert_eq!(response.status(), 501),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_what_was_wrong() {
    let started = start(open_proxy()).await;
    let client = started.client(Carrier::Http3).await;
    let error = within(client.open("example.org"))
        .await
        .expect_err("no port");
    assert!(error.to_string().contains("there is no port"), "{error}");
    let error = within(client.open("10.0.0.1:443"))
        .await
        .expect_err("refused");
    assert_eq!(
        error.to_string(),
        "the proxy has answered 403 Forbidden: destination_ip_prohibited"
    );
    let error = UdpClient::connect("http://proxy.example/{target_host}/{target_port}").await;
    assert!(
        error
            .expect_err("no https")
            .to_string()
            .contains("allowed is https")
    );
}

/// A server without the setting of RFC 8441: the client sends no request, and says why.
#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_without_extended_connect_over_http2_is_an_error() {
    let identity = Identity::dev().expect("an identity");
    let server = courser_server::serve("127.0.0.1:0", identity.clone())
        .bind()
        .expect("a free port");
    let address = server.local_addr();
    tokio::spawn(server.service(open_proxy()).into_future());
    let started = Started { address, identity };
    let connecting = started.builder(Carrier::Http2).connect();
    let error = within(connecting).await.expect_err("unsupported");
    assert!(matches!(error, OpenError::Unsupported), "{error}");
    // HTTP/1.1 needs no setting.
    let target = echo().await.to_string();
    let socket = started.open(Carrier::Http1, &target).await;
    socket.send(b"by upgrade").expect("open");
    assert_eq!(within(socket.recv()).await.expect("open"), "by upgrade");
}
