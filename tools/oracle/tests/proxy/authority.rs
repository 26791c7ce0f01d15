//! One authority on every hop (RFC 9110 §7.2, RFC 9112 §3.2, RFC 9113 §8.3.1).

use courser_oracle::{Client, Request, Step, UpstreamVersion, Version};

use crate::scene::{Scene, each_pair};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn host_of_the_client_is_that_of_the_request_to_the_upstream_server() {
    each_pair(async |scene, version| {
        for host in [
            "site.test",
            "site.test:8443",
            "[2001:db8::1]:8443",
            "Site.Test",
        ] {
            let request = Request::new("GET", "/a?b").authority(host);
            let seen = scene.forward(version, &request).await;
            assert_eq!(seen.start, "GET /a?b", "{version}");
            assert_eq!(seen.get("host"), host, "{version}: {seen}");
            assert_eq!(seen.get("host (field)"), "", "{version}: {seen}");
            assert_eq!(seen.get("x-forwarded-host"), host, "{version}: {seen}");
            if scene.upstream.version == UpstreamVersion::Http1 {
                assert_eq!(seen.fields[0].0, b"host", "{version}: {seen}");
            }
        }
    })
    .await;
}

/// RFC 9113 §8.3.1, RFC 9114 §4.3.1: Host may stand beside `:authority` with the same value, or instead of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn host_field_of_http2_and_3_becomes_the_one_authority() {
    each_pair(async |scene, version| {
        if version == Version::Http1 {
            return;
        }
        let both = Request::new("GET", "/")
            .authority("a.test")
            .with("host", "a.test");
        let alone = Request::new("GET", "/")
            .authority(None)
            .with("host", "a.test");
        for request in [both, alone] {
            let seen = scene.forward(version, &request).await;
            assert_eq!(seen.get("host"), "a.test", "{version}: {seen}");
            assert_eq!(seen.get("host (field)"), "", "{version}: {seen}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_name_two_hosts_are_not_forwarded() {
    each_pair(async |scene, version| {
        let two = Request::new("GET", "/")
            .authority("a.test")
            .with("host", "b.test");
        let (answer, seen) = scene.exchange(version, &two).await;
        assert!(seen.is_empty(), "{version}: {seen:?}");
        assert!(
            !answer.is_complete() || answer.status() == 400,
            "{version}: {answer}"
        );
    })
    .await;
}

/// Sends bytes over HTTP/1.1 and returns the status line of the response.
async fn raw(scene: &Scene, bytes: &[u8]) -> String {
    let Client::Http1(mut wire) = scene.client(Version::Http1).await else {
        unreachable!("the version is HTTP/1.1");
    };
    wire.run(&[Step::Send(bytes.to_vec())]).await.expect("open");
    let line = wire.take_until(b"\r\n").await.expect("a status line");
    String::from_utf8(line).expect("text")
}

/// RFC 9112 §3.2: neither without Host, nor with one that is no host.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_hosts_are_refused() {
    let scene = Scene::start(UpstreamVersion::Http1).await;
    for head in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET https://a.test/ HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nhost:\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a.test\r\nhost: a.test\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a.test:x\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a.test:65536\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: user@a.test\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a.test/b\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a.test, b.test\r\n\r\n",
    ] {
        let line = raw(&scene, head.as_bytes()).await;
        assert!(line.starts_with("HTTP/1.1 400 "), "{head:?}: {line}");
        assert!(scene.upstream.take().await.is_empty(), "{head:?}");
    }
}

/// RFC 9112 §3.2.2: the target in absolute form comes before Host.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn host_is_made_of_the_absolute_form() {
    for upstream in UpstreamVersion::ALL {
        let scene = Scene::start(upstream).await;
        for (target, host, path) in [
            ("https://a.test:8443/b?c", "a.test:8443", "/b?c"),
            ("https://a.test", "a.test", "/"),
            ("https://A.test?c", "A.test", "/?c"),
        ] {
            let field = host.to_ascii_lowercase();
            let bytes = format!("GET {target} HTTP/1.1\r\nhost: {field}\r\n\r\n");
            let line = raw(&scene, bytes.as_bytes()).await;
            assert!(line.starts_with("HTTP/1.1 200 "), "{target}: {line}");
            let seen = scene.upstream.take().await;
            assert_eq!(seen[0].start, format!("GET {path}"), "{upstream}");
            assert_eq!(seen[0].get("host"), host, "{upstream}: {}", seen[0]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_without_a_host_gets_that_of_the_upstream_server() {
    for upstream in UpstreamVersion::ALL {
        let scene = Scene::start(upstream).await;
        let line = raw(&scene, b"GET / HTTP/1.0\r\n\r\n").await;
        assert!(line.contains(" 200 "), "{line}");
        let seen = scene.upstream.take().await;
        assert_eq!(seen[0].get("host"), scene.upstream.address.to_string());
        assert_eq!(seen[0].get("x-forwarded-host"), "");
        assert!(
            seen[0].get("via").starts_with("1.0 courser-"),
            "{}",
            seen[0]
        );
    }
}

/// RFC 9112 §3.2.4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asterisk_is_forwarded_for_options_only() {
    each_pair(async |scene, version| {
        let seen = scene.forward(version, &Request::new("OPTIONS", "*")).await;
        assert_eq!(seen.start, "OPTIONS *", "{version}");
        let (answer, seen) = scene.exchange(version, &Request::new("GET", "*")).await;
        assert!(seen.is_empty(), "{version}: {seen:?}");
        assert!(
            !answer.is_complete() || answer.status() == 400,
            "{version}: {answer}"
        );
    })
    .await;
}

/// The scheme is that of the connection to the upstream server, and the client's is in other fields.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scheme_of_the_client_is_in_the_forwarding_fields() {
    each_pair(async |scene, version| {
        let seen = scene.forward(version, &Request::new("GET", "/")).await;
        let forwarded = "for=127.0.0.1;host=\"localhost\";proto=https";
        assert_eq!(seen.get("forwarded"), forwarded, "{version}");
        assert_eq!(seen.get("x-forwarded-proto"), "https", "{version}");
    })
    .await;
}
